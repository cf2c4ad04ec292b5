import { join } from 'node:path';
import { type FileType, storeInput } from '../conversion/input/store.ts';
import { INPUT_FILE } from '../conversion/plan/types.ts';
import { ServiceError, serviceError } from '../errors.ts';
import { unzip } from '../files/unzip.ts';
import type { Workspace } from '../files/workspace.ts';
import type { InputType } from '../formats.ts';

/** Puts each file of a request into a folder of its own, while its bytes arrive and limits are kept. */

export interface FileCollectorOptions {
  readonly maxFiles: number;
  /** Per file. */
  readonly maxFileBytes: number;
  readonly accepts: readonly InputType[];
  /** Whether the files of a ZIP archive count as files of the request. */
  readonly acceptsArchives: boolean;
  /** How messages name the file at `position` (from 1), which the client calls `name`. */
  readonly label: (position: number, name: string | undefined) => string;
}

export interface ReceivedFile {
  /** What the client called it: any text at all. */
  readonly name: string | undefined;
  readonly label: string;
  readonly type: InputType;
  readonly folder: string;
}

/** A file that was no good, in a request that goes on without it. */
export interface RefusedFile {
  readonly name: string | undefined;
  readonly error: ServiceError;
}

export interface FileCollector {
  /** In the order they came. */
  readonly files: readonly (ReceivedFile | RefusedFile)[];
  /**
   * Takes one file, or all files of an archive.
   *
   * @param goesOn whether what is wrong with one file is to be noted instead of thrown
   */
  take(name: string | undefined, bytes: AsyncIterable<Buffer>, goesOn: boolean): Promise<void>;
}

/** An archive of as many files as are allowed may have this much of its own besides them. */
const ARCHIVE_OVERHEAD = 1024 * 1024;

/** Entries that an archive may have at least, folders and entries that are passed over included. */
const MIN_ENTRY_LIMIT = 1000;
/** An image may have a folder of its own, and come with a resource fork. */
const ENTRIES_PER_FILE = 3;

/** What may be wrong with one file, while the request is sound. */
const PER_FILE_ERRORS = ['EMPTY_FILE', 'FILE_TOO_LARGE', 'UNSUPPORTED_TYPE'];

/** What a file may be, and how large by what it is; undefined is what is not known yet. */
interface Allowance {
  readonly types: readonly FileType[];
  /** In bytes; throws for what is not allowed here. */
  readonly most: (type: FileType | undefined) => number;
}

/** @param halted fires when nothing more is wanted of the request */
export function createFileCollector(
  workspace: Workspace,
  rules: FileCollectorOptions,
  halted: AbortSignal,
): FileCollector {
  const { maxFiles, maxFileBytes, accepts, acceptsArchives: unpacks } = rules;
  const files: (ReceivedFile | RefusedFile)[] = [];
  let folders = 0;
  /** What all archives of the request may still have. */
  let archiveBytes = maxFiles * maxFileBytes + ARCHIVE_OVERHEAD;

  const ofRequest: Allowance = {
    types: unpacks ? [...accepts, 'zip'] : accepts,
    most: (type) => (type === 'zip' ? archiveBytes : maxFileBytes),
  };
  const ofArchive = (archive: string): Allowance => ({
    types: [...accepts, 'zip', 'archive'],
    most(type) {
      if (type === 'zip' || type === 'archive')
        throw serviceError('BAD_ARCHIVE', archive, 'contains another archive');
      return maxFileBytes;
    },
  });

  /** Notes an image as a file of the request, and tells what it was; nothing when it was refused. */
  async function takeOne(
    name: string | undefined,
    bytes: AsyncIterable<Buffer>,
    goesOn: boolean,
    allowance: Allowance,
  ): Promise<{ type: FileType; folder: string; label: string } | undefined> {
    if (files.length >= maxFiles) throw serviceError('TOO_MANY_FILES', maxFiles);
    const label = rules.label(files.length + 1, name);
    folders += 1;
    const folder = await workspace.folder(String(folders));
    try {
      const type = await store(bytes, folder, label, allowance);
      if (type !== 'zip' && type !== 'archive') files.push({ name, label, type, folder });
      return { type, folder, label };
    } catch (error) {
      if (!goesOn || !(error instanceof ServiceError) || !PER_FILE_ERRORS.includes(error.code)) throw error;
      files.push({ name, error });
      await workspace.discard(folder);
      return undefined;
    }
  }

  async function store(
    bytes: AsyncIterable<Buffer>,
    folder: string,
    label: string,
    { types, most }: Allowance,
  ): Promise<FileType> {
    const rules = { label, types, maxBytes: most, signal: halted, room: workspace.room };
    const { type, length } = await storeInput(bytes, join(folder, INPUT_FILE), rules);
    if (type === 'zip') archiveBytes -= length;
    return type;
  }

  async function unpack(folder: string, label: string, goesOn: boolean): Promise<void> {
    const before = files.length;
    const maxEntries = Math.max(MIN_ENTRY_LIMIT, maxFiles * ENTRIES_PER_FILE);
    for await (const { name, read } of unzip(join(folder, INPUT_FILE), label, maxEntries)) {
      halted.throwIfAborted();
      await takeOne(name, read(), goesOn, ofArchive(label));
    }
    if (files.length === before) throw serviceError('BAD_ARCHIVE', label, 'contains no files');
    await workspace.discard(folder);
  }

  return {
    files,
    async take(name, bytes, goesOn) {
      const taken = await takeOne(name, bytes, goesOn, ofRequest);
      if (taken?.type === 'zip') await unpack(taken.folder, taken.label, goesOn);
    },
  };
}
