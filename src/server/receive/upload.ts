/** @module Receives forms and image bodies. Limits are enforced while the bytes arrive. */
import type { IncomingMessage } from 'node:http';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import type { Request, Response } from 'express';
import { sanitizeForDisplay } from '../../base/text.ts';
import type { TextField, WatermarkFile } from '../../conversion/context.ts';
import { VARIANTS_FIELD } from '../../conversion/request/variants.ts';
import type { DiskAccount } from '../../files/disk-space.ts';
import type { Workspace, Workspaces } from '../../files/workspace.ts';
import {
  ClientDisconnectedError,
  type ServiceError,
  serviceError,
  serviceErrorFrom,
} from '../../tables/errors.ts';
import { MAX_WATERMARK } from '../../tables/formats.ts';
import { clientOf } from '../clients.ts';
import { monitorRate } from '../http/byte-rate.ts';
import { disconnectSignal } from '../respond/response.ts';
import {
  FileCollector,
  type ReceivedFile,
  type RejectedFile,
  storeWatermark,
  type UploadOptions,
  WATERMARK_FIELD,
} from './file-collector.ts';
import { filenameIn, parseParameters } from './multipart/headers.ts';
import { MAX_FIELD_BYTES, MAX_FIELDS, openParser } from './multipart/normalizer.ts';

/** What a body contains. */
interface Upload {
  readonly fields: readonly TextField[];
  /** All files in the order of the request. */
  readonly files: readonly (ReceivedFile | RejectedFile)[];
  /** Whether the request has one file, not a list of files. */
  readonly isSingle: boolean;
  readonly watermark: WatermarkFile | undefined;
}

/** A request whose files are stored. */
export interface ReceivedBody extends Upload {
  /** Key of the client for fairness between clients, see {@link clientOf}. */
  readonly client: string;
  readonly workspace: Workspace;
  readonly disk: DiskAccount;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Time of the upload, in milliseconds. */
  readonly uploadedMs: number;
  /** Time at which the upload ended, on the clock of `performance.now()`. */
  readonly receivedAt: number;
}

/** Bytes of a body besides its files: far more than all known fields, and a watermark. */
const MAX_OVERHEAD_BYTES = 10 * 1024 ** 2 + MAX_WATERMARK.bytes;

interface Reception {
  readonly req: Request;
  readonly res: Response;
  readonly workspaces: Workspaces;
  readonly rules: UploadOptions;
  /** Set if the body is an image, not a form. */
  readonly image: ImageBody | undefined;
}

/**
 * Receives the files of a request, lets `respond` convert them and send the result, and deletes all
 * files. Before a body is sent, it is rejected if it is an image that is announced as too large, if
 * it is announced with `Expect: 100-continue` and longer than the largest possible form, or if it
 * has a `Content-Encoding`.
 *
 * @throws {ServiceError} for an invalid request
 * @throws {ClientDisconnectedError} when the client disconnects
 */
export async function receiveBody(
  { req, res, workspaces, rules, image }: Reception,
  respond: (body: ReceivedBody) => Promise<void>,
): Promise<void> {
  const started = performance.now();
  const signal = disconnectSignal(res);
  const { key: client } = clientOf(req);
  const { expect, 'content-length': length, 'content-encoding': encoding } = req.headers;
  const { maxFiles, config } = rules;
  const [what, maxBytes] = image
    ? ['The file', config.MAX_FILE_BYTES]
    : ['The request body', maxFiles * config.MAX_FILE_BYTES + MAX_OVERHEAD_BYTES];
  if ((image || expect?.toLowerCase() === '100-continue') && Number(length) > maxBytes)
    throw serviceError('FILE_TOO_LARGE', what, maxBytes);
  if (encoding && encoding.toLowerCase() !== 'identity') throw serviceError('UNSUPPORTED_CONTENT_ENCODING');
  await workspaces.use({ client, bytes: expectedBytes(req, rules) }, async (workspace) => {
    const { disk } = workspace;
    const receiver = new BodyReceiver(req, workspace, rules);
    const upload = await receiver.receive(signal, image).catch((error) => {
      // The client may have meant another body, if its media type is not that of an image.
      const isOther = ['EMPTY_FILE', 'UNSUPPORTED_TYPE'].includes((error as ServiceError).code);
      throw image && !image.isDeclared && isOther
        ? serviceError('NOT_MULTIPART', rules.fileField, true)
        : error;
    });
    disk.releaseUnsent();
    const receivedAt = performance.now();
    const uploadedMs = receivedAt - started;
    await respond({ ...upload, client, workspace, disk, signal, uploadedMs, receivedAt });
  });
}

