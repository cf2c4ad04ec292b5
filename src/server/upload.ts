/**
 * @module Receives multipart bodies and stores their files in the workspace. Limits are enforced while the bytes
 * arrive.
 */
import type { IncomingMessage } from 'node:http';
import busboy from 'busboy';
import type { TextField } from '../conversion/options.ts';
import { ClientDisconnectedError, serviceError, serviceErrorFrom } from '../errors.ts';
import type { Workspace } from '../files/workspace.ts';
import { sanitizeForDisplay } from '../text.ts';
import {
  createFileCollector,
  type FileCollectorOptions,
  type ReceivedFile,
  type RejectedFile,
} from './file-collector.ts';
import { parseParameters } from './multipart/headers.ts';
import { MultipartNormalizer } from './multipart/normalizer.ts';

/** Limits and field names of an upload. */
export interface UploadOptions extends FileCollectorOptions {
  /** Required name of file parts. */
  readonly fileField: string;
  /** Other accepted names of file parts. */
  readonly fileFieldAliases: readonly string[];
  /** Time over which the rate of the upload is averaged, in milliseconds. Default: {@link RATE_WINDOW_MS}. */
  readonly rateWindowMs?: number;
  /** Returns whether to skip an invalid file, by the text fields in front of it. */
  readonly skipInvalid: (fields: readonly TextField[]) => boolean;
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

/** Maximum size of a text field, in bytes. All known fields are shorter. */
const MAX_FIELD_BYTES = 1024;
/** Maximum number of text fields. */
export const MAX_FIELDS = 100;
/**
 * Valid boundary: 1 to 70 printable ASCII characters, with no blank at the end. RFC 2046, section 5.1.1 allows fewer
 * kinds of characters.
 */
const BOUNDARY = /^[ -~]{0,69}[!-~]$/;

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

function openParser(req: IncomingMessage): { normalizer: MultipartNormalizer; parser: busboy.Busboy } {
  const encoding = req.headers['content-encoding'];
  if (encoding && encoding.toLowerCase() !== 'identity') throw serviceError('UNSUPPORTED_CONTENT_ENCODING');
  const type = parseParameters(req.headers['content-type'] ?? '');
  const boundary = type?.parameters.get('boundary') ?? '';
  if (type?.value !== 'multipart/form-data' || !BOUNDARY.test(boundary)) throw serviceError('NOT_MULTIPART');
  const quoted = boundary.replace(/["\\]/g, '\\$&');
  return {
    normalizer: new MultipartNormalizer(boundary),
    // Every part is a file or a text field, so the limits on these are limits on all parts.
    parser: busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${quoted}"` },
      defParamCharset: 'utf8',
      limits: { fields: MAX_FIELDS, fieldSize: MAX_FIELD_BYTES },
    }),
  };
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
