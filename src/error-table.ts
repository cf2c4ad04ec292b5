/**
 * @module The table of all errors of the API: one row for each, with HTTP status, scope, public message and the arguments
 * of an example. A message helps the sender of the request and reveals nothing about the machine.
 */
import type { Config } from './config.ts';
import { INPUTS, MAX_DIMENSION, OUTPUTS } from './formats.ts';
import { formatByteLimit, plural } from './text.ts';

/**
 * Which requests can cause an error: `endpoint` all requests, `rate-limit` all requests if there is a rate limit, `upload`
 * requests with a form, `archive` those whose form can have archives, `file` those with a form, for one of its files,
 * `api-key` and `client-id` those that identify their client, if the settings permit it. The error of a `connection` occurs before a request reaches an endpoint.
 */
export type ErrorScope =
  | 'connection'
  | 'endpoint'
  | 'rate-limit'
  | 'api-key'
  | 'client-id'
  | 'upload'
  | 'archive'
  | 'file';

/** Values of the examples in the API reference: those of an endpoint, and of this server. */
export interface ExampleValues {
  /** The label of a file in messages. */
  readonly file: string;
  /** The name of the form's file part. */
  readonly part: string;
  readonly maxFiles: number;
  /** The methods of the endpoint. */
  readonly allowed: string;
  /** The image formats that this server can read. */
  readonly supported: string;
  readonly requestId: string;
  readonly maxFields: number;
  readonly minChunkBytes: number;
  readonly minBytesPerSecond: number;
  readonly config: Config;
}

type Example<P> = (values: ExampleValues) => P;

interface ErrorRow<P extends unknown[]> {
  readonly status: number;
  readonly scope: ErrorScope;
  readonly message: (...args: P) => string;
  /** Returns the arguments of the message in an example. */
  readonly example: Example<P>;
  /** Value of `Retry-After`, in seconds. */
  readonly retryAfter?: (...args: P) => number;
}

const define =
  (scope: ErrorScope) =>
  <P extends unknown[] | []>(
    status: number,
    message: (...args: P) => string,
    example: Example<NoInfer<P>>,
  ) => ({
    status,
    scope,
    message,
    example,
  });
const endpoint = define('endpoint');
const upload = define('upload');

/** Defines an error of one file. The first argument is the label of the file; `example` returns the other arguments. */
const file = <P extends unknown[] | []>(
  status: number,
  message: (file: string, ...args: P) => string,
  example: Example<NoInfer<P>>,
): ErrorRow<[file: string, ...P]> =>
  define('file')(status, message, (values) => [values.file, ...example(values)]);

/** Defines an error whose message has no arguments. */
const fixed = (status: number, scope: ErrorScope, text: string): ErrorRow<[]> =>
  define(scope)(
    status,
    () => text,
    () => [],
  );

/** Defines an error of a service that is overloaded or unavailable. `wait` is the value of `Retry-After`, in seconds. */
const unavailable = (scope: ErrorScope, text: string, wait: number): ErrorRow<[]> => ({
  ...fixed(503, scope, `${text} Try again shortly.`),
  retryAfter: () => wait,
});

const seconds = (count: number): string => plural(count, 'second');

