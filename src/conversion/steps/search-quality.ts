/**
 * @module Searches a quality: the lowest at which a result looks the same, and the highest at which
 * it has at most so many bytes. The logarithms of the difference and of the bytes are nearly linear
 * in the quality, so two or three encodings are usually enough.
 */
import { rm } from 'node:fs/promises';
import { MIN_QUALITY } from '../../tables/options.ts';
import type { CheckedResult } from '../output/result.ts';

/** Difference from which no further attempt is made, by the attempts before. 1 is the limit. */
const ACCEPTED_DIFFERENCES = [0.75, 0.75, 0.6];
/** Difference that an attempt aims at. */
const TARGET_DIFFERENCE = 0.9;
/**
 * Change of the logarithm of the difference per step of quality, assumed until there are two
 * results: the medians of photos and drawings below, above and far above the first quality. Blocks
 * in a blurred background cause large differences, and disappear within few steps.
 */
const DIFFERENCE_SLOPES = { lower: -0.035, higher: -0.06, far: -0.14 };
/** Difference from which on the quality is far above. */
const FAR_DIFFERENCE = 2.5;

/**
 * Share of the qualities that are left below the one that is tried if the line ends above the
 * highest and another trial is left: the difference falls faster the higher the quality is.
 */
const BEYOND_SHARE = 0.8;

/** A quality, how much a result with it differs, and its bytes. */
interface Tried {
  readonly quality: number;
  readonly difference: number;
  readonly bytes: number;
}

/** What {@link searchLikeness} has found. */
export interface FoundQuality {
  readonly quality: number;
  /** Whether a result with this quality looks the same. */
  readonly looksSame: boolean;
}

/** Qualities of a search. */
export interface QualityRange {
  /** Quality that is tried first. */
  readonly from: number;
  readonly lowest: number;
  readonly highest: number;
  readonly trials: number;
  /** Bytes from which a result is not wanted. */
  readonly maxBytes: number;
}

/**
 * Searches the lowest quality at which a result looks the same. `compare` encodes the image, and
 * returns how much the result differs: 1 is the most that looks the same.
 */
export async function searchLikeness(
  { from, lowest, highest, trials, maxBytes }: QualityRange,
  compare: (quality: number) => Promise<Omit<Tried, 'quality'>>,
): Promise<FoundQuality> {
  const tried: Tried[] = [];
  let next: number | undefined = from;
  while (next !== undefined && tried.length < trials) {
    const result: Tried = { quality: next, ...(await compare(next)) };
    tried.push(result);
    const isUseless = result.difference > 1 && result.bytes >= maxBytes;
    next = isUseless ? undefined : nextTrial(tried, { lowest, highest, trials });
  }
  const same = tried.filter(({ difference }) => difference <= 1).map(({ quality }) => quality);
  const looksSame = same.length > 0;
  return {
    quality: looksSame ? Math.min(...same) : Math.max(...tried.map(({ quality }) => quality)),
    looksSame,
  };
}

/** @returns undefined if one of the qualities is the result */
function nextTrial(
  tried: readonly Tried[],
  { lowest, highest, trials }: Pick<QualityRange, 'lowest' | 'highest' | 'trials'>,
): number | undefined {
  const sorted = [...tried].sort((a, b) => a.quality - b.quality);
  const same = sorted.find(({ difference }) => difference <= 1);
  const other = sorted.findLast(({ difference }) => difference > 1);
  const low = other ? other.quality + 1 : lowest;
  const high = same ? same.quality - 1 : highest;
  const accepted = ACCEPTED_DIFFERENCES[tried.length - 1] ?? 0;
  if (low > high || (same && same.difference >= accepted)) return undefined;
  const [near, far] = [...tried].sort(
    (a, b) => Math.abs(Math.log(a.difference)) - Math.abs(Math.log(b.difference)),
  );
  const guess = Math.ceil(estimate(near as Tried, far));
  const isBeyond = !same && guess >= high && tried.length + 1 < trials;
  return Math.min(high, Math.max(low, isBeyond ? Math.ceil(low + (high - low) * BEYOND_SHARE) : guess));
}

