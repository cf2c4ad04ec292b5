/**
 * Every error a client can meet: one row each, with its status and its public
 * sentence. The sentence helps the person who sent the request and reveals
 * nothing of the machine; the private cause travels in `cause` to the log.
 */

interface ErrorDefinition<P extends unknown[]> {
  readonly status: number;
  readonly message: (...facts: P) => string;
  /** Seconds a client is asked to wait, for `Retry-After`. */
  readonly retryAfter?: (...facts: P) => number;
}

const defineError = <P extends unknown[]>(
  status: number,
  say: (...facts: P) => string,
  retryAfter?: (...facts: P) => number,
): ErrorDefinition<P> => ({ status, message: say, ...(retryAfter && { retryAfter }) });

const seconds = (count: number): string => `${count} second${count === 1 ? '' : 's'}`;

/** How long something may take, in milliseconds, and the setting that moves the limit, if one does. */
export interface TimeLimit {
  readonly ms: number;
  readonly setting?: string;
}

/** Bytes as people say them. */
export function formatByteLimit(bytes: number): string {
  const mebibytes = bytes / (1024 * 1024);
  return Number.isInteger(mebibytes) ? `${mebibytes} MiB (${bytes} bytes)` : `${bytes} bytes`;
}

const ERRORS = {
  MALFORMED_REQUEST: defineError(400, () => 'The request is not valid HTTP.'),
  HOST_INVALID: defineError(400, () => 'The request must have one valid Host header.'),
  INCOMPLETE_BODY: defineError(400, () => 'The request body ended early.'),
  NOT_MULTIPART: defineError(400, () => 'The request body must be multipart/form-data with a boundary.'),
  MALFORMED_MULTIPART: defineError(400, () => 'The multipart body ended early or is not well-formed.'),
  NO_FILE: defineError(400, (field: string) => `No file was sent: a file part named "${field}" is required.`),
  FILE_SENT_AS_TEXT: defineError(
    400,
    (field: string) =>
      `The field "${field}" holds text, not a file. With curl, write -F ${field}=@photo.jpg, with an @.`,
  ),
  EMPTY_FILE: defineError(400, (file: string) => `${file} is empty (0 bytes).`),
  UNEXPECTED_FILE_FIELD: defineError(
    400,
    (field: string, expected: string) =>
      `Unexpected file part ${field}: the file part must be named "${expected}".`,
  ),
  TOO_MANY_FILES: defineError(
    400,
    (most: number) => `Too many files: at most ${most} allowed in one request.`,
  ),
  TOO_MANY_FIELDS: defineError(
    400,
    (most: number) => `Too many form fields: at most ${most} allowed in one request.`,
  ),
  FIELD_IN_QUERY: defineError(
    400,
    (field: string) =>
      `The field "${field}" is in the address. Send it in the form instead; with curl, write -F ${field}=VALUE.`,
  ),
  FIELD_REPEATED: defineError(400, (field: string) => `The field "${field}" was given more than once.`),
  FIELD_INVALID: defineError(
    400,
    (field: string, value: string, expected: string) => `Invalid ${field} "${value}": expected ${expected}.`,
  ),
  CONFLICTING_FORMATS: defineError(
    400,
    (one: string, other: string) =>
      `The fields "output_format" ("${one}") and "format" ("${other}") contradict each other: send one of them.`,
  ),
  BAD_ARCHIVE: defineError(400, (archive: string, what: string) => `${archive} ${what}.`),
  CORRUPT_IMAGE: defineError(
    400,
    (file: string, label: string) => `${file} is damaged or not a valid ${label} image.`,
  ),
  UNSUPPORTED_ENCODING: defineError(
    400,
    (file: string, kind: string) =>
      `${file} is ${kind}, a rare kind that cannot be read here: save it in the usual way, or in another format.`,
  ),
  OUTPUT_DIMENSION_TOO_LARGE: defineError(
    400,
    (file: string, label: string, most: number) =>
      `${file} is too large for ${label}, which holds at most ${most} pixels a side: set a smaller width or height, or choose another format.`,
  ),
  BYTES_UNREACHABLE: defineError(
    400,
    (file: string, most: number, smallest: number, quality: number) =>
      `${file} cannot have at most ${most} bytes (max_bytes): the smallest result has ${smallest} bytes, at quality ${quality}. Set a smaller width or height, choose another format, or allow more bytes.`,
  ),
  NOT_FOUND: defineError(404, () => 'There is nothing at this path.'),
  METHOD_NOT_ALLOWED: defineError(
    405,
    (method: string, allowed: string) => `${method} is not allowed here: use ${allowed}.`,
  ),
  REQUEST_TIMEOUT: defineError(408, () => 'The request was not complete in time.'),
  UPLOAD_TIMEOUT: defineError(
    408,
    (ms: number) => `The upload was not complete after ${seconds(ms / 1000)}.`,
  ),
  UPLOAD_TOO_SLOW: defineError(
    408,
    (bytesPerSecond: number) => `The upload came too slowly: less than ${bytesPerSecond} bytes a second.`,
  ),
  FILE_TOO_LARGE: defineError(
    413,
    (file: string, most: number) => `${file} is too large: at most ${formatByteLimit(most)} allowed.`,
  ),
  TOO_MANY_PIXELS: defineError(
    413,
    (file: string, width: number, height: number, most: number) =>
      `${file} has ${width} × ${height} = ${width * height} pixels, more than the limit of ${most} (MAX_PIXELS).`,
  ),
  INPUT_DIMENSION_TOO_LARGE: defineError(
    413,
    (file: string, side: number, most: number) =>
      `${file} is ${side} pixels wide or high, more than the limit of ${most}, which no setting moves.`,
  ),
  DRAWING_TOO_LARGE: defineError(
    413,
    (file: string, side: number, most: number) =>
      `${file} would be drawn ${side} pixels wide or high, more than the limit of ${most}: set a smaller width or height.`,
  ),
  RESULT_TOO_LARGE: defineError(
    413,
    (file: string, width: number, height: number, most: number, side: number) =>
      `${file} would become ${width} × ${height} pixels. The limits are ${most} pixels in all (MAX_PIXELS) and ${side} a side: set a smaller width or height.`,
  ),
  RESULT_TOO_LARGE_IN_TOTAL: defineError(
    413,
    (file: string, pictures: number, pixels: number, most: number) =>
      `${file} would become ${pictures} frames or pages with ${pixels} pixels, more than the limit of ${most} for all together (MAX_TOTAL_PIXELS): set a smaller width or height.`,
  ),
  TOO_MANY_FRAMES: defineError(
    413,
    (file: string, frames: number, most: number) =>
      `${file} has ${frames} frames or pages, more than the limit of ${most} (MAX_FRAMES).`,
  ),
  TOO_MANY_TOTAL_PIXELS: defineError(
    413,
    (file: string, frames: number, pixels: number, most: number) =>
      `${file} has ${pixels} pixels in ${frames} frames or pages, more than the limit of ${most} for all together (MAX_TOTAL_PIXELS).`,
  ),
  // What the tools ran into while they worked, when the header did not say so.
  RESOURCE_LIMIT_EXCEEDED: defineError(
    413,
    (file: string) =>
      `${file} needs more memory or room than one conversion may have (see MAX_PIXELS and MAX_TOTAL_PIXELS).`,
  ),
  // A limit of the picture, as the others above: with 503, proxies and clients would repeat it in vain.
  CONVERSION_TIMEOUT: defineError(
    413,
    (file: string, { ms, setting }: TimeLimit) =>
      `${file} took longer to convert than the limit of ${seconds(ms / 1000)}${setting ? ` (${setting})` : ' for drawings, which no setting moves'}.`,
  ),
  UNSUPPORTED_TYPE: defineError(
    415,
    (file: string, supported: string) => `${file} is not an image of a supported format (${supported}).`,
  ),
  CONVERSION_UNSUPPORTED: defineError(
    415,
    (file: string, from: string, to: string) =>
      `${file} is a kind of ${from} that cannot be converted to ${to} on this machine.`,
  ),
  UNSUPPORTED_CONTENT_ENCODING: defineError(
    415,
    () => 'An encoded request body is not supported: send it without Content-Encoding.',
  ),
  RATE_LIMITED: defineError(
    429,
    (limit: number, wait: number) =>
      `Too many requests: at most ${limit} a minute. Try again in ${seconds(wait)}.`,
    (_limit, wait) => wait,
  ),
  HEADERS_TOO_LARGE: defineError(431, () => 'The request headers are too large.'),
  INTERNAL: defineError(
    500,
    (support: string, requestId: string) =>
      `Something went wrong on our side. If it persists, write to ${support} and quote request ${requestId}.`,
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
    () => 'Too many connections are open, from your address or in all. Try again shortly.',
    () => 5,
  ),
  CONVERTER_UNAVAILABLE: defineError(
    503,
    () => 'The service cannot convert at the moment. Try again shortly.',
    () => 30,
  ),
  SHUTTING_DOWN: defineError(
    503,
    () => 'The service is shutting down. Try again shortly.',
    () => 5,
  ),
  DISK_FULL: defineError(
    503,
    () => 'The service has no room for working files at the moment. Try again shortly.',
    () => 30,
  ),
} as const;

