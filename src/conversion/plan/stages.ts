import { OUTPUTS } from '../../formats.ts';
import { cmykToSrgb, rgbToSrgb } from './colour.ts';
import { coalesceFrames, decode, orient, repairColours } from './decode.ts';
import { ENCODERS } from './encode.ts';
import { resize, shrinkOnLoad } from './resize.ts';
import { isPassthrough, keepsAllFrames, selectedPages } from './selection.ts';
import type { PlanContext } from './types.ts';

/** What ImageMagick is told, stage by stage. Pure: every stage maps a job to arguments. */

/** The order in which ImageMagick does things. Each stage adds its arguments, or none. */
const STAGES: readonly ((job: PlanContext) => readonly string[])[] = [
  setMagickLimits,
  shrinkOnLoad,
  ignoreBmpSize,
  decode,
  coalesceFrames,
  repairColours,
  orient,
  cmykToSrgb,
  resize,
  rgbToSrgb,
  flatten,
  binaryAlpha,
  stripMetadata,
  encode,
];

/** The whole command line, without the program. */
export function magickArguments(job: PlanContext): string[] {
  return STAGES.flatMap((stage) => stage(job));
}

/** The same picture as numbered PNG files, one a frame, for another tool to put together. */
export function frameArguments(job: PlanContext): string[] {
  const stages = STAGES.filter((stage) => stage !== encode).flatMap((stage) => stage(job));
  return [...stages, '-depth', '8', '-define', 'png:compression-level=1', 'png:frame-%05d.png'];
}

/** Ends in true or false when it is printed. */
const OPAQUE = 'opaque: %[opaque]\\n';

/** One thread, since the pool is the parallelism; 16-bit colour transforms, which are four times as fast on 7. */
function setMagickLimits(): string[] {
  return ['-limit', 'thread', '1', '-define', 'profile:highres-transform=false'];
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
  const frames = keepsAllFrames(job) ? (job.image.animation?.delaysMs.length ?? 1) : 1;
  const count = Math.max(frames, selectedPages(job).length);
  if (count === 1) return ['-print', OPAQUE];
  return Array.from({ length: count }, (_, at) => [
    '(',
    '-clone',
    String(at),
    '-print',
    OPAQUE,
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

function encode(job: PlanContext): string[] {
  const { options, output } = job;
  return [...ENCODERS[options.format](job), `${OUTPUTS[options.format].coder}:${output}`];
}
