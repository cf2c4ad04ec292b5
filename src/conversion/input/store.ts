/** @module Stores a file while its type is detected and its limits are enforced. */
import { createHash } from 'node:crypto';
import { closeSync } from 'node:fs';
import type { DiskAccount } from '../../files/disk-space.ts';
import { workFiles } from '../../files/workspace.ts';
import { DETECTION_BYTES, type DetectedType, detectType, type FileType } from '../../images/index.ts';
import { type ServiceError, serviceError } from '../../tables/errors.ts';
import { EXTRA_INPUT_TYPES, INPUTS, listLabels } from '../../tables/formats.ts';

export interface StoreOptions<T extends FileType> {
  /** Name of the file in error messages. */
  readonly label: string;
  readonly types: readonly T[];
  /** Returns the maximum bytes for a type, or for an unknown type if undefined. May throw. */
  readonly maxBytes: (type: T | undefined) => number;
  readonly signal: AbortSignal;
  /** Disk space in which the bytes are reserved before they are written. */
  readonly disk: Pick<DiskAccount, 'store'>;
}

/**
 * Writes a stream to a new file, and returns its type, size in bytes, and SHA-256 in hex.
 *
 * @throws {ServiceError} EMPTY_FILE; FILE_TOO_LARGE or UNSUPPORTED_TYPE as soon as it is certain;
 *   DISK_FULL if the disk has no space for bytes beyond those that the request announced
 * @throws the signal's reason if it aborts
 */
export async function storeInput<T extends FileType>(
  bytes: AsyncIterable<Buffer>,
  path: string,
  { label, types, maxBytes, signal, disk }: StoreOptions<T>,
) {
  const files = workFiles(path);
  const file = await files.open(path, 'wx', 0o600);
  const hash = createHash('sha256');
  let head: Buffer = Buffer.alloc(0);
  /** Bytes with which the type is detected next. Doubles, to detect it rarely for small chunks. */
  let enough = DETECTION_BYTES;
  let length = 0;
  let type: T | undefined;
  const detect = async (isComplete: boolean): Promise<void> => {
    const detected = await detectType(head, isComplete);
    if (detected === 'unsure') return;
    type = types.find((accepted) => accepted === detected);
    if (type === undefined) throw unsupportedType(label, detected, types);
  };
  const checkLength = (): void => {
    if (length > maxBytes(type)) throw serviceError('FILE_TOO_LARGE', label, maxBytes(type));
  };
  try {
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      length += chunk.length;
      if (type === undefined) {
        head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
        if (head.length >= enough) {
          enough = head.length * 2;
          await detect(false);
        }
      }
      checkLength();
      await disk.store(chunk.length);
      hash.update(chunk);
      await files.append(file, chunk);
    }
    if (length === 0) throw serviceError('EMPTY_FILE', label);
    if (type === undefined) await detect(true);
    checkLength();
    return { type: type as unknown as T, length, sha256: hash.digest('hex') };
  } finally {
    closeSync(file);
  }
}

/** Creates the error of a file of another type than the accepted ones. */
export function unsupportedType(
  label: string,
  detected: DetectedType,
  accepts: readonly FileType[],
): ServiceError {
  const disabled = EXTRA_INPUT_TYPES.find((extra) => extra === detected);
  const others = disabled ? [INPUTS[disabled].label] : [];
  const images = accepts.filter((type) => type !== 'zip' && type !== 'archive');
  return serviceError('UNSUPPORTED_TYPE', label, listLabels(images), ...others);
}
