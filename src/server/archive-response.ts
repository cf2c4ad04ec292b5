/** @module Sends the results of a batch as a ZIP archive, which is written while it is sent. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { PassThrough, Readable } from 'node:stream';
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
  try {
    const entries = await packResults(results, options);
    const body = options.isMixed ? createMixed(res, entries) : createArchive(res, entries);
    res.setHeader('Content-Type', body.mediaType);
    if (body.length !== undefined) res.setHeader('Content-Length', body.length);
    if (!options.isMixed) res.setHeader('Content-Disposition', `attachment; filename=${ARCHIVE_NAME}`);
    res.setHeader('Cache-Control', 'no-store');
    const watch = monitorResponse(res, options.stallMs);
    options.disk.registerResponse(watch);
    await send(body, entries, options).finally(watch.end);
  } catch (cause) {
    throw toSendError(cause);
  }
}

/** The body of a response, which gets one entry after the other. */
interface ArchiveBody {
  readonly mediaType: string;
  /** Length in bytes; undefined if it is not known. */
  readonly length: number | undefined;
  /** Adds an entry. Rejects if sending fails. */
  add(entry: ArchiveEntry, source: Readable): Promise<void>;
  /** Resolves when everything has been sent. */
  finish(): Promise<unknown>;
  /** Stops sending. */
  abort(): Promise<void>;
}

async function send(
  { add, finish, abort }: ArchiveBody,
  entries: readonly ArchiveEntry[],
  { disk }: Pick<SendOptions, 'disk'>,
): Promise<void> {
  try {
    for (const [index, entry] of entries.entries()) {
      const { stored } = entry;
      if ('data' in stored) {
        await add(entry, Readable.from([stored.data]));
        continue;
      }
      // At most one file is open at a time, and none after sending has failed.
      const file = await open(stored.path);
      const isLast = !entries.slice(index + 1).some((other) => other.stored === stored);
      try {
        if (isLast) await rm(stored.path);
        const source = file.createReadStream();
        await add(entry, source);
        if (source.bytesRead !== entry.storedBytes)
          throw new Error(`${source.bytesRead} bytes instead of ${entry.storedBytes}`);
      } finally {
        await file.close();
      }
      if (isLast) disk.release(entry.storedBytes);
    }
    await finish();
  } catch (cause) {
    await abort();
    throw cause;
  }
}

/** Creates a body of type `multipart/mixed` (RFC 2046, section 5.1.3). */
function createMixed(res: Response, entries: readonly ArchiveEntry[]): ArchiveBody {
  const boundary = randomUUID();
  const body = new PassThrough();
  const sending = pipeline(body, res);
  sending.catch(() => {}); // awaited below, but may reject earlier
  const head = ({ name, mediaType, bytes }: ArchiveEntry): string =>
    `--${boundary}\r\nContent-Type: ${mediaType}\r\nContent-Length: ${bytes}\r\n` +
    `Content-Disposition: ${attachment(name)}\r\n\r\n`;
  const end = `--${boundary}--\r\n`;
  const parts = entries.map((entry) => Buffer.byteLength(head(entry)) + entry.bytes + 2);
  return {
    mediaType: `multipart/mixed; boundary=${boundary}`,
    length: parts.reduce((sum, bytes) => sum + bytes, end.length),
    async add(entry, source) {
      body.write(head(entry));
      source.on('error', (error) => body.destroy(error));
      const read = once(source, 'end');
      source.pipe(body, { end: false });
      await Promise.race([read, sending]).finally(() => source.destroy());
      body.write('\r\n');
    },
    finish() {
      body.end(end);
      return sending;
    },
    async abort() {
      body.destroy();
      await sending.catch(() => {});
    },
  };
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
function createArchive(res: Response, entries: readonly ArchiveEntry[]): ArchiveBody {
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

  const sending = pipeline(archive, res);
  sending.catch(() => {}); // awaited below, but may reject earlier

  const length = archiveLength(entries);
  return {
    mediaType: 'application/zip',
    length: length <= MAX_KNOWN_LENGTH ? length : undefined,
    async add(entry, source) {
      current = entry;
      source.on('error', (error) => archive.destroy(error));
      const added = once(archive, 'entry');
      archive.append(source, { name: entry.name, store: !entry.isDeflated });
      await Promise.race([added, sending]).finally(() => source.destroy());
    },
    finish: () => Promise.all([archive.finalize(), sending]),
    async abort() {
      archive.destroy();
      await sending.catch(() => {});
    },
  };
}
