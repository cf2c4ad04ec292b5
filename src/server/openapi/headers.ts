/** @module Descriptions, schemas and examples of the response headers. */
import type { Config } from '../../config.ts';
import { NOTES } from '../../notes.ts';
import { BEARER } from '../clients.ts';
import { ALLOWED, EXPOSED_HEADERS, METHODS, RATE_LIMIT_HEADERS, REQUEST_ID_PATTERN } from '../middleware.ts';
import type { ApiContext, Json } from './schemas.ts';

export const EXAMPLE_ID = '3f2c1d9e-5b1a-4a59-9d35-0c5f0f6b7a21';

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
const optional = (given: Header): Header => ({ ...given, required: false });
const sometimes = (...args: Parameters<typeof matching>): Header => optional(matching(...args));

/** Headers by component name. Some headers have different values in different responses. */
const HEADERS = {
  RequestId: matching(
    'X-Request-Id',
    REQUEST_ID_PATTERN.source,
    'ID of the request: from the request if it is valid, otherwise generated. Quote it when you report an error.',
    EXAMPLE_ID,
  ),
  NoSniff: constant('X-Content-Type-Options', 'nosniff', 'Browsers use the declared media type only.'),
  ContentLength: optional(
    atLeast('Content-Length', 0, 'Size of the body in bytes. Absent from archives.', 48_210),
  ),
  NotStored: constant('Cache-Control', 'no-store', 'Caches do not store the response.'),
  Revalidated: constant('Cache-Control', 'no-cache', 'Caches revalidate the response before each use.'),
  FileName: sometimes(
    'Content-Disposition',
    '^attachment; filename=',
    'The sanitized name of the input, with the extension of the output format (RFC 6266).',
    'attachment; filename=photo.webp',
  ),
  ArchiveName: constant(
    'Content-Disposition',
    'attachment; filename=converted.zip',
    'File name of the archive.',
  ),
  ServerTiming: matching(
    'Server-Timing',
    '^upload;dur=\\d+\\.\\d, queue;dur=\\d+\\.\\d, prepare;dur=\\d+\\.\\d, convert;dur=\\d+\\.\\d$',
    'Time spent on the upload, in the queue, on the inspection and repair of the input, and on the conversion, in milliseconds.',
    'upload;dur=12.1, queue;dur=0.2, prepare;dur=0.6, convert;dur=85.4',
  ),
  Notes: sometimes(
    'X-Conversion-Notes',
    `^${anyNote}(?:, ${anyNote})*$`,
    notesDescription,
    'alpha-flattened',
  ),
  NotesOfMany: sometimes(
    'X-Conversion-Notes',
    `^${anyNote}(?:${indexes})?(?:, ${anyNote}(?:${indexes})?)*$`,
    `${notesDescription} Each token has the indexes of its files, from 0. The indexes are omitted if there are more than 100.`,
    'first-frame-only;files="0 3", alpha-flattened;files="1"',
  ),
  Quality: {
    ...optional(atLeast('X-Conversion-Quality', 1, qualityDescription, 62)),
    schema: { type: 'integer', minimum: 1, maximum: 100 },
  },
  QualityOfMany: sometimes(
    'X-Conversion-Quality',
    `^\\d+(?:${indexes})?(?:, \\d+(?:${indexes})?)*$`,
    `${qualityDescription} Each value has the indexes of its files, from 0, unless there are more than 100.`,
    '80;files="0 3", 62;files="1"',
  ),
  ImageWidth: optional(
    atLeast(
      'X-Image-Width',
      1,
      'Width of the result in pixels, or of the largest image of an icon. Absent for a PDF.',
      1200,
    ),
  ),
  ImageHeight: optional(
    atLeast(
      'X-Image-Height',
      1,
      'Height of the result in pixels, or of the largest image of an icon. Absent for a PDF.',
      800,
    ),
  ),
  Digest: sometimes(
    'Repr-Digest',
    '^sha-256=:[A-Za-z0-9+/]{43}=:$',
    'SHA-256 of the body (RFC 9530). Absent from archives.',
    'sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:',
  ),
  ConversionKey: sometimes(
    'X-Conversion-Key',
    '^[0-9a-f]{64}$',
    'SHA-256 of the digest of the source, the planned commands and the versions of the tools that run in them. Equal keys mean equal results, except the dates in a PDF. Absent from archives.',
    EXAMPLE_KEY,
  ),
  ETag: sometimes(
    'ETag',
    '^(?:W/)?"[0-9a-f]{64}"$',
    'The conversion key as an entity tag, for `If-None-Match`. Weak for a PDF, which contains the time of its conversion. Absent from archives.',
    `"${EXAMPLE_KEY}"`,
  ),
  Allow: constant('Allow', ALLOWED.GET, 'Methods of this path.'),
  AllowPost: constant('Allow', ALLOWED.POST, 'Methods of this path.'),
  Authenticate: matching('WWW-Authenticate', '^Bearer ', 'How to send the key (RFC 6750).', BEARER),
  AllowMethods: optional(
    constant('Access-Control-Allow-Methods', METHODS.join(','), 'Methods for pages of other origins.'),
  ),
  AllowHeaders: sometimes(
    'Access-Control-Allow-Headers',
    '',
    'The headers that the preflight request asks for.',
    'x-request-id',
  ),
  MaxAge: sometimes(
    'Access-Control-Max-Age',
    '^\\d+$',
    'Seconds for which browsers can store the response.',
    '86400',
  ),
  RetryAfter: atLeast('Retry-After', 1, 'Seconds to wait before a retry.', 42),
} as const satisfies Readonly<Record<string, Header>>;

const VARIES = '(?:Origin|Accept|Access-Control-Request-Headers)';

export const PREFLIGHT: readonly HeaderName[] = ['AllowMethods', 'AllowHeaders', 'MaxAge'];

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

/** Returns the headers that depend on the settings. Every response of the API has them, except to a request that is not valid HTTP. */
export function contextHeaders({ config }: ApiContext): Readonly<Record<string, Header>> {
  const { RATE_LIMIT_PER_MINUTE: perMinute, CORS_ORIGIN: origin } = config;
  const [limit, remaining, reset] = RATE_LIMIT_HEADERS;
  const allowed = 'Access-Control-Allow-Origin';
  return {
    ...((perMinute > 0 || hasApiKeys(config)) && {
      RateLimit: optional(
        atLeast(limit, 1, 'Maximum number of requests per client and minute.', perMinute || 60),
      ),
      RateRemaining: optional(atLeast(remaining, 0, 'Number of requests left in this window.', 59)),
      RateReset: optional(
        atLeast(reset, 0, 'Start of the next window, as a Unix time in seconds.', 1_795_000_000),
      ),
    }),
    ...(origin !== false && {
      AllowOrigin:
        origin === '*'
          ? optional(constant(allowed, '*', 'Pages of any origin can read the response.'))
          : {
              name: allowed,
              required: false,
              description: 'The origin of the request, if its pages can read the response.',
              schema: { type: 'string', enum: origin },
              example: origin[0] as string,
            },
      ExposeHeaders: optional(
        constant(
          'Access-Control-Expose-Headers',
          EXPOSED_HEADERS.join(','),
          'Headers that scripts of other origins can read.',
        ),
      ),
    }),
    Vary: {
      ...matching(
        'Vary',
        `^${VARIES}(?:, ${VARIES})*$`,
        'The headers of the request on which the response depends: `Accept` for `output_format=auto` and problem details, `Origin` if only pages of some origins can read the response, and `Access-Control-Request-Headers` for OPTIONS.',
        'Accept',
      ),
      required: Array.isArray(origin),
    },
  };
}
