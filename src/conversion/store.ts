/** @module Stores a received file, while it enforces the limits and detects the type. */
import { appendFile, closeSync } from 'node:fs';
import { promisify } from 'node:util';
import { type ServiceError, serviceError } from '../errors.ts';
import type { DiskAccount } from '../files/disk-space.ts';
import { workFiles } from '../files/work-files.ts';
import { EXTRA_INPUT_TYPES, INPUTS } from '../formats.ts';
import { DETECTION_BYTES, type DetectedType, detectType, type FileType } from '../images/detect.ts';

const append = promisify(appendFile);

/** Options of {@link storeInput}. */
export interface StoreOptions<T extends FileType> {
  /** Name of the file in error messages. */
  readonly label: string;
  readonly types: readonly T[];
  /** Returns the maximum size in bytes for a type, or for an unknown type if undefined. May throw. */
  readonly maxBytes: (type: T | undefined) => number;
  /** Aborts the writing. */
  readonly signal: AbortSignal;
  /** Disk space in which the bytes are reserved before they are written. */
  readonly disk: Pick<DiskAccount, 'store'>;
}

/**
 * Writes a stream to a new file.
 *
 * @throws {ServiceError} EMPTY_FILE; FILE_TOO_LARGE or UNSUPPORTED_TYPE as soon as it is certain; DISK_FULL if the disk
 *   has no space for bytes beyond those that the request announced
 * @throws the signal's reason if it aborts
 */
export async function storeInput<T extends FileType>(
  bytes: AsyncIterable<Buffer>,
  path: string,
  { label, types, maxBytes, signal, disk }: StoreOptions<T>,
): Promise<{ readonly type: T; readonly length: number }> {
  const file = await workFiles(path).open(path, 'wx', 0o600);
  try {
    const detector = createTypeDetector(label, types);
    let length = 0;
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      length += chunk.length;
      await detector.push(chunk);
      if (length > maxBytes(detector.type))
        throw serviceError('FILE_TOO_LARGE', label, maxBytes(detector.type));
      await disk.store(chunk.length);
      await append(file, chunk);
    }
    if (length === 0) throw serviceError('EMPTY_FILE', label);
    const type = await detector.end();
    if (length > maxBytes(type)) throw serviceError('FILE_TOO_LARGE', label, maxBytes(type));
    return { type, length };
  } finally {
    closeSync(file);
  }
}

/** Detects the type from the first bytes as they arrive, and rejects unsupported types. */
interface TypeDetector<T> {
  /**
   * Adds bytes.
   *
   * @throws {ServiceError} UNSUPPORTED_TYPE as soon as it is certain
   */
  push(chunk: Buffer): Promise<void>;
  /** The detected type; undefined until enough bytes have arrived. */
  readonly type: T | undefined;
  /**
   * Returns the type of the complete file.
   *
   * @throws {ServiceError} UNSUPPORTED_TYPE
   */
  end(): Promise<T>;
}

function createTypeDetector<T extends FileType>(label: string, accepts: readonly T[]): TypeDetector<T> {
  let head: Buffer = Buffer.alloc(0);
  let enough = DETECTION_BYTES;
  let type: T | undefined;

  const detect = async (complete: boolean): Promise<void> => {
    const detected = await detectType(head, complete);
    if (detected === 'unsure') return;
    type = accepts.find((accepted) => accepted === detected);
    if (type === undefined) throw unsupportedType(label, detected, accepts);
  };
  return {
    get type() {
      return type;
    },
    async push(chunk) {
      if (type !== undefined) return;
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (head.length < enough) return;
      enough = head.length * 2; // doubles, so that small chunks do not each repeat the detection
      await detect(false);
    },
    async end() {
      if (type === undefined) await detect(true);
      return type as T;
    },
  };
}

/** Creates the error of a file of another type than the accepted ones. */
export function unsupportedType(
  label: string,
  detected: DetectedType,
  accepts: readonly FileType[],
): ServiceError {
  const disabled = EXTRA_INPUT_TYPES.find((extra) => extra === detected);
  const others = disabled ? [INPUTS[disabled].label] : [];
  return serviceError('UNSUPPORTED_TYPE', label, labelsOf(accepts), ...others);
}

function labelsOf(types: readonly FileType[]): string {
  return types.flatMap((type) => (type === 'zip' || type === 'archive' ? [] : INPUTS[type].label)).join(', ');
}
