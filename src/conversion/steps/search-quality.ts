/**
 * @module Searches a quality: the lowest at which a result looks the same, and the highest at which it has at most so many bytes. The
 * logarithms of the difference and of the bytes are nearly linear in the quality, so two or three encodes are usually enough.
 */
import { rm } from 'node:fs/promises';
import { MIN_QUALITY } from '../../tables/options.ts';
import type { CheckedResult } from '../output/result.ts';
import { MAX_TRIALS } from '../plan/likeness.ts';

/** Difference from which a result is accepted without a further attempt. 1 is the largest that looks the same. */
const ACCEPTED_DIFFERENCE = 0.85;
/** Difference that an attempt aims at. */
const TARGET_DIFFERENCE = 0.94;
/** Change of the logarithm of the difference per step of quality, assumed until there are two results: the median of photos. */
const DIFFERENCE_SLOPE = -0.035;

/** A quality and how much a result with it differs. */
interface Tried {
  readonly quality: number;
  readonly difference: number;
}

/** What {@link searchLikeness} has found. */
export interface FoundQuality {
  readonly quality: number;
  /** Whether a result with this quality looks the same, as far as that is known. */
  readonly looksSame: boolean;
}

/**
 * Searches the lowest quality at which a result looks the same.
 *
 * @param from quality that is tried first
 * @param lowest of all qualities
 * @param highest of all qualities
 * @param compare encodes the image at a quality, and returns how much the result differs: 1 is the most that looks the same
 * @returns a quality that has been tried, or one between a result that looked the same and another
 */
export async function searchLikeness(
  {
    from,
    lowest,
    highest,
    trials = MAX_TRIALS,
  }: { from: number; lowest: number; highest: number; trials?: number | undefined },
  compare: (quality: number) => Promise<number>,
): Promise<FoundQuality> {
  const tried: Tried[] = [];
  let next: number | undefined = from;
  while (next !== undefined && tried.length < trials) {
    tried.push({ quality: next, difference: await compare(next) });
    next = nextTrial(tried, lowest, highest);
  }
  const same = tried.filter(({ difference }) => difference <= 1).map(({ quality }) => quality);
  const isBetween = same.length < tried.length;
  if (next !== undefined && isBetween) return { quality: next, looksSame: true };
  return { quality: Math.min(highest, ...same), looksSame: same.length > 0 };
}

/** @returns undefined if one of the qualities is the result */
function nextTrial(tried: readonly Tried[], lowest: number, highest: number): number | undefined {
  const sorted = [...tried].sort((a, b) => a.quality - b.quality);
  const same = sorted.find(({ difference }) => difference <= 1);
  const other = sorted.findLast(({ difference }) => difference > 1);
  const low = other ? other.quality + 1 : lowest;
  const high = same ? same.quality - 1 : highest;
  if (low > high || (same && same.difference >= ACCEPTED_DIFFERENCE)) return undefined;
  const [near, far] = [...tried].sort(
    (a, b) => Math.abs(Math.log(a.difference)) - Math.abs(Math.log(b.difference)),
  );
  const guess = estimate(near as Tried, far);
  return Math.min(high, Math.max(low, Math.ceil(guess)));
}

/** Returns the quality at which the difference is that aimed at, by the line through two results. */
function estimate(near: Tried, far: Tried | undefined): number {
  const measured = far
    ? Math.log(far.difference / near.difference) / (far.quality - near.quality)
    : Number.NaN;
  const slope = measured < DIFFERENCE_SLOPE / 4 ? measured : DIFFERENCE_SLOPE;
  return near.quality + Math.log(TARGET_DIFFERENCE / near.difference) / slope;
}

/** Maximum number of encodes of one image. */
const MAX_ENCODES = 6;

/** Share of the maximum bytes from which a result is accepted without a further attempt. */
const ACCEPTED_SHARE = 0.96;
/** Share of the maximum bytes that an attempt aims at, between {@link ACCEPTED_SHARE} and 1. */
const TARGET_SHARE = 0.985;
/**
 * Change of the logarithm of the bytes per step of quality, assumed until there are two results: the median of photos as
 * WebP and JPEG.
 */
const DEFAULT_SLOPE = 0.025;

/** Quality and size of a result. */
interface Encoded {
  readonly quality: number;
  readonly bytes: number;
}

/** @returns undefined if there is no better quality */
function nextQuality(results: readonly Encoded[], maxBytes: number, minQuality: number): number | undefined {
  const sorted = [...results].sort((a, b) => a.quality - b.quality);
  const best = sorted.findLast(({ bytes }) => bytes <= maxBytes);
  const over = sorted.find(({ bytes }) => bytes > maxBytes);
  const low = best ? best.quality + 1 : minQuality;
  const high = (over?.quality ?? 0) - 1;
  if (!over || low > high || (best && best.bytes >= ACCEPTED_SHARE * maxBytes)) return undefined;
  if (!best && results.length === MAX_ENCODES - 1) return minQuality;
  const other = best ?? sorted.find(({ quality }) => quality > over.quality);
  const estimate = interpolate(over, other, maxBytes);
  // The average with bisection converges even if the relation is far from linear.
  const guess = best ? (estimate + (low + high) / 2) / 2 : estimate;
  return Math.min(high, Math.max(low, Math.floor(guess)));
}

/** Returns the quality that leads to the bytes aimed at, by the line through two results. */
function interpolate(over: Encoded, other: Encoded | undefined, maxBytes: number): number {
  const slope = other ? Math.log(other.bytes / over.bytes) / (other.quality - over.quality) : DEFAULT_SLOPE;
  return slope > 0 ? over.quality + Math.log((TARGET_SHARE * maxBytes) / over.bytes) / slope : 0;
}

/**
 * Encodes an image at several qualities. Keeps the best result that fits, or if none does, the smallest. Removes the others.
 *
 * @param from the requested quality, which is tried first
 */
export async function encodeWithin(
  maxBytes: number,
  from: number,
  encode: (quality: number) => Promise<CheckedResult>,
): Promise<CheckedResult & Encoded> {
  const attempts: Encoded[] = [];
  const tryNext = async (quality: number) => {
    const result = { ...(await encode(quality)), quality };
    attempts.push(result);
    return result;
  };
  const next = () => nextQuality(attempts, maxBytes, Math.min(MIN_QUALITY, from));
  let kept = await tryNext(from);
  for (let quality = next(); quality !== undefined && attempts.length < MAX_ENCODES; quality = next()) {
    const result = await tryNext(quality);
    const isBetter = result.bytes <= Math.max(maxBytes, kept.bytes - 1);
    await rm((isBetter ? kept : result).path, { force: true });
    if (isBetter) kept = result;
  }
  return kept;
}
