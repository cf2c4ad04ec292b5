/**
 * @module Builds the entries of a batch archive: the results, and a list of the failed conversions. Packs files for a ZIP archive
 * that has sizes and checksums in its local headers (APPNOTE.TXT, section 4.3.7).
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { crc32, createDeflateRaw } from 'node:zlib';
import { ConversionQueue } from '../conversion/engine.ts';
import { hashFile } from '../conversion/key.ts';
import type { ConversionOutcome } from '../conversion/types.ts';
import { ServiceError } from '../errors.ts';
import type { DiskAccount } from '../files/disk-space.ts';
import { OUTPUTS, type OutputType } from '../formats.ts';
import { baseNameOf, createUniqueNamer, portableName } from '../text.ts';
import { errorBody } from './error-handler.ts';

/** One result of a file, or its error. */
export interface ArchiveItem {
  /** Position of the file in the request, from 0. */
  readonly index: number;
  /** The file name that the client sent. */
  readonly name: string | undefined;
  readonly outcome: ConversionOutcome;
}

export interface ArchiveEntry extends PackedFile {
  readonly name: string;
  readonly mediaType: string;
}

const ERRORS_NAME = 'errors.json';
const MANIFEST_NAME = 'manifest.json';

/** Maximum number of files that are deflated at once. Deflating 150 MB takes seconds of CPU time. */
const MAX_DEFLATIONS = 2;

/** Creates the queue of the files that are deflated: one at a time for each client. */
export function createDeflations(): ConversionQueue {
  return new ConversionQueue({
    concurrency: MAX_DEFLATIONS,
    queueLimit: Number.POSITIVE_INFINITY, // at most one file of each batch waits
    maxPerClient: 1,
  });
}

export interface ArchiveOptions extends PackOptions {
  readonly deflations: ConversionQueue;
  /** Key of the client. */
  readonly client: string;
  /** Maximum time for deflating all files, with the waits for it, in ms. */
  readonly deflateTimeoutMs: number;
  /** Whether to add a list of the results. Default: false. */
  readonly manifest?: boolean;
  /** Whether the response is `multipart/mixed` instead of a ZIP archive. Default: false. */
  readonly isMixed?: boolean;
}

/**
 * Packs the results one after the other. Results of identical files share one file on disk, which is packed once. If
 * conversions failed, `errors.json` describes them. `manifest.json` describes the results, on request. Files that cannot be
 * deflated in time are stored uncompressed.
 */
export async function packResults(
  results: readonly ArchiveItem[],
  options: ArchiveOptions,
): Promise<ArchiveEntry[]> {
  const { deflations, client, signal } = options;
  const timeout = AbortSignal.timeout(options.deflateTimeoutMs);
  const inTime = { ...options, signal: AbortSignal.any([signal, timeout]) };
  const pack = async (path: string, bytes: number, format: OutputType): Promise<PackedFile> => {
    if (OUTPUTS[format].compressed || options.isMixed || timeout.aborted)
      return storeFile(path, bytes, options);
    try {
      const owner = { signal: inTime.signal, client, group: results };
      return await deflations.run(() => deflateFile(path, bytes, inTime), owner);
    } catch (error) {
      if (!timeout.aborted || signal.aborted) throw error;
      return storeFile(path, bytes, options);
    }
  };
  const uniqueName = createUniqueNamer();
  const digests = new Map<string, string>();
  const packed = new Map<string, PackedFile>();
  const entries: ArchiveEntry[] = [];
  const manifest: object[] = [];
  for (const { index, name: source = null, outcome } of results) {
    const { variant } = outcome;
    if ('error' in outcome) {
      if (variant) manifest.push({ index, source, variant, ...errorBody(outcome.error) });
      continue;
    }
    const { path, bytes, width, height, notes, format } = outcome.converted;
    const base = portableName(baseNameOf(source ?? undefined));
    const name = uniqueName(variant ? `${base}-${variant}` : base, format);
    if (options.manifest) {
      const sha256 = digests.get(path) ?? (await hashFile(path));
      digests.set(path, sha256);
      manifest.push({ index, source, variant, name, type: format, width, height, bytes, sha256, notes });
    }
    const file = packed.get(path) ?? (await pack(path, bytes, format));
    packed.set(path, file);
    entries.push({ ...file, name, mediaType: OUTPUTS[format].mediaType });
  }
  const lists = [
    { name: ERRORS_NAME, items: describeErrors(results) },
    { name: MANIFEST_NAME, items: manifest },
  ].filter(({ items }) => items.length > 0);
  return [
    ...entries,
    ...lists.map(({ name, items }) => ({
      ...packData(Buffer.from(`${JSON.stringify(items, null, 2)}\n`)),
      name,
      mediaType: 'application/json',
    })),
  ];
}

/** Returns the content of `errors.json`: the failed conversions. */
function describeErrors(results: readonly ArchiveItem[]): object[] {
  return results.flatMap(({ index, name = null, outcome }) =>
    'error' in outcome ? [{ index, file: name, variant: outcome.variant, ...errorBody(outcome.error) }] : [],
  );
}

/**
 * Returns the length of an archive without ZIP64, in bytes: for each entry its data, its local header and its header in
 * the central directory, and the end of that directory (APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16).
 */
export function archiveLength(entries: readonly ArchiveEntry[]): number {
  const lengths = entries.map(({ name, storedBytes }) => 30 + 46 + 2 * Buffer.byteLength(name) + storedBytes);
  return lengths.reduce((sum, length) => sum + length, 22);
}

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
async function storeFile(
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
 * Deflates the file at `path` to a new file and removes the original, unless it throws. A file is used because the size must
 * be known before the first byte is sent, and memory use must not depend on it. If the disk has no space for the new file,
 * the original is stored uncompressed.
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
function packData(data: Buffer): PackedFile {
  return {
    isDeflated: false,
    bytes: data.length,
    crc32: crc32(data),
    stored: { data },
    storedBytes: data.length,
  };
}
