/**
 * @module The table of all errors of the API: one row for each, with HTTP status, scope, public
 * message and the arguments of an example. A message helps the sender of the request and reveals
 * nothing about the machine.
 */
import { formatByteLimit, plural } from '../base/text.ts';
import type { Config } from './config.ts';
import { describeDisabled, INPUTS, MAX_DIMENSION, MAX_SIDE, MAX_WATERMARK, OUTPUTS } from './formats.ts';

/**
 * Which requests can cause an error:
 *
 * - `connection`: a request that has not reached an endpoint
 * - `endpoint`: all requests; `handler`: all except OPTIONS; `rate-limit`: all if there is a rate
 *   limit
 * - `upload`: requests with a form; `archive`: those whose form can have archives; `file`: one of
 *   the files of a form
 * - `api-key`, `client-id`: requests that identify their client, if the settings permit it
 */
export type ErrorScope =
  | 'connection'
  | 'endpoint'
  | 'handler'
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

/** What programs can read of an error: amounts with the unit of the message, and times in ms. */
export interface ErrorDetails {
  /** The field or query parameter to change. */
  readonly field?: string | undefined;
  readonly limit?: number | undefined;
  /** The amount that exceeds the limit. */
  readonly actual?: number | undefined;
  readonly setting?: keyof Config | undefined;
}

type Details<P extends unknown[]> = (...args: P) => ErrorDetails;

/** A row of the table of errors. */
export interface ErrorRow<P extends unknown[]> {
  readonly status: number;
  readonly scope: ErrorScope;
  readonly message: (...args: P) => string;
  /** Returns the arguments of the message in an example. */
  readonly example: Example<P>;
  readonly details: Details<P>;
  /** Value of `Retry-After`, in seconds. */
  readonly retryAfter?: (...args: P) => number;
}

const noDetails = (): ErrorDetails => ({});

/** Returns a function that defines an error of a scope, with an HTTP status. */
const define =
  (scope: ErrorScope, status: number) =>
  <P extends unknown[] | []>(
    message: (...args: P) => string,
    example: Example<NoInfer<P>>,
    details: NoInfer<Details<P>> = noDetails,
  ) => ({ status, scope, message, example, details });

/** Returns a function that defines an error of a file, whose label is the first argument. */
const file =
  (status: number) =>
  <P extends unknown[] | []>(
    message: (file: string, ...args: P) => string,
    example: Example<NoInfer<P>>,
    details: NoInfer<Details<P>> = noDetails,
  ): ErrorRow<[file: string, ...P]> => ({
    ...define('file', status)(message, (values): [file: string, ...P] => [values.file, ...example(values)]),
    details: (_file, ...args) => details(...args),
  });

/** Defines an error whose message has no arguments. */
const fixed = (status: number, scope: ErrorScope, text: string): ErrorRow<[]> =>
  define(scope, status)(
    () => text,
    () => [],
  );

/** Defines an error of one file whose message has no other arguments. */
const fixedFile = (status: number, message: (file: string) => string): ErrorRow<[file: string]> =>
  file(status)(message, () => []);

/** Defines an error of a busy or unavailable service. `wait`: `Retry-After`, in seconds. */
const unavailable = (scope: ErrorScope, text: string, wait: number): ErrorRow<[]> => ({
  ...fixed(503, scope, `${text} Try again shortly.`),
  retryAfter: () => wait,
});

const exceeds = (actual: number | undefined, limit: number, setting?: keyof Config): ErrorDetails => ({
  limit,
  actual,
  setting,
});

const badRequest = define('upload', 400);
const badFile = file(400);
const tooLarge = file(413);
const unsupported = file(415);

const seconds = (count: number): string => plural(count, 'second');

/** Returns what is wrong with a file of an unsupported type, without the reason. */
export const describeUnsupported = (file: string, supported: string): string =>
  `${file} is not an image of a supported format (${supported})`;

