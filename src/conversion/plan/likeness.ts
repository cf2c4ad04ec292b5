/**
 * @module Which results are compared with their image to find their quality, and the files for
 * that. Of a large image, strips are compared that are spread over its height. Pure.
 */
import { isSameSize } from '../../images/image-info.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import { AUTO_QUALITY } from '../../tables/options.ts';
import { encode, isLossless, writeNow } from './encode.ts';
import { EXTERNAL_ENCODERS } from './external-encoders.ts';
import { type Extent, setsSize } from './size.ts';
import { KEPT_FILE, OUTPUT, SUFFIX, words } from './step.ts';
import type { ConversionJob } from './types.ts';

/** Image as it is before it is encoded. */
export const REFERENCE_FILE = `reference${SUFFIX}.pam`;
/** Result, or the encoded strips, decoded. */
export const DECODED_RESULT = `check${SUFFIX}.pam`;
/** Result that another program decodes for ImageMagick. */
export const DECODED_PNG = `check${SUFFIX}.png`;

/** Pixels from which on strips of an image are compared instead of the whole. */
export const MAX_WHOLE_PIXELS = 2_000_000;
/** Pixels of all strips together, about. */
const STRIP_PIXELS = 1_500_000;
/** Height of a strip in pixels: an area whose mean counts, and a multiple of formats' blocks. */
const STRIP_ROWS = 64;

type SearchedJob = Extent & Pick<ConversionJob, 'isTranscoded' | 'frameCount'>;

/** Returns how the quality of a result is found; see {@link ConversionJob.search}. */
export function searchOf(job: SearchedJob): ConversionJob['search'] {
  const { image, options, isTranscoded, frameCount } = job;
  const { format, quality, maxBytes } = options;
  if (!OUTPUTS[format].quality || OUTPUTS[format].pages || isLossless(options) || isTranscoded)
    return undefined;
  const keepsInks = image.cmyk === true && OUTPUTS[format].cmyk && options.metadata !== 'none';
  if (quality === 'auto' && frameCount === 1 && !keepsInks) return 'likeness';
  return maxBytes !== undefined || (quality === 'auto' && isLikeSource(job)) ? 'bytes' : undefined;
}

/** Returns whether a result has the format and the size of its source. */
export function isLikeSource({ image, options, turnedSizes: [size], fittings: [fitting] }: Extent): boolean {
  const isSameFormat = (image.type as string) === options.format;
  const isSame = size && fitting ? isSameSize(size, fitting.result) : !setsSize(options);
  return isSameFormat && isSame;
}

/** Maximum encodings of an image, with those of strips; and of one in a further format. */
const MAX_ENCODINGS = { first: 5, rival: 2 };
/** Maximum number of results of one image that are compared. */
export const MAX_TRIALS = MAX_ENCODINGS.first - 1;

export const countEncodings = ({ measured }: ConversionJob): number =>
  MAX_ENCODINGS[measured.rival ? 'rival' : 'first'];

/**
 * Returns how many results are compared. Those of a large image are only strips, and the whole is
 * encoded after them. A limit of bytes can require lower qualities.
 */
export function countTrials(job: ConversionJob, isLimited: boolean): number {
  if (job.measured.rival) return MAX_ENCODINGS.rival - (stripsOf(job) ? 1 : 0);
  if (!isLimited) return MAX_TRIALS;
  return job.options.maxBytes !== undefined || stripsOf(job) ? 2 : 3;
}

/** Quality with which a search starts: the median of photos. */
const FIRST_QUALITY = 75;

/** Returns the highest quality of a search. A JPEG does not look better than with its own. */
export const highestQuality = (job: ConversionJob): number =>
  isLikeSource(job) ? Math.min(AUTO_QUALITY.max, job.image.jpegQuality ?? 100) : AUTO_QUALITY.max;

/** Lowest quality of an image compared only in strips: words elsewhere can suffer more. */
const LOWEST_OF_STRIPS = 60;

/** Returns the lowest quality of a search. */
export const lowestQuality = (job: ConversionJob): number =>
  Math.min(stripsOf(job) ? LOWEST_OF_STRIPS : AUTO_QUALITY.min, highestQuality(job));

/** Returns the quality that is tried first. */
export const firstQuality = (job: ConversionJob): number =>
  Math.min(job.measured.rival?.quality ?? FIRST_QUALITY, highestQuality(job));

/** Returns the upper edges of the strips that are compared; undefined if the whole image is. */
export function stripsOf({ fittings: [fitting] }: ConversionJob): number[] | undefined {
  const { width, height } = fitting?.result ?? { width: 0, height: 0 };
  if (width * height <= MAX_WHOLE_PIXELS) return undefined;
  const count = Math.max(2, Math.round(STRIP_PIXELS / width / STRIP_ROWS));
  const blocks = Math.floor(height / STRIP_ROWS) - 1;
  if (blocks < count) return undefined;
  return Array.from({ length: count }, (_, at) => Math.round((blocks * at) / (count - 1)) * STRIP_ROWS);
}

/** Returns an argument that names a file of the strips instead of one of the whole image. */
export const ofStrips = (argument: string): string =>
  argument.replace(SUFFIX, `-${SUFFIX}`).replace(OUTPUT, `strips${SUFFIX}`);

/** Returns a stage that encodes the image, reads it back, and writes what is compared. */
export function encodeAndDecode(encoding: readonly string[], coder: string): string[] {
  const [file = ''] = encoding.slice(-1);
  const written = file.slice(file.indexOf(':') + 1);
  return [...writeNow(encoding), ...words(`-delete 0--1 ${coder}:${written} -depth 8 PAM:${DECODED_RESULT}`)];
}

/**
 * Stores what the encoder reads for each quality, and what its results are compared with.
 * ImageMagick also encodes the first one, and decodes it.
 */
export function storeCompared(given: ConversionJob): string[] {
  const job = { ...given, options: { ...given.options, quality: firstQuality(given) } };
  const { format } = job.options;
  const isExternal = EXTERNAL_ENCODERS[format] !== undefined;
  const stored = isExternal ? encode(job) : ['-depth', '8', `MIFF:${KEPT_FILE}`];
  const strips = stripsOf(job);
  const { width = 0 } = job.fittings[0]?.result ?? {};
  const cutAt = (top: number) => words(`( -clone 0 -crop ${width}x${STRIP_ROWS}+0+${top} +repage )`);
  const cut = strips
    ? [...strips.flatMap(cutAt), '-delete', '0', '-append', ...writeNow(stored).map(ofStrips)]
    : [];
  const encoded = encode(job).map((arg) => (strips ? ofStrips(arg) : arg));
  // -depth changes the samples, so it follows what the encoder reads.
  const reference = ['-depth', '8', `PAM:${REFERENCE_FILE}`];
  const compared = isExternal
    ? reference
    : [...writeNow(reference), ...encodeAndDecode(encoded, OUTPUTS[format].coder)];
  return [...writeNow(stored), ...cut, ...compared];
}
