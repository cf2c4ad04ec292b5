import { createReadStream, readFileSync } from 'node:fs';
import { finished, pipeline } from 'node:stream/promises';
import { create as contentDisposition } from 'content-disposition';
import type { Response } from 'express';
import type { Converted } from '../convert/convert.ts';
import { OUTPUTS, type OutputType } from '../formats.ts';
import { asciiName } from './ascii-name.ts';
import { sendingFailed } from './client-signal.ts';
import { tell } from './request-context.ts';

/** A result up to this size is still in memory, and goes out with its headers, in one piece. */
const MOST_AT_ONCE = 128 * 1024;
const CHUNK_BYTES = 256 * 1024;

/**
 * Sends a converted file from disk, as an attachment called `name`, and waits until it is out.
 *
 * @param stallMs see {@link hangUpWhenStalled}
 */
export async function sendFile(
  res: Response,
  { path, bytes }: Pick<Converted, 'path' | 'bytes'>,
  format: OutputType,
  name: string,
  stallMs: number,
): Promise<void> {
  res.setHeader('Content-Type', OUTPUTS[format].mediaType);
  res.setHeader('Content-Length', bytes);
  res.setHeader('Content-Disposition', contentDisposition(name, { fallback: asciiName(name) }));
  res.setHeader('Cache-Control', 'no-store');
  hangUpWhenStalled(res, stallMs);
  try {
    if (bytes <= MOST_AT_ONCE) await finished(res.end(readFileSync(path)));
    else await pipeline(createReadStream(path, { highWaterMark: CHUNK_BYTES }), res);
  } catch (cause) {
    throw sendingFailed(cause);
  }
}

/** A client that reads nothing for `ms` milliseconds is not waited for: its answer takes room on disk. */
export function hangUpWhenStalled(res: Response, ms: number): void {
  res.setTimeout(ms, () => res.destroy());
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
  tell(res, { uploadMs: Math.round(upload), queueMs: Math.round(queue), convertMs: Math.round(convert) });
  const entries = Object.entries(durations).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
  res.setHeader('Server-Timing', entries.join(', '));
}
