import type { InputType } from '../../formats.ts';
import type { Size } from './size.ts';
import type { ConvertOptions, Job } from './types.ts';
import { allFrames, wantedPages } from './wanted.ts';

/**
 * How a picture gets smaller. What is to become much smaller is first halved, or halved twice: by the decoder where
 * it can, by averaging neighbours where not. Lanczos does the rest, at a third to a half of the time. Pure.
 */

/** From these on most that comes out keeps 40 dB to what Lanczos alone makes; bench/README.md has what does not. */
const REDUCTION_FOR_HALF = 3;
const REDUCTION_FOR_QUARTER = 6;

/**
 * Lets libjpeg decode at a half or a quarter. Its other fractions cost quality (38–43 dB instead of 49). Of odd sides
 * the half is rounded down: rounded up, ImageMagick takes the next larger fraction.
 */
export function shrinkWhileDecoding(job: Job): string[] {
  const { width = 0, height = 0 } = job.picture;
  const divisor = decoderDivisor(job);
  if (divisor === 1) return [];
  return ['-define', `jpeg:size=${Math.floor(width / divisor)}x${Math.floor(height / divisor)}`];
}

/** `>` never enlarges. An SVG was drawn at the size asked for already. */
export function resize(job: Job): string[] {
  const { picture, options } = job;
  if (picture.type === 'svg' || (!options.width && !options.height)) return [];
  const size = seenSize(job);
  const reduction = size ? reductionOf(size, options) : 1;
  if (!size || reduction < REDUCTION_FOR_HALF)
    return lanczos(`${options.width ?? ''}x${options.height ?? ''}>`);
  const divisor = divisorFor(reduction / decoderDivisor(job));
  const averaged = divisor === 1 ? [] : ['-scale', `${100 / divisor}%`];
  // Told exactly: from a rounded half, one in twenty would come out a pixel off.
  return [...averaged, ...lanczos(`${shrunk(size.width, reduction)}x${shrunk(size.height, reduction)}!`)];
}

function lanczos(geometry: string): string[] {
  return ['-filter', 'Lanczos', '-resize', geometry];
}

function decoderDivisor(job: Job): number {
  const size = job.picture.type === 'jpg' ? seenSize(job) : undefined;
  return size ? divisorFor(reductionOf(size, job.options)) : 1;
}

function divisorFor(reduction: number): 1 | 2 | 4 {
  if (reduction >= REDUCTION_FOR_QUARTER) return 4;
  return reduction >= REDUCTION_FOR_HALF ? 2 : 1;
}

function reductionOf({ width, height }: Size, box: ConvertOptions): number {
  return Math.max(width / (box.width ?? width), height / (box.height ?? height));
}

/** As ImageMagick rounds it (ParseMetaGeometry). */
function shrunk(side: number, reduction: number): number {
  return Math.max(1, Math.floor(side / reduction + 0.5));
}

/** Those whose header tells the size for sure that they have when they have been read. */
const SURE: readonly InputType[] = ['jpg', 'png', 'webp', 'bmp'];

/** The size as it is seen, where it is known for sure, and all that is to be resized has it. */
function seenSize(job: Job): Size | undefined {
  const { picture } = job;
  const pages = wantedPages(job);
  const one = pages.length === 1 ? pages[0] : SURE.includes(picture.type) ? picture : undefined;
  const { width, height, orientation = 1 } = one ?? {};
  if (!width || !height) return undefined;
  return orientation < 5 || allFrames(job) ? { width, height } : { width: height, height: width };
}
