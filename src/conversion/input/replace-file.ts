/** @module Replaces an input by a new file. */
import { createWriteStream } from 'node:fs';
import { rename, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { RepairContext } from '../types.ts';

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
