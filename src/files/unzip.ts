import { isUtf8 as isValidUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import { type Entry, getFileNameLowLevel, openPromise, validateFileName, type ZipFile } from 'yauzl';
import { ServiceError, serviceErrorFrom } from '../errors.ts';

/** Reads the files of a ZIP archive, one after the other, believing nothing that it declares. */

export interface ZippedFile {
  /** Its path in the archive, with forward slashes. */
  readonly name: string;
  /** Its bytes, as many as there really are. */
  read(): AsyncIterable<Buffer>;
}

/** The longest name of an entry, in bytes; file systems allow 255 for each folder and file. */
const MAX_NAME_BYTES = 1024;

/** Entries that systems add to archives: thumbnails, folder settings, resource forks. Compared in lower case. */
const SYSTEM_FILES = ['.ds_store', 'thumbs.db', 'desktop.ini'];
const SYSTEM_FOLDER = '__MACOSX';
const RESOURCE_FORK = '._';

/** Bits of an entry's Unix mode, see inode(7). */
const FILE_TYPE = 0xf000;
const SYMLINK = 0xa000;

/** General purpose bit 11: the name is UTF-8 (APPNOTE 6.3.10, section 4.4.4). */
const UTF8_FLAG = 0x800;
/** Systems whose names are UTF-8, by the upper byte of "version made by" (APPNOTE, section 4.4.2): Unix, macOS. */
const UTF8_SYSTEMS = [3, 19];

/**
 * The files of the archive at `path`, in its order, without folders and without what file managers add.
 *
 * @param label how messages name the archive
 * @param maxEntries how many entries it may have; folders and entries that are passed over count, too
 * @throws ServiceError with status 400 for an archive that is damaged, encrypted or hostile; the
 *   library refuses absolute paths and such as lead out with `..`
 */
export async function* unzip(path: string, label: string, maxEntries: number): AsyncGenerator<ZippedFile> {
  const refuse = (what: string, cause?: unknown) => serviceErrorFrom(cause, 'BAD_ARCHIVE', label, what);
  let archive: ZipFile | undefined;
  try {
    archive = await openPromise(path, { lazyEntries: true, autoClose: false, decodeStrings: false });
    let seen = 0;
    for await (const entry of archive.eachEntry()) {
      seen += 1;
      if (seen > maxEntries) throw refuse(`has more than ${maxEntries} entries`);
      const name = nameOf(entry);
      // A name in an extra field may be longer than the one in the header.
      if (Math.max(entry.fileNameLength, name.length) > MAX_NAME_BYTES)
        throw refuse(`contains a file with a name of more than ${MAX_NAME_BYTES} bytes`);
      if (isIgnored(name)) continue;
      if (entry.isEncrypted()) throw refuse('is encrypted');
      if (isSymlink(entry)) throw refuse('contains a symbolic link');
      yield { name, read: () => readEntry(archive as ZipFile, entry, refuse) };
    }
  } catch (cause) {
    throw isSystemError(cause) ? cause : refuse('is damaged or not safe to read', cause);
  } finally {
    archive?.close();
  }
}

/**
 * Decodes the name of an entry. Info-ZIP and macOS write UTF-8 without saying so: code page 437, which the format
 * prescribes then, is for names that are not UTF-8 and come from another system.
 *
 * @throws Error for an absolute path, and one that leads out of the archive
 */
function nameOf({ versionMadeBy, generalPurposeBitFlag, fileNameRaw, extraFields }: Entry): string {
  const isUtf8 = isValidUtf8(fileNameRaw) || UTF8_SYSTEMS.includes(versionMadeBy >> 8);
  const flags = isUtf8 ? generalPurposeBitFlag | UTF8_FLAG : generalPurposeBitFlag;
  const name = getFileNameLowLevel(flags, fileNameRaw, extraFields, false);
  const fault = validateFileName(name);
  if (fault !== null) throw new Error(fault);
  return name;
}

/** What was found wrong already, or what the machine lacks: files that may be open, for instance. */
function isSystemError(cause: unknown): boolean {
  return cause instanceof ServiceError || (cause as NodeJS.ErrnoException).syscall !== undefined;
}

function isIgnored(name: string): boolean {
  const components = name.split('/');
  const last = components.at(-1) as string;
  return (
    last === '' ||
    components.includes(SYSTEM_FOLDER) ||
    last.startsWith(RESOURCE_FORK) ||
    SYSTEM_FILES.includes(last.toLowerCase())
  );
}

function isSymlink({ externalFileAttributes }: Entry): boolean {
  return ((externalFileAttributes >>> 16) & FILE_TYPE) === SYMLINK;
}

async function* readEntry(
  archive: ZipFile,
  entry: Entry,
  refuse: (what: string, cause: unknown) => Error,
): AsyncGenerator<Buffer> {
  try {
    let checksum = 0;
    for await (const chunk of await archive.openReadStreamPromise(entry)) {
      checksum = crc32(chunk as Buffer, checksum);
      yield chunk as Buffer;
    }
    if (checksum !== entry.crc32) throw new Error('the checksum of an entry is wrong');
  } catch (cause) {
    throw isSystemError(cause) ? cause : refuse('is damaged or compressed in an unknown way', cause);
  }
}
