/** @module Reads and changes files in place. */
import { constants, createWriteStream, readSync } from 'node:fs';
import { rename, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { PositionedReader } from './window-reader.ts';

/** Flags for opening a file that a tool has written: do not follow a symbolic link, and do not block on a pipe. */
export const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads the open file `fd` synchronously. The file was just written, so reading it from memory takes less time
 * than a round trip to another thread.
 */
export function readFrom(fd: number): PositionedReader {
  return {
    read: async (buffer, offset, length, position) => ({
      bytesRead: readSync(fd, buffer, offset, length, position),
    }),
  };
}

/** Limits of a repair that makes a file larger or replaces it. */
export interface RepairContext {
  /** Name of the file in error messages. */
  readonly label: string;
  /** Maximum size of the repaired file, in bytes. */
  readonly maxBytes: number;
  /** Counts bytes that are about to be written in addition to those of the file. */
  readonly store: (bytes: number) => Promise<void>;
  /** Counts bytes of a file that was replaced. */
  readonly release: (bytes: number) => void;
}

/**
 * Replaces the file at `path`. Both files are on the disk until the new one is complete.
 *
 * @param bytes size of the new file
 * @throws {ServiceError} DISK_FULL if the disk has no space for both
 */
export async function replaceFile(
  path: string,
  content: Iterable<Buffer> | AsyncIterable<Buffer>,
  bytes: number,
  { store, release }: Pick<RepairContext, 'store' | 'release'>,
): Promise<void> {
  const { size } = await stat(path);
  const output = `${path}.new`;
  await store(bytes);
  await pipeline(content, createWriteStream(output, { flags: 'wx', mode: 0o600 }));
  await rename(output, path);
  release(size);
}
