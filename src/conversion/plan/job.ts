/** @module Derives what a plan depends on, such as the programs, and what is rejected. Pure. */
import { combineOrientations, type ImageInfo, turnSize } from '../../images/image-info.ts';
import { KINDS, type KindRow } from '../../images/kinds.ts';
import { INPUTS, type InputType, isHeif, OUTPUTS, type OutputType } from '../../tables/formats.ts';
import type { ToolName } from '../../tables/tools.ts';
import { colourKind } from './colour.ts';
import { EXTERNAL_ENCODERS } from './external-encoders.ts';
import { searchOf } from './likeness.ts';
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
  type Measured,
  RASTERIZED_FILE,
  type ToolContext,
} from './types.ts';

/** Derives a job from the header of an image, and from what tools have measured since. */
export function createJob(
  header: ImageInfo,
  options: ConvertOptions,
  tools: ToolContext,
  suffix = '',
  measured: Measured = {},
): ConversionJob {
  const image = measured.image ?? header;
  const { type, animation, decoded } = image;
  const extent = extentOf(image, options, measured);
  const { pages, fittings, turn, keepsAllFrames: allFrames } = extent;
  const isTrusted = decoded || pages.length === 1 || INPUTS[type].trustedSize;
  const trustedFitting = isTrusted ? fittings[0] : undefined;
  const decoder = decoded ? undefined : externalDecoder(type, tools.magick);
  const isTranscoded = transcodes(image, options);
  const isEmbedded = embeds(image, options);
  const last: ToolName[] = isTranscoded
    ? ['cjxl', 'djxl']
    : programsFor(type, options, encoderOf(image, options, tools, allFrames));
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
  const frameCount = Math.max(allFrames ? (animation?.delaysMs.length ?? 1) : 1, pages.length);
  return {
    ...extent,
    tools,
    suffix,
    decoder,
    programs,
    colourPages: new Map(pages.map((page) => [colourKind(page), page])),
    output: `${OUTPUT}.${options.format}`,
    scaledDecoding,
    isTranscoded,
    isEmbedded,
    rasterized,
    orientation,
    frameCount,
    search: searchOf({ ...extent, isTranscoded, frameCount }),
    isPassthrough: type === 'gif' && options.format === 'gif' && allFrames && honours('passthrough', options),
    trustedFitting,
  };
}

/** Derives a job again, with what tools have found out since, and for other options. */
export const deriveAgain = (job: ConversionJob, found: Measured, options = job.options): ConversionJob =>
  createJob(job.image, options, job.tools, job.suffix, { ...job.measured, ...found });

/**
 * Returns whether a JPEG becomes a JPEG XL from which its bytes can be restored: if this is wanted,
 * and nothing is asked for that changes the pixels or removes metadata. JPEG XL has no form for
 * CMYK, or for a profile that libjxl cannot read.
 */
export function transcodes(
  { type, orientation = 1, cmyk = false, profile, unrestorable = false }: ImageInfo,
  options: ConvertOptions,
): boolean {
  const { format, lossless = false, metadata } = options;
  const isWanted = type === 'jpg' && OUTPUTS[format].restorer !== undefined && lossless && metadata === 'all';
  const keepsPixels = orientation === 1 && honours('transcoding', options);
  return isWanted && keepsPixels && !cmyk && !unrestorable && profile !== 'unusable';
}

/**
 * Returns whether a PDF contains the data of a JPEG as it is: if no loss is wanted, and nothing is
 * asked for that changes the pixels. An orientation and `rotate` only change the page.
 */
function embeds({ type, pixels, kinds = [] }: ImageInfo, options: ConvertOptions): boolean {
  const { format, lossless = false } = options;
  const isWanted = type === 'jpg' && format === 'pdf' && lossless;
  return isWanted && pixels !== undefined && kinds.length === 0 && honours('embedding', options);
}

/** Returns img2webp for animations, cwebp for invisible pixels, pngquant for palettes, or none. */
function encoderOf(
  { type, pixels }: ImageInfo,
  { format, colors, lossless = false }: ConvertOptions,
  { magick, encodesWebp = false, assemblesWebp = false, selectsColours = false }: ToolContext,
  isAnimated: boolean,
): ToolName | undefined {
  if (format === 'png') return selectsColours && colors !== undefined ? 'pngquant' : undefined;
  if (format !== 'webp') return undefined;
  if (isAnimated) return assemblesWebp || !MAGICK_FEATURES.animatedWebp[magick] ? 'img2webp' : undefined;
  // What librsvg does not paint is black, as libwebp makes it.
  const isOpaque = type === 'svg' || INPUTS[type].opaque === true || pixels?.alpha === false;
  return lossless && encodesWebp && !MAGICK_FEATURES.exactWebp[magick] && !isOpaque ? 'cwebp' : undefined;
}

/** Returns the tools that each such conversion needs: to inspect or decode, and the programs. */
export function toolsFor(type: InputType, format: OutputType, magick: 6 | 7): ToolName[] {
  const first = type === 'pdf' ? 'pdfinfo' : externalDecoder(type, magick);
  return [...(first ? [first] : []), ...programsFor(type, { format })];
}

/** Programs that render what has no pixels. */
const RENDERERS: Readonly<Partial<Record<InputType, readonly ToolName[]>>> = {
  svg: ['rsvg'],
  pdf: ['pdftocairo'],
};

function programsFor(type: InputType, options: DrawingOptions, chosen?: ToolName): ToolName[] {
  const { format } = options;
  if (type === 'svg' && (staysVector(options) || isDrawing(options))) return ['rsvg'];
  const encoder = chosen ?? EXTERNAL_ENCODERS[format]?.tool;
  return [...(RENDERERS[type] ?? []), 'magick', ...(encoder ? [encoder] : [])];
}

/**
 * Returns whether the PNG of librsvg is the result. It has no metadata that would have to be
 * removed. The borders of `contain` can have a background colour that must not fill transparent
 * parts of the drawing.
 */
const isDrawing = (options: DrawingOptions): boolean =>
  options.format === 'png' && options.fit !== 'contain' && honours('drawing', options);

/** Returns the program that decodes files of this type; undefined for ImageMagick itself. */
function externalDecoder(type: InputType, magick: 6 | 7): ToolName | undefined {
  if (isHeif(type)) return MAGICK_FEATURES.heif[magick];
  return INPUTS[type].decoder;
}

/** Returns the coder of ImageMagick that reads this type; undefined if another program does. */
export function magickDecoder(type: InputType, magick: 6 | 7): string | undefined {
  return externalDecoder(type, magick) ? undefined : INPUTS[type].coder;
}

/** Returns the kinds of a file and of its pages to convert. */
export const kindsOf = ({ image, pages }: Pick<ConversionJob, 'image' | 'pages'>): KindRow[] =>
  [image, ...pages].flatMap(({ kinds = [] }) => kinds).map((kind) => KINDS[kind]);

/** Returns the label of the first kind that is rejected or misread. */
export const refusedLabel = (job: ConversionJob): string | undefined =>
  kindsOf(job).find(
    ({ refused }) =>
      refused === 'always' || (typeof refused === 'object' && refused.includes(job.tools.magick)),
  )?.label;
