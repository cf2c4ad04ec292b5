/**
 * @module JSON Schemas of requests and responses, which zod makes, and descriptions and examples of response headers. The schemas of
 * forms come from the checks of their fields.
 */
import { z } from 'zod';
import type { Config } from '../../config.ts';
import { formFields } from '../../conversion/forms.ts';
import type { Presets } from '../../conversion/presets.ts';
import { INPUTS, type InputType, MAX_DIMENSION, type OutputType } from '../../formats.ts';
import { NOTES } from '../../notes.ts';
import { formatByteLimit } from '../../text.ts';
import { BEARER } from '../clients.ts';
import { EXPOSED_HEADERS } from '../cors.ts';
import { ALLOWED } from '../endpoint.ts';
import { REQUEST_ID_PATTERN } from '../request-log.ts';
import { ERROR, HEALTH, imageDescription, REFERENCE } from './json-bodies.ts';

/** The service that the reference describes. */
export interface ApiContext {
  readonly version: string;
  /** Formats that this machine can read. */
  readonly inputs: readonly InputType[];
  /** Formats that this machine can write. */
  readonly outputs: readonly OutputType[];
  /** Named options of the operator. */
  readonly presets: Presets;
  readonly config: Config;
}

/** A part of the document. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns the schemas that operations refer to. */
export function schemas({ inputs, outputs, presets, config }: ApiContext): Record<string, Json> {
  const forms = formFields(outputs, presets);
  const limit = formatByteLimit(config.MAX_FILE_BYTES);
  const labels = inputs.map((type) => INPUTS[type].label).join(', ');
  const detected = 'The server detects the type from the content. File name and declared type are ignored.';
  const formats = z.object({
    input: z.array(z.enum(inputs.flatMap((type) => INPUTS[type].names))),
    output: z.array(z.enum(outputs)),
    limits: LIMITS,
    ...(presets.size > 0 && {
      presets: z.array(z.enum([...presets.keys()])).describe('Values of the field `preset`.'),
    }),
  });
  return {
    ConvertForm: formSchema(forms.convert, 'file', {
      ...BINARY,
      description: `The image, at most ${limit}: ${labels}. ${detected}`,
    }),
    BatchForm: formSchema(forms.batch, 'files', {
      type: 'array',
      minItems: 1,
      maxItems: config.MAX_BATCH_FILES,
      items: BINARY,
      description:
        `The images, at most ${config.MAX_BATCH_FILES}, each at most ${limit}: ${labels}; or ZIP archives of images. ` +
        `Files in an archive count like other files. ${detected} The field can also be named \`files[]\`, or \`files[0]\`, \`files[1]\` and so on.`,
    }),
    IdentifyForm: {
      type: 'object',
      properties: {
        file: {
          ...BINARY,
          description: `A single image, at most ${limit}, of any format that the server knows.`,
        },
        files: {
          ...{ type: 'array', minItems: 1, maxItems: config.MAX_BATCH_FILES, items: BINARY },
          description: 'Images or ZIP archives, as in `/batch`. The response is a list.',
        },
        ...fieldSchemas(forms.identify),
      },
    },
    ImageDescription: toSchema(imageDescription(outputs)),
    Identified: {
      anyOf: [
        { $ref: '#/components/schemas/ImageDescription' },
        {
          type: 'object',
          required: ['images'],
          properties: { images: { type: 'array', items: { $ref: '#/components/schemas/ImageDescription' } } },
        },
      ],
    },
    Formats: toSchema(formats.describe('Formats that this machine can read and write, and its limits.')),
    Health: toSchema(HEALTH),
    Reference: toSchema(REFERENCE),
    Error: toSchema(ERROR),
  };
}

const limit = (description: string) => z.int().positive().describe(description);

const LIMITS = z
  .object({
    max_file_bytes: limit('Maximum size of a file in bytes.'),
    max_pixels: limit('Maximum width × height of an image, and of a result.'),
    max_total_pixels: limit('Maximum number of pixels of all frames or pages of a file.'),
    max_frames: limit('Maximum number of frames or pages of a file.'),
    max_dimension: limit('Maximum width and height in pixels of an image, and of a result.'),
    max_batch_files: limit('Maximum number of files in a batch.'),
  })
  .describe('Limits of this server, which its operator sets.');

/** Returns the body of `GET /formats`. */
export function formatsBody({ inputs, outputs, presets, config }: Omit<ApiContext, 'version'>): Json {
  const limits: z.output<typeof LIMITS> = {
    max_file_bytes: config.MAX_FILE_BYTES,
    max_pixels: config.MAX_PIXELS,
    max_total_pixels: config.MAX_TOTAL_PIXELS,
    max_frames: config.MAX_FRAMES,
    max_dimension: MAX_DIMENSION,
    max_batch_files: config.MAX_BATCH_FILES,
  };
  return {
    input: inputs.flatMap((type) => INPUTS[type].names),
    output: outputs,
    limits,
    ...(presets.size > 0 && { presets: [...presets.keys()] }),
  };
}

