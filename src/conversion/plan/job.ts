/**
 * @module Derives from an image and the options of its conversion what the plan depends on, such as the programs that run. Lists the
 * kinds of files that no program decodes correctly. Pure.
 */

import { INPUTS, type InputType, isHeif, type OutputType } from '../../formats.ts';
import type { ImageInfo, MisreadKind } from '../../images/image-info.ts';
import type { ToolName } from '../../tools.ts';
import { EXTERNAL_ENCODERS } from './encode.ts';
import { pageFiles } from './rasterize.ts';
import { scaleDecoding } from './scaled-decoding.ts';
import { honours } from './short-paths.ts';
import { type DrawingOptions, extentOf, staysVector } from './size.ts';
import { OUTPUT } from './step.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  DECODED_FILE,
  MAGICK_FEATURES,
  RASTERIZED_FILE,
  type ToolContext,
} from './types.ts';

/** Types whose header reliably states the size of the decoded image. */
const TRUSTED_HEADERS: readonly InputType[] = ['jpg', 'png', 'webp', 'bmp'];

/**
 * Derives a job. If a command shows more of the image than its header, another job is derived from the changed image.
 *
 * @param suffix distinguishes the files of one of several results
 */
export function createJob(
  image: ImageInfo,
  options: ConvertOptions,
  tools: ToolContext,
  suffix = '',
): ConversionJob {
  const { type, animation, decoded } = image;
  const extent = extentOf(image, options);
  const { pages, fittings, keepsAllFrames: allFrames } = extent;
  const isTrusted = decoded || pages.length === 1 || TRUSTED_HEADERS.includes(type);
  const trustedFitting = isTrusted ? fittings[0] : undefined;
  const decoder = decoded ? undefined : externalDecoder(type, tools.magick);
  const isTranscoded = transcodes(image, options);
  const last: ToolName[] = isTranscoded
    ? ['cjxl', 'djxl']
    : programsFor(type, options, allFrames && assembles(options, tools));
  const drawing = last[0] === 'rsvg' && last.length > 1 ? [RASTERIZED_FILE] : undefined;
  const rendered = type === 'pdf' ? pageFiles({ image, pages }) : drawing;
  const scaledDecoding =
    trustedFitting && honours('scaledDecoding', options)
      ? scaleDecoding(image, trustedFitting.resized, options, tools)
      : undefined;
  const programs: ToolName[] = scaledDecoding && type === 'webp' ? ['dwebp', ...last] : last;
  return {
    ...{ ...extent, tools, suffix, decoder, programs },
    output: `${OUTPUT}.${options.format}`,
    ...{ scaledDecoding, isTranscoded },
    rasterized: rendered ?? decoded ?? (decoder && [DECODED_FILE]),
    frameCount: Math.max(allFrames ? (animation?.delaysMs.length ?? 1) : 1, pages.length),
    isPassthrough: type === 'gif' && options.format === 'gif' && allFrames && honours('passthrough', options),
    trustedFitting,
  };
}

/**
 * Returns whether a JPEG becomes a JPEG XL from which its bytes can be restored: if this is wanted, and nothing is asked for that
 * changes the pixels or removes metadata. JPEG XL has no form for CMYK, or for a profile that libjxl cannot read.
 */
function transcodes(
  { type, orientation = 1, cmyk = false, profile }: ImageInfo,
  options: ConvertOptions,
): boolean {
  const { format, lossless = false, stripMetadata } = options;
  const isWanted = type === 'jpg' && format === 'jxl' && lossless && !stripMetadata;
  const keepsPixels = orientation === 1 && honours('transcoding', options);
  return isWanted && keepsPixels && !cmyk && profile !== 'unusable';
}

/** Returns whether img2webp writes an animation. */
function assembles(
  { format }: Pick<ConvertOptions, 'format'>,
  { magick, assemblesWebp = false }: ToolContext,
): boolean {
  return format === 'webp' && (assemblesWebp || !MAGICK_FEATURES[magick].animatedWebp);
}

/** Returns the tools that every conversion from this type to this format needs: one that inspects or decodes, and the programs. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): ToolName[] {
  const first = type === 'pdf' ? 'pdfinfo' : externalDecoder(type, magick);
  return [...(first ? [first] : []), ...programsFor(type, { format }, false)];
}

/** Programs that render what has no pixels. */
const RENDERERS: Readonly<Partial<Record<InputType, readonly ToolName[]>>> = {
  svg: ['rsvg'],
  pdf: ['pdftocairo'],
};

function programsFor(type: InputType, options: DrawingOptions, isAssembled: boolean): ToolName[] {
  const { format } = options;
  if (type === 'svg' && (staysVector(options) || isDrawing(options))) return ['rsvg'];
  const last = isAssembled ? 'img2webp' : (EXTERNAL_ENCODERS[format]?.tool ?? 'magick');
  return [...(RENDERERS[type] ?? []), 'magick', ...(last === 'magick' ? [] : [last])];
}

