/** @module Sends the results of a batch as a ZIP archive, which is written while it is sent. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ZipArchive } from 'archiver';
import type { Response } from 'express';
import {
  type ArchiveEntry,
  type ArchiveItem,
  type ArchiveOptions,
  archiveLength,
  packResults,
} from './archive-entries.ts';
import { attachment, monitorResponse, type SendOptions, toSendError } from './response.ts';

const ARCHIVE_NAME = 'converted.zip';
/** Maximum length of an archive without ZIP64, in bytes. A larger archive is sent without `Content-Length`. */
const MAX_KNOWN_LENGTH = 0xffff_ffff;

/**
 * Sends the archive, and resolves when it has been sent. All conversions are complete and all sizes are known before
 * the first byte is sent, so that the status and the length are always correct. An error after that closes the
 * connection, so that a client cannot mistake a truncated archive for a complete one.
 *
 * @throws {ClientDisconnectedError} when the client disconnects
 */
export async function sendArchive(
  res: Response,
  results: readonly ArchiveItem[],
  options: Omit<SendOptions, 'format'> & ArchiveOptions,
): Promise<void> {
  const { isMixed = false, disk, stallMs } = options;
  const boundary = randomUUID();
  try {
    const entries = await packResults(results, options);
    const length = isMixed ? mixedLength(entries, boundary) : archiveLength(entries);
    res.setHeader('Content-Type', isMixed ? `multipart/mixed; boundary=${boundary}` : 'application/zip');
    if (isMixed || length <= MAX_KNOWN_LENGTH) res.setHeader('Content-Length', length);
    if (!isMixed) res.setHeader('Content-Disposition', `attachment; filename=${ARCHIVE_NAME}`);
    res.setHeader('Cache-Control', 'no-store');
    const watch = monitorResponse(res, stallMs);
    disk.registerResponse(watch);
    const opened = openEntries(entries, disk);
    const sending = isMixed ? pipeline(writeMixed(opened, boundary), res) : sendZip(opened, res);
    await sending.finally(watch.end);
  } catch (cause) {
    throw toSendError(cause);
  }
}

/** An entry, and the stream of its data. */
interface OpenEntry {
  readonly entry: ArchiveEntry;
  readonly source: Readable;
}

/**
 * Opens the entries, each when the one before it has been sent: at most one file is open at a time, and none after sending has
 * failed. Removes each file when it is opened for the last time.
 */
async function* openEntries(
  entries: readonly ArchiveEntry[],
  disk: SendOptions['disk'],
): AsyncGenerator<OpenEntry> {
  for (const [index, entry] of entries.entries()) {
    const { stored, storedBytes } = entry;
    if ('data' in stored) {
      yield { entry, source: Readable.from([stored.data]) };
      continue;
    }
    const file = await open(stored.path);
    const isLast = !entries.slice(index + 1).some((other) => other.stored === stored);
    try {
      if (isLast) await rm(stored.path);
      const source = file.createReadStream();
      yield { entry, source };
      if (source.bytesRead !== storedBytes)
        throw new Error(`${source.bytesRead} bytes instead of ${storedBytes}`);
    } finally {
      await file.close();
    }
    if (isLast) disk.release(storedBytes);
  }
}

/** Yields a body of type `multipart/mixed` (RFC 2046, section 5.1.3). */
async function* writeMixed(
  opened: AsyncIterable<OpenEntry>,
  boundary: string,
): AsyncGenerator<string | Buffer> {
  for await (const { entry, source } of opened) {
    yield partHead(entry, boundary);
    yield* source;
    yield '\r\n';
  }
  yield mixedEnd(boundary);
}

const partHead = ({ name, mediaType, bytes }: ArchiveEntry, boundary: string): string =>
  `--${boundary}\r\nContent-Type: ${mediaType}\r\nContent-Length: ${bytes}\r\n` +
  `Content-Disposition: ${attachment(name)}\r\n\r\n`;

const mixedEnd = (boundary: string): string => `--${boundary}--\r\n`;

/** Returns the length of a body of type `multipart/mixed`, in bytes. */
function mixedLength(entries: readonly ArchiveEntry[], boundary: string): number {
  const parts = entries.map((entry) => Buffer.byteLength(partHead(entry, boundary)) + entry.bytes + 2);
  return parts.reduce((sum, bytes) => sum + bytes, mixedEnd(boundary).length);
}

/** Sends a ZIP archive, which is written while it is sent. */
async function sendZip(opened: AsyncIterable<OpenEntry>, res: Response): Promise<void> {
  const { archive, append } = createArchive();
  const sending = pipeline(archive, res);
  sending.catch(() => {}); // awaited below, but may reject earlier
  try {
    for await (const { entry, source } of opened) {
      source.on('error', (error) => archive.destroy(error));
      const added = once(archive, 'entry');
      append(entry, source);
      await Promise.race([added, sending]).finally(() => source.destroy());
    }
    await Promise.all([archive.finalize(), sending]);
  } catch (cause) {
    archive.destroy();
    await sending.catch(() => {});
    throw cause;
  }
}

/**
 * The methods of archiver's ZIP engine (compress-commons 7.0.1) that add one entry. `package.json` pins archiver, and a test
 * fails when their code changes.
 */
interface ZipEngine {
  _appendStream(
    header: EntryHeader,
    source: Readable,
    done: (error: null, header: EntryHeader) => void,
  ): void;
  _writeLocalFileHeader(header: EntryHeader): void;
  _afterAppend(header: EntryHeader): void;
}

interface EntryHeader {
  setCrc(crc: number): void;
  setSize(bytes: number): void;
  setCompressedSize(bytes: number): void;
  getGeneralPurposeBit(): { useDataDescriptor(does: boolean): void; useUTF8ForNames(does: boolean): void };
}

/**
 * Creates an archive that has sizes and checksums in front of the data of each entry. For streams, archiver writes them
 * behind the data. Sequential readers such as Java's ZipInputStream reject that for a stored entry. archiver has no
 * option for known sizes, so this function replaces a method of its engine.
 */
function createArchive() {
  const archive = new ZipArchive();
  const { engine } = (archive as unknown as { _module: { engine: ZipEngine & NodeJS.WritableStream } })
    ._module;
  let current: ArchiveEntry;
  engine._appendStream = (header, source, done) => {
    header.setCrc(current.crc32);
    header.setSize(current.bytes);
    header.setCompressedSize(current.storedBytes);
    header.getGeneralPurposeBit().useDataDescriptor(false);
    header.getGeneralPurposeBit().useUTF8ForNames(true);
    engine._writeLocalFileHeader(header);
    source.once('end', () => {
      engine._afterAppend(header);
      done(null, header);
    });
    source.pipe(engine, { end: false });
  };
  return {
    archive,
    /** Appends an entry. The entry before it has been written. */
    append(entry: ArchiveEntry, source: Readable): void {
      current = entry;
      archive.append(source, { name: entry.name, store: !entry.isDeflated });
    },
  };
}
