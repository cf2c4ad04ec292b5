import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';
import { ServiceError } from '../errors.ts';
import type { RequestRoom } from '../files/disk-room.ts';

/** Prepares files for a ZIP archive whose local headers have their sizes and checksums (APPNOTE.TXT, section 4.3.7). */

/** A file as it is going to be in an archive. */
export interface PackedFile {
  readonly isDeflated: boolean;
  /** Of the content. */
  readonly bytes: number;
  readonly crc32: number;
  /** What the archive holds of it: deflated, or the content itself. */
  readonly stored: { readonly path: string } | { readonly data: Buffer };
  readonly storedBytes: number;
}

/** zlib's own default: more takes much longer for next to nothing. */
const DEFLATE_LEVEL = 6;
const CHUNK_BYTES = 256 * 1024;

/** Where the files of a request are. */
export interface PackOptions {
  readonly room: RequestRoom;
  /** Fires when the client has left. */
  readonly signal: AbortSignal;
}

/** Reads the file at `path` once, for its checksum. */
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
 * Deflates the file at `path` into another one, which takes its place: the size must be known before the first byte is
 * sent, and memory must not grow with it. A file that has no room beside it for that is stored as it is.
 */
export async function deflateFile(path: string, bytes: number, options: PackOptions): Promise<PackedFile> {
  const { room, signal } = options;
  const settle = await reserve(room, bytes);
  if (!settle) return storeFile(path, bytes, options);
  const target = `${path}.deflated`;
  let storedBytes = 0;
  try {
    let checksum = 0;
    const addUp = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        checksum = crc32(chunk, checksum);
        yield chunk;
      }
    };
    const source = createReadStream(path, { highWaterMark: CHUNK_BYTES });
    const deflate = createDeflateRaw({ level: DEFLATE_LEVEL });
    await pipeline(source, addUp, deflate, createWriteStream(target), { signal });
    storedBytes = (await stat(target)).size;
    await rm(path);
    room.release(bytes);
    return { isDeflated: true, bytes, crc32: checksum, stored: { path: target }, storedBytes };
  } finally {
    settle(storedBytes);
  }
}

/** @returns undefined when there is no room */
function reserve(room: RequestRoom, bytes: number): Promise<((stored: number) => void) | undefined> {
  return room.reserve(bytes).catch((error) => {
    if (error instanceof ServiceError && error.code === 'DISK_FULL') return undefined;
    throw error;
  });
}

/** Prepares what is in memory. */
export function packData(data: Buffer): PackedFile {
  return {
    isDeflated: false,
    bytes: data.length,
    crc32: crc32(data),
    stored: { data },
    storedBytes: data.length,
  };
}
