/** @module Fits the delays of an animation into those of a GIF: hundredths of a second. Pure. */
import type { ConversionJob } from './types.ts';

/** Maximum delay of a GIF frame, in hundredths of a second: 16 bits. */
const MAX_DELAY_CS = 65_535;
/** Minimum delay, in hundredths of a second. Browsers show a shorter one for ten. */
const MIN_DELAY_CS = 2;
/** Maximum share by which the duration of a GIF differs without a note. */
const MAX_DIFFERENCE = 0.01;

/**
 * Returns the delay of each frame in hundredths of a second, and 0 for a frame to leave out. Errors
 * of rounding do not add up. A frame that follows too soon is delayed, and left out if it would
 * have ended by then, so that the animation is as long as its source. The last frame is kept, and
 * at least two are.
 */
export function toCentiseconds(delaysMs: readonly number[]): number[] {
  const durationMs = sum(delaysMs);
  const duration = Math.max(2 * MIN_DELAY_CS, Math.round(durationMs / 10));
  const latest = duration - MIN_DELAY_CS;
  const shown: { readonly at: number; readonly start: number }[] = [];
  /** Returns when a frame can follow those that are shown. */
  const free = (): number => (shown.at(-1)?.start ?? -MIN_DELAY_CS) + MIN_DELAY_CS;
  let endMs = 0;
  for (const [at, delay] of delaysMs.entries()) {
    const start = Math.max(Math.round(endMs / 10), free());
    endMs += delay;
    const isLast = at === delaysMs.length - 1;
    while (isLast && shown.length > 1 && free() > latest) shown.pop();
    if (isLast || (start <= latest && start * 10 < endMs)) shown.push({ at, start: Math.min(start, latest) });
  }
  const delays = delaysMs.map(() => 0);
  let passed = 0;
  for (const [order, { at }] of shown.entries()) {
    const end = shown[order + 1]?.start ?? duration;
    delays[at] = Math.max(MIN_DELAY_CS, Math.min(MAX_DELAY_CS, end - passed));
    passed += delays[at];
  }
  return delays;
}

/** Returns the delays of a GIF that is made of delays in ms; undefined for other results. */
export function gifDelays({ image, options, keepsAllFrames }: ConversionJob): number[] | undefined {
  const isTimed = keepsAllFrames && options.format === 'gif' && image.animation?.frames !== undefined;
  return isTimed ? toCentiseconds(image.animation.delaysMs) : undefined;
}

/** Returns whether a GIF is longer or shorter than its source. */
export function changesTiming(job: ConversionJob): boolean {
  const durationMs = sum(job.image.animation?.delaysMs ?? []);
  const delays = gifDelays(job);
  return delays !== undefined && Math.abs(10 * sum(delays) - durationMs) > MAX_DIFFERENCE * durationMs;
}

/** Returns the indices of the frames that a GIF leaves out. */
export const leftOutFrames = (job: ConversionJob): number[] =>
  (gifDelays(job) ?? []).flatMap((delay, at) => (delay === 0 ? [at] : []));

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