export type ErrorCode = keyof typeof ERRORS;
/** What the sentence of an error is made of. */
export type MessageArgs<C extends ErrorCode> = Parameters<(typeof ERRORS)[C]['message']>;

/** An error with a row in the table: `status` and `message` may be sent as they are. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly status: number;
  /** Seconds for `Retry-After`, where waiting helps. */
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

/** Builds the error of row `code`; `facts` fill its sentence. */
export function serviceError<C extends ErrorCode>(code: C, ...facts: MessageArgs<C>): ServiceError {
  return serviceErrorFrom(undefined, code, ...facts);
}

/** As {@link serviceError}, with the private `cause` that only the log may see. */
export function serviceErrorFrom<C extends ErrorCode>(
  cause: unknown,
  code: C,
  ...facts: MessageArgs<C>
): ServiceError {
  const { status, message: say, retryAfter } = ERRORS[code] as unknown as ErrorDefinition<MessageArgs<C>>;
  return new ServiceError(code, say(...facts), status, retryAfter?.(...facts), cause);
}

/** The client left before an answer could be sent: there is nobody to tell. */
export class ClientDisconnectedError extends Error {
  override readonly name = 'ClientDisconnectedError';
  constructor(options?: ErrorOptions) {
    super('the client closed the connection', options);
  }
}

/** The machine cannot do what the service needs; the message says what and why. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}