const ROWS = {
  MALFORMED_REQUEST: fixed(400, 'connection', 'The request is not valid HTTP.'),
  HOST_INVALID: fixed(400, 'connection', 'The request must have one valid Host header.'),
  INCOMPLETE_BODY: fixed(400, 'upload', 'The request body is incomplete.'),
  CHUNKS_TOO_SMALL: upload(
    400,
    (bytes: number) =>
      `The request body has too many small chunks: their mean size must be at least ${plural(bytes, 'byte')}.`,
    ({ minChunkBytes }) => [minChunkBytes],
  ),
  NOT_MULTIPART: fixed(400, 'upload', 'The request body must be multipart/form-data with a boundary.'),
  MALFORMED_MULTIPART: fixed(400, 'upload', 'The multipart body is incomplete or malformed.'),
  NO_FILE: upload(
    400,
    (field: string) => `No file was sent: a file part named "${field}" is required.`,
    ({ part }) => [part],
  ),
  FILE_SENT_AS_TEXT: upload(
    400,
    (field: string) =>
      `The field "${field}" contains text, not a file. With curl, use -F ${field}=@photo.jpg.`,
    ({ part }) => [part],
  ),
  EMPTY_FILE: file(
    400,
    (file: string) => `${file} is empty (0 bytes).`,
    () => [],
  ),
  UNEXPECTED_FILE_FIELD: upload(
    400,
    (field: string, expected: string) =>
      `Unexpected file part ${field}: the file part must be named "${expected}".`,
    ({ part }) => ['"image"', part],
  ),
  TOO_MANY_FILES: upload(
    400,
    (max: number) => `Too many files: at most ${max} allowed in one request.`,
    ({ maxFiles }) => [maxFiles],
  ),
  TOO_MANY_FIELDS: upload(
    400,
    (max: number) => `Too many form fields: at most ${max} allowed in one request.`,
    ({ maxFields }) => [maxFields],
  ),
  FIELD_IN_QUERY: upload(
    400,
    (field: string) =>
      `The field "${field}" is in the query string. Send it in the form instead; with curl, use -F ${field}=VALUE.`,
    () => ['quality'],
  ),
  FIELD_REPEATED: upload(
    400,
    (field: string) => `The field "${field}" was sent more than once.`,
    () => ['quality'],
  ),
  FIELD_INVALID: upload(
    400,
    (field: string, value: string, expected: string) => `Invalid ${field} "${value}": expected ${expected}.`,
    () => ['quality', '200', 'a whole number from 1 to 100'],
  ),
  CONFLICTING_FORMATS: upload(
    400,
    (one: string, other: string) =>
      `The fields "output_format" ("${one}") and "format" ("${other}") differ: send only one of them.`,
    () => ['png', 'gif'],
  ),
  BAD_ARCHIVE: define('archive')(
    400,
    (archive: string, what: string) => `${archive} ${what}.`,
    ({ file }) => [file, 'contains another archive'],
  ),
  CORRUPT_IMAGE: file(
    400,
    (file: string, label: string) => `${file} is damaged or not a valid ${label} image.`,
    () => [INPUTS.jpg.label],
  ),
  UNSUPPORTED_ENCODING: file(
    400,
    (file: string, kind: string) =>
      `${file} uses an unsupported encoding (${kind}): save it with a common encoding, or in another format.`,
    () => ['lossless, hierarchical or 12-bit JPEG'],
  ),
  OUTPUT_DIMENSION_TOO_LARGE: file(
    400,
    (file: string, label: string, max: number) =>
      `${file} is too large for ${label}, which supports at most ${max} pixels per side: set a smaller width or height, or choose another format.`,
    () => [OUTPUTS.webp.label, OUTPUTS.webp.maxDimension as number],
  ),
  CROP_OUTSIDE: file(
    400,
    (file: string, crop: string, width: number, height: number) =>
      `${file} is ${width} × ${height} pixels when upright, so the crop "${crop}" is not inside of it.`,
    () => ['0,0,2000,1000', 1600, 1200],
  ),
  BYTES_UNREACHABLE: file(
    400,
    (file: string, max: number, smallest: number, quality: number) =>
      `${file} cannot be reduced to ${plural(max, 'byte')} (max_bytes): the smallest result has ${smallest} bytes, at quality ${quality}. Set a smaller width or height, choose another format, or allow more bytes.`,
    () => [5000, 8211, 10],
  ),
  CLIENT_ID_INVALID: fixed(
    400,
    'client-id',
    'Invalid X-Client-Id: expected 1 to 128 characters, without control characters.',
  ),
  API_KEY_MISSING: fixed(
    401,
    'api-key',
    'This server needs an API key: send it in the header "Authorization: Bearer KEY".',
  ),
  API_KEY_INVALID: fixed(401, 'api-key', 'The API key is not valid.'),
  NOT_FOUND: fixed(404, 'connection', 'There is nothing at this path.'),
  METHOD_NOT_ALLOWED: endpoint(
    405,
    (method: string, allowed: string) => `${method} is not allowed for this path: use ${allowed}.`,
    ({ allowed }) => ['PUT', allowed],
  ),
  REQUEST_TIMEOUT: fixed(408, 'endpoint', 'The request was not received in time.'),
  UPLOAD_TIMEOUT: upload(
    408,
    (ms: number) => `The upload did not finish within ${seconds(ms / 1000)}.`,
    ({ config }) => [config.UPLOAD_TIMEOUT_MS],
  ),
  UPLOAD_TOO_SLOW: upload(
    408,
    (bytesPerSecond: number) => `The upload was too slow: less than ${bytesPerSecond} bytes per second.`,
    ({ minBytesPerSecond }) => [minBytesPerSecond],
  ),
  PRECONDITION_FAILED: fixed(412, 'connection', 'The page or file does not meet a condition of the request.'),
  FILE_TOO_LARGE: file(
    413,
    (file: string, max: number) => `${file} is too large: at most ${formatByteLimit(max)} allowed.`,
    ({ config }) => [config.MAX_FILE_BYTES],
  ),
  TOO_MANY_PIXELS: file(
    413,
    (file: string, width: number, height: number, max: number) =>
      `${file} has ${width} × ${height} = ${width * height} pixels, more than the limit of ${max} (MAX_PIXELS).`,
    ({ config }) => [16_000, 16_000, config.MAX_PIXELS],
  ),
  INPUT_DIMENSION_TOO_LARGE: file(
    413,
    (file: string, side: number, max: number) =>
      `${file} is ${side} pixels wide or high, more than the maximum of ${max} pixels per side. This limit is fixed.`,
    () => [20_000, MAX_DIMENSION],
  ),
  DRAWING_TOO_LARGE: file(
    413,
    (file: string, side: number, max: number) =>
      `${file} would be rendered ${side} pixels wide or high, more than the limit of ${max}: set a smaller width or height.`,
    () => [20_000, MAX_DIMENSION],
  ),
  RESULT_TOO_LARGE: file(
    413,
    (file: string, width: number, height: number, max: number, side: number) =>
      `${file} would become ${width} × ${height} pixels. The limits are ${max} pixels in total (MAX_PIXELS) and ${side} per side: set a smaller width or height.`,
    ({ config }) => [16_000, 16_000, config.MAX_PIXELS, MAX_DIMENSION],
  ),
  RESULT_TOO_LARGE_IN_TOTAL: file(
    413,
    (file: string, frames: number, pixels: number, max: number) =>
      `${file} would become ${frames} frames or pages with ${pixels} pixels, more than the limit of ${max} in total (MAX_TOTAL_PIXELS): set a smaller width or height.`,
    ({ config }) => [100, 2 * config.MAX_TOTAL_PIXELS, config.MAX_TOTAL_PIXELS],
  ),
  VARIANTS_TOO_LARGE_IN_TOTAL: file(
    413,
    (file: string, variants: number, pixels: number, max: number) =>
      `${file} would become ${variants} variants with ${pixels} pixels, more than the limit of ${max} in total (MAX_TOTAL_PIXELS): set a smaller width or height, or send fewer variants.`,
    ({ config }) => [12, 2 * config.MAX_TOTAL_PIXELS, config.MAX_TOTAL_PIXELS],
  ),
  TOO_MANY_FRAMES: file(
    413,
    (file: string, frames: number, max: number) =>
      `${file} has ${frames} frames or pages, more than the limit of ${max} (MAX_FRAMES).`,
    ({ config }) => [2 * config.MAX_FRAMES, config.MAX_FRAMES],
  ),
  TOO_MANY_TOTAL_PIXELS: file(
    413,
    (file: string, frames: number, pixels: number, max: number) =>
      `${file} has ${pixels} pixels in ${frames} frames or pages, more than the limit of ${max} in total (MAX_TOTAL_PIXELS).`,
    ({ config }) => [100, 2 * config.MAX_TOTAL_PIXELS, config.MAX_TOTAL_PIXELS],
  ),
  // A limit of the tools, for a file whose header does not show its real size.
  RESOURCE_LIMIT_EXCEEDED: file(
    413,
    (file: string) =>
      `${file} needs more memory or disk space than one conversion may use (see MAX_PIXELS and MAX_TOTAL_PIXELS).`,
    () => [],
  ),
  // Not 503: proxies and clients would repeat the request, with the same result.
  CONVERSION_TIMEOUT: file(
    413,
    (file: string, { ms, setting }: { ms: number; setting?: string }) =>
      `${file} took longer to convert than the limit of ${seconds(ms / 1000)}${setting ? ` (${setting})` : ' for SVGs. This limit is fixed'}.`,
    ({ config }) => [{ ms: config.CONVERT_TIMEOUT_MS, setting: 'CONVERT_TIMEOUT_MS' }],
  ),
  UNSUPPORTED_TYPE: file(
    415,
    (file: string, supported: string, disabled?: string) =>
      `${file} is not an image of a supported format (${supported})${disabled ? `: EXTRA_INPUTS does not enable ${disabled}` : ''}.`,
    ({ supported }) => [supported],
  ),
  CONVERSION_UNSUPPORTED: file(
    415,
    (file: string, from: string, to: string) =>
      `${file} is a kind of ${from} that cannot be converted to ${to} on this machine.`,
    () => [INPUTS.gif.label, OUTPUTS.webp.label],
  ),
  UNSUPPORTED_CONTENT_ENCODING: fixed(
    415,
    'upload',
    'An encoded request body is not supported: send it without Content-Encoding.',
  ),
  RANGE_NOT_SATISFIABLE: fixed(416, 'connection', 'The page or file does not have the requested range.'),
  RATE_LIMITED: {
    ...define('rate-limit')(
      429,
      (limit: number, wait: number) =>
        `Too many requests: at most ${limit} per minute. Try again in ${seconds(wait)}.`,
      ({ config }) => [config.RATE_LIMIT_PER_MINUTE, 42],
    ),
    retryAfter: (_limit: number, wait: number) => wait,
  },
  HEADERS_TOO_LARGE: fixed(431, 'endpoint', 'The request headers are too large.'),
  INTERNAL: endpoint(
    500,
    (support: string, requestId: string) =>
      `An internal error occurred. If it persists, contact ${support} and quote request ${requestId}.`,
    ({ config, requestId }) => [config.SUPPORT_EMAIL, requestId],
  ),
  METHOD_UNKNOWN: define('connection')(
    501,
    (method: string) => `The method ${method} is not supported.`,
    () => ['FOO'],
  ),
  TRANSFER_CODING: fixed(501, 'upload', 'The only supported Transfer-Encoding is chunked.'),
  QUEUE_FULL: unavailable('upload', 'The service is busy: too many conversions are waiting.', 5),
  OVERLOADED: unavailable('upload', 'The service is overloaded.', 5),
  DISK_FULL: unavailable('upload', 'The service has no disk space left for working files.', 30),
  TEMP_DIR_UNWRITABLE: unavailable('upload', 'The service cannot write working files at the moment.', 30),
  SHUTTING_DOWN: unavailable('endpoint', 'The service is shutting down.', 5),
  TOO_MANY_CONNECTIONS: unavailable(
    'endpoint',
    'Too many connections are open, from your address or in total.',
    5,
  ),
  CONVERTER_UNAVAILABLE: unavailable('upload', 'The service cannot convert images at the moment.', 30),
};

/** Code of an error in logs and metrics. */
export type ErrorCode = keyof typeof ROWS;

/** Arguments of an error's message. */
export type MessageArgs<C extends ErrorCode> = Parameters<(typeof ROWS)[C]['message']>;

export const ERRORS: { readonly [C in ErrorCode]: ErrorRow<MessageArgs<C>> } = ROWS;

/** All codes, in the order of the table. */
export const ERROR_CODES = Object.keys(ROWS) as ErrorCode[];
