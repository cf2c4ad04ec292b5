/**
 * @module Packs files for a ZIP archive that has sizes and checksums in its local headers (APPNOTE.TXT, section
 * 4.3.7).
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';
import { ServiceError } from '../errors.ts';
import type { DiskAccount } from '../files/disk-space.ts';

/** A file, packed for an archive. */
export interface PackedFile {
  readonly isDeflated: boolean;
  /** Size of the content. */
  readonly bytes: number;
  readonly crc32: number;
  /** The entry's data in the archive: deflated, or the content itself. */
  readonly stored: { readonly path: string } | { readonly data: Buffer };
  readonly storedBytes: number;
}

/** zlib's default. Higher levels take much longer and save next to nothing. */
const DEFLATE_LEVEL = 6;
/** zlib's fastest level, for files of more than {@link MAX_SMALL_BYTES}. */
const FAST_DEFLATE_LEVEL = 1;
const MAX_SMALL_BYTES = 16 * 1024 ** 2;
const CHUNK_BYTES = 256 * 1024;

/** Options for packing a file of a request. */
export interface PackOptions {
  readonly disk: DiskAccount;
  /** Aborts when the client disconnects, or when the time is over. */
  readonly signal: AbortSignal;
}

/** Packs the file at `path` uncompressed. Reads it once, for its checksum. */
export async function storeFile(
  path: string,
  bytes: number,
  { signal }: Pick<PackOptions, 'signal'>,
): Promise<PackedFile> {
  let checksum = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES, signal }))
    checksum = crc32(chunk, checksum);
  return { isDeflated: false, bytes, crc32: checksum, stored: { path }, storedBytes: bytes };
}

/**
 * Deflates the file at `path` to a new file and removes the original, unless it throws. A file is used because the size must be known
 * before the first byte is sent, and memory use must not depend on it. If the disk has no space for the new file, the
 * original is stored uncompressed.
 */
export async function deflateFile(path: string, bytes: number, options: PackOptions): Promise<PackedFile> {
  const { disk, signal } = options;
  const settle = await reserve(disk, bytes);
  if (!settle) return storeFile(path, bytes, options);
  const target = `${path}.deflated`;
  let storedBytes = 0;
  try {
    let checksum = 0;
    const computeChecksum = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        checksum = crc32(chunk, checksum);
        yield chunk;
      }
    };
    const source = createReadStream(path, { highWaterMark: CHUNK_BYTES });
    const deflate = createDeflateRaw({ level: bytes > MAX_SMALL_BYTES ? FAST_DEFLATE_LEVEL : DEFLATE_LEVEL });
    await pipeline(source, computeChecksum, deflate, createWriteStream(target), { signal });
    storedBytes = (await stat(target)).size;
    await rm(path);
    disk.release(bytes);
    return { isDeflated: true, bytes, crc32: checksum, stored: { path: target }, storedBytes };
  } catch (error) {
    await rm(target, { force: true });
    storedBytes = 0;
    throw error;
  } finally {
    settle(storedBytes);
  }
}

/**
 * Reserves disk space.
 *
 * @returns undefined if there is not enough
 */
function reserve(disk: DiskAccount, bytes: number): Promise<((stored: number) => void) | undefined> {
  return disk.reserve(bytes).catch((error) => {
    if (error instanceof ServiceError && error.code === 'DISK_FULL') return undefined;
    throw error;
  });
}

/** Packs data in memory, uncompressed. */
export function packData(data: Buffer): PackedFile {
  return {
    isDeflated: false,
    bytes: data.length,
    crc32: crc32(data),
    stored: { data },
    storedBytes: data.length,
  };
}
