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

/**
 * Creates a collector that stores the files of a request in the workspace and enforces the limits.
 *
 * @param signal aborts when the request has failed
 */
export function createFileCollector(workspace: Workspace, rules: UploadOptions, signal: AbortSignal) {
  const { maxFiles, accepts, config } = rules;
  const files: (ReceivedFile | RejectedFile)[] = [];
  let folders = 0;
  /** Bytes that the remaining archives of the request may have. */
  let archiveBytes = maxFiles * config.MAX_FILE_BYTES + ARCHIVE_OVERHEAD;

  /** Returns the types to detect. Those that are not allowed here get an error of their own by {@link maxBytesOf}. */
  const typesIn = (isBatch: boolean, archive: string | undefined): readonly FileType[] => {
    if (archive !== undefined) return [...accepts, 'zip', 'archive'];
    return isBatch || !rules.isBatch ? [...accepts, 'zip'] : accepts;
  };

  /**
   * Returns the maximum size in bytes of a file. The type is undefined until it has been detected.
   *
   * @throws {ServiceError} BAD_ARCHIVE or UNSUPPORTED_TYPE for a type that is not allowed here
   */
  const maxBytesOf = (type: FileType | undefined, isBatch: boolean, archive: string | undefined): number => {
    if (type !== 'zip' && type !== 'archive') return config.MAX_FILE_BYTES;
    if (archive !== undefined) throw serviceError('BAD_ARCHIVE', archive, 'contains another archive');
    if (isBatch) return archiveBytes;
    throw serviceError('UNSUPPORTED_TYPE', 'The file', listLabels(accepts), undefined, true);
  };

  /**
   * Stores one file, or all files of an archive.
   *
   * @param isBatch whether the file is one of several, and can be an archive
   * @param skipInvalid whether to record an invalid file in `files` instead of throwing its error
   * @param archive how messages refer to the archive that contains the file
   * @throws {ServiceError} for an invalid file, or for a request or archive that exceeds a limit
   */
  async function add(
    name: string | undefined,
    bytes: AsyncIterable<Buffer>,
    isBatch: boolean,
    skipInvalid: boolean,
    archive?: string,
  ): Promise<void> {
    if (files.length >= maxFiles) throw serviceError('TOO_MANY_FILES', maxFiles, rules.isBatch);
    const index = files.length;
    const label = isBatch ? labelInBatch(index, name) : 'The file';
    const batchFile = isBatch ? { index, name: name ?? null } : undefined;
    folders += 1;
    const folder = await workspace.folder(String(folders));
    const options = {
      types: typesIn(isBatch, archive),
      maxBytes: (type: FileType | undefined) => maxBytesOf(type, isBatch, archive),
      label,
      signal,
      disk: workspace.disk,
    };
    try {
      const { type, length, sha256 } = await storeInput(bytes, join(folder, INPUT_FILE), options);
      if (type === 'zip') archiveBytes -= length;
      else if (type !== 'archive') files.push({ name, label, batchFile, type, sha256, folder });
      if (type !== 'zip') return;
    } catch (cause) {
      if (!isFileError(cause)) throw cause;
      const error = errorOfFile(cause, label, batchFile);
      if (!skipInvalid) throw error;
      files.push({ name, error });
      await workspace.discard(folder);
      return;
    }
    await unpack(folder, label, skipInvalid);
  }

  async function unpack(folder: string, label: string, skipInvalid: boolean): Promise<void> {
    const before = files.length;
    const maxEntries = Math.max(MIN_ENTRY_LIMIT, maxFiles * ENTRIES_PER_FILE);
    for await (const { name, read } of unzip(join(folder, INPUT_FILE), label, maxEntries)) {
      signal.throwIfAborted();
      await add(name, read(), true, skipInvalid, label);
    }
    if (files.length === before) throw serviceError('BAD_ARCHIVE', label, 'contains no files');
    await workspace.discard(folder);
  }

  /** `files` has all files in the order of the request. */
  return { files: files as readonly (ReceivedFile | RejectedFile)[], add };
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
