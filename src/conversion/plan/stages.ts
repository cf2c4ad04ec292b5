import { OUTPUTS } from '../../formats.ts';
import { crop, pad } from './canvas.ts';
import { cmykToSrgb, rgbToSrgb } from './colour.ts';
import { coalesceFrames, decode, orient, repairColours } from './decode.ts';
import { ENCODERS, ENCODERS_AFTER } from './encode.ts';
import { resize, shrinkOnLoad } from './resize.ts';
import { isPassthrough, keepsAllFrames, selectedPages } from './selection.ts';
import { hideMissingPart } from './truncation.ts';
import { KEPT_FILE, type PlanContext } from './types.ts';

/** What ImageMagick is told, stage by stage. Pure: every stage maps a job to arguments. */

/** The order in which ImageMagick does things. Each stage adds its arguments, or none. */
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

/** The whole command line, without the program. */
export function magickArguments(job: PlanContext): string[] {
  return STAGES.flatMap((stage) => stage(job));
}

/** The picture that {@link keep} has kept, encoded again. */
export function encodeArguments(job: PlanContext): string[] {
  return [...setMagickLimits(job), `MIFF:${KEPT_FILE}`, ...stripMetadata(job), ...encode(job)];
}

/** The same picture as numbered PNG files, one a frame, for another tool to put together. */
export function frameArguments(job: PlanContext): string[] {
  const stages = STAGES.filter((stage) => !ENCODING.includes(stage)).flatMap((stage) => stage(job));
  return [...stages, '-depth', '8', '-define', 'png:compression-level=1', 'png:frame-%05d.png'];
}

/** Ends in true or false when it is printed. */
const OPAQUE = 'opaque: %[opaque]\\n';
const HALF_TRANSPARENT = 'half transparent: %[max]\\n';

/**
 * Threads only for processors that no other conversion uses; 16-bit colour transforms, which are four times as fast on 7.
 * A warm worker keeps the limit of its last job, so each job sets it.
 */
function setMagickLimits({ tools: { threads = 1 } }: PlanContext): string[] {
  return ['-limit', 'thread', String(threads), '-define', 'profile:highres-transform=false'];
}

/** A BMP says nothing of its length here, or there may be something behind it. */
function ignoreBmpSize({ image }: PlanContext): string[] {
  return image.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Lays transparency over one colour, and prints whether there was any. */
function flatten(job: PlanContext): string[] {
  const { format, background = '#ffffff' } = job.options;
  if (OUTPUTS[format].alpha !== 'none') return [];
  return [...printOpaque(job), '-background', background, '-alpha', 'remove', '-alpha', 'off'];
}

/** Of several pictures each is asked by itself, since only the first of a list would be. */
function printOpaque(job: PlanContext): string[] {
  return printOfEach(job, ['-print', OPAQUE]);
}

/** Number of frames that are measured together. Copies of so many are in memory, and bubblewrap takes 9000 arguments. */
const FRAMES_PER_MEASUREMENT = 8;

/**
 * Prints, where only full transparency can be kept, the largest value of 4a(1 − a): more than 0 if an alpha is neither 0
 * nor 1. Asked before a resize, which makes edges half transparent. A GIF has none.
 */
function printHalfTransparent(job: PlanContext): string[] {
  const { image, options } = job;
  if (OUTPUTS[options.format].alpha !== 'binary' || ['gif', 'jpg'].includes(image.type)) return [];
  // On version 6, extracting finds the values of a channel that is off. `set` makes such a channel opaque.
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

/** Where the picture's own metadata stays, the dates of the working file, which count as some, go all the same. */
function stripMetadata({ options }: PlanContext): string[] {
  return options.stripMetadata ? ['-strip'] : WORKING_FILE_DATES.flatMap((name) => ['+set', name]);
}

const WORKING_FILE_DATES = ['date:create', 'date:modify', 'date:timestamp'];

/**
 * Keeps the picture for more encodes by ImageMagick, when the result must not have more than so many bytes. MIFF holds all that
 * ImageMagick knows of it, frames and inks included, and is not compressed: for 6 megapixels it takes 0.05 s to write
 * and 0.03 s to read, where a PNG without compression takes 0.35 s and 0.1 s.
 */
function keep({ options }: PlanContext): string[] {
  return options.maxBytes && !ENCODERS_AFTER[options.format]
    ? ['-depth', '8', '-write', `MIFF:${KEPT_FILE}`]
    : [];
}

function encode(job: PlanContext): string[] {
  const { options, output } = job;
  return [...ENCODERS[options.format](job), `${OUTPUTS[options.format].coder}:${output}`];
}
