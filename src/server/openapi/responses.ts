/** @module The responses of each operation, with an example of every error. */
import { type ErrorCode, type MessageArgs, serviceError } from '../../errors.ts';
import { INPUTS, MAX_DIMENSION, OUTPUTS } from '../../formats.ts';
import { ALLOWED } from '../endpoint.ts';
import { errorBody } from '../error-handler.ts';
import { MIN_MEAN_CHUNK_BYTES } from '../message-framing.ts';
import { MAX_FIELDS } from '../multipart/normalizer.ts';
import { MIN_BYTES_PER_SECOND } from '../upload.ts';
import { contextHeaders, EXAMPLE_ID, type Header, type HeaderName, headers } from './headers.ts';
import type { Operation } from './operations.ts';
import type { ApiContext, Json } from './schemas.ts';

/** Descriptions of the error statuses. */
const STATUS_DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'The request is malformed, a field is missing or invalid, there are too many files, an image or archive is damaged or has an unsupported encoding, the image is too large for the output format, or `max_bytes` cannot be reached.',
  405: 'The path does not support the method.',
  408: 'The client sent the request too slowly.',
  413: 'A file is too large, or an image exceeds a limit on pixels, frames, pages, time, memory or disk space. The message names the limit and its setting.',
  415: 'The type of a file is not supported, this machine cannot convert it to the requested format, or the body has a `Content-Encoding`.',
  429: 'The client exceeded the rate limit.',
  431: 'The request headers are too large.',
  500: 'An unexpected error. The message contains the support address and the request ID.',
  501: 'The transfer coding of the body is not supported.',
  503: 'The service is overloaded, out of disk space, unable to start its tools, or shutting down.',
};

/** Returns the responses of an operation by status. */
export function responses(operation: Operation, service: ApiContext): Record<string, Json> {
  const { success, method } = operation;
  const all = headers(service);
  const refer = (...names: string[]): Json =>
    Object.fromEntries(
      [...COMMON, ...names, ...Object.keys(contextHeaders(service))].map((name) => [
        (all[name] as Header).name,
        { $ref: `#/components/headers/${name}` },
      ]),
    );
  const special: Readonly<Record<number, readonly HeaderName[]>> = {
    405: [method === 'GET' ? 'Allow' : 'AllowPost'],
    429: ['RetryAfter'],
    503: ['RetryAfter'],
  };
  const errors = [...errorExamples(operation, service)].map(([status, examples]) => [
    status,
    {
      description: STATUS_DESCRIPTIONS[status],
      headers: refer('ContentLength', ...(special[status] ?? [])),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
    },
  ]);
  return {
    200: {
      description: success.description,
      headers: refer(...success.headers),
      content: success.content(service),
    },
    ...Object.fromEntries(errors),
  };
}

/** Headers of every response. */
const COMMON: readonly HeaderName[] = ['RequestId', 'NoSniff'];

/** Operations that can return an error. `never`: the request does not reach an operation. */
const SCOPES = {
  never: () => false,
  always: () => true,
  limited: (_operation: Operation, { config }: ApiContext) => config.RATE_LIMIT_PER_MINUTE > 0,
  uploads: ({ form }: Operation) => form !== undefined,
  batch: ({ form }: Operation) => form === 'batch',
} as const;

type Examples = {
  readonly [C in ErrorCode]: readonly [
    scope: keyof typeof SCOPES,
    args: (context: {
      operation: Operation;
      service: ApiContext;
      file: string;
      part: string;
    }) => MessageArgs<C>,
  ];
};

