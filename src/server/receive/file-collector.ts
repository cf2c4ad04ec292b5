/** @module Stores the files of a request, and unpacks archives, within limits as bytes arrive. */
import { join } from 'node:path';
import { sanitizeForDisplay } from '../../base/text.ts';
import type { ConversionInput, TextField, WatermarkFile } from '../../conversion/context.ts';
import { storeInput } from '../../conversion/input/store.ts';
import { toWatermarkError, WATERMARK_LABEL } from '../../conversion/input/watermark-image.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';
import { unzip } from '../../files/unzip.ts';
import type { Workspace } from '../../files/workspace.ts';
import type { FileType } from '../../images/index.ts';
import type { Config } from '../../tables/config.ts';
import { errorOfFile, isFileError, type ServiceError, serviceError } from '../../tables/errors.ts';
import { type InputType, listLabels, MAX_WATERMARK } from '../../tables/formats.ts';

/** Name of the file part with a watermark. */
export const WATERMARK_FIELD = 'watermark';

/** Limits and field names of an upload. */
export interface UploadOptions {
  readonly config: Config;
  readonly maxFiles: number;
  readonly accepts: readonly InputType[];
  /** Whether the request can have several files. Those in ZIP archives count like others. */
  readonly isBatch: boolean;
  /** Whether the body can be an image instead of a form. */
  readonly acceptsImage: boolean;
  /** Name of file parts. In a batch, an index in brackets may follow, as from PHP and axios. */
  readonly fileField: string;
  /** Another name of the file part, for a request with a single file. */
  readonly singleField?: string;
  /** Whether a form can have a watermark for all its files, as the part {@link WATERMARK_FIELD}. */
  readonly acceptsWatermark?: boolean;
  /** Returns whether to skip an invalid file, by the text fields in front of it. Default: no. */
  readonly skipInvalid?: (fields: readonly TextField[]) => boolean;
}

export interface ReceivedFile extends Pick<ConversionInput, 'folder' | 'type' | 'label' | 'batchFile'> {
  /** The file name that the client sent: any text. */
  readonly name: string | undefined;
  /** Folder of the file in its archive, with `/`; empty outside of an archive, or in no folder. */
  readonly archiveFolder: string;
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

/** Stores the files of a request in the workspace, and enforces the limits. */
export class FileCollector {
  /** All files in the order of the request. */
  readonly files: (ReceivedFile | RejectedFile)[] = [];
  readonly #workspace: Workspace;
  readonly #rules: UploadOptions;
  readonly #signal: AbortSignal;
  #folders = 0;
  /** Bytes that the remaining archives of the request may have. */
  #archiveBytes: number;

  /** @param signal aborts when the request has failed */
  constructor(workspace: Workspace, rules: UploadOptions, signal: AbortSignal) {
    this.#workspace = workspace;
    this.#rules = rules;
    this.#signal = signal;
    this.#archiveBytes = rules.maxFiles * rules.config.MAX_FILE_BYTES + ARCHIVE_OVERHEAD;
  }

  /**
   * Stores one file, or all files of an archive.
   *
   * @param isBatch whether the file is one of several, and can be an archive
   * @param skipInvalid whether to record an invalid file in `files` instead of throwing its error
   * @param archive how messages refer to the archive that contains the file
   * @throws {ServiceError} for an invalid file, or for a request or archive that exceeds a limit
   */
  async add(
    name: string | undefined,
    bytes: AsyncIterable<Buffer>,
    isBatch: boolean,
    skipInvalid: boolean,
    archive?: string,
  ): Promise<void> {
    const { maxFiles, isBatch: isBatchRequest } = this.#rules;
    const index = this.files.length;
    if (index >= maxFiles) throw serviceError('TOO_MANY_FILES', maxFiles, isBatchRequest);
    const label = isBatch ? labelInBatch(index, name) : 'The file';
    const batchFile = isBatch ? { index, name: name ?? null } : undefined;
    this.#folders += 1;
    const folder = await this.#workspace.folder(String(this.#folders));
    const options = {
      types: this.#typesIn(isBatch, archive),
      maxBytes: (type: FileType | undefined) => this.#maxBytesOf(type, isBatch, archive),
      label,
      signal: this.#signal,
      disk: this.#workspace.disk,
    };
    try {
      const { type, length, sha256 } = await storeInput(bytes, join(folder, INPUT_FILE), options);
      if (type === 'zip') this.#archiveBytes -= length;
      else if (type !== 'archive') {
        const archiveFolder = archive === undefined ? '' : (name ?? '').split('/').slice(0, -1).join('/');
        this.files.push({ name, archiveFolder, label, batchFile, type, sha256, folder });
      }
      if (type !== 'zip') return;
    } catch (cause) {
      if (!isFileError(cause)) throw cause;
      const error = errorOfFile(cause, label, batchFile);
      if (!skipInvalid) throw error;
      this.files.push({ name, error });
      await this.#workspace.discard(folder);
      return;
    }
    await this.#unpack(folder, label, skipInvalid);
  }

  async #unpack(folder: string, label: string, skipInvalid: boolean): Promise<void> {
    const before = this.files.length;
    const maxEntries = Math.max(MIN_ENTRY_LIMIT, this.#rules.maxFiles * ENTRIES_PER_FILE);
    for await (const { name, read } of unzip(join(folder, INPUT_FILE), label, maxEntries)) {
      this.#signal.throwIfAborted();
      await this.add(name, read(), true, skipInvalid, label);
    }
    if (this.files.length === before) throw serviceError('BAD_ARCHIVE', label, 'contains no files');
    await this.#workspace.discard(folder);
  }

  /** Returns the types to detect. {@link #maxBytesOf} throws for those that are refused here. */
  #typesIn(isBatch: boolean, archive: string | undefined): readonly FileType[] {
    const { accepts, isBatch: isBatchRequest } = this.#rules;
    if (archive !== undefined) return [...accepts, 'zip', 'archive'];
    return isBatch || !isBatchRequest ? [...accepts, 'zip'] : accepts;
  }

  /**
   * Returns the maximum size in bytes of a file. The type is undefined until it has been detected.
   *
   * @throws {ServiceError} BAD_ARCHIVE or UNSUPPORTED_TYPE for a type that is not allowed here
   */
  #maxBytesOf(type: FileType | undefined, isBatch: boolean, archive: string | undefined): number {
    const { accepts, config } = this.#rules;
    if (type !== 'zip' && type !== 'archive') return config.MAX_FILE_BYTES;
    if (archive !== undefined) throw serviceError('BAD_ARCHIVE', archive, 'contains another archive');
    if (isBatch) return this.#archiveBytes;
    throw serviceError('UNSUPPORTED_TYPE', 'The file', listLabels(accepts), undefined, true);
  }
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
