/** @module The responses of each operation, with an example of every error. */
import type { ErrorScope, ExampleValues } from '../../error-row.ts';
import { ERROR_CODES, ERRORS, type ErrorCode } from '../../error-table.ts';
import { ServiceError } from '../../errors.ts';
import { listLabels } from '../../formats.ts';
import { errorBody } from '../error-handler.ts';
import { MIN_MEAN_CHUNK_BYTES } from '../http-server.ts';
import { ALLOWED } from '../middleware.ts';
import { MAX_FIELDS } from '../multipart/normalizer.ts';
import { MIN_BYTES_PER_SECOND } from '../upload.ts';
import {
  contextHeaders,
  EXAMPLE_ID,
  type Header,
  type HeaderName,
  hasApiKeys,
  hasClientIds,
  headers,
  PREFLIGHT,
} from './headers.ts';
import type { Operation } from './operations.ts';
import type { ApiContext, Json } from './schemas.ts';

const STATUS_DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'The request is malformed, a field is missing or invalid, there are too many files, an image or archive is damaged or has an unsupported encoding, the image is too large for the output format, or `max_bytes` cannot be reached.',
  401: 'The API key is missing or wrong.',
  405: 'The path does not support the method.',
  406: '`Accept` permits no format for `output_format=auto`.',
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
      [
        ...COMMON,
        ...names,
        ...(method === 'OPTIONS' ? PREFLIGHT : []),
        ...Object.keys(contextHeaders(service)),
      ].map((name) => [(all[name] as Header).name, { $ref: `#/components/headers/${name}` }]),
    );
  const special: Readonly<Record<number, readonly HeaderName[]>> = {
    401: ['Authenticate'],
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
    [success.content ? 200 : 204]: {
      description: success.description,
      headers: refer(...success.headers),
      ...(success.content && { content: success.content(service) }),
    },
    ...(operation.operationId === 'convert' && {
      304: {
        description: 'The result has the key that `If-None-Match` lists. No tool was run.',
        headers: refer('NotStored', 'ConversionKey', 'ETag'),
      },
    }),
    ...Object.fromEntries(errors),
  };
}

const COMMON: readonly HeaderName[] = ['RequestId', 'NoSniff'];

const CAN_RETURN: Readonly<Record<ErrorScope, (operation: Operation, service: ApiContext) => boolean>> = {
  connection: () => false,
  endpoint: () => true,
  handler: ({ method }) => method !== 'OPTIONS',
  'rate-limit': (_operation, { config }) => config.RATE_LIMIT_PER_MINUTE > 0 || hasApiKeys(config),
  'api-key': ({ isPublic }, { config }) => hasApiKeys(config) && !isPublic,
  'client-id': ({ isPublic }, { config }) => hasClientIds(config) && !isPublic,
  upload: ({ form }) => form !== undefined,
  archive: ({ form }) => form === 'batch' || form === 'identify',
  file: ({ form }) => form !== undefined,
};

/** Returns the examples of an operation's errors, by status. Each example is named after its error code. */
function errorExamples(operation: Operation, service: ApiContext): Map<number, Record<string, Json>> {
  const isBatch = operation.form === 'batch' || operation.form === 'identify';
  const { config, inputs } = service;
  const values: ExampleValues = {
    config,
    file: isBatch ? 'File 2 ("photo.jpg")' : 'The file',
    part: isBatch ? 'files' : 'file',
    maxFiles: isBatch ? config.MAX_BATCH_FILES : 1,
    allowed: ALLOWED[operation.method === 'POST' ? 'POST' : 'GET'],
    supported: listLabels(inputs),
    requestId: EXAMPLE_ID,
    maxFields: MAX_FIELDS,
    minChunkBytes: MIN_MEAN_CHUNK_BYTES,
    minBytesPerSecond: MIN_BYTES_PER_SECOND,
  };
  const examples = new Map<number, Record<string, Json>>();
  for (const code of ERROR_CODES) {
    if (!CAN_RETURN[ERRORS[code].scope](operation, service)) continue;
    const error = exampleError(code, values);
    const name = code.toLowerCase().replaceAll('_', '-');
    const { status } = error;
    const value = errorBody(error);
    examples.set(status, { ...examples.get(status), [name]: { summary: name.replaceAll('-', ' '), value } });
  }
  return examples;
}

const exampleError = <C extends ErrorCode>(code: C, values: ExampleValues): ServiceError =>
  new ServiceError(code, ERRORS[code].example(values));
