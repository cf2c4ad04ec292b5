import { readFileSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { finished, pipeline } from 'node:stream/promises';
import { create as contentDisposition } from 'content-disposition';
import type { Response } from 'express';
import type { ConversionResult } from '../conversion/convert.ts';
import { MAX_NAME_UNITS } from '../conversion/filename.ts';
import type { Note } from '../conversion/plan/types.ts';
import { ClientDisconnectedError } from '../errors.ts';
import type { RequestRoom } from '../files/disk-room.ts';
import { OUTPUTS, type OutputType } from '../formats.ts';
import { truncate } from '../text.ts';
import { setLogFields } from './request-log.ts';
import { watchAnswer } from './response-rate.ts';

/** A result up to this size is still in memory, and goes out with its headers, in one piece. */
const INLINE_MAX_BYTES = 128 * 1024;
const CHUNK_BYTES = 256 * 1024;

/** What sending needs to know besides the result. */
export interface SendOptions {
  readonly format: OutputType;
  /** How long nothing may leave; see {@link watchAnswer}. In milliseconds. */
  readonly stallMs: number;
  /** Where the bytes of the result are counted. */
  readonly room: RequestRoom;
}

/**
 * Sends a converted file from disk, as an attachment called `name`, and waits until it is out. What takes longer to send
 * has no name on the disk meanwhile.
 */
export async function sendResult(
  res: Response,
  { path, bytes }: Pick<ConversionResult, 'path' | 'bytes'>,
  name: string,
  { format, stallMs, room }: SendOptions,
): Promise<void> {
  res.setHeader('Content-Type', OUTPUTS[format].mediaType);
  res.setHeader('Content-Length', bytes);
  res.setHeader('Content-Disposition', contentDisposition(name, { fallback: asciiFallback(name) }));
  res.setHeader('Cache-Control', 'no-store');
  const answer = watchAnswer(res, stallMs);
  room.sending(answer);
  try {
    if (bytes <= INLINE_MAX_BYTES) await finished(res.end(readFileSync(path)));
    else await sendStream(res, path);
  } catch (cause) {
    throw toSendError(cause);
  } finally {
    answer.end();
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

/** Where the time of a request went, in milliseconds. */
interface Durations {
  readonly upload: number;
  readonly queue: number;
  readonly convert: number;
}

/** Says it to the client, as `Server-Timing`, and to the log. */
export function setServerTiming(res: Response, durations: Durations): void {
  const { upload, queue, convert } = durations;
  setLogFields(res, {
    uploadMs: Math.round(upload),
    queueMs: Math.round(queue),
    convertMs: Math.round(convert),
  });
  const entries = Object.entries(durations).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
  res.setHeader('Server-Timing', entries.join(', '));
}

/** What is told of results: `X-Conversion-Notes` and `X-Conversion-Quality`, absent when there is nothing to say. */

const NOTES = 'X-Conversion-Notes';
const QUALITY = 'X-Conversion-Quality';
/** More numbers than this would make the header longer than some clients read. */
const MAX_FILE_NUMBERS = 100;

/** What a result lacks, as a list of tokens. */
export function setNotes(res: Response, notes: readonly Note[]): void {
  if (notes.length > 0) res.setHeader(NOTES, notes.join(', '));
}

/** The quality that a result was encoded with, when its bytes were limited. */
export function setQuality(res: Response, quality: number | undefined): void {
  if (quality !== undefined) res.setHeader(QUALITY, quality);
}

/**
 * The notes of several files: each token once, with the places, from 0, of the files it is about,
 * as a parameter (RFC 9651): `first-frame-only;files="0 3", alpha-flattened;files="1"`.
 */
export function setNotesOfMany(res: Response, notes: readonly (readonly Note[])[]): void {
  setOfMany(res, NOTES, notes);
}

/** The qualities of several files, in the same way: `80;files="0 3", 42;files="1"`. */
export function setQualityOfMany(res: Response, qualities: readonly (number | undefined)[]): void {
  setOfMany(
    res,
    QUALITY,
    qualities.map((quality) => (quality === undefined ? [] : [quality])),
  );
}

function setOfMany(res: Response, name: string, said: readonly (readonly (string | number)[])[]): void {
  const places = new Map<string | number, number[]>();
  for (const [place, tokens] of said.entries()) {
    for (const token of tokens) places.set(token, [...(places.get(token) ?? []), place]);
  }
  const items = [...places].map(([token, files]) =>
    files.length > MAX_FILE_NUMBERS ? token : `${token};files="${files.join(' ')}"`,
  );
  if (items.length > 0) res.setHeader(name, items.join(', '));
}

/** An ASCII stand-in for clients that cannot read `filename*`. A name is cut before it is normalized. */
export function asciiFallback(name: string): string {
  const plain = truncate(name, MAX_NAME_UNITS).normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.replace(/[^\x20-\x7e]+/g, '_').replace(/["\\%]/g, '_');
}

/** A signal that fires when the client goes away before its answer is complete. */
export function disconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) controller.abort();
  });
  return controller.signal;
}

/** What Node says when the other end of a stream is not there any more. */
const DISCONNECT_CODES = [
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_UNABLE_TO_PIPE',
  'ERR_STREAM_DESTROYED',
  'ECONNRESET',
  'EPIPE',
];

/** Why an answer could not be sent: the client left, or something of ours that the log should tell. */
export function toSendError(cause: unknown): unknown {
  const { code } = cause as NodeJS.ErrnoException;
  return code !== undefined && DISCONNECT_CODES.includes(code)
    ? new ClientDisconnectedError({ cause })
    : cause;
}
