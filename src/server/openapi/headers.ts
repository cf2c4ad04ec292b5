import type { Note } from '../../conversion/plan/types.ts';
import { EXPOSED_HEADERS } from '../cors.ts';
import { ALLOWED } from '../endpoint.ts';
import { REQUEST_ID_PATTERN } from '../request-log.ts';
import { type ApiContext, EXAMPLE_ID, type Json } from './context.ts';

/** Every header of an answer: what it says, how it looks, an example. */

/** What each note says of a result. */
const NOTES: Readonly<Record<Note, string>> = {
  'first-frame-only': 'it is the first frame of an animation',
  'first-page-only': 'it is the first page of a TIFF that has more',
  'alpha-flattened': 'it had transparency, which lies on the background now',
  'colour-converted-to-srgb': 'it had other colours (Display P3, Adobe RGB, CMYK, Lab …)',
  'truncated-input': 'it is what could be read of a JPEG that is cut off or damaged',
  'quality-lowered':
    'its quality is lower than the one that was asked for, so that it has no more bytes than it may have',
  'metadata-partly-kept': 'it should have kept metadata, and lacks EXIF, IPTC or XMP of the file',
};
const anyNote = `(?:${Object.keys(NOTES).join('|')})`;
const notesSay = `What the result lacks, as a list of tokens; absent when there is nothing to say. ${Object.entries(
  NOTES,
)
  .map(([note, says]) => `\`${note}\`: ${says}.`)
  .join(' ')}`;
const qualitySays =
  'The quality that the result was encoded with, 1 to 100, when the request has `max_bytes`; otherwise it is absent.';
const places = ';files="\\d+(?: \\d+)*"';

export interface Header {
  readonly name: string;
  /** Whether it is on every answer of its kind; else only where there is something to say. */
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
const exactly = (value: string, description: string): Rest => ({
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

/** By names of their own, since some headers look different in different places. */
const HEADERS = {
  RequestId: {
    name: 'X-Request-Id',
    ...matching(
      REQUEST_ID_PATTERN.source,
      EXAMPLE_ID,
      'To be quoted when something went wrong: the id that was sent, if it is a sane one, or a new one.',
    ),
  },
  NoSniff: {
    name: 'X-Content-Type-Options',
    ...exactly('nosniff', 'The body is what its type says, and nothing else.'),
  },
  ContentLength: { name: 'Content-Length', ...atLeast(0, 48_210, 'Bytes of the body.') },
  NotStored: { name: 'Cache-Control', ...exactly('no-store', 'Nobody on the way keeps a copy.') },
  AskedFor: { name: 'Cache-Control', ...exactly('no-cache', 'A copy is asked about before it is used.') },
  FileName: {
    name: 'Content-Disposition',
    ...matching(
      '^attachment; filename=',
      'attachment; filename=photo.webp',
      'The name that was sent, made harmless, with the new extension (RFC 6266).',
    ),
  },
  ArchiveName: {
    name: 'Content-Disposition',
    ...exactly('attachment; filename=converted.zip', 'What the archive is called.'),
  },
  ServerTiming: {
    name: 'Server-Timing',
    ...matching(
      '^upload;dur=\\d+\\.\\d, queue;dur=\\d+\\.\\d, convert;dur=\\d+\\.\\d$',
      'upload;dur=12.1, queue;dur=0.2, convert;dur=85.4',
      'Milliseconds spent on receiving, on waiting for a turn and on converting.',
    ),
  },
  Notes: {
    name: 'X-Conversion-Notes',
    ...matching(`^${anyNote}(?:, ${anyNote})*$`, 'alpha-flattened', notesSay),
    required: false,
  },
  NotesOfMany: {
    name: 'X-Conversion-Notes',
    ...matching(
      `^${anyNote}(?:${places})?(?:, ${anyNote}(?:${places})?)*$`,
      'first-frame-only;files="0 3", alpha-flattened;files="1"',
      `${notesSay} With each, the places of the files it is about, from 0; they are left out when they are more than 100.`,
    ),
    required: false,
  },
  Quality: {
    name: 'X-Conversion-Quality',
    ...atLeast(1, 62, qualitySays),
    required: false,
  },
  QualityOfMany: {
    name: 'X-Conversion-Quality',
    ...matching(
      `^\\d+(?:${places})?(?:, \\d+(?:${places})?)*$`,
      '80;files="0 3", 62;files="1"',
      `${qualitySays} With each, the places of the files that have it, from 0; they are left out when they are more than 100.`,
    ),
    required: false,
  },
  Allow: { name: 'Allow', ...exactly(ALLOWED.GET, 'The methods of this path.') },
  AllowPost: { name: 'Allow', ...exactly(ALLOWED.POST, 'The methods of this path.') },
  RetryAfter: { name: 'Retry-After', ...atLeast(1, 42, 'Seconds to wait before the next try.') },
} as const satisfies Readonly<Record<string, Header>>;

export type HeaderName = keyof typeof HEADERS;

/** Every header that the service sends, by the name that responses refer to it by. */
export function headers(service: ApiContext): Readonly<Record<string, Header>> {
  return { ...HEADERS, ...contextHeaders(service) };
}

/** What the settings put on every answer to a request whose head could be read. */
export function contextHeaders({ config }: ApiContext): Readonly<Record<string, Header>> {
  return { ...rateLimitHeaders(config.RATE_LIMIT_PER_MINUTE), ...crossOriginHeaders(config.CORS_ORIGIN) };
}

function rateLimitHeaders(perMinute: number): Readonly<Record<string, Header>> {
  if (perMinute === 0) return {};
  return {
    RateLimit: {
      name: 'X-RateLimit-Limit',
      ...atLeast(1, perMinute, 'Requests a minute that one client may send.'),
    },
    RateRemaining: {
      name: 'X-RateLimit-Remaining',
      ...atLeast(0, perMinute - 1, 'How many of them are left.'),
    },
    RateReset: {
      name: 'X-RateLimit-Reset',
      ...atLeast(0, 1_795_000_000, 'When the next minute begins, in Unix seconds.'),
    },
  };
}

function crossOriginHeaders(origin: ApiContext['config']['CORS_ORIGIN']): Readonly<Record<string, Header>> {
  if (origin === false) return {};
  const anywhere = exactly('*', 'Pages of any site may read the answer.');
  const somewhere = {
    required: false,
    description: 'The site whose pages may read the answer, when the request came from one of them.',
    schema: { type: 'string', enum: origin },
    example: origin[0] as string,
  };
  return {
    AllowOrigin: { name: 'Access-Control-Allow-Origin', ...(origin === '*' ? anywhere : somewhere) },
    ExposeHeaders: {
      name: 'Access-Control-Expose-Headers',
      ...exactly(EXPOSED_HEADERS.join(','), 'What scripts of other sites may read of the answer.'),
    },
    ...(origin !== '*' && {
      Vary: { name: 'Vary', ...exactly('Origin', 'The answer depends on the site that asks.') },
    }),
  };
}
