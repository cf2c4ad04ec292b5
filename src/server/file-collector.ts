/** @module Stores the files of a request, and unpacks archives. Limits are enforced while the bytes arrive. */
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { INPUT_FILE } from '../conversion/plan/types.ts';
import { storeInput } from '../conversion/store.ts';
import type { ConversionInput, TextField, WatermarkFile } from '../conversion/types.ts';
import { toWatermarkError, WATERMARK_LABEL } from '../conversion/watermark.ts';
import { errorOfFile, isFileError, type ServiceError, serviceError } from '../errors.ts';
import { unzip } from '../files/unzip.ts';
import type { Workspace } from '../files/workspace.ts';
import { type InputType, listLabels, MAX_WATERMARK } from '../formats.ts';
import type { FileType } from '../images/index.ts';
import { sanitizeForDisplay } from '../text.ts';

/** Name of the file part with a watermark. */
export const WATERMARK_FIELD = 'watermark';

/** Limits and field names of an upload. */
export interface UploadOptions {
  readonly config: Config;
  readonly maxFiles: number;
  readonly accepts: readonly InputType[];
  /**
   * Whether the request can have several files. Then ZIP archives are unpacked, so that their files count as files of the
   * request.
   */
  readonly isBatch: boolean;
  /** Whether the body can be an image instead of a form. */
  readonly acceptsImage: boolean;
  /** Required name of file parts. In a batch, an index in brackets may follow, as PHP and axios send it. */
  readonly fileField: string;
  /** Another name of the file part, for a request with a single file. */
  readonly singleField?: string;
  /** Whether a form can have a watermark for all its files, as the part {@link WATERMARK_FIELD}. */
  readonly acceptsWatermark?: boolean;
  /** Time over which the rate of the upload is averaged, in milliseconds. Default: {@link RATE_WINDOW_MS}. */
  readonly rateWindowMs?: number;
  /** Returns whether to skip an invalid file, by the text fields in front of it. Default: no. */
  readonly skipInvalid?: (fields: readonly TextField[]) => boolean;
}

export interface ReceivedFile extends Pick<ConversionInput, 'folder' | 'type' | 'label' | 'batchFile'> {
  /** The file name that the client sent: any text. */
  readonly name: string | undefined;
  readonly sha256: string;
}

export interface RejectedFile {
  readonly name: string | undefined;
  readonly error: ServiceError;
}

/** Returns how messages refer to a file of a batch. */
const labelInBatch = (index: number, name: string | undefined): string =>
  name ? `File ${index + 1} ("${sanitizeForDisplay(name, 80)}")` : `File ${index + 1}`;

/** Bytes that an archive may have in addition to the content of its files. */
const ARCHIVE_OVERHEAD = 1024 * 1024;

/** Lower bound of the limit on an archive's entries, including folders and skipped entries. */
const MIN_ENTRY_LIMIT = 1000;
/** Entries per file: the image, its folder, and a resource fork of macOS. */
const ENTRIES_PER_FILE = 3;

/** Allowed types of a file, and the maximum size of each. */
interface Allowance {
  readonly types: readonly FileType[];
  /**
   * Returns the maximum size in bytes. The type is undefined until it has been detected.
   *
   * @throws {ServiceError} BAD_ARCHIVE or UNSUPPORTED_TYPE for a type that is not allowed here
   */
  readonly maxBytes: (type: FileType | undefined) => number;
}

/**
 * Creates a collector that stores the files of a request in the workspace and enforces the limits.
 *
 * @param signal aborts when the request has failed
 */
