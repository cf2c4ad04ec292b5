/**
 * @module Derives from an image and the options of its conversion what the plan depends on, such as the programs that run, and
 * whether it is of a kind that is rejected. Pure.
 */

import { INPUTS, type InputType, isHeif, type OutputType } from '../../formats.ts';
import { combineOrientations, type ImageInfo, turnSize } from '../../images/image-info.ts';
import { KINDS, type KindRow } from '../../images/kinds.ts';
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
  const { pages, fittings, turn, keepsAllFrames: allFrames } = extent;
  const isTrusted = decoded || pages.length === 1 || TRUSTED_HEADERS.includes(type);
  const trustedFitting = isTrusted ? fittings[0] : undefined;
  const decoder = decoded ? undefined : externalDecoder(type, tools.magick);
  const isTranscoded = transcodes(image, options);
  const last: ToolName[] = isTranscoded
    ? ['cjxl', 'djxl']
    : programsFor(type, options, allFrames && assembles(options, tools));
  const drawing = last[0] === 'rsvg' && last.length > 1 ? [RASTERIZED_FILE] : undefined;
  const rendered = type === 'pdf' ? pageFiles({ image, pages }) : drawing;
  const rasterized = rendered ?? decoded ?? (decoder && [DECODED_FILE]);
  const isStored = !allFrames && (!rasterized || image.plannedTransforms);
  const orientation = combineOrientations((isStored && image.orientation) || 1, turn);
  const scaledDecoding =
    trustedFitting && honours('scaledDecoding', options)
      ? scaleDecoding(image, turnSize(trustedFitting.resized, orientation), options, tools)
      : undefined;
  const programs: ToolName[] = scaledDecoding && type === 'webp' ? ['dwebp', ...last] : last;
  return {
    ...{ ...extent, tools, suffix, decoder, programs },
    output: `${OUTPUT}.${options.format}`,
    ...{ scaledDecoding, isTranscoded },
    ...{ rasterized, orientation },
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
  const { format, lossless = false, metadata } = options;
  const isWanted = type === 'jpg' && format === 'jxl' && lossless && metadata === 'all';
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

/** Returns the kinds of a file and of its pages to convert. */
export const kindsOf = ({ image, pages }: Pick<ConversionJob, 'image' | 'pages'>): KindRow[] =>
  [image, ...pages].flatMap(({ kinds = [] }) => kinds).map((kind) => KINDS[kind]);

/**
 * Returns the label of the first kind for which a job is rejected.
 *
 * @param readsMisread whether to convert kinds that this version of ImageMagick misreads
 */
export const refusedLabel = (job: ConversionJob, readsMisread = false): string | undefined =>
  kindsOf(job).find(
    ({ refused }) =>
      refused === 'always' ||
      (!readsMisread && typeof refused === 'object' && refused.includes(job.tools.magick)),
  )?.label;