const ROWS = {
  MALFORMED_REQUEST: fixed(400, 'connection', 'The request is not valid HTTP.'),
  HOST_INVALID: fixed(400, 'connection', 'The request must have one valid Host header.'),
  INCOMPLETE_BODY: fixed(400, 'upload', 'The request body is incomplete.'),
  CHUNKS_TOO_SMALL: badRequest(
    (bytes: number) =>
      `The request body has too many small chunks: their mean size must be at least ${plural(bytes, 'byte')}.`,
    ({ minChunkBytes }) => [minChunkBytes],
    (limit) => ({ limit }),
  ),
  NOT_MULTIPART: badRequest(
    (field: string, acceptsImage: boolean) =>
      acceptsImage
        ? `The request body is neither a form (multipart/form-data with a boundary) nor an image. With curl, send a form with -F ${field}=@photo.jpg, or the image with --data-binary @photo.jpg -H 'Content-Type: image/jpeg'.`
        : `The request body must be multipart/form-data with a boundary. With curl, use -F ${field}=@photo.jpg.`,
    ({ part, maxFiles }) => [part, maxFiles === 1],
  ),
  MALFORMED_MULTIPART: fixed(400, 'upload', 'The multipart body is incomplete or malformed.'),
  NO_FILE: badRequest(
    (field: string) => `No file was sent: a file part named "${field}" is required.`,
    ({ part }) => [part],
    (field) => ({ field }),
  ),
  FILE_SENT_AS_TEXT: badRequest(
    (field: string) =>
      `The field "${field}" contains text, not a file. With curl, use -F ${field}=@photo.jpg.`,
    ({ part }) => [part],
    (field) => ({ field }),
  ),
  EMPTY_FILE: fixedFile(400, (file) => `${file} is empty (0 bytes).`),
  UNEXPECTED_FILE_FIELD: badRequest(
    (field: string | undefined, expected: string) =>
      `Unexpected file part ${field === undefined ? 'without a name' : `"${field}"`}: the file part must be named "${expected}".`,
    ({ part }) => ['image', part],
    (field) => ({ field }),
  ),
  TOO_MANY_FILES: badRequest(
    (max: number, isBatch: boolean) =>
      `Too many files: at most ${max} allowed in one request.${isBatch ? '' : ' For several files, use POST /api/v1/batch.'}`,
    ({ maxFiles }) => [maxFiles, maxFiles > 1],
    (limit, isBatch) => ({ limit, setting: isBatch ? 'MAX_BATCH_FILES' : undefined }),
  ),
  TOO_MANY_FIELDS: badRequest(
    (max: number) => `Too many fields: at most ${max} allowed in one request.`,
    ({ maxFields }) => [maxFields],
    (limit) => ({ limit }),
  ),
  FIELD_IN_QUERY: badRequest(
    (field: string) =>
      `The field "${field}" is in the query string. Send it in the form instead; with curl, use -F ${field}=VALUE.`,
    () => ['quality'],
    (field) => ({ field }),
  ),
  UNKNOWN_PARAMETER: badRequest(
    (names: readonly string[], known: readonly string[]) =>
      `Unknown query parameter ${names.map((name) => `"${name}"`).join(', ')}: the options of an image as the body are ${known.join(', ')}.`,
    () => [['size'], ['output_format', 'quality', 'width']],
    ([field]) => ({ field }),
  ),
  FIELD_REPEATED: badRequest(
    (field: string) => `The field "${field}" was sent more than once.`,
    () => ['quality'],
    (field) => ({ field }),
  ),
  FIELD_INVALID: badRequest(
    (field: string, value: string, expected: string) => `Invalid ${field} "${value}": expected ${expected}.`,
    () => ['quality', '200', 'a whole number from 1 to 100, or auto'],
    (field) => ({ field }),
  ),
  NOT_AVAILABLE: badRequest(
    (label: string, tool: string, debianPackage: string) =>
      `This server cannot combine images to ${label}, because it has no ${tool}. Its operator can install it; on Debian: apt install ${debianPackage}.`,
    () => [OUTPUTS.pdf.label, 'qpdf', 'qpdf'],
    () => ({ field: 'combine' }),
  ),
  CONFLICTING_FORMATS: badRequest(
    (one: string, other: string) =>
      `The fields "output_format" ("${one}") and "format" ("${other}") differ: send only one of them.`,
    () => ['png', 'gif'],
    () => ({ field: 'output_format' }),
  ),
  TOO_MANY_VARIANTS: badRequest(
    (variants: number, max: number) =>
      `Too many variants: ${variants}, more than the limit of ${max} (MAX_VARIANTS).`,
    ({ config }) => [config.MAX_VARIANTS + 1, config.MAX_VARIANTS],
    (actual, limit) => ({ field: 'variants', limit, actual, setting: 'MAX_VARIANTS' }),
  ),
  VARIANT_INVALID: badRequest(
    (variant: string, problem: string) => `Variant ${variant}: ${problem}`,
    () => ['"card"', 'Invalid quality "200": expected a whole number from 1 to 100, or auto.'],
    () => ({ field: 'variants' }),
  ),
  BAD_ARCHIVE: define('archive', 400)(
    (archive: string, what: string) => `${archive} ${what}.`,
    ({ file }) => [file, 'contains another archive'],
  ),
  CORRUPT_IMAGE: badFile(
    (file: string, label: string) => `${file} is damaged or not a valid ${label} image.`,
    () => [INPUTS.jpg.label],
  ),
  UNSUPPORTED_ENCODING: badFile(
    (file: string, kind: string) =>
      `${file} uses an unsupported encoding (${kind}): save it with a common encoding, or in another format.`,
    () => ['lossless, hierarchical or 12-bit JPEG'],
  ),
  FILE_ENCRYPTED: fixedFile(400, (file) => `${file} is encrypted: save it without a password.`),
  PDF_TO_PDF: fixedFile(
    400,
    (file) => `${file} is already a PDF, and its pages can only become images: choose another format.`,
  ),
  OUTPUT_DIMENSION_TOO_LARGE: badFile(
    (file: string, label: string, max: number) =>
      `${file} is too large for ${label}, which supports at most ${max} pixels per side: set a smaller width or height, or choose another format.`,
    () => [OUTPUTS.webp.label, OUTPUTS.webp.maxDimension as number],
    (_label, limit) => ({ limit }),
  ),
  PAGE_MISSING: badFile(
    (file: string, page: number, pages: number) =>
      `${file} has ${plural(pages, 'page')}, so there is no page ${page}.`,
    () => [5, 3],
    (_page, limit) => ({ field: 'pages', limit }),
  ),
  CROP_OUTSIDE: badFile(
    (file: string, crop: string, width: number, height: number) =>
      `${file} is ${width} × ${height} pixels when upright, so the crop "${crop}" is not inside of it.`,
    () => ['0,0,2000,1000', 1600, 1200],
    () => ({ field: 'crop' }),
  ),
  BYTES_UNREACHABLE: badFile(
    (file: string, max: number, smallest: number, quality: number) =>
      `${file} cannot be reduced to ${plural(max, 'byte')} (max_bytes): the smallest result has ${smallest} bytes, at quality ${quality}. Set a smaller width or height, choose another format, or allow more bytes.`,
    () => [5000, 8211, 10],
    (limit, actual) => ({ field: 'max_bytes', limit, actual }),
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
  NOT_FOUND: fixed(
    404,
    'connection',
    'There is nothing at this path. The API is below /api/v1. Its paths have no slash at the end.',
  ),
  METHOD_NOT_ALLOWED: define('handler', 405)(
    (method: string, allowed: string) => `${method} is not allowed for this path: use ${allowed}.`,
    ({ allowed }) => ['PUT', allowed],
  ),
  NOT_ACCEPTABLE: define('upload', 406)(
    (mediaTypes: readonly string[]) =>
      `Accept permits no format that "auto" can choose: send ${mediaTypes.join(', ')} or */*, or set output_format.`,
    () => [['image/webp', 'image/jpeg', 'image/png']],
  ),
  REQUEST_TIMEOUT: fixed(408, 'endpoint', 'The request was not received in time.'),
  UPLOAD_TIMEOUT: define('upload', 408)(
    (ms: number) => `The upload did not finish within ${seconds(ms / 1000)}.`,
    ({ config }) => [config.UPLOAD_TIMEOUT_MS],
    (limit) => ({ limit, setting: 'UPLOAD_TIMEOUT_MS' }),
  ),
  UPLOAD_TOO_SLOW: define('upload', 408)(
    (bytesPerSecond: number) => `The upload was too slow: less than ${bytesPerSecond} bytes per second.`,
    ({ minBytesPerSecond }) => [minBytesPerSecond],
    (limit) => ({ limit }),
  ),
  PRECONDITION_FAILED: fixed(412, 'connection', 'The page or file does not meet a condition of the request.'),
  FILE_TOO_LARGE: tooLarge(
    (file: string, max: number, isUnpacked = false) =>
      isUnpacked
        ? `${file} is compressed with gzip, and unpacks to more than the limit of ${formatByteLimit(max)}.`
        : `${file} is too large: at most ${formatByteLimit(max)} allowed.`,
    ({ config }) => [config.MAX_FILE_BYTES],
    (limit) => ({ limit, setting: 'MAX_FILE_BYTES' }),
  ),
  TOO_MANY_PIXELS: tooLarge(
    (file: string, width: number, height: number, max: number) =>
      `${file} has ${width} × ${height} = ${width * height} pixels, more than the limit of ${max} (MAX_PIXELS).`,
    ({ config }) => [16_000, 16_000, config.MAX_PIXELS],
    (width, height, max) => exceeds(width * height, max, 'MAX_PIXELS'),
  ),
  WATERMARK_TOO_LARGE: tooLarge(
    (file: string, bytes: number, pixels: number) =>
      `${file} is too large: at most ${formatByteLimit(bytes)} and ${pixels / 1_000_000} megapixels allowed. These limits are fixed.`,
    () => [MAX_WATERMARK.bytes, MAX_WATERMARK.pixels],
    () => ({ field: 'watermark' }),
  ),
  INPUT_DIMENSION_TOO_LARGE: tooLarge(
    (file: string, side: number, max: number) =>
      `${file} is ${side} pixels wide or high, more than the maximum of ${max} pixels per side. This limit is fixed.`,
    () => [70_000, MAX_SIDE],
    exceeds,
  ),
  DRAWING_TOO_LARGE: tooLarge(
    (file: string, side: number | undefined, max: number) =>
      `${file} would be rendered ${side ?? 'too many'} pixels wide or high, more than the limit of ${max}: set a smaller width or height.`,
    () => [20_000, MAX_DIMENSION],
    exceeds,
  ),
  RESULT_TOO_LARGE: tooLarge(
    (file: string, width: number, height: number, max: number, side: number) =>
      `${file} would become ${width} × ${height} pixels. The limits are ${max} pixels in total (MAX_PIXELS) and ${side} per side: set a smaller width or height.`,
    ({ config }) => [16_000, 16_000, config.MAX_PIXELS, MAX_SIDE],
    (width, height, max, side) =>
      width * height > max
        ? exceeds(width * height, max, 'MAX_PIXELS')
        : exceeds(Math.max(width, height), side),
  ),
  RESULT_TOO_LARGE_IN_TOTAL: tooLarge(
    (file: string, frames: number, pixels: number, max: number) =>
      `${file} would become ${frames} frames or pages with ${pixels} pixels, more than the limit of ${max} in total (MAX_TOTAL_PIXELS): set a smaller width or height.`,
    ({ config }) => [100, 2 * config.MAX_TOTAL_PIXELS, config.MAX_TOTAL_PIXELS],
    (_frames, pixels, max) => exceeds(pixels, max, 'MAX_TOTAL_PIXELS'),
  ),
  VARIANTS_TOO_LARGE_IN_TOTAL: tooLarge(
    (file: string, variants: number, pixels: number, max: number) =>
      `${file} would become ${variants} variants with ${pixels} pixels, more than the limit of ${max} in total (MAX_TOTAL_PIXELS): set a smaller width or height, or send fewer variants.`,
    ({ config }) => [12, 2 * config.MAX_TOTAL_PIXELS, config.MAX_TOTAL_PIXELS],
    (_variants, pixels, max) => exceeds(pixels, max, 'MAX_TOTAL_PIXELS'),
  ),
  TOO_MANY_FRAMES: tooLarge(
    (file: string, frames: number, max: number, isFixed = false) =>
      `${file} has ${frames} frames or pages, more than the limit of ${max} ${isFixed ? 'in one command of the tools. This limit is fixed' : '(MAX_FRAMES)'}.`,
    ({ config }) => [2 * config.MAX_FRAMES, config.MAX_FRAMES],
    (frames, max, isFixed) => exceeds(frames, max, isFixed ? undefined : 'MAX_FRAMES'),
  ),
  TOO_MANY_TOTAL_PIXELS: tooLarge(
    (file: string, frames: number, pixels: number, max: number) =>
      `${file} has ${pixels} pixels in ${frames} frames or pages, more than the limit of ${max} in total (MAX_TOTAL_PIXELS).`,
    ({ config }) => [100, 2 * config.MAX_TOTAL_PIXELS, config.MAX_TOTAL_PIXELS],
    (_frames, pixels, max) => exceeds(pixels, max, 'MAX_TOTAL_PIXELS'),
  ),
  // A limit of the tools, for a file whose header does not show its real size.
  RESOURCE_LIMIT_EXCEEDED: fixedFile(
    413,
    (file) =>
      `${file} needs more memory or disk space than one conversion may use (see MAX_PIXELS and MAX_TOTAL_PIXELS).`,
  ),
  // Not 503: proxies and clients would repeat the request, with the same result.
  CONVERSION_TIMEOUT: tooLarge(
    (file: string, { ms, setting, work }: { ms: number; setting?: keyof Config; work?: string }) =>
      `${file} took longer to convert than the limit of ${seconds(ms / 1000)}${setting ? ` (${setting})` : ` for ${work}. This limit is fixed`}.`,
    ({ config }) => [{ ms: config.CONVERT_TIMEOUT_MS, setting: 'CONVERT_TIMEOUT_MS' as const }],
    ({ ms: limit, setting }) => ({ limit, setting }),
  ),
  UNSUPPORTED_TYPE: unsupported(
    (file: string, supported: string, disabled?: string, isArchive = false) =>
      `${describeUnsupported(file, supported)}${disabled ? `: ${describeDisabled('EXTRA_INPUTS', disabled)}` : ''}.${isArchive ? ' For the files of a ZIP archive, use POST /api/v1/batch.' : ''}`,
    ({ supported }) => [supported],
    (_supported, disabled) => ({ setting: disabled ? 'EXTRA_INPUTS' : undefined }),
  ),
  CONVERSION_UNSUPPORTED: unsupported(
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
    ...define('rate-limit', 429)(
      (limit: number, wait: number, _setting: keyof Config) =>
        `Too many requests: at most ${limit} per minute. Try again in ${seconds(wait)}.`,
      ({ config }) => [config.RATE_LIMIT_PER_MINUTE, 42, 'RATE_LIMIT_PER_MINUTE' as const],
      (limit, _wait, setting) => ({ limit, setting }),
    ),
    retryAfter: (_limit: number, wait: number) => wait,
  },
  HEADERS_TOO_LARGE: fixed(431, 'endpoint', 'The request headers are too large.'),
  INTERNAL: define('handler', 500)(
    (support: string, requestId: string) =>
      `An internal error occurred. If it persists, contact ${support} and quote request ${requestId}.`,
    ({ config, requestId }) => [config.SUPPORT_EMAIL, requestId],
  ),
  METHOD_UNKNOWN: define('connection', 501)(
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
