/** @module Describes results in headers, and sends them. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { finished, pipeline } from 'node:stream/promises';
import { create as contentDisposition } from 'content-disposition';
import type { Response } from 'express';
import { asciiFallback, baseNameOf } from '../../base/text.ts';
import type { ConversionResult } from '../../conversion/context.ts';
import type { DiskAccount, PendingResponse } from '../../files/disk-space.ts';
import { hashFile } from '../../files/system.ts';
import { ClientDisconnectedError } from '../../tables/errors.ts';
import { OUTPUTS, type OutputType } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import { setLogFields } from '../middleware.ts';

/** Maximum size of a result that is sent from memory, in bytes. Others are sent in chunks. */
const INLINE_MAX_BYTES = 1024 ** 2;
/** Maximum bytes of all results and entries of archives that are being sent from memory. */
const INLINE_TOTAL_BYTES = 32 * 1024 ** 2;
/** Bytes of all results that are being sent from memory. */
let inlineBytes = 0;

/** Counts bytes sent from memory until the result is disposed of; undefined if too many. */
export function holdInMemory(bytes: number): Disposable | undefined {
  if (inlineBytes + bytes > INLINE_TOTAL_BYTES) return undefined;
  inlineBytes += bytes;
  return {
    [Symbol.dispose]() {
      inlineBytes -= bytes;
    },
  };
}

const CHUNK_BYTES = 256 * 1024;

/**
 * Sends a converted file as an attachment that is named after its source, and resolves when it has
 * been sent. A file that is sent in chunks is unlinked first.
 *
 * @param disk disk space accounting of the request
 * @throws {ClientDisconnectedError} when the client disconnects
 */
export async function sendResult(
  res: Response,
  { path, bytes, format }: ConversionResult,
  source: string | undefined,
  disk: DiskAccount,
): Promise<void> {
  const name = `${baseNameOf(source)}.${format}`;
  res.setHeader('Content-Type', OUTPUTS[format].mediaType);
  res.setHeader('Content-Length', bytes);
  res.setHeader('Content-Disposition', contentDisposition(name, { fallback: asciiFallback(name) }));
  res.setHeader('Cache-Control', 'no-store');
  disk.registerResponse(pendingResponse(res));
  try {
    using memory = bytes <= INLINE_MAX_BYTES ? holdInMemory(bytes) : undefined;
    if (memory) {
      const body = readFileSync(path);
      setDigest(res, hash('sha256', body, 'buffer'));
      await finished(res.end(body));
    } else {
      setDigest(res, Buffer.from(await hashFile(path), 'hex'));
      await sendStream(res, path);
    }
  } catch (cause) {
    throw toSendError(cause);
  }
}

async function sendStream(res: Response, path: string): Promise<void> {
  const file = await open(path);
  try {
    await rm(path);
    await pipeline(file.createReadStream({ highWaterMark: CHUNK_BYTES }), res);
  } finally {
    await file.close();
  }
}

/** Time of the upload, and the times of a conversion, in milliseconds. */
interface Durations extends Pick<ConversionResult, 'queuedMs' | 'preparedMs' | 'convertedMs'> {
  readonly uploadedMs: number;
}