/** Message arguments for an example of each error. The type requires an example for every code. */
const EXAMPLES: Examples = {
  MALFORMED_REQUEST: ['never', () => []],
  HOST_INVALID: ['never', () => []],
  METHOD_UNKNOWN: ['never', () => ['FOO']],
  NOT_FOUND: ['never', () => []],
  PRECONDITION_FAILED: ['never', () => []],
  RANGE_NOT_SATISFIABLE: ['never', () => []],
  NOT_MULTIPART: ['uploads', () => []],
  MALFORMED_MULTIPART: ['uploads', () => []],
  INCOMPLETE_BODY: ['uploads', () => []],
  CHUNKS_TOO_SMALL: ['uploads', () => [MIN_MEAN_CHUNK_BYTES]],
  NO_FILE: ['uploads', ({ part }) => [part]],
  FILE_SENT_AS_TEXT: ['uploads', ({ part }) => [part]],
  EMPTY_FILE: ['uploads', ({ file }) => [file]],
  UNEXPECTED_FILE_FIELD: ['uploads', ({ part }) => ['"image"', part]],
  TOO_MANY_FILES: [
    'uploads',
    ({ operation, service }) => [operation.form === 'batch' ? service.config.MAX_BATCH_FILES : 1],
  ],
  TOO_MANY_FIELDS: ['uploads', () => [MAX_FIELDS]],
  FIELD_IN_QUERY: ['uploads', () => ['quality']],
  FIELD_REPEATED: ['uploads', () => ['quality']],
  FIELD_INVALID: ['uploads', () => ['quality', '200', 'a whole number from 1 to 100']],
  CONFLICTING_FORMATS: ['uploads', () => ['png', 'gif']],
  BAD_ARCHIVE: ['batch', ({ file }) => [file, 'contains another archive']],
  CORRUPT_IMAGE: ['uploads', ({ file }) => [file, INPUTS.jpg.label]],
  UNSUPPORTED_ENCODING: ['uploads', ({ file }) => [file, 'lossless, hierarchical or 12-bit JPEG']],
  OUTPUT_DIMENSION_TOO_LARGE: [
    'uploads',
    ({ file }) => [file, OUTPUTS.webp.label, OUTPUTS.webp.maxDimension as number],
  ],
  BYTES_UNREACHABLE: ['uploads', ({ file }) => [file, 5000, 8211, 10]],
  METHOD_NOT_ALLOWED: ['always', ({ operation }) => ['PUT', ALLOWED[operation.method]]],
  REQUEST_TIMEOUT: ['always', () => []],
  UPLOAD_TIMEOUT: ['uploads', ({ service }) => [service.config.UPLOAD_TIMEOUT_MS]],
  UPLOAD_TOO_SLOW: ['uploads', () => [MIN_BYTES_PER_SECOND]],
  FILE_TOO_LARGE: ['uploads', ({ file, service }) => [file, service.config.MAX_FILE_BYTES]],
  TOO_MANY_PIXELS: ['uploads', ({ file, service }) => [file, 16_000, 16_000, service.config.MAX_PIXELS]],
  INPUT_DIMENSION_TOO_LARGE: ['uploads', ({ file }) => [file, 20_000, MAX_DIMENSION]],
  DRAWING_TOO_LARGE: ['uploads', ({ file }) => [file, 20_000, MAX_DIMENSION]],
  RESULT_TOO_LARGE: [
    'uploads',
    ({ file, service }) => [file, 16_000, 16_000, service.config.MAX_PIXELS, MAX_DIMENSION],
  ],
  RESULT_TOO_LARGE_IN_TOTAL: [
    'uploads',
    ({ file, service }) => [file, 100, 2 * service.config.MAX_TOTAL_PIXELS, service.config.MAX_TOTAL_PIXELS],
  ],
  TOO_MANY_FRAMES: [
    'uploads',
    ({ file, service }) => [file, 2 * service.config.MAX_FRAMES, service.config.MAX_FRAMES],
  ],
  TOO_MANY_TOTAL_PIXELS: [
    'uploads',
    ({ file, service }) => [file, 100, 2 * service.config.MAX_TOTAL_PIXELS, service.config.MAX_TOTAL_PIXELS],
  ],
  RESOURCE_LIMIT_EXCEEDED: ['uploads', ({ file }) => [file]],
  UNSUPPORTED_TYPE: [
    'uploads',
    ({ file, service }) => [file, service.inputs.map((type) => INPUTS[type].label).join(', ')],
  ],
  CONVERSION_UNSUPPORTED: ['uploads', ({ file }) => [file, INPUTS.gif.label, OUTPUTS.webp.label]],
  UNSUPPORTED_CONTENT_ENCODING: ['uploads', () => []],
  RATE_LIMITED: ['limited', ({ service }) => [service.config.RATE_LIMIT_PER_MINUTE, 42]],
  HEADERS_TOO_LARGE: ['always', () => []],
  INTERNAL: ['always', ({ service }) => [service.config.SUPPORT_EMAIL, EXAMPLE_ID]],
  TRANSFER_CODING: ['uploads', () => []],
  TOO_MANY_CONNECTIONS: ['always', () => []],
  QUEUE_FULL: ['uploads', () => []],
  OVERLOADED: ['uploads', () => []],
  CONVERTER_UNAVAILABLE: ['uploads', () => []],
  SHUTTING_DOWN: ['always', () => []],
  DISK_FULL: ['uploads', () => []],
  CONVERSION_TIMEOUT: [
    'uploads',
    ({ file, service }) => [file, { ms: service.config.CONVERT_TIMEOUT_MS, setting: 'CONVERT_TIMEOUT_MS' }],
  ],
};

/** Returns the examples of an operation's errors, by status. Each example is named after its error code. */
function errorExamples(operation: Operation, service: ApiContext): Map<number, Record<string, Json>> {
  const context = {
    operation,
    service,
    file: operation.form === 'batch' ? 'File 2 ("photo.jpg")' : 'The file',
    part: operation.form === 'batch' ? 'files' : 'file',
  };
  const examples = new Map<number, Record<string, Json>>();
  for (const code of Object.keys(EXAMPLES) as ErrorCode[]) {
    const [scope, argsOf] = EXAMPLES[code] as Examples['NO_FILE'];
    if (!SCOPES[scope](operation, service)) continue;
    const { status, message } = serviceError(code as 'NO_FILE', ...argsOf(context));
    const name = code.toLowerCase().replaceAll('_', '-');
    const value = errorBody(status, message);
    examples.set(status, { ...examples.get(status), [name]: { summary: name.replaceAll('-', ' '), value } });
  }
  return examples;
}
