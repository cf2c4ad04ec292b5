/** @module Creates the OpenAPI document from the field checks, the tables and the settings. */
import type { Config } from '../../tables/config.ts';
import {
  ERROR_CODES,
  ERRORS,
  type ErrorCode,
  type ErrorScope,
  type ExampleValues,
} from '../../tables/error-table.ts';
import { ServiceError, serviceError } from '../../tables/errors.ts';
import { listLabels } from '../../tables/formats.ts';
import { MIN_MEAN_CHUNK_BYTES } from '../http/http-server.ts';
import { formatAllow, REQUEST_ID_PATTERN } from '../middleware.ts';
import { MAX_FIELDS } from '../receive/multipart/normalizer.ts';
import { MIN_BYTES_PER_SECOND } from '../receive/upload.ts';
import { errorBody } from '../respond/error-handler.ts';
import { RESULT_HEADERS, type ResultHeader } from '../respond/result-headers.ts';
import {
  FILE,
  methodsOf,
  methodsOperation,
  OPENAPI_VERSION,
  OPERATIONS,
  type Operation,
} from './operations.ts';
import { type ApiContext, type Json, queryParameters, schemas } from './schemas.ts';

/** Creates the OpenAPI document. `base` is the prefix of all paths. */
export function createDocument(base: string, service: ApiContext): Json {
  return {
    openapi: OPENAPI_VERSION,
    info: {
      title: 'imagemill',
      version: service.version,
      summary: 'Image conversion over HTTP: upload an image, get it back in another format.',
      description: introduction(base, service),
      contact: contact(service.config.SUPPORT_EMAIL),
    },
    servers: [{ url: exampleOrigin(service.config) + base, description: 'This server.' }],
    security: security(service.config),
    tags: [
      { name: 'Conversion', description: 'Convert images. The server stores nothing.' },
      { name: 'Service', description: 'Formats, health and this reference.' },
      { name: 'Methods', description: 'The methods of each path.' },
    ],
    paths: Object.fromEntries(
      OPERATIONS.map((operation) => [
        operation.path,
        {
          [operation.method.toLowerCase()]: describe(operation, base, service),
          options: describe(methodsOperation(operation), base, service),
        },
      ]),
    ),
    components: {
      parameters: {
        RequestId: REQUEST_ID,
        KnownKey: KNOWN_KEY,
        ...(hasClientIds(service.config) && { ClientId: CLIENT_ID }),
      },
      ...(hasApiKeys(service.config) && { securitySchemes: { ApiKey: { type: 'http', scheme: 'bearer' } } }),
      headers: RESULT_HEADERS,
      schemas: schemas(service),
    },
  };
}

/** Returns the requirements, one of which a request must meet: nothing, or an API key. */
function security(config: Config): Json[] {
  if (!hasApiKeys(config)) return [];
  return config.REQUIRE_API_KEY === 'on' ? [{ ApiKey: [] }] : [{}, { ApiKey: [] }];
}

/** Stands for the address of the server, which each request states. */
export const exampleOrigin = ({ PORT }: Config): string => `http://localhost:${PORT}`;

/** Omits an address such as support@localhost: OpenAPI requires a domain with a dot. */
function contact(email: string): Json {
  return { name: 'Support', ...(/@.+\../.test(email) && { email }) };
}

function describe(operation: Operation, base: string, service: ApiContext): Json {
  const { method, operationId, summary, form, isPublic = false } = operation;
  const named = !isPublic && hasClientIds(service.config);
  const isImage = form !== undefined && form !== 'batch';
  return {
    operationId,
    tags: [form ? 'Conversion' : method === 'OPTIONS' ? 'Methods' : 'Service'],
    summary,
    description: withExample(operation, base, service),
    security: isPublic ? [] : undefined,
    parameters: [
      { $ref: '#/components/parameters/RequestId' },
      ...(named ? [{ $ref: '#/components/parameters/ClientId' }] : []),
      ...(operationId === 'convert' ? [{ $ref: '#/components/parameters/KnownKey' }] : []),
      ...(isImage ? queryParameters(service, form) : []),
    ],
    requestBody: form && {
      required: true,
      content: { 'multipart/form-data': FORMS[form], ...(isImage && imageBodies(service)) },
    },
    responses: responses(operation, service),
  };
}

/** Returns the description of an operation, after its example and the result. */
function withExample(
  { path, description, example }: Operation,
  base: string,
  { config }: ApiContext,
): string {
  if (!example) return description;
  const { command, result } = example;
  const call = `\`\`\`sh\ncurl ${exampleOrigin(config)}${base}${path} \\\n  ${command}\n\`\`\``;
  return [call, result, description].join('\n\n');
}

const REQUEST_ID = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'ID for this request, which the response and the log include. If it does not match the pattern, the server generates one.',
  schema: { type: 'string', pattern: REQUEST_ID_PATTERN.source },
};

const KNOWN_KEY = {
  name: 'If-None-Match',
  in: 'header',
  description:
    'Entity tags of results that the client has. If the result would have one of them, the response is 304, and no tool runs. The file is uploaded in any case.',
  schema: { type: 'string' },
  example: '"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
};

const CLIENT_ID = {
  name: 'X-Client-Id',
  in: 'header',
  description:
    'Any name for the client on whose behalf an application sends the request: 1 to 128 characters. Other clients have their own rate limit and share of the service. Ignored unless `TRUSTED_CLIENTS` has the address of the application.',
  schema: { type: 'string', maxLength: 128 },
};

