/** @module Response headers: descriptions, schemas and examples. */
import type { Note } from '../../conversion/plan/types.ts';
import { EXPOSED_HEADERS } from '../cors.ts';
import { ALLOWED } from '../endpoint.ts';
import { REQUEST_ID_PATTERN } from '../request-log.ts';
import { type ApiContext, EXAMPLE_ID, type Json } from './context.ts';

/** Descriptions of the conversion notes. */
const NOTES: Readonly<Record<Note, string>> = {
  'first-frame-only': 'only the first frame of an animation was converted',
  'first-page-only': 'only the first page of a TIFF was converted',
  'alpha-flattened': 'transparency was replaced by the background',
  'colour-converted-to-srgb':
    'colours were converted to sRGB, for example from Display P3, Adobe RGB, CMYK or Lab',
  'truncated-input': 'the file is truncated or damaged, and the result shows the part that could be read',
  'quality-lowered': 'the quality is lower than requested, so that the result does not exceed `max_bytes`',
  'partial-alpha-lost': 'pixels that were partly transparent are opaque or fully transparent',
  'svg-features-ignored': 'the SVG uses features that were not rendered, such as HTML or certain CSS',
  'metadata-partly-kept': 'EXIF, IPTC or XMP metadata could not be kept',
};
const anyNote = `(?:${Object.keys(NOTES).join('|')})`;
const notesDescription = `Differences between the input and the result, as a list of tokens. Absent if there are none. ${Object.entries(
  NOTES,
)
  .map(([note, description]) => `\`${note}\`: ${description}.`)
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

type Rest = Omit<Header, 'name'>;
const matching = (pattern: string, example: string, description: string): Rest => ({
  required: true,
  description,
  schema: { type: 'string', pattern },
  example,
});
const constant = (value: string, description: string): Rest => ({
  required: true,
  description,
  schema: { type: 'string', const: value },
  example: value,
});
const atLeast = (minimum: number, example: number, description: string): Rest => ({
  required: true,
  description,
  schema: { type: 'integer', minimum },
  example,
});

/** Headers by component name. Some headers have different values in different responses. */
const HEADERS = {
  RequestId: {
    name: 'X-Request-Id',
    ...matching(
      REQUEST_ID_PATTERN.source,
      EXAMPLE_ID,
      'ID of the request: from the request if it is valid, otherwise generated. Quote it when you report an error.',
    ),
  },
  NoSniff: {
    name: 'X-Content-Type-Options',
    ...constant('nosniff', 'Browsers use the declared media type only.'),
  },
  ContentLength: { name: 'Content-Length', ...atLeast(0, 48_210, 'Size of the body in bytes.') },
  NotStored: { name: 'Cache-Control', ...constant('no-store', 'Caches do not store the response.') },
  Revalidated: {
    name: 'Cache-Control',
    ...constant('no-cache', 'Caches revalidate the response before each use.'),
  },
  FileName: {
    name: 'Content-Disposition',
    ...matching(
      '^attachment; filename=',
      'attachment; filename=photo.webp',
      'The sanitized name of the input, with the extension of the output format (RFC 6266).',
    ),
  },
  ArchiveName: {
    name: 'Content-Disposition',
    ...constant('attachment; filename=converted.zip', 'File name of the archive.'),
  },
  ServerTiming: {
    name: 'Server-Timing',
    ...matching(
      '^upload;dur=\\d+\\.\\d, queue;dur=\\d+\\.\\d, prepare;dur=\\d+\\.\\d, convert;dur=\\d+\\.\\d$',
      'upload;dur=12.1, queue;dur=0.2, prepare;dur=0.6, convert;dur=85.4',
      'Time spent on the upload, in the queue, on the inspection and repair of the input, and on the conversion, in milliseconds.',
    ),
  },
  Notes: {
    name: 'X-Conversion-Notes',
    ...matching(`^${anyNote}(?:, ${anyNote})*$`, 'alpha-flattened', notesDescription),
    required: false,
  },
  NotesOfMany: {
    name: 'X-Conversion-Notes',
    ...matching(
      `^${anyNote}(?:${indexes})?(?:, ${anyNote}(?:${indexes})?)*$`,
      'first-frame-only;files="0 3", alpha-flattened;files="1"',
      `${notesDescription} Each token has the indexes of its files, from 0. The indexes are omitted if there are more than 100.`,
    ),
    required: false,
  },
  Quality: {
    name: 'X-Conversion-Quality',
    ...atLeast(1, 62, qualityDescription),
    required: false,
  },
  QualityOfMany: {
    name: 'X-Conversion-Quality',
    ...matching(
      `^\\d+(?:${indexes})?(?:, \\d+(?:${indexes})?)*$`,
      '80;files="0 3", 62;files="1"',
      `${qualityDescription} Each value has the indexes of its files, from 0, unless there are more than 100.`,
    ),
    required: false,
  },
  Allow: { name: 'Allow', ...constant(ALLOWED.GET, 'Methods of this path.') },
  AllowPost: { name: 'Allow', ...constant(ALLOWED.POST, 'Methods of this path.') },
  RetryAfter: { name: 'Retry-After', ...atLeast(1, 42, 'Seconds to wait before a retry.') },
} as const satisfies Readonly<Record<string, Header>>;

/** Component name of a response header that does not depend on the settings. */
export type HeaderName = keyof typeof HEADERS;

/** Returns all response headers by component name. */
export function headers(service: ApiContext): Readonly<Record<string, Header>> {
  return { ...HEADERS, ...contextHeaders(service) };
}

/** Returns the headers that depend on the settings. Every response of the API has them. */
export function contextHeaders({ config }: ApiContext): Readonly<Record<string, Header>> {
  return { ...rateLimitHeaders(config.RATE_LIMIT_PER_MINUTE), ...crossOriginHeaders(config.CORS_ORIGIN) };
}

function rateLimitHeaders(perMinute: number): Readonly<Record<string, Header>> {
  if (perMinute === 0) return {};
  return {
    RateLimit: {
      name: 'X-RateLimit-Limit',
      ...atLeast(1, perMinute, 'Maximum number of requests per client and minute.'),
    },
    RateRemaining: {
      name: 'X-RateLimit-Remaining',
      ...atLeast(0, perMinute - 1, 'Number of requests left in this window.'),
    },
    RateReset: {
      name: 'X-RateLimit-Reset',
      ...atLeast(0, 1_795_000_000, 'Start of the next window, as a Unix time in seconds.'),
    },
  };
}

function crossOriginHeaders(origin: ApiContext['config']['CORS_ORIGIN']): Readonly<Record<string, Header>> {
  if (origin === false) return {};
  const anyOrigin = constant('*', 'Pages of any origin can read the response.');
  const listedOrigin = {
    required: false,
    description: 'The origin of the request, if its pages can read the response.',
    schema: { type: 'string', enum: origin },
    example: origin[0] as string,
  };
  return {
    AllowOrigin: { name: 'Access-Control-Allow-Origin', ...(origin === '*' ? anyOrigin : listedOrigin) },
    ExposeHeaders: {
      name: 'Access-Control-Expose-Headers',
      ...constant(EXPOSED_HEADERS.join(','), 'Headers that scripts of other origins can read.'),
    },
    ...(origin !== '*' && {
      Vary: { name: 'Vary', ...constant('Origin', 'The response depends on the origin of the request.') },
    }),
  };
}
