/** @module The responses of each operation, with an example of every error. */
import type { Config } from '../../config.ts';
import type { ErrorScope, ExampleValues } from '../../error-row.ts';
import { ERROR_CODES, ERRORS, type ErrorCode } from '../../error-table.ts';
import { ServiceError } from '../../errors.ts';
import { listLabels } from '../../formats.ts';
import { errorBody } from '../error-handler.ts';
import { MIN_MEAN_CHUNK_BYTES } from '../http-server.ts';
import { ALLOWED } from '../middleware.ts';
import { MAX_FIELDS } from '../multipart/normalizer.ts';
import type { ResultHeader } from '../result-headers.ts';
import { MIN_BYTES_PER_SECOND } from '../upload.ts';
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

/** Returns whether a request can have an API key. */
export const hasApiKeys = ({ API_KEYS_FILE }: Config): boolean => API_KEYS_FILE !== undefined;

/** Returns whether a request can name its client. */
export const hasClientIds = ({ TRUSTED_CLIENTS }: Config): boolean => TRUSTED_CLIENTS.length > 0;

/** Returns the responses of an operation by status. */
export function responses(operation: Operation, service: ApiContext): Record<string, Json> {
  const { success, operationId } = operation;
  const errors = [...errorExamples(operation, service)].map(([status, examples]) => [
    status,
    {
      description: STATUS_DESCRIPTIONS[status],
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples } },
    },
  ]);
  return {
    [success.content ? 200 : 204]: {
      description: success.description,
      headers: success.headers && refer(success.headers),
      content: success.content?.(service),
    },
    ...(operationId === 'convert' && {
      304: {
        description: 'The result has the key that `If-None-Match` lists. No tool was run.',
        headers: refer(['ETag', 'X-Conversion-Key']),
      },
    }),
    ...Object.fromEntries(errors),
  };
}

const refer = (names: readonly ResultHeader[]): Json =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

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
    requestId: '3f2c1d9e-5b1a-4a59-9d35-0c5f0f6b7a21',
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