/**
 * Minimum rate of an upload, in bytes per second: a tenth of the rate of the slowest mobile
 * networks. Slower uploads are aborted so that they do not occupy a connection.
 */
export const MIN_BYTES_PER_SECOND = 1024;
/** Time over which the rate of an upload is averaged, in milliseconds. */
const RATE_WINDOW_MS = 10_000;

/** Receives the body of a request, and stores its files in the workspace. */
class BodyReceiver {
  readonly #req: IncomingMessage;
  readonly #workspace: Workspace;
  readonly #rules: UploadOptions;
  readonly #halt = new AbortController();
  readonly #collector: FileCollector;
  readonly #fields: TextField[] = [];
  /** Streams of the body: the first one receives it, and the last one closes at its end. */
  #streams: readonly Writable[] = [];
  #parts = 0;
  #isSingle = false;
  #watermark: WatermarkFile | undefined;
  /** Settles when no file is being written. */
  #writing: Promise<unknown> = Promise.resolve();
  #failure: Error | undefined;

  constructor(req: IncomingMessage, workspace: Workspace, rules: UploadOptions) {
    this.#req = req;
    this.#workspace = workspace;
    this.#rules = rules;
    this.#collector = new FileCollector(workspace, rules, this.#halt.signal);
  }

  /**
   * Receives the body.
   *
   * The first error ends the upload. It is thrown when no file is being written any more. The rest
   * of the body is discarded, because most clients read the response only after they have sent the
   * entire request.
   *
   * @param signal aborts when the client disconnects, also after it has sent everything
   * @param image if the body is an image, not a form
   * @throws {ServiceError} for an invalid request
   * @throws {ClientDisconnectedError} when the client disconnects
   */
  async receive(signal: AbortSignal, image?: ImageBody): Promise<Upload> {
    const req = this.#req;
    const { config, fileField } = this.#rules;
    // A client that has disconnected causes no event: the upload would last until the timeout.
    if (req.destroyed) throw new ClientDisconnectedError();
    const [first, last] = image ? this.#readImage(image.name) : this.#readForm();
    this.#streams = [first, last];
    const { UPLOAD_TIMEOUT_MS: timeoutMs } = config;
    const timer = setTimeout(() => this.#stop(serviceError('UPLOAD_TIMEOUT', timeoutMs)), timeoutMs);
    const endMonitor = monitorRate(
      () => (req.complete || req.isPaused() ? undefined : req.socket.bytesRead),
      { bytesPerSecond: MIN_BYTES_PER_SECOND, windowMs: RATE_WINDOW_MS },
      () => this.#stop(serviceError('UPLOAD_TOO_SLOW', MIN_BYTES_PER_SECOND)),
    );
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    for (const stream of this.#streams)
      stream.on('error', (cause) => this.#stop(serviceErrorFrom(cause, 'MALFORMED_MULTIPART')));
    last.on('close', end);
    req.on('error', (cause) => this.#stop(new ClientDisconnectedError({ cause })));
    req.on('close', () => req.complete || this.#stop(new ClientDisconnectedError()));
    signal.addEventListener('abort', () => this.#stop(new ClientDisconnectedError()));
    req.pipe(first);

    await ended;
    await this.#writing;
    clearTimeout(timer);
    endMonitor();
    if (this.#failure) throw this.#failure;
    const { files } = this.#collector;
    if (files.length === 0) throw serviceError('NO_FILE', fileField);
    const isSingle = this.#isSingle && files.length === 1;
    return { fields: image?.options ?? this.#fields, files, isSingle, watermark: this.#watermark };
  }

  #readForm(): [first: Writable, last: Writable] {
    const rules = this.#rules;
    const { normalizer, parser } = openParser(this.#req, rules);
    parser.on('field', (name: string | undefined, value, { valueTruncated }) => {
      this.#fields.push([name ?? '', value]);
      if (valueTruncated && name === VARIANTS_FIELD)
        this.#stop(serviceError('FIELD_INVALID', name, sanitizeForDisplay(value), TEXT_EXPECTED));
      if (value !== '' && (isFileField(name, rules) || isWatermark(name, rules)))
        this.#stop(serviceError('FILE_SENT_AS_TEXT', name));
    });
    parser.on('file', (field: string | undefined, stream, { filename }) => {
      stream.on('error', () => {}); // the parser reports an incomplete body, too
      // The parser finishes its chunk when stopped. A file in that chunk would never end.
      if (this.#failure) return void stream.destroy();
      if (isWatermark(field, rules)) return this.#store(stream, (bytes) => this.#addWatermark(bytes));
      const error = validatePart(field, rules, this.#parts);
      if (error) return this.#stop(error);
      this.#parts += 1;
      const isOne = !rules.isBatch || field === rules.singleField;
      const skipInvalid = rules.skipInvalid?.(this.#fields) ?? false;
      this.#isSingle = isOne;
      this.#store(stream, (bytes) => this.#collector.add(filename, bytes, !isOne, skipInvalid));
    });
    parser.on('fieldsLimit', () => this.#stop(serviceError('TOO_MANY_FIELDS', MAX_FIELDS)));
    normalizer.pipe(parser);
    return [normalizer, parser];
  }

  #readImage(name: string | undefined): [first: Writable, last: Writable] {
    const body = new PassThrough();
    this.#isSingle = true;
    this.#store(body, (bytes) => this.#collector.add(name, bytes, false, false));
    return [body, body];
  }

  /** Stores a file when the files before it have been stored. */
  #store(stream: Readable, add: (bytes: AsyncIterable<Buffer>) => Promise<void>): void {
    // The parser waits for a stream that is destroyed before its end. Discard the rest instead.
    const bytes = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    this.#writing = this.#writing
      .then(() => (this.#failure ? undefined : add(bytes)))
      .then(
        () => void stream.resume(),
        (error) => this.#stop(error),
      );
  }

  async #addWatermark(bytes: AsyncIterable<Buffer>): Promise<void> {
    if (this.#watermark) throw serviceError('FIELD_REPEATED', WATERMARK_FIELD);
    this.#watermark = await storeWatermark(bytes, this.#workspace, this.#rules, this.#halt.signal);
  }

  #stop(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#halt.abort();
    const [first] = this.#streams;
    if (first) this.#req.unpipe(first);
    this.#req.resume();
    for (const stream of this.#streams) stream.destroy();
  }
}

const TEXT_EXPECTED = `at most ${MAX_FIELD_BYTES} bytes. Send the rest in another field of that name`;

/** Returns the maximum bytes of the request's files: `Content-Length`, or the limit if less. */
function expectedBytes(req: IncomingMessage, rules: UploadOptions): number {
  const { maxFiles, config, acceptsWatermark } = rules;
  const limit = maxFiles * config.MAX_FILE_BYTES + (acceptsWatermark ? MAX_WATERMARK.bytes : 0);
  const announced = Number(req.headers['content-length'] ?? limit);
  return Math.min(Number.isFinite(announced) ? announced : limit, limit);
}

function validatePart(field: string | undefined, rules: UploadOptions, parts: number): Error | undefined {
  const { fileField, maxFiles, isBatch } = rules;
  const name = field === undefined ? undefined : sanitizeForDisplay(field);
  if (!isFileField(field, rules)) return serviceError('UNEXPECTED_FILE_FIELD', name, fileField);
  return parts >= maxFiles ? serviceError('TOO_MANY_FILES', maxFiles, isBatch) : undefined;
}

const isWatermark = (field: string | undefined, { acceptsWatermark }: UploadOptions): field is string =>
  acceptsWatermark === true && field === WATERMARK_FIELD;

function isFileField(
  field: string | undefined,
  { fileField, singleField, isBatch }: UploadOptions,
): field is string {
  if (field !== undefined && field === singleField) return true;
  return (isBatch ? field?.replace(/\[\d*\]$/, '') : field) === fileField;
}

/** What the head of a request states about an image in its body. */
interface ImageBody {
  /** The file name; undefined if the request has none. */
  readonly name: string | undefined;
  readonly options: readonly TextField[];
  /** Whether the media type is that of an image or any file. By default, curl declares a form. */
  readonly isDeclared: boolean;
}

/** Types of an image and of any file: `binary/octet-stream` is that of S3. */
const IMAGE_TYPE = /^(?:image\/.+|application\/(?:octet-stream|binary|pdf)|binary\/octet-stream|\*\/\*)$/;
/** The type of `curl --data-binary` without a header. */
const CURL_TYPE = 'application/x-www-form-urlencoded';

/** Maximum number of unknown parameters that a message names. */
const MAX_NAMED = 5;

/**
 * Returns what the request states about an image in its body, or undefined if the body is to be
 * read as a form.
 *
 * @param fields the known names of options
 * @throws {ServiceError} UNKNOWN_PARAMETER
 */
export function imageBodyOf(
  req: IncomingMessage,
  { acceptsImage }: UploadOptions,
  fields: readonly string[],
): ImageBody | undefined {
  const { 'content-type': types = [], 'content-disposition': dispositions = [] } = req.headersDistinct;
  const type = types.length === 0 ? '' : parseParameters(types[0] as string)?.value;
  if (!acceptsImage || types.length > 1 || type === undefined) return undefined;
  const isDeclared = IMAGE_TYPE.test(type);
  if (!isDeclared && type !== '' && type !== CURL_TYPE) return undefined;
  const options = [...queryOf(req)];
  const unknown = options.flatMap(([name]) => (fields.includes(name) ? [] : [sanitizeForDisplay(name, 80)]));
  if (unknown.length > 0) throw serviceError('UNKNOWN_PARAMETER', unknown.slice(0, MAX_NAMED), fields);
  return { name: nameIn(dispositions), options, isDeclared };
}

const queries = new WeakMap<IncomingMessage, URLSearchParams>();

/**
 * Returns the parameters in the query string of a request. Parses them once: 64 kB take up to a
 * millisecond.
 *
 * @throws {ServiceError} TOO_MANY_FIELDS
 */
export function queryOf(req: IncomingMessage): URLSearchParams {
  const known = queries.get(req);
  if (known) return known;
  const { url = '' } = req;
  const start = url.indexOf('?');
  const text = start < 0 ? '' : url.slice(start);
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) throw serviceError('TOO_MANY_FIELDS', MAX_FIELDS);
  const query = new URLSearchParams(text);
  queries.set(req, query);
  return query;
}

/** Returns the file name in `Content-Disposition` (RFC 6266). */
function nameIn([header = '', ...others]: readonly string[]): string | undefined {
  // Node.js reads headers as Latin-1. curl and others send the bytes of UTF-8.
  const decoded = Buffer.from(header, 'latin1').toString();
  const text = decoded.includes('\uFFFD') ? header : decoded;
  const disposition = others.length > 0 ? undefined : parseParameters(text);
  return disposition && filenameIn(disposition, (name) => name);
}
