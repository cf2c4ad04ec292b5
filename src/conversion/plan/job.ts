/** @module Derives from an image and the options of its conversion what the plan depends on. Pure. */

import type { InputType, OutputType } from '../../formats.ts';
import type { ImageInfo } from '../../images/image-info.ts';
import type { ToolName } from '../../tools.ts';
import { SIDE } from './attention.ts';
import { externalDecoder } from './decoders.ts';
import { EXTERNAL_ENCODERS } from './encode.ts';
import { pageFiles } from './rasterize.ts';
import { fills } from './resize.ts';
import { scaleDecoding } from './scaled-decoding.ts';
import { fitAll, keepsAllFrames, selectPages, staysVector } from './size.ts';
import { OUTPUT } from './step.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  DECODED_FILE,
  type Fitting,
  MAGICK_FEATURES,
  RASTERIZED_FILE,
  type Sentence,
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
  const allFrames = keepsAllFrames(image, options);
  const pages = selectPages(image, options);
  const fittings = fitAll({ image, options, pages, keepsAllFrames: allFrames });
  const isTrusted = decoded || pages.length === 1 || TRUSTED_HEADERS.includes(type);
  const trustedFitting = isTrusted ? fittings[0] : undefined;
  const decoder = decoded ? undefined : externalDecoder(type, tools.magick);
  const isTranscoded = transcodes(image, options);
  const last: ToolName[] = isTranscoded
    ? ['cjxl', 'djxl']
    : programsFor(type, options, allFrames && assembles(options, tools));
  const drawing = last[0] === 'rsvg' && last.length > 1 ? [RASTERIZED_FILE] : undefined;
  const rendered = type === 'pdf' ? pageFiles({ image, pages }) : drawing;
  const isWhole = options.crop === undefined;
  const isUnresized = isWhole && !options.width && !options.height;
  const scaledDecoding =
    trustedFitting && isWhole ? scaleDecoding(image, trustedFitting.resized, options, tools) : undefined;
  const programs: ToolName[] = scaledDecoding && type === 'webp' ? ['dwebp', ...last] : last;
  return {
    ...{ image, options, tools, suffix, decoder, programs, keepsAllFrames: allFrames, pages, fittings },
    output: `${OUTPUT}.${options.format}`,
    ...{ scaledDecoding, isTranscoded },
    rasterized: rendered ?? decoded ?? (decoder && [DECODED_FILE]),
    frameCount: Math.max(allFrames ? (animation?.delaysMs.length ?? 1) : 1, pages.length),
    isPassthrough: isUnresized && type === 'gif' && options.format === 'gif' && allFrames,
    trustedFitting,
  };
}

/**
 * Returns whether a JPEG becomes a JPEG XL from which its bytes can be restored: if this is wanted, and nothing is asked for that
 * changes the pixels or removes metadata. JPEG XL has no form for CMYK, or for a profile that libjxl cannot read.
 */
function transcodes(
  { type, orientation = 1, cmyk = false, profile }: ImageInfo,
  { format, lossless = false, stripMetadata, width, height, crop }: ConvertOptions,
): boolean {
  const keepsPixels = !width && !height && crop === undefined && orientation === 1;
  const isWanted = type === 'jpg' && format === 'jxl' && lossless && !stripMetadata;
  return isWanted && keepsPixels && !cmyk && profile !== 'unusable';
}

/** Returns whether img2webp writes an animation. */
function assembles(
  { format }: Pick<ConvertOptions, 'format'>,
  { magick, assemblesWebp = false }: ToolContext,
): boolean {
  return format === 'webp' && (assemblesWebp || !MAGICK_FEATURES[magick].animatedWebp);
}

/**
 * Derives the job that writes the reduced image for `position=attention`: the first frame or page, upright, in sRGB, on black, so that
 * transparent pixels do not count.
 *
 * @returns undefined if nothing is to be chosen, because nothing is cut or the place is given. Pages of different sizes, and an
 *   image without a known size, keep their centre.
 */
export function createReducingJob(job: ConversionJob): ConversionJob | undefined {
  const { image, options, tools, keepsAllFrames } = job;
  const [fitting, ...others] = job.fittings;
  const isChosen = options.fit === 'cover' && options.position === 'attention';
  if (!isChosen || !fitting || fills(fitting) || others.some((other) => !isSame(other, fitting)))
    return undefined;
  return createJob(
    keepsAllFrames ? { ...image, orientation: 1 } : image, // frames are not rotated
    {
      ...{ format: 'bmp', quality: 100, stripMetadata: true, background: '#000000' },
      ...{ crop: options.crop, dpi: options.dpi, width: SIDE, height: SIDE, fit: 'fill', enlarge: true },
      ...{ frames: 'first', pages: 'first' },
    },
    tools,
    'attention',
  );
}

export const explainAttention: Sentence = (job) =>
  createReducingJob(job) &&
  'edges, skin tones and saturation decide which part is kept: the commands keep the centre';

function isSame({ resized: { width, height } }: Fitting, { resized }: Fitting): boolean {
  return width === resized.width && height === resized.height;
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

function programsFor(
  type: InputType,
  options: Pick<ConvertOptions, 'format' | 'fit' | 'crop'>,
  isAssembled: boolean,
): ToolName[] {
  const { format, fit } = options;
  // librsvg writes no metadata that would have to be removed. The borders of `contain` can have a background colour that must not
  // fill transparent parts of the drawing.
  if (type === 'svg' && (staysVector(options) || (format === 'png' && fit !== 'contain'))) return ['rsvg'];
  const last = isAssembled ? 'img2webp' : (EXTERNAL_ENCODERS[format]?.tool ?? 'magick');
  return [...(RENDERERS[type] ?? []), 'magick', ...(last === 'magick' ? [] : [last])];
}
