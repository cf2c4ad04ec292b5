import { readFileSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { finished, pipeline } from 'node:stream/promises';
import { create as contentDisposition } from 'content-disposition';
import type { Response } from 'express';
import type { ConversionResult } from '../convert/convert.ts';
import type { RequestRoom } from '../files/disk-room.ts';
import { OUTPUTS, type OutputType } from '../formats.ts';
import { asciiFallback } from './ascii-name.ts';
import { toSendError } from './client-signal.ts';
import { setLogFields } from './request-context.ts';
import { watchAnswer } from './watch-answer.ts';

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
  setLogFields(res, { uploadMs: Math.round(upload), queueMs: Math.round(queue), convertMs: Math.round(convert) });
  const entries = Object.entries(durations).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
  res.setHeader('Server-Timing', entries.join(', '));
}