/** Sets the `Server-Timing` header and the log fields for the durations. */
export function setServerTiming(
  res: Response,
  { uploadedMs: upload, queuedMs: queue, preparedMs: prepare, convertedMs: convert }: Durations,
): void {
  setLogFields(res, {
    uploadMs: Math.round(upload),
    queueMs: Math.round(queue),
    prepareMs: Math.round(prepare),
    convertMs: Math.round(convert),
  });
  const entries = Object.entries({ upload, queue, prepare, convert });
  res.setHeader('Server-Timing', entries.map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`).join(', '));
}

/** Sets the key, also as `ETag`: weak for a PDF, which contains its time (RFC 9110, 8.8.1). */
export function setConversionKey(res: Response, key: string, format: OutputType): void {
  res.setHeader('X-Conversion-Key', key);
  res.setHeader('ETag', `${format === 'pdf' ? 'W/' : ''}"${key}"`);
}

/** Returns whether `If-None-Match` lists a key (RFC 9110, 13.1.2), regardless of `W/`. */
export function listsKey(ifNoneMatch: string | undefined, key: string): boolean {
  return ifNoneMatch?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === `"${key}"`) ?? false;
}

/** Header with the {@link Note} tokens of the result. Absent if there are none. */
const NOTES_HEADER = 'X-Conversion-Notes';
/** Headers with the quality of a result, if it was searched. The second is the older name. */
const QUALITY_HEADERS = ['X-Image-Quality', 'X-Conversion-Quality'];
/** Headers with the kinds of metadata that the result lost, and those that it has. */
const REMOVED_HEADER = 'X-Removed-Metadata';
const KEPT_HEADER = 'X-Kept-Metadata';
/** Maximum number of file indexes per token. Some clients cannot read a longer header. */
const MAX_FILE_INDEXES = 100;

/** What headers state of a result. */
type Described = Pick<ConversionResult, 'notes' | 'quality' | 'removed' | 'kept'>;

/** Sets the headers with a result's notes, metadata and quality, and its pixels unless a PDF. */
export function setResultHeaders(
  res: Response,
  { notes, removed, kept, quality, width, height }: Described & Pick<ConversionResult, 'width' | 'height'>,
): void {
  const lists = { [NOTES_HEADER]: notes, [REMOVED_HEADER]: removed, [KEPT_HEADER]: kept };
  for (const [header, list] of Object.entries(lists))
    if (list.length > 0) res.setHeader(header, list.join(', '));
  if (quality !== undefined) for (const name of QUALITY_HEADERS) res.setHeader(name, quality);
  if (width === undefined || height === undefined) return;
  res.setHeader('X-Image-Width', width);
  res.setHeader('X-Image-Height', height);
}

/** Sets the digest of the body (RFC 9530). */
function setDigest(res: Response, sha256: Buffer): void {
  res.setHeader('Repr-Digest', `sha-256=:${sha256.toString('base64')}:`);
}

/**
 * Sets the headers with the notes, the metadata and the qualities of several results. Each token
 * occurs once, with the indexes of its files, from 0, as a parameter (RFC 9651):
 * `first-frame-only;files="0 3", alpha-flattened;files="1"`, or `80;files="0 3", 42;files="1"`.
 *
 * @param results the result of each file; undefined if it failed
 */
export function setBatchHeaders(res: Response, results: readonly (Described | undefined)[]): void {
  const qualities = results.map((result) => result?.quality ?? []);
  const tokens = {
    [NOTES_HEADER]: results.map((result) => result?.notes ?? []),
    [REMOVED_HEADER]: results.map((result) => result?.removed ?? []),
    [KEPT_HEADER]: results.map((result) => result?.kept ?? []),
    ...Object.fromEntries(QUALITY_HEADERS.map((name) => [name, qualities])),
  };
  for (const [header, ofFiles] of Object.entries(tokens)) {
    const indexed = ofFiles.flatMap((ofFile, index) => [ofFile].flat().map((token) => ({ token, index })));
    const items = [...Map.groupBy(indexed, ({ token }) => token)].map(([token, found]) =>
      found.length > MAX_FILE_INDEXES
        ? token
        : `${token};files="${found.map(({ index }) => index).join(' ')}"`,
    );
    if (items.length > 0) res.setHeader(header, items.join(', '));
  }
}

/** Returns a signal that aborts when the client disconnects before the response is complete. */
export function disconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** Node.js error codes that mean that the client has disconnected. */
const DISCONNECT_CODES = [
  'ABORT_ERR', // of the signal that aborts when the client disconnects
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_UNABLE_TO_PIPE',
  'ERR_STREAM_DESTROYED',
  'ECONNRESET',
  'EPIPE',
];

/** Converts an error of sending to a {@link ClientDisconnectedError} if the client caused it. */
export function toSendError(cause: unknown): unknown {
  const { code = '' } = cause as NodeJS.ErrnoException;
  return DISCONNECT_CODES.includes(code) ? new ClientDisconnectedError({ cause }) : cause;
}

/** Returns what disk space needs to know of a response that occupies it until it is sent. */
export function pendingResponse(res: ServerResponse): PendingResponse {
  const { socket } = res;
  const started = performance.now();
  const before = sentBytes(socket);
  return {
    cutOff: () => void res.destroy(),
    bytesPerSecond: () => (sentBytes(socket) - before) / Math.max(1, (performance.now() - started) / 1000),
  };
}

/** Returns the number of bytes that the kernel has accepted. */
export function sentBytes(socket: Socket | null): number {
  return socket ? socket.bytesWritten - socket.writableLength : 0;
}
