import type { InputType } from '../../formats.ts';
import { jxlThreads } from './encode.ts';
import { MAGICK_FEATURES } from './magick-features.ts';
import { type Decoding, type ImageInfo, INPUT_FILE, type ToolContext, type ToolName } from './types.ts';

/** Inputs that another program turns into PNG, because ImageMagick cannot read them or reads them wrong. Pure. */

const DECODED = 'decoded.png';

/** The program that decodes files of this type; undefined when ImageMagick reads them itself. */
export function decoderOf(type: InputType, magick: 6 | 7): ToolName | undefined {
  if (type === 'jxl') return 'djxl';
  if (type === 'avif' || type === 'heic') return MAGICK_FEATURES[magick].heif === 'heif' ? 'heif' : undefined;
  return undefined;
}

/** How the image is decoded first; undefined when it needs no decoding. */
export function decodingOf(
  { type, images, unevenDepth }: ImageInfo,
  tools: ToolContext,
): Decoding | undefined {
  switch (decoderOf(type, tools.magick)) {
    case 'djxl':
      return {
        step: {
          tool: 'djxl',
          // Version 0.7 writes no PNG of uneven depths, unless all channels get one.
          args: [
            ...[INPUT_FILE, DECODED, jxlThreads(tools), '--quiet'],
            ...(unevenDepth ? ['--bits_per_sample=8'] : []),
          ],
        },
        output: DECODED,
      };
    case 'heif': {
      const { count, primary } = images ?? { count: 1, primary: 1 };
      // Of several pictures libheif's tool writes each, with its number behind the name.
      const output = count > 1 ? DECODED.replace('.', `-${primary}.`) : DECODED;
      return { step: { tool: 'heif', args: [INPUT_FILE, DECODED] }, output };
    }
    default:
      return undefined;
  }
}