/** Returns the quality with the difference aimed at, by the line through two results. */
function estimate(near: Tried, far: Tried | undefined): number {
  const measured = far
    ? Math.log(far.difference / near.difference) / (far.quality - near.quality)
    : Number.NaN;
  const { lower, higher, far: farther } = DIFFERENCE_SLOPES;
  const above = near.difference > FAR_DIFFERENCE ? farther : higher;
  const slope = measured < lower / 4 ? measured : near.difference > 1 ? above : lower;
  return near.quality + Math.log(TARGET_DIFFERENCE / near.difference) / slope;
}

/** Maximum number of encodings for a given quality. */
const MAX_ENCODINGS = 6;

/** Share of the maximum bytes from which a result is accepted without a further attempt. */
const ACCEPTED_SHARE = 0.96;
/** Share of the maximum bytes that an attempt aims at, between {@link ACCEPTED_SHARE} and 1. */
const TARGET_SHARE = 0.985;
/**
 * The same for the last attempt before the lowest quality, which is further away than the estimate
 * by a factor: sizes fall less and less.
 */
const SAFE_SHARE = 0.9;
const SAFE_DISTANCE = 1.5;
/** Slope of the logarithm of the bytes until there are two results: median of WebP and JPEG. */
const DEFAULT_SLOPE = 0.025;

type Encoded = Omit<Tried, 'difference'>;

/** Returns a better quality, if there is one. `left`: how many encodings are left. */
function nextQuality(
  results: readonly Encoded[],
  maxBytes: number,
  minQuality: number,
  left: number,
): number | undefined {
  const sorted = [...results].sort((a, b) => a.quality - b.quality);
  const best = sorted.findLast(({ bytes }) => bytes <= maxBytes);
  const over = sorted.find(({ bytes }) => bytes > maxBytes);
  const low = best ? best.quality + 1 : minQuality;
  const high = (over?.quality ?? 0) - 1;
  if (!over || low > high || left === 0 || (best && best.bytes >= ACCEPTED_SHARE * maxBytes))
    return undefined;
  if (!best && left === 1) return minQuality;
  const other = best ?? sorted.find(({ quality }) => quality > over.quality);
  const isLast = !best && left === 2;
  const aimed = interpolate(over, other, (isLast ? SAFE_SHARE : TARGET_SHARE) * maxBytes);
  const estimate = isLast ? over.quality - (over.quality - aimed) * SAFE_DISTANCE : aimed;
  // The average with bisection converges even if the relation is far from linear.
  const guess = best ? (estimate + (low + high) / 2) / 2 : estimate;
  return Math.min(high, Math.max(low, Math.floor(guess)));
}

/** Returns the quality that leads to some bytes, by the line through two results. */
function interpolate(over: Encoded, other: Encoded | undefined, bytes: number): number {
  const slope = other ? Math.log(other.bytes / over.bytes) / (other.quality - over.quality) : DEFAULT_SLOPE;
  return slope > 0 ? over.quality + Math.log(bytes / over.bytes) / slope : 0;
}

/** A result and its quality. */
export type Known = CheckedResult & Encoded;

/** Results of an image that exist, and how many more may be encoded. */
export interface KnownTrials {
  readonly known?: readonly Known[];
  readonly encodings?: number;
}

/**
 * Encodes an image at several qualities, first `from`, the highest. Keeps the best result that
 * fits, or if none does, the smallest. Removes the others.
 */
export async function encodeWithin(
  maxBytes: number,
  from: number,
  encode: (quality: number) => Promise<CheckedResult>,
  { known = [], encodings = MAX_ENCODINGS }: KnownTrials = {},
): Promise<Known> {
  const attempts: Encoded[] = [];
  const fits = ({ bytes }: Encoded): boolean => bytes <= maxBytes;
  let kept: Known | undefined;
  const add = async (result: Known): Promise<void> => {
    attempts.push(result);
    const isBetter =
      !kept || (fits(result) ? !fits(kept) || result.quality > kept.quality : result.bytes < kept.bytes);
    const removed = isBetter ? kept : result;
    if (isBetter) kept = result;
    if (removed) await rm(removed.path, { force: true });
  };
  for (const result of known) {
    if (result.quality <= from) await add(result);
    else await rm(result.path, { force: true });
  }
  const next = (left: number) => nextQuality(attempts, maxBytes, Math.min(MIN_QUALITY, from), left);
  const isTried = attempts.some((one) => one.quality === from || !fits(one));
  let quality = isTried ? next(encodings) : from;
  for (let left = encodings - 1; quality !== undefined; left -= 1) {
    await add({ ...(await encode(quality)), quality });
    quality = next(left);
  }
  return kept as Known;
}