/** Returns the bodies that are an image, not a form. */
const imageBodies = ({ inputs }: ApiContext): Json => ({
  'image/*': FILE,
  'application/octet-stream': FILE,
  ...(inputs.includes('pdf') && { 'application/pdf': FILE }),
});

const FORMS = {
  convert: {
    schema: { $ref: '#/components/schemas/ConvertForm' },
    encoding: { file: { contentType: 'image/*' } },
  },
  identify: {
    schema: { $ref: '#/components/schemas/IdentifyForm' },
    encoding: { file: { contentType: 'image/*' }, files: { contentType: 'image/*, application/zip' } },
  },
  batch: {
    schema: { $ref: '#/components/schemas/BatchForm' },
    encoding: { files: { contentType: 'image/*, application/zip' } },
  },
};

function authentication(config: Config): string {
  if (!hasApiKeys(config)) return 'The API needs no authentication.';
  const how = 'in the header `Authorization: Bearer KEY`';
  return config.REQUIRE_API_KEY === 'on'
    ? `Each request needs an API key ${how}.`
    : `A request can have an API key ${how}.`;
}

/** Returns the description of the document: what applies to all endpoints. */
function introduction(base: string, { config }: ApiContext): string {
  const invalid = serviceError('FIELD_INVALID', 'quality', '200', 'a whole number from 1 to 100, or auto');
  const shape = JSON.stringify(errorBody(invalid), null, 2);
  const perMinute = config.RATE_LIMIT_PER_MINUTE;
  return [
    `${authentication(config)} Request bodies are \`multipart/form-data\`, or the image itself with the options in the query; responses are a file or JSON.`,
    '```sh\ncurl -F file=@photo.jpg -F output_format=webp ' +
      `${exampleOrigin(config)}${base}/convert -o photo.webp\n\`\`\``,
    `All errors have this format. \`code\` is the HTTP status, \`reason\` names the error, and \`retryable\` tells whether the same request can succeed later:\n\n\`\`\`json\n${shape}\n\`\`\``,
    'If `Accept` prefers `application/problem+json`, errors are problem details (RFC 9457): `status` and `detail` take the place of `code` and `message`. Errors of requests that are not valid HTTP are always JSON.',
    `Other paths return 404: “${serviceError('NOT_FOUND').message}” Invalid HTTP returns 400: “${serviceError('MALFORMED_REQUEST').message}” Paths are case-sensitive and have no trailing slash.`,
    `Each path with GET also supports HEAD. \`/convert\` and \`/identify\` do the same for PUT as for POST. OPTIONS returns 204 and the methods of the path in \`Allow\`, such as \`${formatAllow(['GET'])}\`.`,
    perMinute > 0
      ? `Each client can send ${perMinute} requests per minute, in a window that starts with its first request. A client is an IPv4 address or an IPv6 /64 network${hasApiKeys(config) ? ', or has an API key, which can have another limit' : ''}. The headers of every response below \`${base}\` contain the number of remaining requests.`
      : 'This server has no rate limit.',
    `The probes are outside of \`${base}\` and do not count toward the rate limit: \`/livez\` responds while the process runs; \`/readyz\` returns 200 if the service is ready for requests, otherwise 503.`,
  ].join('\n\n');
}

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
const hasApiKeys = ({ API_KEYS_FILE }: Config): boolean => API_KEYS_FILE !== undefined;

/** Returns whether a request can name its client. */
const hasClientIds = ({ TRUSTED_CLIENTS }: Config): boolean => TRUSTED_CLIENTS.length > 0;

/** Returns the responses of an operation by status. */
function responses(operation: Operation, service: ApiContext): Record<string, Json> {
  const { success, operationId } = operation;
  const schema = { $ref: '#/components/schemas/Error' };
  const errors = [...errorExamples(operation, service)].map(([status, found]) => {
    const examples = Object.fromEntries(found.map(toExample));
    const content = { 'application/json': { schema, examples } };
    return [status, { description: STATUS_DESCRIPTIONS[status], content }];
  });
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

/** Returns an example of each error of an operation, by status. */
function errorExamples(operation: Operation, service: ApiContext): Map<number, ServiceError[]> {
  const isBatch = operation.form === 'batch' || operation.form === 'identify';
  const { config, inputs } = service;
  const values: ExampleValues = {
    config,
    file: isBatch ? 'File 2 ("photo.jpg")' : 'The file',
    part: isBatch ? 'files' : 'file',
    maxFiles: isBatch ? config.MAX_BATCH_FILES : 1,
    allowed: formatAllow(methodsOf(operation)),
    supported: listLabels(inputs),
    requestId: '3f2c1d9e-5b1a-4a59-9d35-0c5f0f6b7a21',
    maxFields: MAX_FIELDS,
    minChunkBytes: MIN_MEAN_CHUNK_BYTES,
    minBytesPerSecond: MIN_BYTES_PER_SECOND,
  };
  const codes = ERROR_CODES.filter((code) => CAN_RETURN[ERRORS[code].scope](operation, service));
  return Map.groupBy(
    codes.map((code) => exampleError(code, values)),
    ({ status }) => status,
  );
}

const exampleError = <C extends ErrorCode>(code: C, values: ExampleValues): ServiceError =>
  new ServiceError(code, ERRORS[code].example(values));

/** Returns an error as an example, which is named after its code. */
function toExample(error: ServiceError): [string, Json] {
  const name = error.code.toLowerCase().replaceAll('_', '-');
  return [name, { summary: name.replaceAll('-', ' '), value: errorBody(error) }];
}
