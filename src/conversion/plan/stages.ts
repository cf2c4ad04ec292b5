/** @module Arguments of ImageMagick. Each stage is a pure function from a job to arguments. */
import { OUTPUTS } from '../../formats.ts';
import { cmykToSrgb, rgbToSrgb } from './colour.ts';
import { coalesceFrames, decode, orient, repairColours } from './decode.ts';
import { ENCODERS, EXTERNAL_ENCODERS } from './encode.ts';
import { crop, pad, resize, shrinkOnLoad } from './resize.ts';
import { isPassthrough, keepsAllFrames, selectedPages } from './selection.ts';
import { hideMissingPart } from './truncation.ts';
import { KEPT_FILE, type PlanContext } from './types.ts';

/** Stages in the order in which ImageMagick runs them. */
const STAGES: readonly ((job: PlanContext) => readonly string[])[] = [
  setMagickLimits,
  shrinkOnLoad,
  ignoreBmpSize,
  decode,
  coalesceFrames,
  repairColours,
  hideMissingPart,
  orient,
  printHalfTransparent,
  cmykToSrgb,
  resize,
  crop,
  rgbToSrgb,
  flatten,
  pad,
  binaryAlpha,
  stripMetadata,
  keep,
  encode,
];
const ENCODING: readonly ((job: PlanContext) => readonly string[])[] = [keep, encode];

/** Returns all arguments of the command that converts the image. */
export function magickArguments(job: PlanContext): string[] {
  return STAGES.flatMap((stage) => stage(job));
}

/** Returns the arguments that encode the stored image again; see {@link KEPT_FILE}. */
export function encodeArguments(job: PlanContext): string[] {
  return [...setMagickLimits(job), `MIFF:${KEPT_FILE}`, ...stripMetadata(job), ...encode(job)];
}

/** Returns the arguments that write each frame to a numbered PNG file, for img2webp to assemble. */
export function frameArguments(job: PlanContext): string[] {
  const stages = STAGES.filter((stage) => !ENCODING.includes(stage)).flatMap((stage) => stage(job));
  return [...stages, '-depth', '8', '-define', 'png:compression-level=1', 'png:frame-%05d.png'];
}

/** Format of a line that ends in `true` or `false`. */
const OPAQUE = 'opaque: %[opaque]\\n';
/** Format of a line that ends in a number. */
const HALF_TRANSPARENT = 'half transparent: %[max]\\n';

/**
 * Limits the threads to processors that no other conversion uses. Every job sets the limit, because a warm worker keeps
 * that of its last job. Selects 16-bit colour transforms, which are four times as fast on ImageMagick 7.
 */
function setMagickLimits({ tools: { threads = 1 } }: PlanContext): string[] {
  return ['-limit', 'thread', String(threads), '-define', 'profile:highres-transform=false'];
}

/** Ignores the file size that a BMP states: it can be 0, or smaller than the file. */
function ignoreBmpSize({ image }: PlanContext): string[] {
  return image.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Replaces transparency by the background colour, and prints whether there was any. */
function flatten(job: PlanContext): string[] {
  const { format, background = '#ffffff' } = job.options;
  if (OUTPUTS[format].alpha !== 'none') return [];
  return [...printOpaque(job), '-background', background, '-alpha', 'remove', '-alpha', 'off'];
}

/** Prints whether each frame is opaque. For a list, ImageMagick would print it of the first frame only. */
function printOpaque(job: PlanContext): string[] {
  return printOfEach(job, ['-print', OPAQUE]);
}

/** Number of frames that are measured together. Their copies are in memory, and bubblewrap accepts 9000 arguments. */
const FRAMES_PER_MEASUREMENT = 8;

/**
 * Prints the maximum of 4a(1 − a) for outputs with binary transparency. It exceeds 0 if any alpha is neither 0 nor 1.
 * Runs before the resize, which makes edges partially transparent. A GIF and a JPEG have no partial transparency.
 */
function printHalfTransparent(job: PlanContext): string[] {
  const { image, options } = job;
  if (OUTPUTS[options.format].alpha !== 'binary' || ['gif', 'jpg'].includes(image.type)) return [];
  // ImageMagick 6 extracts the values of an alpha channel that is off. `set` makes such a channel opaque.
  const extract = ['-alpha', 'set', '-alpha', 'extract', '-function', 'Polynomial', '-4,4,0'];
  const count = framesOf(job);
  if (count === 1) return ['(', '+clone', ...extract, '-print', HALF_TRANSPARENT, '+delete', ')'];
  const measure = [...extract, '-evaluate-sequence', 'Max', '-print', HALF_TRANSPARENT, '+delete'];
  return Array.from({ length: Math.ceil(count / FRAMES_PER_MEASUREMENT) }, (_, group) => {
    const first = group * FRAMES_PER_MEASUREMENT;
    const last = Math.min(first + FRAMES_PER_MEASUREMENT, count) - 1;
    return ['(', '-clone', `${first}-${last}`, ...measure, ')'];
  }).flat();
}

function framesOf(job: PlanContext): number {
  const frames = keepsAllFrames(job) ? (job.image.animation?.delaysMs.length ?? 1) : 1;
  return Math.max(frames, selectedPages(job).length);
}

function printOfEach(job: PlanContext, print: readonly string[]): string[] {
  const count = framesOf(job);
  if (count === 1) return [...print];
  return Array.from({ length: count }, (_, at) => [
    '(',
    '-clone',
    String(at),
    ...print,
    '+delete',
    ')',
  ]).flat();
}

function binaryAlpha(job: PlanContext): string[] {
  if (OUTPUTS[job.options.format].alpha !== 'binary' || isPassthrough(job)) return [];
  return ['-channel', 'A', '-threshold', '50%', '+channel'];
}

/** Removes all metadata, or only the dates of the working file, which ImageMagick would add to it. */
function stripMetadata({ options }: PlanContext): string[] {
  return options.stripMetadata ? ['-strip'] : WORKING_FILE_DATES.flatMap((name) => ['+set', name]);
}

const WORKING_FILE_DATES = ['date:create', 'date:modify', 'date:timestamp'];

/**
 * Stores the image if `maxBytes` can require ImageMagick to encode it again. MIFF holds frames and CMYK and is not
 * compressed: 6 megapixels take 0.05 s to write and 0.03 s to read; an uncompressed PNG takes 0.35 s and 0.1 s.
 */
function keep({ options }: PlanContext): string[] {
  return options.maxBytes && !EXTERNAL_ENCODERS[options.format]
    ? ['-depth', '8', '-write', `MIFF:${KEPT_FILE}`]
    : [];
}

function encode(job: PlanContext): string[] {
  const { options, output } = job;
  return [...ENCODERS[options.format](job), `${OUTPUTS[options.format].coder}:${output}`];
}
