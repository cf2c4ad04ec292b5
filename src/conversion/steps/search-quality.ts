/**
 * @module Keeps a result within `max_bytes`: searches the highest quality at which the result has at most that many bytes. The
 * logarithm of the bytes is nearly linear in the quality, so two or three encodes are usually enough.
 */
import { rm } from 'node:fs/promises';
import { serviceError } from '../../tables/errors.ts';
import { MIN_QUALITY } from '../../tables/options.ts';
import type { CheckedResult } from '../output/result.ts';

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
 * Encodes an image at several qualities. Keeps the best result that fits, and removes the others.
 *
 * @param maxBytes maximum size of the result, in bytes
 * @param from the requested quality, which is tried first
 * @param label name of the file in messages
 * @throws {ServiceError} with status 400, if the result is too large at the lowest quality
 */
export async function encodeWithin(
  maxBytes: number,
  from: number,
  label: string,
  encode: (quality: number) => Promise<CheckedResult>,
): Promise<CheckedResult & Encoded> {
  const attempts: Encoded[] = [];
  let best: (CheckedResult & Encoded) | undefined;
  let next: number | undefined = from;
  while (next !== undefined && attempts.length < MAX_ENCODES) {
    const result: CheckedResult & Encoded = { ...(await encode(next)), quality: next };
    attempts.push(result);
    const fits = result.bytes <= maxBytes;
    const worse = fits ? best : result;
    if (fits) best = result;
    if (worse) await rm(worse.path, { force: true });
    next = nextQuality(attempts, maxBytes, Math.min(MIN_QUALITY, from));
  }
  if (best) return best;
  const smallest = attempts.reduce((one, other) => (other.bytes < one.bytes ? other : one));
  throw serviceError('BYTES_UNREACHABLE', label, maxBytes, smallest.bytes, smallest.quality);
}
