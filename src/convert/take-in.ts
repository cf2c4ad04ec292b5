import { appendFile, closeSync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { fail } from '../errors.ts';
import type { RequestRoom } from '../files/disk-room.ts';
import type { InputType } from '../formats.ts';
import { createTypeGate } from './type-gate.ts';

const append = promisify(appendFile);

/** Bytes as they come, into a file of ours, while limits are kept. */

export type FileType = InputType | 'zip' | 'archive';

export interface TakeInRules<T extends FileType> {
  /** How messages name the file. */
  readonly label: string;
  readonly types: readonly T[];
  /** How many bytes it may have, by what it is: undefined as long as that is not known. It may throw. */
  readonly most: (type: T | undefined) => number;
  /** Fires when nothing more is wanted. */
  readonly halted: AbortSignal;
  /** Where the bytes are counted before they are written. */
  readonly room: Pick<RequestRoom, 'store'>;
}

/**
 * Writes a file that must not be there yet.
 *
 * @throws ServiceError EMPTY_FILE, FILE_TOO_LARGE or UNSUPPORTED_TYPE as soon as the bytes tell, DISK_FULL when there
 *   is no room for more than the request announced
 */
export async function takeIn<T extends FileType>(
  bytes: AsyncIterable<Buffer>,
  path: string,
  { label, types, most, halted, room }: TakeInRules<T>,
): Promise<{ readonly type: T; readonly length: number }> {
  const file = openSync(path, 'wx', 0o600);
  try {
    const gate = createTypeGate(label, types);
    let length = 0;
    for await (const chunk of bytes) {
      halted.throwIfAborted();
      length += chunk.length;
      await gate.look(chunk);
      if (length > most(gate.type)) throw fail('FILE_TOO_LARGE', label, most(gate.type));
      await room.store(chunk.length);
      await append(file, chunk);
    }
    if (length === 0) throw fail('EMPTY_FILE', label);
    const type = await gate.end();
    if (length > most(type)) throw fail('FILE_TOO_LARGE', label, most(type));
    return { type, length };
  } finally {
    closeSync(file);
  }
}
