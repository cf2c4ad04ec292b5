/** @module Inputs that an external program decodes to PNG, because ImageMagick cannot read or misreads them. Pure. */
import type { InputType } from '../../formats.ts';
import { jxlThreads } from './encode.ts';
import type { ImageInfo } from './image-info.ts';
import { MAGICK_FEATURES } from './magick-features.ts';
import { type Decoding, INPUT_FILE, type ToolContext, type ToolName } from './types.ts';

const DECODED = 'decoded.png';

/** Returns the external program that decodes files of this type; undefined if ImageMagick reads them itself. */
export function externalDecoder(type: InputType, magick: 6 | 7): ToolName | undefined {
  if (type === 'jxl') return 'djxl';
  if (type === 'avif' || type === 'heic') return MAGICK_FEATURES[magick].heif === 'heif' ? 'heif' : undefined;
  return undefined;
}

/** Plans the command that decodes the image to PNG; undefined if ImageMagick reads it itself. */
export function planDecoding(
  { type, images, unevenDepth }: ImageInfo,
  tools: ToolContext,
): Decoding | undefined {
  switch (externalDecoder(type, tools.magick)) {
    case 'djxl':
      return {
        step: {
          tool: 'djxl',
          // djxl 0.7 writes no PNG of channels with different depths, unless all get the same one.
          args: [
            ...[INPUT_FILE, DECODED, jxlThreads(tools), '--quiet'],
            ...(unevenDepth ? ['--bits_per_sample=8'] : []),
          ],
        },
        output: DECODED,
      };
    case 'heif': {
      const { count, primary } = images ?? { count: 1, primary: 1 };
      // heif-convert writes every image of a file, and appends numbers to the name.
      const output = count > 1 ? DECODED.replace('.', `-${primary}.`) : DECODED;
      return { step: { tool: 'heif', args: [INPUT_FILE, DECODED] }, output };
    }
    default:
      return undefined;
  }
}
