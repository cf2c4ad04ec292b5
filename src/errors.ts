/**
 * @module The table of all errors of the API: code, HTTP status and public message. A message helps the sender of the
 * request and reveals nothing about the machine. The private cause is in `cause`, for the log only.
 */
import { plural } from './text.ts';

interface ErrorDefinition<P extends unknown[]> {
  readonly status: number;
  readonly message: (...args: P) => string;
  /** Value of `Retry-After`, in seconds. */
  readonly retryAfter?: (...args: P) => number;
}

const defineError = <P extends unknown[]>(
  status: number,
  message: (...args: P) => string,
  retryAfter?: (...args: P) => number,
): ErrorDefinition<P> => ({ status, message, ...(retryAfter && { retryAfter }) });

const seconds = (count: number): string => plural(count, 'second');

/** A time limit in milliseconds, and the setting that changes it. Without a setting, the limit is fixed. */
export interface TimeLimit {
  readonly ms: number;
  readonly setting?: string;
}

/** Formats a limit in bytes, and in MiB if that is a whole number. */
export function formatByteLimit(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB (${bytes} bytes)` : plural(bytes, 'byte');
}

const ERRORS = {
  MALFORMED_REQUEST: defineError(400, () => 'The request is not valid HTTP.'),
  HOST_INVALID: defineError(400, () => 'The request must have one valid Host header.'),
  INCOMPLETE_BODY: defineError(400, () => 'The request body is incomplete.'),
  CHUNKS_TOO_SMALL: defineError(
    400,
    (bytes: number) =>
      `The request body has too many small chunks: their mean size must be at least ${plural(bytes, 'byte')}.`,
  ),
  NOT_MULTIPART: defineError(400, () => 'The request body must be multipart/form-data with a boundary.'),
  MALFORMED_MULTIPART: defineError(400, () => 'The multipart body is incomplete or malformed.'),
  NO_FILE: defineError(400, (field: string) => `No file was sent: a file part named "${field}" is required.`),
  FILE_SENT_AS_TEXT: defineError(
    400,
    (field: string) =>
      `The field "${field}" contains text, not a file. With curl, use -F ${field}=@photo.jpg.`,
  ),
  EMPTY_FILE: defineError(400, (file: string) => `${file} is empty (0 bytes).`),
  UNEXPECTED_FILE_FIELD: defineError(
    400,
    (field: string, expected: string) =>
      `Unexpected file part ${field}: the file part must be named "${expected}".`,
  ),
  TOO_MANY_FILES: defineError(400, (max: number) => `Too many files: at most ${max} allowed in one request.`),
  TOO_MANY_FIELDS: defineError(
    400,
    (max: number) => `Too many form fields: at most ${max} allowed in one request.`,
  ),
  FIELD_IN_QUERY: defineError(
    400,
    (field: string) =>
      `The field "${field}" is in the query string. Send it in the form instead; with curl, use -F ${field}=VALUE.`,
  ),
  FIELD_REPEATED: defineError(400, (field: string) => `The field "${field}" was sent more than once.`),
  FIELD_INVALID: defineError(
    400,
    (field: string, value: string, expected: string) => `Invalid ${field} "${value}": expected ${expected}.`,
  ),
  CONFLICTING_FORMATS: defineError(
    400,
    (one: string, other: string) =>
      `The fields "output_format" ("${one}") and "format" ("${other}") differ: send only one of them.`,
  ),
  BAD_ARCHIVE: defineError(400, (archive: string, what: string) => `${archive} ${what}.`),
  CORRUPT_IMAGE: defineError(
    400,
    (file: string, label: string) => `${file} is damaged or not a valid ${label} image.`,
  ),
  UNSUPPORTED_ENCODING: defineError(
    400,
    (file: string, kind: string) =>
      `${file} uses an unsupported encoding (${kind}): save it with a common encoding, or in another format.`,
  ),
  OUTPUT_DIMENSION_TOO_LARGE: defineError(
    400,
    (file: string, label: string, max: number) =>
      `${file} is too large for ${label}, which supports at most ${max} pixels per side: set a smaller width or height, or choose another format.`,
  ),
  BYTES_UNREACHABLE: defineError(
    400,
    (file: string, max: number, smallest: number, quality: number) =>
      `${file} cannot be reduced to ${plural(max, 'byte')} (max_bytes): the smallest result has ${smallest} bytes, at quality ${quality}. Set a smaller width or height, choose another format, or allow more bytes.`,
  ),
  NOT_FOUND: defineError(404, () => 'There is nothing at this path.'),
  METHOD_NOT_ALLOWED: defineError(
    405,
    (method: string, allowed: string) => `${method} is not allowed for this path: use ${allowed}.`,
  ),
  REQUEST_TIMEOUT: defineError(408, () => 'The request was not received in time.'),
  UPLOAD_TIMEOUT: defineError(408, (ms: number) => `The upload did not finish within ${seconds(ms / 1000)}.`),
  UPLOAD_TOO_SLOW: defineError(
    408,
    (bytesPerSecond: number) => `The upload was too slow: less than ${bytesPerSecond} bytes per second.`,
  ),
  PRECONDITION_FAILED: defineError(412, () => 'The page or file does not meet a condition of the request.'),
  FILE_TOO_LARGE: defineError(
    413,
    (file: string, max: number) => `${file} is too large: at most ${formatByteLimit(max)} allowed.`,
  ),
  TOO_MANY_PIXELS: defineError(
    413,
    (file: string, width: number, height: number, max: number) =>
      `${file} has ${width} × ${height} = ${width * height} pixels, more than the limit of ${max} (MAX_PIXELS).`,
  ),
  INPUT_DIMENSION_TOO_LARGE: defineError(
    413,
    (file: string, side: number, max: number) =>
      `${file} is ${side} pixels wide or high, more than the maximum of ${max} pixels per side. This limit is fixed.`,
  ),
  DRAWING_TOO_LARGE: defineError(
    413,
    (file: string, side: number, max: number) =>
      `${file} would be rendered ${side} pixels wide or high, more than the limit of ${max}: set a smaller width or height.`,
  ),
  RESULT_TOO_LARGE: defineError(
    413,
    (file: string, width: number, height: number, max: number, side: number) =>
      `${file} would become ${width} × ${height} pixels. The limits are ${max} pixels in total (MAX_PIXELS) and ${side} per side: set a smaller width or height.`,
  ),
  RESULT_TOO_LARGE_IN_TOTAL: defineError(
    413,
    (file: string, frames: number, pixels: number, max: number) =>
      `${file} would become ${frames} frames or pages with ${pixels} pixels, more than the limit of ${max} in total (MAX_TOTAL_PIXELS): set a smaller width or height.`,
  ),
  TOO_MANY_FRAMES: defineError(
    413,
    (file: string, frames: number, max: number) =>
      `${file} has ${frames} frames or pages, more than the limit of ${max} (MAX_FRAMES).`,
  ),
  TOO_MANY_TOTAL_PIXELS: defineError(
    413,
    (file: string, frames: number, pixels: number, max: number) =>
      `${file} has ${pixels} pixels in ${frames} frames or pages, more than the limit of ${max} in total (MAX_TOTAL_PIXELS).`,
  ),
  // A limit of the tools, for a file whose header does not show its real size.
  RESOURCE_LIMIT_EXCEEDED: defineError(
    413,
    (file: string) =>
      `${file} needs more memory or disk space than one conversion may use (see MAX_PIXELS and MAX_TOTAL_PIXELS).`,
  ),
  // Not 503: proxies and clients would repeat the request, with the same result.
  CONVERSION_TIMEOUT: defineError(
    413,
    (file: string, { ms, setting }: TimeLimit) =>
      `${file} took longer to convert than the limit of ${seconds(ms / 1000)}${setting ? ` (${setting})` : ' for SVGs. This limit is fixed'}.`,
  ),
  UNSUPPORTED_TYPE: defineError(415, (file: string, supported: string, disabled?: string) => {
    const advice = disabled ? `: EXTRA_INPUTS does not enable ${disabled}` : '';
    return `${file} is not an image of a supported format (${supported})${advice}.`;
  }),
  CONVERSION_UNSUPPORTED: defineError(
    415,
    (file: string, from: string, to: string) =>
      `${file} is a kind of ${from} that cannot be converted to ${to} on this machine.`,
  ),
  UNSUPPORTED_CONTENT_ENCODING: defineError(
    415,
    () => 'An encoded request body is not supported: send it without Content-Encoding.',
  ),
  RANGE_NOT_SATISFIABLE: defineError(416, () => 'The page or file does not have the requested range.'),
  RATE_LIMITED: defineError(
    429,
    (limit: number, wait: number) =>
      `Too many requests: at most ${limit} per minute. Try again in ${seconds(wait)}.`,
    (_limit, wait) => wait,
  ),
  HEADERS_TOO_LARGE: defineError(431, () => 'The request headers are too large.'),
  INTERNAL: defineError(
    500,
    (support: string, requestId: string) =>
      `An internal error occurred. If it persists, contact ${support} and quote request ${requestId}.`,
  ),
  METHOD_UNKNOWN: defineError(501, (method: string) => `The method ${method} is not supported.`),
  TRANSFER_CODING: defineError(501, () => 'The only supported Transfer-Encoding is chunked.'),
  QUEUE_FULL: defineError(
    503,
    () => 'The service is busy: too many conversions are waiting. Try again shortly.',
    () => 5,
  ),
  OVERLOADED: defineError(
    503,
    () => 'The service is overloaded. Try again shortly.',
    () => 5,
  ),
  TOO_MANY_CONNECTIONS: defineError(
    503,
    () => 'Too many connections are open, from your address or in total. Try again shortly.',
    () => 5,
  ),
  CONVERTER_UNAVAILABLE: defineError(
    503,
    () => 'The service cannot convert images at the moment. Try again shortly.',
    () => 30,
  ),
  SHUTTING_DOWN: defineError(
    503,
    () => 'The service is shutting down. Try again shortly.',
    () => 5,
  ),
  DISK_FULL: defineError(
    503,
    () => 'The service has no disk space left for working files. Try again shortly.',
    () => 30,
  ),
} as const;

/** Code of an error in logs and metrics. */
export type ErrorCode = keyof typeof ERRORS;

/** Errors that concern one file only. A batch with `on_error=skip` continues without the file. */
const FILE_ERRORS: readonly ErrorCode[] = [
  'EMPTY_FILE',
  'CORRUPT_IMAGE',
  'UNSUPPORTED_ENCODING',
  'OUTPUT_DIMENSION_TOO_LARGE',
  'BYTES_UNREACHABLE',
  'FILE_TOO_LARGE',
  'TOO_MANY_PIXELS',
  'INPUT_DIMENSION_TOO_LARGE',
  'DRAWING_TOO_LARGE',
  'RESULT_TOO_LARGE',
  'RESULT_TOO_LARGE_IN_TOTAL',
  'TOO_MANY_FRAMES',
  'TOO_MANY_TOTAL_PIXELS',
  'RESOURCE_LIMIT_EXCEEDED',
  'CONVERSION_TIMEOUT',
  'UNSUPPORTED_TYPE',
  'CONVERSION_UNSUPPORTED',
];

/** Arguments of an error's message. */
export type MessageArgs<C extends ErrorCode> = Parameters<(typeof ERRORS)[C]['message']>;

/** An error of the table. `status` and `message` can be sent to the client. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly status: number;
  /** Value of `Retry-After` in seconds; undefined if waiting does not help. */
  readonly retryAfter: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    status: number,
    retryAfter: number | undefined,
    cause: unknown,
  ) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Creates the error with a code. `args` are the arguments of its message. */
export function serviceError<C extends ErrorCode>(code: C, ...args: MessageArgs<C>): ServiceError {
  return serviceErrorFrom(undefined, code, ...args);
}

/** Creates the error with a code, and a private `cause` for the log. */
export function serviceErrorFrom<C extends ErrorCode>(
  cause: unknown,
  code: C,
  ...args: MessageArgs<C>
): ServiceError {
  const { status, message, retryAfter } = ERRORS[code] as unknown as ErrorDefinition<MessageArgs<C>>;
  return new ServiceError(code, message(...args), status, retryAfter?.(...args), cause);
}

/** Returns whether an error concerns one file only, see {@link FILE_ERRORS}. */
export function isFileError(error: unknown): error is ServiceError {
  return error instanceof ServiceError && FILE_ERRORS.includes(error.code);
}

/** Returns whether an error of the file system means a full disk or an exceeded quota (errno(3)). */
export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** The client disconnected before the response was complete. */
export class ClientDisconnectedError extends Error {
  override readonly name = 'ClientDisconnectedError';
  constructor(options?: ErrorOptions) {
    super('the client disconnected', options);
  }
}