/** OpenAPI 3.1 marks binary data by its media type, OpenAPI 3.0 by `format`, which many tools still require. */
export const BINARY = {
  type: 'string',
  format: 'binary',
  contentMediaType: 'application/octet-stream',
} as const;

function toSchema(check: z.ZodType): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(check);
  return schema;
}

/** Unlike the schema of an object, that of a form allows unknown fields. */
function formSchema(fields: z.ZodObject, part: string, file: Json): Json {
  return { type: 'object', required: [part], properties: { [part]: file, ...fieldSchemas(fields) } };
}

/** Returns the schemas of fields, with defaults in prose: generators make a field with a default required. */
function fieldSchemas(fields: z.ZodObject): Json {
  const { properties = {} } = z.toJSONSchema(fields);
  return Object.fromEntries(
    Object.entries(properties as Readonly<Record<string, Json>>).map(
      ([name, { default: value, ...schema }]) => [
        name,
        value === undefined
          ? schema
          : { ...schema, description: `${schema.description} Default: \`${value}\`.` },
      ],
    ),
  );
}

/** Request ID in examples. */
export const EXAMPLE_ID = '3f2c1d9e-5b1a-4a59-9d35-0c5f0f6b7a21';

/** Conversion key in examples. */
export const EXAMPLE_KEY = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

