import { OUTPUTS } from '../../formats.ts';
import { inksToSrgb, lightToSrgb } from './colour.ts';
import { ENCODERS } from './encoders.ts';
import { completeFrames, orient, read, repairColours } from './reading.ts';
import { resize, shrinkWhileDecoding } from './resize.ts';
import type { Job } from './types.ts';
import { allFrames, passesThrough, wantedPages } from './wanted.ts';

/** What ImageMagick is told, stage by stage. Pure: every stage maps a job to arguments. */

/** The order in which ImageMagick does things. Each stage adds its arguments, or none. */
const STAGES: readonly ((job: Job) => readonly string[])[] = [
  limit,
  shrinkWhileDecoding,
  tolerate,
  read,
  completeFrames,
  repairColours,
  orient,
  inksToSrgb,
  resize,
  lightToSrgb,
  flatten,
  binaryAlpha,
  dropMetadata,
  write,
];

/** The whole command line, without the program. */
export function magickArguments(job: Job): string[] {
  return STAGES.flatMap((stage) => stage(job));
}

/** The same picture as numbered PNG files, one a frame, for another tool to put together. */
export function frameArguments(job: Job): string[] {
  const stages = STAGES.filter((stage) => stage !== write).flatMap((stage) => stage(job));
  return [...stages, '-depth', '8', '-define', 'png:compression-level=1', 'png:frame-%05d.png'];
}

/** Ends in true or false when it is printed. */
const OPAQUE = 'opaque: %[opaque]\\n';

/** One thread, since the pool is the parallelism; 16-bit colour transforms, which are four times as fast on 7. */
function limit(): string[] {
  return ['-limit', 'thread', '1', '-define', 'profile:highres-transform=false'];
}

/** A BMP says nothing of its length here, or there may be something behind it. */
function tolerate({ picture }: Job): string[] {
  return picture.type === 'bmp' ? ['-define', 'bmp:ignore-filesize=true'] : [];
}

/** Lays transparency over one colour, and prints whether there was any. */
function flatten(job: Job): string[] {
  const { format, background = '#ffffff' } = job.options;
  if (OUTPUTS[format].alpha !== 'none') return [];
  return [...printOpaque(job), '-background', background, '-alpha', 'remove', '-alpha', 'off'];
}

/** Of several pictures each is asked by itself, since only the first of a list would be. */
function printOpaque(job: Job): string[] {
  const frames = allFrames(job) ? (job.picture.animation?.delaysMs.length ?? 1) : 1;
  const count = Math.max(frames, wantedPages(job).length);
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

function binaryAlpha(job: Job): string[] {
  if (OUTPUTS[job.options.format].alpha !== 'binary' || passesThrough(job)) return [];
  return ['-channel', 'A', '-threshold', '50%', '+channel'];
}

/** Where the picture's own metadata stays, the dates of the working file, which count as some, go all the same. */
function dropMetadata({ options }: Job): string[] {
  return options.stripMetadata ? ['-strip'] : WORKING_FILE_DATES.flatMap((name) => ['+set', name]);
}

const WORKING_FILE_DATES = ['date:create', 'date:modify', 'date:timestamp'];

function write(job: Job): string[] {
  const { options, output } = job;
  return [...ENCODERS[options.format](job), `${OUTPUTS[options.format].coder}:${output}`];
}
