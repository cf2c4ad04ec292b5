/** @module Reads the files of a ZIP in order, without trusting the sizes that it declares. */
import { isUtf8 as isValidUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { crc32 } from 'node:zlib';
import { type Entry, getFileNameLowLevel, openPromise, validateFileName, type ZipFile } from 'yauzl';
import { isSystemFile } from '../base/text.ts';
import { ServiceError, serviceErrorFrom } from '../tables/errors.ts';

/** A file in an archive. */
export interface ZippedFile {
  /** Path in the archive, with forward slashes. */
  readonly name: string;
  read(): AsyncIterable<Buffer>;
}

/** Maximum length of an entry's path, in bytes. File systems permit 255 for each component. */
const MAX_NAME_BYTES = 1024;

/** General purpose bit 11: the name is UTF-8 (APPNOTE 6.3.10, section 4.4.4). */
const UTF8_FLAG = 0x800;
/** Systems of UTF-8 names, by the upper byte of "version made by" (APPNOTE, 4.4.2): Unix, macOS. */
const UTF8_SYSTEMS = [3, 19];

/**
 * Yields the files of an archive in order, without folders and what file managers add.
 *
 * @param label the name of the archive in messages
 * @param maxEntries the maximum number of entries, including folders and skipped entries
 * @throws {ServiceError} BAD_ARCHIVE for an archive that is damaged, encrypted or unsafe, for
 *   example with an absolute path or with `..` in a path
 */
export async function* unzip(path: string, label: string, maxEntries: number): AsyncGenerator<ZippedFile> {
  const badArchive = (what: string, cause?: unknown) => serviceErrorFrom(cause, 'BAD_ARCHIVE', label, what);
  let archive: ZipFile | undefined;
  try {
    archive = await openPromise(path, { lazyEntries: true, autoClose: false, decodeStrings: false });
    let seen = 0;
    for await (const entry of archive.eachEntry()) {
      seen += 1;
      if (seen > maxEntries) throw badArchive(`has more than ${maxEntries} entries`);
      const name = decodeName(entry);
      // The name in an extra field can be longer than the one in the header.
      if (Math.max(entry.fileNameLength, name.length) > MAX_NAME_BYTES)
        throw badArchive(`contains a file with a name of more than ${MAX_NAME_BYTES} bytes`);
      if (isIgnored(name)) continue;
      if (entry.isEncrypted()) throw badArchive('is encrypted');
      if (isSymlink(entry)) throw badArchive('contains a symbolic link');
      yield { name, read: () => readEntry(archive as ZipFile, entry, badArchive) };
    }
  } catch (cause) {
    throw isSystemError(cause) ? cause : badArchive('is damaged or not safe to read', cause);
  } finally {
    archive?.close();
  }
}

/**
 * Decodes the name of an entry. Info-ZIP and macOS write UTF-8 without setting the flag. So code
 * page 437, which the format prescribes without the flag, applies only to names from other systems
 * that are not valid UTF-8.
 *
 * @throws {Error} for an absolute path, or one that leads out of the archive
 */
function decodeName({ versionMadeBy, generalPurposeBitFlag, fileNameRaw, extraFields }: Entry): string {
  const isUtf8 = isValidUtf8(fileNameRaw) || UTF8_SYSTEMS.includes(versionMadeBy >> 8);
  const flags = isUtf8 ? generalPurposeBitFlag | UTF8_FLAG : generalPurposeBitFlag;
  const name = getFileNameLowLevel(flags, fileNameRaw, extraFields, false);
  const fault = validateFileName(name);
  if (fault !== null) throw new Error(fault);
  return name;
}

/** Returns true for an error that is final, or of the system, such as too many open files. */
function isSystemError(cause: unknown): boolean {
  return cause instanceof ServiceError || (cause as NodeJS.ErrnoException).syscall !== undefined;
}

const isIgnored = (name: string): boolean => name.split('/').at(-1) === '' || isSystemFile(name);

/** Returns whether the Unix mode of an entry is that of a link (inode(7)). */
const isSymlink = ({ externalFileAttributes }: Entry): boolean =>
  ((externalFileAttributes >>> 16) & constants.S_IFMT) === constants.S_IFLNK;

async function* readEntry(
  archive: ZipFile,
  entry: Entry,
  badArchive: (what: string, cause: unknown) => Error,
): AsyncGenerator<Buffer> {
  try {
    let checksum = 0;
    for await (const chunk of await archive.openReadStreamPromise(entry)) {
      checksum = crc32(chunk as Buffer, checksum);
      yield chunk as Buffer;
    }
    if (checksum !== entry.crc32) throw new Error('the checksum of an entry is wrong');
  } catch (cause) {
    throw isSystemError(cause) ? cause : badArchive('is damaged or compressed in an unknown way', cause);
  }
}
