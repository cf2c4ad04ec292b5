/** @module Sends the results of a batch as a ZIP archive, which is written while it is sent. */
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
import { monitorResponse, type SendOptions, toSendError } from './response.ts';

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
  options: SendOptions & ArchiveOptions,
): Promise<void> {
  try {
    const entries = await packResults(results, options.format, options);
    const length = archiveLength(entries);
    res.setHeader('Content-Type', 'application/zip');
    if (length <= MAX_KNOWN_LENGTH) res.setHeader('Content-Length', length);
    res.setHeader('Content-Disposition', `attachment; filename=${ARCHIVE_NAME}`);
    res.setHeader('Cache-Control', 'no-store');
    const watch = monitorResponse(res, options.stallMs);
    options.disk.registerResponse(watch);
    await send(res, entries, options).finally(watch.end);
  } catch (cause) {
    throw toSendError(cause);
  }
}

async function send(
  res: Response,
  entries: readonly ArchiveEntry[],
  { disk }: Pick<SendOptions, 'disk'>,
): Promise<void> {
  const { archive, add } = createArchive();
  const sending = pipeline(archive, res);
  sending.catch(() => {}); // awaited below, but may reject earlier
  try {
    for (const [index, entry] of entries.entries()) {
      const { stored } = entry;
      if ('data' in stored) {
        await add(entry, Readable.from([stored.data]), sending);
        continue;
      }
      // At most one file is open at a time, and none after sending has failed.
      const file = await open(stored.path);
      const isLast = !entries.slice(index + 1).some((other) => other.stored === stored);
      try {
        if (isLast) await rm(stored.path);
        await add(entry, file.createReadStream(), sending);
      } finally {
        await file.close();
      }
      if (isLast) disk.release(entry.storedBytes);
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

  /** Adds an entry. Rejects if sending fails, or if the source does not have the announced number of bytes. */
  async function add(entry: ArchiveEntry, source: Readable, sending: Promise<void>): Promise<void> {
    current = entry;
    let bytes = 0;
    source.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    source.on('error', (error) => archive.destroy(error));
    const added = once(archive, 'entry');
    archive.append(source, { name: entry.name, store: !entry.isDeflated });
    try {
      await Promise.race([added, sending]);
    } finally {
      source.destroy();
    }
    if (bytes !== entry.storedBytes) throw new Error(`${bytes} bytes instead of ${entry.storedBytes}`);
  }

  return { archive, add };
}