/**
 * Returns whether the PNG of librsvg is the result. It has no metadata that would have to be removed. The borders of `contain` can
 * have a background colour that must not fill transparent parts of the drawing.
 */
const isDrawing = (options: DrawingOptions): boolean =>
  options.format === 'png' && options.fit !== 'contain' && honours('drawing', options);

/** Returns the external program that decodes files of this type; undefined if ImageMagick reads them itself. */
function externalDecoder(type: InputType, magick: 6 | 7): ToolName | undefined {
  if (type === 'jxl') return 'djxl';
  if (isHeif(type)) return MAGICK_FEATURES[magick].heif === 'heif' ? 'heif' : undefined;
  return undefined;
}

/** Returns the coder with which ImageMagick reads files of this type; undefined if another program decodes them. */
export function magickDecoder(type: InputType, magick: 6 | 7): string | undefined {
  return externalDecoder(type, magick) ? undefined : INPUTS[type].coder;
}

/** A kind of file that ImageMagick decodes to a wrong image without an error, or not at all although it is valid. */
interface MisreadRow {
  /** Names the kind in the error message: "FILE uses an unsupported encoding (…)". */
  readonly label: string;
  /** Major versions of ImageMagick that misread it. */
  readonly by: readonly (6 | 7)[];
}

const BOTH = [6, 7] as const;

/**
 * All kinds of files that ImageMagick is known to misread, measured with versions 6.9.11-60 and 7.1.1-43. The readers
 * in `images/` recognize them by the header. Files of these kinds are rejected: a clear error is better than a wrong
 * image.
 *
 * `fixtures/traps/` has a file of each kind, with its name. The tests check for every row and version that it is still misread.
 * If they fail with a newer ImageMagick, remove the version from the row.
 */
export const MISREAD_KINDS: Readonly<Record<MisreadKind, MisreadRow>> = {
  'old-jpeg': { label: 'old-style JPEG in a TIFF', by: [6] },
  'ycbcr-subsampled': { label: 'subsampled YCbCr colours outside of JPEG in a TIFF', by: BOTH },
  'ycbcr-matrix': { label: 'YCbCr colours and coefficients of its own in a TIFF', by: BOTH },
  'stray-predictor': { label: 'a predictor without LZW or Deflate in a TIFF', by: BOTH },
  'signed-samples': { label: 'signed samples in a TIFF', by: BOTH },
  'samples-24': { label: '24 bits per sample in a TIFF', by: [6] },
  'samples-64': { label: '64 bits per sample in a TIFF', by: BOTH },
  'uneven-samples': { label: 'samples of different sizes in a TIFF', by: BOTH },
  'white-half-float': { label: '16-bit float samples whose white is 0 in a TIFF', by: BOTH },
  'planar-grey-alpha': { label: 'extra channels in a planar greyscale TIFF', by: BOTH },
  'planar-unused-channel': { label: 'extra channels that are not alpha in a planar TIFF', by: [7] },
  'palette-extra-channel': { label: 'extra channels with a palette in a TIFF', by: [7] },
  'planar-alpha-first': { label: 'more channels after alpha in a planar TIFF', by: BOTH },
  'alpha-not-first': { label: 'other extra channels before alpha in a TIFF', by: BOTH },
  'other-inks': { label: 'other inks than CMYK in a TIFF', by: BOTH },
  'float-lab': { label: 'CIELab colours as floats in a TIFF', by: BOTH },
  'jpeg-lab': { label: 'CIELab colours as JPEG in a TIFF', by: BOTH },
  'lightness-only': { label: 'the lightness of CIELab only in a TIFF', by: [6] },
  'icc-lab': { label: 'ICCLab or ITULab colours in a TIFF', by: BOTH },
  'sensor-mosaic': { label: 'raw data of a sensor in a TIFF', by: [7] },
  'tiled-cmyk-jpeg': { label: 'tiles of CMYK JPEG in a TIFF', by: BOTH },
  'alpha-without-properties': { label: 'an AVIF whose alpha states no size', by: [6] },
  'bmp-header': { label: 'a header of OS/2 2.x, or of 52 bytes, in a BMP', by: BOTH },
  'bmp-masks': { label: 'bit masks other than 5-5-5, 5-6-5 or from 8 bits on in a BMP', by: BOTH },
  'bmp-2-bits': { label: '2 bits per pixel in a BMP', by: BOTH },
  'bmp-alpha-bit-fields': { label: 'the compression BI_ALPHABITFIELDS in a BMP', by: BOTH },
  'icon-bitmap': {
    label: 'bit masks, 2 or 16 bits per pixel, rows from the top or a longer header in an icon',
    by: BOTH,
  },
};

/** Returns the label of the first kind, of the file or a page to convert, that this version of ImageMagick misreads. */
export function misreadLabel({ image, pages, tools }: ConversionJob): string | undefined {
  const kinds = [image, ...pages].flatMap(({ misread = [] }) => misread);
  const found = kinds.find((kind) => MISREAD_KINDS[kind].by.includes(tools.magick));
  return found && MISREAD_KINDS[found].label;
}