export function createFileCollector(workspace: Workspace, rules: UploadOptions, signal: AbortSignal) {
  const { maxFiles, accepts } = rules;
  const maxFileBytes = rules.config.MAX_FILE_BYTES;
  const files: (ReceivedFile | RejectedFile)[] = [];
  let folders = 0;
  /** Bytes that the remaining archives of the request may have. */
  let archiveBytes = maxFiles * maxFileBytes + ARCHIVE_OVERHEAD;

  const requestAllowance = (isBatch: boolean): Allowance => ({
    types: isBatch || !rules.isBatch ? [...accepts, 'zip'] : accepts,
    maxBytes(type) {
      if (type !== 'zip') return maxFileBytes;
      if (isBatch) return archiveBytes;
      throw serviceError('UNSUPPORTED_TYPE', 'The file', listLabels(accepts), undefined, true);
    },
  });
  const archiveAllowance = (archive: string): Allowance => ({
    types: [...accepts, 'zip', 'archive'],
    maxBytes(type) {
      if (type === 'zip' || type === 'archive')
        throw serviceError('BAD_ARCHIVE', archive, 'contains another archive');
      return maxFileBytes;
    },
  });

  /**
   * Stores one file. An image is added to `files`.
   *
   * @returns undefined if the file was skipped
   */
  async function storeFile(
    name: string | undefined,
    bytes: AsyncIterable<Buffer>,
    isBatch: boolean,
    skipInvalid: boolean,
    allowance: Allowance,
  ): Promise<{ type: FileType; folder: string; label: string } | undefined> {
    if (files.length >= maxFiles) throw serviceError('TOO_MANY_FILES', maxFiles, rules.isBatch);
    const index = files.length;
    const label = isBatch ? labelInBatch(index, name) : 'The file';
    const batchFile = isBatch ? { index, name: name ?? null } : undefined;
    folders += 1;
    const folder = await workspace.folder(String(folders));
    try {
      const options = { ...allowance, label, signal, disk: workspace.disk };
      const { type, length, sha256 } = await storeInput(bytes, join(folder, INPUT_FILE), options);
      if (type === 'zip') archiveBytes -= length;
      else if (type !== 'archive') files.push({ name, label, batchFile, type, sha256, folder });
      return { type, folder, label };
    } catch (cause) {
      if (!isFileError(cause)) throw cause;
      const error = errorOfFile(cause, label, batchFile);
      if (!skipInvalid) throw error;
      files.push({ name, error });
      await workspace.discard(folder);
      return undefined;
    }
  }

  async function unpack(folder: string, label: string, skipInvalid: boolean): Promise<void> {
    const before = files.length;
    const maxEntries = Math.max(MIN_ENTRY_LIMIT, maxFiles * ENTRIES_PER_FILE);
    for await (const { name, read } of unzip(join(folder, INPUT_FILE), label, maxEntries)) {
      signal.throwIfAborted();
      await storeFile(name, read(), true, skipInvalid, archiveAllowance(label));
    }
    if (files.length === before) throw serviceError('BAD_ARCHIVE', label, 'contains no files');
    await workspace.discard(folder);
  }

  return {
    /** All files in the order of the request. */
    files: files as readonly (ReceivedFile | RejectedFile)[],
    /**
     * Stores one file, or all files of an archive.
     *
     * @param isBatch whether the file is one of several, and can be an archive
     * @param skipInvalid whether to record an invalid file in `files` instead of throwing its error
     * @throws {ServiceError} for an invalid file, or for a request or archive that exceeds a limit
     */
    async add(
      name: string | undefined,
      bytes: AsyncIterable<Buffer>,
      isBatch: boolean,
      skipInvalid: boolean,
    ): Promise<void> {
      const stored = await storeFile(name, bytes, isBatch, skipInvalid, requestAllowance(isBatch));
      if (stored?.type === 'zip') await unpack(stored.folder, stored.label, skipInvalid);
    },
  };
}

/**
 * Stores the watermark of a request.
 *
 * @param signal aborts when the request has failed
 * @throws {ServiceError} that names the watermark
 */
export async function storeWatermark(
  bytes: AsyncIterable<Buffer>,
  workspace: Workspace,
  { accepts }: UploadOptions,
  signal: AbortSignal,
): Promise<WatermarkFile> {
  const path = join(await workspace.folder(WATERMARK_FIELD), INPUT_FILE);
  const rules = { label: WATERMARK_LABEL, types: accepts, maxBytes: () => MAX_WATERMARK.bytes };
  const options = { ...rules, signal, disk: workspace.disk };
  const { type, sha256 } = await storeInput(bytes, path, options).catch((error) => {
    throw toWatermarkError(error);
  });
  return { path, type, sha256 };
}
