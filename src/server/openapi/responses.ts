import { MAX_DIMENSION } from '../../conversion/limits.ts';
import { type ErrorCode, type MessageArgs as ErrorFacts, serviceError } from '../../errors.ts';
import { INPUTS, OUTPUTS } from '../../formats.ts';
import { ALLOWED } from '../endpoint.ts';
import { errorBody } from '../error-handler.ts';
import { MAX_FIELDS, MIN_BYTES_PER_SECOND } from '../upload.ts';
import { type ApiContext, EXAMPLE_ID, type Json } from './context.ts';
import { contextHeaders, type Header, type HeaderName, headers } from './headers.ts';
import type { Operation } from './operations.ts';

/** What an operation may answer, by status. */

const WHEN: Readonly<Record<number, string>> = {
  400: 'The request is malformed, a field is missing or invalid, there are too many files, an image or archive is damaged or of a kind that cannot be read, or the output cannot hold it.',
  405: 'The path has another method than the one that was used.',
  408: 'The request took longer to send than it may, or came too slowly.',
  413: 'A file is too large; or a picture has more pixels, frames or pages, or takes more time, than the limits allow. The message names the limit and its setting.',
  415: 'A file is of no supported type, or the body has a `Content-Encoding`.',
  429: 'There were too many requests from this address.',
  431: 'The headers of the request are too large.',
  500: 'Something unexpected. The message says whom to write to and which request to quote.',
  501: 'The body has a transfer coding that is not supported.',
  503: 'The service cannot do it now: it is busy, out of room, without its tools, or shutting down.',
};

/** Where the head of the request may be what is wrong, or late: nobody knows then what it asks for, and from where. */
const HEADLESS: readonly number[] = [408, 431];

/** The responses of an operation. */
export function responses(operation: Operation, service: ApiContext): Record<string, Json> {
  const { success, method, form } = operation;
  const context = Object.keys(contextHeaders(service));
  const all = headers(service);
  const refer = (names: readonly string[]): Json =>
    Object.fromEntries(
      names.map((name) => [(all[name] as Header).name, { $ref: `#/components/headers/${name}` }]),
    );
  const perhaps = (names: readonly string[]): Json =>
    Object.fromEntries(
      names.map((name) => {
        const { name: header, ...rest } = all[name] as Header;
        return [header, { ...rest, required: false }];
      }),
    );
  const special: Readonly<Record<number, HeaderName>> = {
    405: method === 'GET' ? 'Allow' : 'AllowPost',
    429: 'RetryAfter',
    503: 'RetryAfter',
  };

  const ofErrors = [...errorExamples(operation, service)].map(([status, examples]): [string, Json] => [
    String(status),
    {
      description: WHEN[status],
      headers: {
        ...refer([...COMMON, 'ContentLength']),
        ...(special[status] && refer([special[status]])),
        ...(HEADLESS.includes(status) ? form && perhaps(context) : refer(context)),
      },
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
    },
  ]);
  return {
    200: {
      description: success.description,
      headers: refer([...COMMON, ...success.headers, ...context]),
      content: success.content(service),
    },
    ...Object.fromEntries(ofErrors),
  };
}

const COMMON: readonly HeaderName[] = ['RequestId', 'NoSniff'];

/** An example of every error, in the very sentence that is sent: a row of `errors.ts` without one does not compile. */

/** Where an error can be met: what never becomes a request of any operation is left to the introduction. */
const SCOPES = {
  nowhere: () => false,
  everywhere: () => true,
  limited: (_operation: Operation, { config }: ApiContext) => config.RATE_LIMIT_PER_MINUTE > 0,
  uploads: ({ form }: Operation) => form !== undefined,
  batch: ({ form }: Operation) => form === 'batch',
} as const;

type Examples = {
  readonly [C in ErrorCode]: readonly [
    scope: keyof typeof SCOPES,
    facts: (about: {
      operation: Operation;
      service: ApiContext;
      file: string;
      part: string;
    }) => ErrorFacts<C>,
  ];
};

const EXAMPLES: Examples = {
  MALFORMED_REQUEST: ['nowhere', () => []],
  HOST_INVALID: ['nowhere', () => []],
  METHOD_UNKNOWN: ['nowhere', () => ['FOO']],
  NOT_FOUND: ['nowhere', () => []],
  NOT_MULTIPART: ['uploads', () => []],
  MALFORMED_MULTIPART: ['uploads', () => []],
  INCOMPLETE_BODY: ['uploads', () => []],
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
  UNSUPPORTED_ENCODING: ['uploads', ({ file }) => [file, 'a lossless, hierarchical or 12-bit JPEG']],
  OUTPUT_DIMENSION_TOO_LARGE: [
    'uploads',
    ({ file }) => [file, OUTPUTS.webp.label, OUTPUTS.webp.maxDimension as number],
  ],
  BYTES_UNREACHABLE: ['uploads', ({ file }) => [file, 5000, 8211, 10]],
  METHOD_NOT_ALLOWED: ['everywhere', ({ operation }) => ['PUT', ALLOWED[operation.method]]],
  REQUEST_TIMEOUT: ['everywhere', () => []],
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
  HEADERS_TOO_LARGE: ['everywhere', () => []],
  INTERNAL: ['everywhere', ({ service }) => [service.config.SUPPORT_EMAIL, EXAMPLE_ID]],
  TRANSFER_CODING: ['uploads', () => []],
  TOO_MANY_CONNECTIONS: ['everywhere', () => []],
  QUEUE_FULL: ['uploads', () => []],
  OVERLOADED: ['uploads', () => []],
  CONVERTER_UNAVAILABLE: ['uploads', () => []],
  SHUTTING_DOWN: ['everywhere', () => []],
  DISK_FULL: ['uploads', () => []],
  CONVERSION_TIMEOUT: [
    'uploads',
    ({ file, service }) => [file, { ms: service.config.CONVERT_TIMEOUT_MS, setting: 'CONVERT_TIMEOUT_MS' }],
  ],
};

/** The errors of an operation by status, each as the example of an answer, named by its code in words. */
function errorExamples(operation: Operation, service: ApiContext): Map<number, Record<string, Json>> {
  const about = {
    operation,
    service,
    file: operation.form === 'batch' ? 'File 2 ("photo.jpg")' : 'The file',
    part: operation.form === 'batch' ? 'files' : 'file',
  };
  const found = new Map<number, Record<string, Json>>();
  for (const code of Object.keys(EXAMPLES) as ErrorCode[]) {
    const [scope, factsOf] = EXAMPLES[code] as Examples['NO_FILE'];
    if (!SCOPES[scope](operation, service)) continue;
    const { status, message } = serviceError(code as 'NO_FILE', ...factsOf(about));
    const name = code.toLowerCase().replaceAll('_', '-');
    const value = errorBody(status, message);
    found.set(status, { ...found.get(status), [name]: { summary: name.replaceAll('-', ' '), value } });
  }
  return found;
}
