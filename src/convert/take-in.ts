import { appendFile, closeSync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { serviceError } from '../errors.ts';
import type { RequestRoom } from '../files/disk-room.ts';
import type { InputType } from '../formats.ts';
import { createTypeDetector } from './type-gate.ts';

const append = promisify(appendFile);

/** Bytes as they come, into a file of ours, while limits are kept. */

export type FileType = InputType | 'zip' | 'archive';

export interface StoreOptions<T extends FileType> {
  /** How messages name the file. */
  readonly label: string;
  readonly types: readonly T[];
  /** How many bytes it may have, by what it is: undefined as long as that is not known. It may throw. */
  readonly maxBytes: (type: T | undefined) => number;
  /** Fires when nothing more is wanted. */
  readonly signal: AbortSignal;
  /** Where the bytes are counted before they are written. */
  readonly room: Pick<RequestRoom, 'store'>;
}

/**
 * Writes a file that must not be there yet.
 *
 * @throws ServiceError EMPTY_FILE, FILE_TOO_LARGE or UNSUPPORTED_TYPE as soon as the bytes tell, DISK_FULL when there
 *   is no room for more than the request announced
 */
export async function storeInput<T extends FileType>(
  bytes: AsyncIterable<Buffer>,
  path: string,
  { label, types, maxBytes: most, signal: halted, room }: StoreOptions<T>,
): Promise<{ readonly type: T; readonly length: number }> {
  const file = openSync(path, 'wx', 0o600);
  try {
    const gate = createTypeDetector(label, types);
    let length = 0;
    for await (const chunk of bytes) {
      halted.throwIfAborted();
      length += chunk.length;
      await gate.push(chunk);
      if (length > most(gate.type)) throw serviceError('FILE_TOO_LARGE', label, most(gate.type));
      await room.store(chunk.length);
      await append(file, chunk);
    }
    if (length === 0) throw serviceError('EMPTY_FILE', label);
    const type = await gate.end();
    if (length > most(type)) throw serviceError('FILE_TOO_LARGE', label, most(type));
    return { type, length };
  } finally {
    closeSync(file);
  }
}
