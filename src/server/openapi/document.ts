import { serviceError } from '../../errors.ts';
import { ALLOWED } from '../endpoint.ts';
import { errorBody } from '../error-handler.ts';
import { REQUEST_ID_PATTERN } from '../request-log.ts';
import type { ApiContext, Json } from './context.ts';
import { type Header, headers } from './headers.ts';
import { OPENAPI, OPERATIONS, type Operation } from './operations.ts';
import { responses } from './responses.ts';
import { schemas } from './schemas.ts';

/**
 * The API as an OpenAPI document, made from what the code itself goes by: the checks of the fields, the table of
 * errors, the table of formats and the settings.
 *
 * @param base where the paths begin
 */
export function createDocument(base: string, service: ApiContext): Json {
  return {
    openapi: OPENAPI,
    info: {
      title: 'imagemill',
      version: service.version,
      summary: 'Image conversion over HTTP: upload an image, get it back in another format.',
      description: introduction(base, service),
      contact: contact(service.config.SUPPORT_EMAIL),
    },
    servers: [{ url: base, description: 'This server.' }],
    // There are no accounts and no keys.
    security: [],
    tags: [
      { name: 'Converting', description: 'Images in, images out. Nothing is kept.' },
      { name: 'About the service', description: 'What it can do, and how it is.' },
    ],
    paths: Object.fromEntries(
      OPERATIONS.map((operation) => [
        operation.path,
        { [operation.method.toLowerCase()]: describe(operation, service) },
      ]),
    ),
    components: {
      parameters: { RequestId: REQUEST_ID },
      headers: Object.fromEntries(
        Object.entries(headers(service)).map(([key, { name: _, ...header }]: [string, Header]) => [
          key,
          header,
        ]),
      ),
      schemas: schemas(service),
    },
  };
}

/** What the document may call an address of e-mail has a dot in its domain; one of the machine itself has none. */
function contact(email: string): Json {
  return { name: 'Support', ...(/@.+\../.test(email) && { email }) };
}

function describe(operation: Operation, service: ApiContext): Json {
  const { operationId, tag, summary, description, form } = operation;
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    parameters: [{ $ref: '#/components/parameters/RequestId' }],
    ...(form && { requestBody: REQUEST_BODIES[form] }),
    responses: responses(operation, service),
  };
}

const REQUEST_ID = {
  name: 'X-Request-Id',
  in: 'header',
  description:
    'An id of your own for this request, which the answer and the log will have. When it is none of this pattern, a new one is made up.',
  schema: { type: 'string', pattern: REQUEST_ID_PATTERN.source },
};

const REQUEST_BODIES: Readonly<Record<'convert' | 'batch', Json>> = {
  convert: body('ConvertForm', { file: { contentType: 'image/*' } }),
  batch: body('BatchForm', { files: { contentType: 'image/*, application/zip' } }),
};

function body(schema: string, encoding: Json): Json {
  return {
    required: true,
    content: { 'multipart/form-data': { schema: { $ref: `#/components/schemas/${schema}` }, encoding } },
  };
}

/** What holds for all endpoints, in words. */
function introduction(base: string, { config }: ApiContext): string {
  const invalid = serviceError('FIELD_INVALID', 'quality', '200', 'a whole number from 1 to 100');
  const shape = JSON.stringify(errorBody(invalid.status, invalid.message), null, 2);
  const perMinute = config.RATE_LIMIT_PER_MINUTE;
  return [
    'There are no accounts and no keys. Forms are `multipart/form-data`; answers are a file or JSON.',
    '```sh\ncurl -F file=@photo.jpg -F output_format=webp ' +
      `http://localhost:3000${base}/convert -o photo.webp\n\`\`\``,
    `Every error has one shape, and its \`code\` is the HTTP status:\n\n\`\`\`json\n${shape}\n\`\`\``,
    `A path that is not listed here is answered with 404: “${serviceError('NOT_FOUND').message}” And what is not even a request with 400: “${serviceError('MALFORMED_REQUEST').message}” Paths have one spelling: case and a slash at the end count.`,
    `Where there is GET, there is HEAD. OPTIONS is answered with 204 and the methods of the path in \`Allow\`: \`${ALLOWED.GET}\` or \`${ALLOWED.POST}\`.`,
    perMinute > 0
      ? `One address (an IPv6 network of 64 bits is one) may send ${perMinute} requests a minute, in a window that starts with its first. Every answer below \`${base}\` says how many are left.`
      : 'There is no rate limit here.',
    `Outside of \`${base}\`, and never counted, are the probes \`/livez\`, which says that the process answers, and \`/readyz\`, which says with 200 or 503 whether it should be sent requests.`,
  ].join('\n\n');
}
