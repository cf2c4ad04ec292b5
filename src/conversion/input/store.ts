import { appendFile, closeSync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { serviceError } from '../../errors.ts';
import type { RequestRoom } from '../../files/disk-room.ts';
import { INPUTS, type InputType } from '../../formats.ts';
import { DETECTION_BYTES, detectType } from './detect.ts';

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

/** Looks at a file's first bytes as they arrive, and refuses a type that cannot be converted. */
interface TypeDetector<T> {
  /** @throws ServiceError UNSUPPORTED_TYPE as soon as the bytes tell */
  push(chunk: Buffer): Promise<void>;
  /** The type, once it is told. */
  readonly type: T | undefined;
  /** The type of a file that has ended. */
  end(): Promise<T>;
}

function createTypeDetector<T extends InputType | 'zip' | 'archive'>(
  label: string,
  accepts: readonly T[],
): TypeDetector<T> {
  let head: Buffer = Buffer.alloc(0);
  let enough = DETECTION_BYTES;
  let type: T | undefined;

  const judge = async (complete: boolean): Promise<void> => {
    const verdict = await detectType(head, complete);
    if (verdict === 'unsure') return;
    type = accepts.find((accepted) => accepted === verdict);
    if (type === undefined) throw serviceError('UNSUPPORTED_TYPE', label, labelsOf(accepts));
  };
  return {
    get type() {
      return type;
    },
    async push(chunk) {
      if (type !== undefined) return;
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      if (head.length < enough) return;
      enough = head.length * 2; // so that many small pieces are not each a reason to look again
      await judge(false);
    },
    async end() {
      if (type === undefined) await judge(true);
      return type as T;
    },
  };
}

function labelsOf(types: readonly (InputType | 'zip' | 'archive')[]): string {
  return types.flatMap((type) => (type === 'zip' || type === 'archive' ? [] : INPUTS[type].label)).join(', ');
}
