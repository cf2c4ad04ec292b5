/** @module Keeps a result below `max_bytes`. */
import { rm } from 'node:fs/promises';
import { serviceError } from '../errors.ts';
import type { VerifiedOutput } from './output/verify.ts';
import type { ConvertOptions } from './plan/types.ts';
import { searchQuality } from './search-quality.ts';

/**
 * Encodes an image once, or, with `maxBytes`, at several qualities. Keeps the best result that fits, and removes the
 * others.
 *
 * @param label name of the file in messages
 * @param first decodes the image and encodes it with these options
 * @param again encodes the same image at another quality
 * @throws {ServiceError} with status 400, if the result is too large at the lowest quality
 */
export async function encodeWithin(
  options: ConvertOptions,
  label: string,
  first: () => Promise<VerifiedOutput>,
  again: (options: ConvertOptions) => Promise<VerifiedOutput>,
): Promise<VerifiedOutput & { readonly quality?: number }> {
  const { maxBytes } = options;
  if (maxBytes === undefined) return first();
  let best: (VerifiedOutput & { readonly quality: number }) | undefined;
  const attempts = await searchQuality(options.quality, maxBytes, async (quality) => {
    const result = quality === options.quality ? await first() : await again({ ...options, quality });
    const fits = result.bytes <= maxBytes;
    const worse = fits ? best : result;
    if (fits) best = { ...result, quality };
    if (worse) await rm(worse.path, { force: true });
    return { quality, bytes: result.bytes };
  });
  if (best) return best;
  const smallest = attempts.reduce((one, other) => (other.bytes < one.bytes ? other : one));
  throw serviceError('BYTES_UNREACHABLE', label, maxBytes, smallest.bytes, smallest.quality);
}
