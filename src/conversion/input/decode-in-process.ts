/** @module Decodes or completes an image in this process, within the time limit of its conversion. */
import { join } from 'node:path';
import { ClientDisconnectedError, isDiskFull, serviceErrorFrom } from '../../errors.ts';
import { invalidOutputError } from '../output/tool-errors.ts';
import type { ImageInfo } from '../plan/image-info.ts';
import { INPUT_FILE } from '../plan/types.ts';
import type { ConversionInput } from '../types.ts';
import { decodeBitmap } from './bmp/decode.ts';
import { completePng } from './complete-png.ts';

const DECODERS = { bmp: decodeBitmap, png: completePng } as const;

/**
 * Turns an image that ImageMagick misreads or rejects into a PNG.
 *
 * @param timeoutMs remaining time for the conversion, in milliseconds
 * @throws {ServiceError} if the file has no pixels, or if time or disk space run out
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function decodeInProcess(
  decoder: keyof typeof DECODERS,
  image: ImageInfo,
  source: ConversionInput,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<ImageInfo> {
  const deadline = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
  const path = join(source.folder, INPUT_FILE);
  const decoded = await DECODERS[decoder](path, image, AbortSignal.any([signal, deadline])).catch((cause) => {
    if (signal.aborted) throw new ClientDisconnectedError({ cause });
    const limit = { ms: Math.round(timeoutMs / 100) * 100, setting: 'CONVERT_TIMEOUT_MS' } as const;
    if (deadline.aborted) throw serviceErrorFrom(cause, 'CONVERSION_TIMEOUT', source.label, limit);
    throw isDiskFull(cause) ? serviceErrorFrom(cause, 'DISK_FULL') : cause;
  });
  return decoded ?? Promise.reject(invalidOutputError('an image without pixels', source));
}
