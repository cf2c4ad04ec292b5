/** @module Receives multipart bodies and stores their files. Limits are enforced while the bytes arrive. */
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { TextField } from '../conversion/options.ts';
import { INPUT_FILE } from '../conversion/plan/types.ts';
import { storeInput } from '../conversion/store.ts';
import {
  ClientDisconnectedError,
  isFileError,
  type ServiceError,
  serviceError,
  serviceErrorFrom,
} from '../errors.ts';
import { unzip } from '../files/unzip.ts';
import type { Workspace } from '../files/workspace.ts';
import type { InputType } from '../formats.ts';
import type { FileType } from '../images/detect.ts';
import { sanitizeForDisplay } from '../text.ts';
import { MAX_FIELDS, openParser } from './multipart/normalizer.ts';

/** Limits and field names of an upload. */
export interface UploadOptions {
  readonly config: Config;
  readonly maxFiles: number;
  readonly accepts: readonly InputType[];
  /** Whether ZIP archives are unpacked, so that their files count as files of the request. */
  readonly acceptsArchives: boolean;
  /** Returns how messages refer to the file at `position` (from 1), which the client calls `name`. */
  readonly label: (position: number, name: string | undefined) => string;
  /** Required name of file parts. */
  readonly fileField: string;
  /** Other accepted names of file parts. */
  readonly fileFieldAliases: readonly string[];
  /** Time over which the rate of the upload is averaged, in milliseconds. Default: {@link RATE_WINDOW_MS}. */
  readonly rateWindowMs?: number;
  /** Returns whether to skip an invalid file, by the text fields in front of it. */
  readonly skipInvalid: (fields: readonly TextField[]) => boolean;
}

/** A file that was stored in the workspace. */
export interface ReceivedFile {
  /** The file name that the client sent: any text. */
  readonly name: string | undefined;
  readonly label: string;
  readonly type: InputType;
  readonly folder: string;
}

/** An invalid file that was skipped. */
export interface RejectedFile {
  readonly name: string | undefined;
  readonly error: ServiceError;
}

/** The content of a multipart body. */
export interface Upload {
  readonly fields: readonly TextField[];
  /** All files in the order of the request. */
  readonly files: readonly (ReceivedFile | RejectedFile)[];
}

/**
 * Minimum rate of an upload, in bytes per second: a tenth of the rate of the slowest mobile networks. Slower uploads
 * are aborted so that they do not occupy a connection.
 */
export const MIN_BYTES_PER_SECOND = 1024;
/** Time over which the rate of an upload is averaged, in milliseconds. */
const RATE_WINDOW_MS = 10_000;

/**
 * Receives the multipart body of a request, and stores its files in the workspace.
 *
 * The first error ends the upload. It is thrown when no file is being written any more. The rest of the body is
 * discarded, because most clients read the response only after they have sent the entire request.
 *
 * @param signal aborts when the client disconnects, also after it has sent everything
 * @throws {ServiceError} for an invalid request
 * @throws {ClientDisconnectedError} when the client disconnects
 */
export async function receiveUpload(
  req: IncomingMessage,
  workspace: Workspace,
  rules: UploadOptions,
  signal: AbortSignal,
): Promise<Upload> {
  // No event follows for a client that has already disconnected: the upload would last until the timeout.
  if (req.destroyed) throw new ClientDisconnectedError();
  const { normalizer, parser } = openParser(req);
  const fields: TextField[] = [];
  const halt = new AbortController();
  const collector = createFileCollector(workspace, rules, halt.signal);
  let parts = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let failure: Error | undefined;

  const stop = (error: Error): void => {
    if (failure) return;
    failure = error;
    halt.abort();
    req.unpipe(normalizer);
    req.resume();
    normalizer.destroy();
    parser.destroy();
  };
  const timeoutMs = rules.config.UPLOAD_TIMEOUT_MS;
  const timer = setTimeout(() => stop(serviceError('UPLOAD_TIMEOUT', timeoutMs)), timeoutMs);
  const rateTimer = monitorRate(req, rules.rateWindowMs ?? RATE_WINDOW_MS, () =>
    stop(serviceError('UPLOAD_TOO_SLOW', MIN_BYTES_PER_SECOND)),
  );
  const { promise: parsed, resolve: parserClosed } = Promise.withResolvers<void>();

  parser.on('field', (name: string | undefined, value) => {
    fields.push([name ?? '', value]);
    if (value !== '' && isFileField(name, rules)) stop(serviceError('FILE_SENT_AS_TEXT', name));
  });
  parser.on('file', (field: string | undefined, stream, { filename }) => {
    stream.on('error', () => {}); // the parser reports an incomplete body, too
    // The parser finishes its chunk even after it has been stopped. A file in that chunk would never end.
    if (failure) return void stream.destroy();
    const error = validatePart(field, rules, parts);
    if (error) return stop(error);
    parts += 1;
    // Do not destroy a stream that is not read to its end, since the parser waits for it. Discard the rest instead.
    const bytes = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    const skipInvalid = rules.skipInvalid(fields);
    writing = writing
      .then(() => (failure ? undefined : collector.add(filename, bytes, skipInvalid)))
      .then(() => void stream.resume(), stop);
  });
  parser.on('fieldsLimit', () => stop(serviceError('TOO_MANY_FIELDS', MAX_FIELDS)));
  for (const stream of [normalizer, parser])
    stream.on('error', (cause) => stop(serviceErrorFrom(cause, 'MALFORMED_MULTIPART')));
  parser.on('close', parserClosed);
  req.on('error', (cause) => stop(new ClientDisconnectedError({ cause })));
  req.on('close', () => req.complete || stop(new ClientDisconnectedError()));
  signal.addEventListener('abort', () => stop(new ClientDisconnectedError()));
  req.pipe(normalizer).pipe(parser);

  await parsed;
  await writing;
  clearTimeout(timer);
  clearInterval(rateTimer);
  if (failure) throw failure;
  if (collector.files.length === 0) throw serviceError('NO_FILE', rules.fileField);
  return { fields, files: collector.files };
}

