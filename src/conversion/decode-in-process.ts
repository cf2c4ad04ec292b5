/** @module Decodes or completes an image in this process, within the time limit of its conversion. */
import { join } from 'node:path';
import { ClientDisconnectedError, isDiskFull, serviceErrorFrom, type TimeLimit } from '../errors.ts';
import { decodeBitmap } from '../images/bmp-decode.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { completePng } from '../images/png.ts';
import { invalidOutputError } from './output/tool-errors.ts';
import { INPUT_FILE } from './plan/types.ts';
import type { ConversionInput } from './types.ts';

type Decode = (path: string, image: ImageInfo, signal: AbortSignal) => Promise<ImageInfo | undefined>;

const DECODERS: Readonly<Record<NonNullable<ImageInfo['decoder']>, Decode>> = {
  bmp: decodeBitmap,
  png: (path, _, signal) => completePng(path, signal),
};

/** Time of a conversion, and its cancellation. */
interface Limits {
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Time at which the conversion times out, on the clock of `performance.now()`. */
  readonly deadline: number;
  /** Time limit of the whole conversion, for the message. */
  readonly limit: TimeLimit;
}

/**
 * Turns an image that ImageMagick misreads or rejects into a PNG.
 *
 * @throws {ServiceError} if the file has no pixels, or if time or disk space run out
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function decodeInProcess(
  decoder: keyof typeof DECODERS,
  image: ImageInfo,
  source: ConversionInput,
  { signal, deadline, limit }: Limits,
): Promise<ImageInfo> {
  const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(deadline - performance.now())));
  const path = join(source.folder, INPUT_FILE);
  const decoded = await DECODERS[decoder](path, image, AbortSignal.any([signal, timeout])).catch((cause) => {
    if (signal.aborted) throw new ClientDisconnectedError({ cause });
    if (timeout.aborted) throw serviceErrorFrom(cause, 'CONVERSION_TIMEOUT', source.label, limit);
    throw isDiskFull(cause) ? serviceErrorFrom(cause, 'DISK_FULL') : cause;
  });
  return decoded ?? Promise.reject(invalidOutputError('an image without pixels', source));
}
