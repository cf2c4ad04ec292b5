/** @module Sets the headers that describe a result. */
import type { Response } from 'express';
import type { ConversionResult } from '../conversion/types.ts';
import type { OutputType } from '../formats.ts';
import type { Note } from '../notes.ts';
import { setLogFields } from './request-log.ts';

/** Time spent in each phase of a request, in milliseconds. */
interface Durations {
  readonly upload: number;
  readonly queue: number;
  /** Repair and inspection of the input. */
  readonly prepare: number;
  readonly convert: number;
}

/** Sets the `Server-Timing` header and the log fields for the durations. */
export function setServerTiming(res: Response, durations: Durations): void {
  const { upload, queue, prepare, convert } = durations;
  setLogFields(res, {
    uploadMs: Math.round(upload),
    queueMs: Math.round(queue),
    prepareMs: Math.round(prepare),
    convertMs: Math.round(convert),
  });
  const entries = Object.entries(durations).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
  res.setHeader('Server-Timing', entries.join(', '));
}

/** Sets the conversion key, also as `ETag`. It is weak for a PDF, which contains the time of its conversion (RFC 9110, 8.8.1). */
export function setConversionKey(res: Response, key: string, format: OutputType): void {
  res.setHeader('X-Conversion-Key', key);
  res.setHeader('ETag', `${format === 'pdf' ? 'W/' : ''}"${key}"`);
}

/** Returns whether `If-None-Match` lists a key (RFC 9110, 13.1.2), which it compares without regard to `W/`. */
export function listsKey(ifNoneMatch: string | undefined, key: string): boolean {
  return ifNoneMatch?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === `"${key}"`) ?? false;
}

/** Header with the {@link Note} tokens of the result. Absent if there are none. */
const NOTES_HEADER = 'X-Conversion-Notes';
/** Header with the quality that a result was encoded with. Absent unless `max_bytes` limited the result. */
const QUALITY_HEADER = 'X-Conversion-Quality';
/** Maximum number of file indexes per token. Some clients cannot read a longer header. */
const MAX_FILE_INDEXES = 100;

/** Sets `X-Conversion-Notes` for one file. */
export function setNotes(res: Response, notes: readonly Note[]): void {
  if (notes.length > 0) res.setHeader(NOTES_HEADER, notes.join(', '));
}

/** Sets `X-Conversion-Quality` for one file. */
export function setQuality(res: Response, quality: number | undefined): void {
  if (quality !== undefined) res.setHeader(QUALITY_HEADER, quality);
}

/** Sets the size of the result in pixels. A PDF has none. */
export function setSize(res: Response, { width, height }: Pick<ConversionResult, 'width' | 'height'>): void {
  if (width === undefined || height === undefined) return;
  res.setHeader('X-Image-Width', width);
  res.setHeader('X-Image-Height', height);
}

/** Sets the digest of the body (RFC 9530). */
export function setDigest(res: Response, sha256: Buffer): void {
  res.setHeader('Repr-Digest', `sha-256=:${sha256.toString('base64')}:`);
}

/**
 * Sets `X-Conversion-Notes` for several files. Each token occurs once, with the indexes of its files, from 0, as a
 * parameter (RFC 9651): `first-frame-only;files="0 3", alpha-flattened;files="1"`.
 */
export function setBatchNotes(res: Response, notes: readonly (readonly Note[])[]): void {
  setBatchHeader(res, NOTES_HEADER, notes);
}

/** Sets `X-Conversion-Quality` for several files, in the same form: `80;files="0 3", 42;files="1"`. */
export function setBatchQuality(res: Response, qualities: readonly (number | undefined)[]): void {
  setBatchHeader(
    res,
    QUALITY_HEADER,
    qualities.map((quality) => (quality === undefined ? [] : [quality])),
  );
}

function setBatchHeader(
  res: Response,
  name: string,
  tokensByFile: readonly (readonly (string | number)[])[],
): void {
  const indexesByToken = new Map<string | number, number[]>();
  for (const [index, tokens] of tokensByFile.entries()) {
    for (const token of tokens) indexesByToken.set(token, [...(indexesByToken.get(token) ?? []), index]);
  }
  const items = [...indexesByToken].map(([token, files]) =>
    files.length > MAX_FILE_INDEXES ? token : `${token};files="${files.join(' ')}"`,
  );
  if (items.length > 0) res.setHeader(name, items.join(', '));
}