/** Calls `onTooSlow` if the client sends too little within a window while the server is ready to receive. */
function monitorRate(req: IncomingMessage, windowMs: number, onTooSlow: () => void): NodeJS.Timeout {
  let before = req.socket.bytesRead;
  return setInterval(() => {
    const received = req.socket.bytesRead - before;
    before += received;
    const serverIsBusy = req.complete || req.isPaused();
    if (!serverIsBusy && received < (MIN_BYTES_PER_SECOND * windowMs) / 1000) onTooSlow();
  }, windowMs);
}

/** Returns the maximum size of the request's files, in bytes: its `Content-Length`, or the limit if that is less. */
export function expectedBytes(req: IncomingMessage, { maxFiles, config }: UploadOptions): number {
  const limit = maxFiles * config.MAX_FILE_BYTES;
  const announced = Number(req.headers['content-length'] ?? limit);
  return Math.min(Number.isFinite(announced) ? announced : limit, limit);
}

function validatePart(field: string | undefined, rules: UploadOptions, parts: number): Error | undefined {
  const { fileField, maxFiles } = rules;
  if (!isFileField(field, rules)) {
    return serviceError(
      'UNEXPECTED_FILE_FIELD',
      field === undefined ? 'without a name' : `"${sanitizeForDisplay(field)}"`,
      fileField,
    );
  }
  return parts >= maxFiles ? serviceError('TOO_MANY_FILES', maxFiles) : undefined;
}

function isFileField(
  field: string | undefined,
  { fileField, fileFieldAliases }: UploadOptions,
): field is string {
  return field !== undefined && (field === fileField || fileFieldAliases.includes(field));
}

/** Stores the files of one request. */
interface FileCollector {
  /** All files in the order of the request. */
  readonly files: readonly (ReceivedFile | RejectedFile)[];
  /**
   * Stores one file, or all files of an archive.
   *
   * @param skipInvalid whether to record an invalid file in `files` instead of throwing its error
   * @throws {ServiceError} for an invalid file, or for a request or archive that exceeds a limit
   */
  add(name: string | undefined, bytes: AsyncIterable<Buffer>, skipInvalid: boolean): Promise<void>;
}

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
   * @throws {ServiceError} BAD_ARCHIVE for a type that is not allowed here
   */
  readonly maxBytes: (type: FileType | undefined) => number;
}

/**
 * Creates a collector that stores the files of a request in the workspace and enforces the limits.
 *
 * @param signal aborts when the request has failed
 */
function createFileCollector(workspace: Workspace, rules: UploadOptions, signal: AbortSignal): FileCollector {
  const { maxFiles, accepts, acceptsArchives } = rules;
  const maxFileBytes = rules.config.MAX_FILE_BYTES;
  const files: (ReceivedFile | RejectedFile)[] = [];
  let folders = 0;
  /** Bytes that the remaining archives of the request may have. */
  let archiveBytes = maxFiles * maxFileBytes + ARCHIVE_OVERHEAD;

  const requestAllowance: Allowance = {
    types: acceptsArchives ? [...accepts, 'zip'] : accepts,
    maxBytes: (type) => (type === 'zip' ? archiveBytes : maxFileBytes),
  };
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
    skipInvalid: boolean,
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
      if (!skipInvalid || !isFileError(error)) throw error;
      files.push({ name, error });
      await workspace.discard(folder);
      return undefined;
    }
  }

  async function store(
    bytes: AsyncIterable<Buffer>,
    folder: string,
    label: string,
    { types, maxBytes }: Allowance,
  ): Promise<FileType> {
    const options = { label, types, maxBytes, signal, disk: workspace.disk };
    const { type, length } = await storeInput(bytes, join(folder, INPUT_FILE), options);
    if (type === 'zip') archiveBytes -= length;
    return type;
  }

  async function unpack(folder: string, label: string, skipInvalid: boolean): Promise<void> {
    const before = files.length;
    const maxEntries = Math.max(MIN_ENTRY_LIMIT, maxFiles * ENTRIES_PER_FILE);
    for await (const { name, read } of unzip(join(folder, INPUT_FILE), label, maxEntries)) {
      signal.throwIfAborted();
      await storeFile(name, read(), skipInvalid, archiveAllowance(label));
    }
    if (files.length === before) throw serviceError('BAD_ARCHIVE', label, 'contains no files');
    await workspace.discard(folder);
  }

  return {
    files,
    async add(name, bytes, skipInvalid) {
      const stored = await storeFile(name, bytes, skipInvalid, requestAllowance);
      if (stored?.type === 'zip') await unpack(stored.folder, stored.label, skipInvalid);
    },
  };
}
