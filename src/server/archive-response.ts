import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ZipArchive } from 'archiver';
import type { Response } from 'express';
import {
  type ArchiveEntry,
  type Result as ArchiveItem,
  archiveLength,
  packResults,
} from './archive-entries.ts';
import type { PackOptions } from './deflate-file.ts';
import type { SendOptions } from './response.ts';
import { toSendError } from './response.ts';
import { watchAnswer } from './response-rate.ts';

/** Sends the results of a batch as a ZIP archive that is made while it flows. */

const ARCHIVE_NAME = 'converted.zip';
/** A larger archive has headers of another kind, ZIP64, and is sent without a length. */
const MAX_KNOWN_LENGTH = 0xffff_ffff;

/**
 * Sends the archive, and waits until it is out. Every conversion is done and every size known before the first byte goes
 * out, so that neither the status nor the length is ever wrong. What goes wrong after that cuts the connection, so that
 * no client takes half an archive for a whole one.
 */
export async function sendArchive(
  res: Response,
  results: readonly ArchiveItem[],
  options: SendOptions & PackOptions,
): Promise<void> {
  try {
    const entries = await packResults(results, options.format, options);
    const length = archiveLength(entries);
    res.setHeader('Content-Type', 'application/zip');
    if (length <= MAX_KNOWN_LENGTH) res.setHeader('Content-Length', length);
    res.setHeader('Content-Disposition', `attachment; filename=${ARCHIVE_NAME}`);
    res.setHeader('Cache-Control', 'no-store');
    const answer = watchAnswer(res, options.stallMs);
    options.room.sending(answer);
    await send(res, entries, options).finally(answer.end);
  } catch (cause) {
    throw toSendError(cause);
  }
}

async function send(
  res: Response,
  entries: readonly ArchiveEntry[],
  { room }: Pick<SendOptions, 'room'>,
): Promise<void> {
  const { archive, add } = createArchive();
  const sending = pipeline(archive, res);
  sending.catch(() => {}); // it is looked at below, but may fail before
  try {
    for (const [at, entry] of entries.entries()) {
      const { stored } = entry;
      if ('data' in stored) {
        await add(entry, Readable.from([stored.data]), sending);
        continue;
      }
      // Only one file is open at a time, and none when the sending has failed.
      const file = await open(stored.path);
      const isLast = !entries.slice(at + 1).some((other) => other.stored === stored);
      try {
        if (isLast) await rm(stored.path);
        await add(entry, file.createReadStream(), sending);
      } finally {
        await file.close();
      }
      if (isLast) room.release(entry.storedBytes);
    }
    await Promise.all([archive.finalize(), sending]);
  } catch (cause) {
    archive.destroy();
    await sending.catch(() => {});
    throw cause;
  }
}

/** The parts of archiver's ZIP engine that put one entry into the archive (compress-commons 7). */
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
 * An archive whose entries have their sizes and checksums in front of their data. archiver puts them behind the data of a
 * stream, which readers that go from front to back refuse for a stored entry, Java's ZipInputStream for one. It has no
 * option for sizes that are known, and only its engine has a place for them.
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

  /** Adds an entry. It fails when the archive cannot be sent any more, or when the source has not as much as it should. */
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
    if (bytes !== entry.storedBytes)
      throw new Error(`${bytes} bytes where ${entry.storedBytes} were announced`);
  }

  return { archive, add };
}