const anyNote = `(?:${Object.keys(NOTES).join('|')})`;
const notesDescription = `Differences between the input and the result, as a list of tokens. Absent if there are none. ${Object.entries(
  NOTES,
)
  .map(([note, { api }]) => `\`${note}\`: ${api}.`)
  .join(' ')}`;
const qualityDescription =
  'The quality that the result was encoded with, 1 to 100. Absent if the request has no `max_bytes`.';
const indexes = ';files="\\d+(?: \\d+)*"';

/** A response header. */
export interface Header {
  readonly name: string;
  /** Whether every response of its kind has the header. */
  readonly required: boolean;
  readonly description: string;
  readonly schema: Json;
  readonly example: string | number;
}

const header =
  <V extends string | number>(schemaOf: (value: V) => Json) =>
  (name: string, value: V, description: string, example: string | number = value): Header => ({
    name,
    required: true,
    description,
    schema: schemaOf(value),
    example,
  });
const constant = header((value: string) => ({ type: 'string', const: value }));
const matching = header((pattern: string) => ({ type: 'string', pattern }));
const atLeast = header((minimum: number) => ({ type: 'integer', minimum }));
const optional = (sometimes: Header): Header => ({ ...sometimes, required: false });

/** Headers by component name. Some headers have different values in different responses. */
const HEADERS = {
  RequestId: matching(
    'X-Request-Id',
    REQUEST_ID_PATTERN.source,
    'ID of the request: from the request if it is valid, otherwise generated. Quote it when you report an error.',
    EXAMPLE_ID,
  ),
  NoSniff: constant('X-Content-Type-Options', 'nosniff', 'Browsers use the declared media type only.'),
  ContentLength: atLeast('Content-Length', 0, 'Size of the body in bytes.', 48_210),
  NotStored: constant('Cache-Control', 'no-store', 'Caches do not store the response.'),
  Revalidated: constant('Cache-Control', 'no-cache', 'Caches revalidate the response before each use.'),
  FileName: optional(
    matching(
      'Content-Disposition',
      '^attachment; filename=',
      'The sanitized name of the input, with the extension of the output format (RFC 6266). Absent from `multipart/mixed`.',
      'attachment; filename=photo.webp',
    ),
  ),
  ArchiveName: optional(
    constant(
      'Content-Disposition',
      'attachment; filename=converted.zip',
      'File name of the archive. Absent from `multipart/mixed`.',
    ),
  ),
  ServerTiming: matching(
    'Server-Timing',
    '^upload;dur=\\d+\\.\\d, queue;dur=\\d+\\.\\d, prepare;dur=\\d+\\.\\d, convert;dur=\\d+\\.\\d$',
    'Time spent on the upload, in the queue, on the inspection and repair of the input, and on the conversion, in milliseconds.',
    'upload;dur=12.1, queue;dur=0.2, prepare;dur=0.6, convert;dur=85.4',
  ),
  Notes: optional(
    matching('X-Conversion-Notes', `^${anyNote}(?:, ${anyNote})*$`, notesDescription, 'alpha-flattened'),
  ),
  NotesOfMany: optional(
    matching(
      'X-Conversion-Notes',
      `^${anyNote}(?:${indexes})?(?:, ${anyNote}(?:${indexes})?)*$`,
      `${notesDescription} Each token has the indexes of its files, from 0. The indexes are omitted if there are more than 100.`,
      'first-frame-only;files="0 3", alpha-flattened;files="1"',
    ),
  ),
  Quality: {
    ...optional(atLeast('X-Conversion-Quality', 1, qualityDescription, 62)),
    schema: { type: 'integer', minimum: 1, maximum: 100 },
  },
  QualityOfMany: optional(
    matching(
      'X-Conversion-Quality',
      `^\\d+(?:${indexes})?(?:, \\d+(?:${indexes})?)*$`,
      `${qualityDescription} Each value has the indexes of its files, from 0, unless there are more than 100.`,
      '80;files="0 3", 62;files="1"',
    ),
  ),
  ImageWidth: optional(atLeast('X-Image-Width', 1, 'Width of the result in pixels. Absent for a PDF.', 1200)),
  ImageHeight: optional(
    atLeast('X-Image-Height', 1, 'Height of the result in pixels. Absent for a PDF.', 800),
  ),
  Digest: optional(
    matching(
      'Repr-Digest',
      '^sha-256=:[A-Za-z0-9+/]{43}=:$',
      'SHA-256 of the body (RFC 9530). Absent from archives.',
      'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
    ),
  ),
  ConversionKey: optional(
    matching(
      'X-Conversion-Key',
      '^[0-9a-f]{64}$',
      'SHA-256 of the digest of the source, the planned commands and the versions of the tools that run in them. Equal keys mean equal results, except the dates in a PDF. Absent from archives.',
      EXAMPLE_KEY,
    ),
  ),
  ETag: optional(
    matching(
      'ETag',
      '^(?:W/)?"[0-9a-f]{64}"$',
      'The conversion key as an entity tag, for `If-None-Match`. Weak for a PDF, which contains the time of its conversion. Absent from archives.',
      `"${EXAMPLE_KEY}"`,
    ),
  ),
  Allow: constant('Allow', ALLOWED.GET, 'Methods of this path.'),
  AllowPost: constant('Allow', ALLOWED.POST, 'Methods of this path.'),
  Authenticate: matching('WWW-Authenticate', '^Bearer ', 'How to send the key (RFC 6750).', BEARER),
  RetryAfter: atLeast('Retry-After', 1, 'Seconds to wait before a retry.', 42),
} as const satisfies Readonly<Record<string, Header>>;

/** Component name of a response header that does not depend on the settings. */
export type HeaderName = keyof typeof HEADERS;

/** Returns whether a request can have an API key. */
export const hasApiKeys = ({ API_KEYS_FILE }: Config): boolean => API_KEYS_FILE !== undefined;

/** Returns whether a request can name its client. */
export const hasClientIds = ({ TRUSTED_CLIENTS }: Config): boolean => TRUSTED_CLIENTS.length > 0;

/** Returns all response headers by component name. */
export function headers(service: ApiContext): Readonly<Record<string, Header>> {
  const { Authenticate, ...always } = HEADERS;
  return { ...always, ...(hasApiKeys(service.config) && { Authenticate }), ...contextHeaders(service) };
}

/** Returns the headers that depend on the settings. Every response of the API has them. */
export function contextHeaders({ config }: ApiContext): Readonly<Record<string, Header>> {
  const { RATE_LIMIT_PER_MINUTE: perMinute, CORS_ORIGIN: origin } = config;
  const counted = hasApiKeys(config) ? optional : (always: Header) => always; // a key can have no limit
  const limit = 'Maximum number of requests per client and minute.';
  const window = 'Start of the next window, as a Unix time in seconds.';
  const allowed = 'Access-Control-Allow-Origin';
  return {
    ...((perMinute > 0 || hasApiKeys(config)) && {
      RateLimit: counted(atLeast('X-RateLimit-Limit', 1, limit, perMinute || 60)),
      RateRemaining: counted(
        atLeast('X-RateLimit-Remaining', 0, 'Number of requests left in this window.', 59),
      ),
      RateReset: counted(atLeast('X-RateLimit-Reset', 0, window, 1_795_000_000)),
    }),
    ...(origin !== false && {
      AllowOrigin:
        origin === '*'
          ? constant(allowed, '*', 'Pages of any origin can read the response.')
          : {
              name: allowed,
              required: false,
              description: 'The origin of the request, if its pages can read the response.',
              schema: { type: 'string', enum: origin },
              example: origin[0] as string,
            },
      ExposeHeaders: constant(
        'Access-Control-Expose-Headers',
        EXPOSED_HEADERS.join(','),
        'Headers that scripts of other origins can read.',
      ),
    }),
    Vary: {
      ...matching(
        'Vary',
        '^(?:Origin|Accept)(?:, (?:Origin|Accept))*$',
        'The headers of the request on which the response depends: `Accept` for `output_format=auto` and for problem details, and `Origin` if only pages of some origins can read the response.',
        'Accept',
      ),
      required: Array.isArray(origin),
    },
  };
}
