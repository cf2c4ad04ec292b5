/**
 * Finds the quality at which a result is within its limit of bytes. The logarithm of the bytes is nearly linear in the
 * quality, so two or three encodes are usually enough.
 */

/** The lowest quality that the search tries. Below it, images are not usable. */
export const MIN_QUALITY = 10;
/** The maximum number of encodes of one image. */
export const MAX_ENCODES = 6;

/** A result of at least this share of the bytes is as good as found. */
const NEAR = 0.96;
/** The share that is aimed at, between {@link NEAR} and 1. */
const AIM = 0.985;
/** The slope of that line, per step of quality: the median for WebP and JPEG of photos. */
const SLOPE = 0.025;

export interface Encoded {
  readonly quality: number;
  readonly bytes: number;
}

/**
 * Encodes at ever better qualities.
 *
 * @param from the quality that is asked for, and the highest
 * @param encode makes a result of this quality
 * @returns all results in the order they were made. Of those that have at most `maxBytes` the last is the best one.
 */
export async function searchQuality<T extends Encoded>(
  from: number,
  maxBytes: number,
  encode: (quality: number) => Promise<T>,
): Promise<T[]> {
  const made: T[] = [];
  let next: number | undefined = from;
  while (next !== undefined && made.length < MAX_ENCODES) {
    made.push(await encode(next));
    next = nextQuality(made, maxBytes, Math.min(MIN_QUALITY, from));
  }
  return made;
}

/** @returns undefined when there is no better quality to be found */
function nextQuality(made: readonly Encoded[], maxBytes: number, least: number): number | undefined {
  const fits = ({ bytes }: Encoded): boolean => bytes <= maxBytes;
  const best = made.filter(fits).reduce<Encoded | undefined>(higher, undefined);
  const over = made.filter((result) => !fits(result)).reduce<Encoded | undefined>(lower, undefined);
  const low = best ? best.quality + 1 : least;
  const high = (over?.quality ?? 0) - 1;
  if (low > high || (best && best.bytes >= NEAR * maxBytes)) return undefined;
  if (!best && made.length === MAX_ENCODES - 1) return least;
  const line = onLine(made, over as Encoded, best, maxBytes);
  // Between a result that fits and one that does not, half of the way is what keeps a bent line from creeping.
  const guess = best ? (line + (low + high) / 2) / 2 : line;
  return Math.min(high, Math.max(low, Math.floor(guess)));
}

/** The quality at which the line through the nearest results has the bytes that are wanted. */
function onLine(
  made: readonly Encoded[],
  over: Encoded,
  best: Encoded | undefined,
  maxBytes: number,
): number {
  const other =
    best ??
    made.filter(({ quality }) => quality > over.quality).reduce(lower, undefined as Encoded | undefined);
  const slope = other ? Math.log(other.bytes / over.bytes) / (other.quality - over.quality) : SLOPE;
  return slope > 0 ? over.quality + Math.log((AIM * maxBytes) / over.bytes) / slope : 0;
}

function higher(one: Encoded | undefined, other: Encoded): Encoded {
  return one && one.quality > other.quality ? one : other;
}

function lower(one: Encoded | undefined, other: Encoded): Encoded {
  return one && one.quality < other.quality ? one : other;
}
