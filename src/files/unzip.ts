import { crc32 } from 'node:zlib';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { failBecause, ServiceError } from '../errors.ts';

/** Reads the files of a ZIP archive, one after the other, believing nothing that it declares. */

export interface ZippedFile {
  /** Its path in the archive, with forward slashes. */
  readonly name: string;
  /** Its bytes, as many as there really are. */
  read(): AsyncIterable<Buffer>;
}

/** Folders and other entries that are passed over count, too: an archive of images has no more. */
const MOST_ENTRIES = 1000;

/** Bits of an entry's Unix mode, see inode(7). */
const FILE_TYPE = 0xf000;
const SYMLINK = 0xa000;

/**
 * The files of the archive at `path`, in its order, without folders and without what macOS adds.
 *
 * @param label how messages name the archive
 * @throws ServiceError with status 400 for an archive that is damaged, encrypted or hostile; the
 *   library refuses absolute paths and such as lead out with `..`
 */
export async function* unzip(path: string, label: string): AsyncGenerator<ZippedFile> {
  const refuse = (what: string, cause?: unknown) => failBecause(cause, 'BAD_ARCHIVE', label, what);
  let archive: ZipFile | undefined;
  try {
    archive = await openPromise(path, { lazyEntries: true, autoClose: false });
    let seen = 0;
    for await (const entry of archive.eachEntry()) {
      seen += 1;
      if (seen > MOST_ENTRIES) throw refuse(`has more than ${MOST_ENTRIES} entries`);
      if (isPassedOver(entry)) continue;
      if (entry.isEncrypted()) throw refuse('is encrypted');
      if (isSymlink(entry)) throw refuse('contains a symbolic link');
      yield { name: entry.fileName, read: () => bytesOf(archive as ZipFile, entry, refuse) };
    }
  } catch (cause) {
    throw isNotTheArchives(cause) ? cause : refuse('is damaged or not safe to read', cause);
  } finally {
    archive?.close();
  }
}

/** What was found wrong already, or what the machine lacks: files that may be open, for instance. */
function isNotTheArchives(cause: unknown): boolean {
  return cause instanceof ServiceError || (cause as NodeJS.ErrnoException).syscall !== undefined;
}

function isPassedOver({ fileName }: Entry): boolean {
  return (
    fileName.endsWith('/') || fileName.startsWith('__MACOSX/') || fileName.split('/').at(-1) === '.DS_Store'
  );
}

function isSymlink({ externalFileAttributes }: Entry): boolean {
  return ((externalFileAttributes >>> 16) & FILE_TYPE) === SYMLINK;
}

async function* bytesOf(
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
    if (checksum !== entry.crc32) throw new Error(`checksum of ${entry.fileName} is wrong`);
  } catch (cause) {
    throw isNotTheArchives(cause) ? cause : refuse('is damaged or compressed in an unknown way', cause);
  }
}
