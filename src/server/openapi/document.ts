/** @module Creates the OpenAPI document from the field checks, the table of errors, the table of formats and the settings. */
import type { Config } from '../../config.ts';
import { serviceError } from '../../errors.ts';
import { errorBody } from '../error-handler.ts';
import { ALLOWED, REQUEST_ID_PATTERN } from '../middleware.ts';
import { RESULT_HEADERS } from '../result-headers.ts';
import { FILE, methodsOperation, OPENAPI_VERSION, OPERATIONS, type Operation } from './operations.ts';
import { hasApiKeys, hasClientIds, responses } from './responses.ts';
import { type ApiContext, type Json, queryParameters, schemas } from './schemas.ts';

/**
 * Creates the OpenAPI document.
 *
 * @param base prefix of all paths
 */
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
          [operation.method.toLowerCase()]: describe(operation, service),
          options: describe(methodsOperation(operation), service),
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

function describe(operation: Operation, service: ApiContext): Json {
  const { method, operationId, summary, description, form, isPublic = false } = operation;
  const named = !isPublic && hasClientIds(service.config);
  const isImage = form !== undefined && form !== 'batch';
  return {
    operationId,
    tags: [form ? 'Conversion' : method === 'OPTIONS' ? 'Methods' : 'Service'],
    summary,
    description,
    security: isPublic ? [] : undefined,
    parameters: [
      { $ref: '#/components/parameters/RequestId' },
      ...(named ? [{ $ref: '#/components/parameters/ClientId' }] : []),
      ...(operationId === 'convert' ? [{ $ref: '#/components/parameters/KnownKey' }] : []),
      ...(isImage ? queryParameters(service, form) : []),
    ],
    ...(form && {
      requestBody: {
        required: true,
        content: { 'multipart/form-data': FORMS[form], ...(isImage && imageBodies(service)) },
      },
    }),
    responses: responses(operation, service),
  };
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
  const invalid = serviceError('FIELD_INVALID', 'quality', '200', 'a whole number from 1 to 100');
  const shape = JSON.stringify(errorBody(invalid), null, 2);
  const perMinute = config.RATE_LIMIT_PER_MINUTE;
  return [
    `${authentication(config)} Request bodies are \`multipart/form-data\`, or the image itself with the options in the query; responses are a file or JSON.`,
    '```sh\ncurl -F file=@photo.jpg -F output_format=webp ' +
      `${exampleOrigin(config)}${base}/convert -o photo.webp\n\`\`\``,
    `All errors have this format. \`code\` is the HTTP status, \`reason\` names the error, and \`retryable\` tells whether the same request can succeed later:\n\n\`\`\`json\n${shape}\n\`\`\``,
    'If `Accept` prefers `application/problem+json`, errors are problem details (RFC 9457): `status` and `detail` take the place of `code` and `message`. Errors of requests that are not valid HTTP are always JSON.',
    `Other paths return 404: “${serviceError('NOT_FOUND').message}” Invalid HTTP returns 400: “${serviceError('MALFORMED_REQUEST').message}” Paths are case-sensitive and have no trailing slash.`,
    `Each path with GET also supports HEAD. OPTIONS returns 204 and the methods of the path in \`Allow\`: \`${ALLOWED.GET}\` or \`${ALLOWED.POST}\`.`,
    perMinute > 0
      ? `Each client can send ${perMinute} requests per minute, in a window that starts with its first request. A client is an IPv4 address or an IPv6 /64 network${hasApiKeys(config) ? ', or has an API key, which can have another limit' : ''}. The headers of every response below \`${base}\` contain the number of remaining requests.`
      : 'This server has no rate limit.',
    `The probes are outside of \`${base}\` and do not count toward the rate limit: \`/livez\` responds while the process runs; \`/readyz\` returns 200 if the service is ready for requests, otherwise 503.`,
  ].join('\n\n');
}
