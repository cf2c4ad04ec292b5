/** @module Parses environment variables into frozen settings: a row of the schema for each. */
import { isIP } from 'node:net';
import { availableParallelism, tmpdir, totalmem } from 'node:os';
import { z } from 'zod';
import { parseAmount, sanitizeForDisplay } from '../base/text.ts';
import {
  EXTRA_INPUT_TYPES,
  EXTRA_OUTPUT_TYPES,
  INPUTS,
  MAX_DIMENSION,
  MAX_SIDE,
  OUTPUT_NAMES,
} from './formats.ts';

/** Creates a schema for a whole number from `min` to `max`. */
const integer = (min: number, max: number, fallback: number) => {
  const expected = `expected a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, expected)
    .transform(Number)
    .refine((value) => value >= min && value <= max, expected)
    .default(fallback);
};

/** Creates a schema for bytes or pixels, which can have a unit: see {@link parseAmount}. */
const amount = (max: number, fallback: number) =>
  z
    .string()
    .transform((value) => parseAmount(value) ?? 0)
    .refine((value) => value >= 1 && value <= max, `expected a number from 1 to ${max}, such as 50M or 10MiB`)
    .default(fallback);

/** Creates a schema for a text that matches a pattern. */
const matching = (pattern: RegExp, expected: string) => z.string().regex(pattern, `expected ${expected}`);

const text = (fallback: string) => z.string().default(fallback);
const path = z.string().startsWith('/', 'expected an absolute path');

/** Creates a schema for one of these words. */
const oneOf = <const T extends readonly string[]>(...words: T) =>
  z.enum(words, `expected one of ${words.join(', ')}`);

/** Maximum delay of a Node.js timer, in milliseconds. A timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Maximum length of a value in an error message, in UTF-16 code units. */
const MAX_VALUE_LENGTH = 200;

/** The root, and paths of one or more names, except those of the service itself. */
const IMAGINARY_PATH_PATTERN =
  /^(?:\/|(?!\/(?:api|assets|docs|livez|readyz|metrics)(?:\/|$))(?:\/[\w.-]*\w)+)$/;

const REDIS_URL_EXPECTED =
  'expected redis://host:port or, for TLS, rediss://host:port, optionally with /NUMBER for a database other than 0';

/** Memory that converting a pixel can take, in bytes: 26, and a reserve. */
export const MEMORY_PER_PIXEL = 32;

/** Returns the memory of this machine, or of its container, in bytes. */
export function machineMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

/** Default of `MAX_PIXELS` with `ACCESS=private`: an image can use the memory of the machine. */
const PRIVATE_PIXELS = Math.min(
  Math.max(Math.floor(machineMemory() / MEMORY_PER_PIXEL), 50_000_000),
  MAX_DIMENSION ** 2,
);

/** Defaults for each value of `ACCESS`. */
const DEFAULTS = {
  public: {
    MAX_FILE_BYTES: 10 * 1024 * 1024,
    MAX_BATCH_FILES: 20,
    MAX_PIXELS: 50_000_000,
    MAX_TOTAL_PIXELS: 75_000_000,
    RATE_LIMIT_PER_MINUTE: 60,
    UPLOAD_TIMEOUT_MS: 60_000,
  },
  private: {
    MAX_FILE_BYTES: 200 * 1024 * 1024,
    MAX_BATCH_FILES: 200,
    MAX_PIXELS: PRIVATE_PIXELS,
    MAX_TOTAL_PIXELS: Math.floor(1.5 * PRIVATE_PIXELS),
    RATE_LIMIT_PER_MINUTE: 0,
    UPLOAD_TIMEOUT_MS: 600_000,
    EXTRA_INPUTS: 'all',
    EXTRA_OUTPUTS: 'all',
  },
} as const;

/** The defaults of `ACCESS=private`, as environment variables. */
const PRIVATE_DEFAULTS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(DEFAULTS.private).map(([name, value]) => [name, String(value)]),
);

const settings = z.object({
  /** Search path for the tools. It is the only environment variable that the tools inherit. */
  PATH: text('/usr/local/bin:/usr/bin:/bin'),
  PORT: integer(0, 65535, 3000),
  HOST: text('0.0.0.0'),
  /** Who can reach the service. `private` changes defaults of other settings. */
  ACCESS: oneOf('public', 'private').default('public'),
  SUPPORT_EMAIL: matching(/^[^\s@]+@[^\s@]+$/, 'an e-mail address').default('support@localhost'),
  MAX_FILE_BYTES: amount(2 ** 31, DEFAULTS.public.MAX_FILE_BYTES),
  MAX_BATCH_FILES: integer(1, 1000, DEFAULTS.public.MAX_BATCH_FILES),
  /** At most 99, since two digits distinguish the working files of the variants. */
  MAX_VARIANTS: integer(1, 99, 12),
  MAX_PIXELS: amount(MAX_DIMENSION ** 2, DEFAULTS.public.MAX_PIXELS),
  MAX_TOTAL_PIXELS: amount(2 ** 31, DEFAULTS.public.MAX_TOTAL_PIXELS),
  MAX_FRAMES: integer(1, 10_000, 500),
  RATE_LIMIT_PER_MINUTE: integer(0, 1_000_000, DEFAULTS.public.RATE_LIMIT_PER_MINUTE),
  TRUST_PROXY: z.string().transform(parseTrustProxy).default(false),
  TRUSTED_CLIENTS: z.string().transform(parseSubnets).default([]),
  API_KEYS_FILE: path.optional(),
  PRESETS_FILE: path.optional(),
  REQUIRE_API_KEY: oneOf('on', 'off').default('off'),
  IMAGEMILL_API_KEY: matching(/^[!-~]+$/, 'an API key, without spaces').optional(),
  IMAGINARY_PATH: matching(
    IMAGINARY_PATH_PATTERN,
    '/, or a path such as /imaginary that no other page of the service has',
  ).optional(),
  IMAGINARY_KEY: z.string().optional(),
  REDIS_URL: z.string().refine(isRedisUrl, REDIS_URL_EXPECTED).optional(),
  CONCURRENCY: integer(1, 1024, availableParallelism()),
  QUEUE_LIMIT: integer(0, 100_000, 200),
  CONVERT_TIMEOUT_MS: integer(10, MAX_TIMER_MS, 30_000),
  UPLOAD_TIMEOUT_MS: integer(100, MAX_TIMER_MS, DEFAULTS.public.UPLOAD_TIMEOUT_MS),
  TEMP_DIR: path.default(tmpdir()),
  EXTRA_INPUTS: extraFormats(EXTRA_INPUT_TYPES, (type, word) => INPUTS[type].names.includes(word)),
  EXTRA_OUTPUTS: extraFormats(EXTRA_OUTPUT_TYPES, (type, word) => OUTPUT_NAMES.get(word) === type),
  MAGICK_BIN: path.optional(),
  RSVG_BIN: path.optional(),
  SANDBOX: oneOf('auto', 'on', 'off').default('auto'),
  FORK_SERVER: oneOf('on', 'off').default('on'),
  CORS_ORIGIN: z.string().transform(parseCorsOrigin).default('*'),
  LOG_CLIENT_ADDRESS: oneOf('on', 'off').default('off'),
  LOG_FORMAT: oneOf('auto', 'json', 'pretty').default('auto'),
  LOG_LEVEL: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent').default('info'),
  SHUTDOWN_GRACE_MS: integer(0, MAX_TIMER_MS, 15_000),
});

const schema = settings
  .refine(({ REQUIRE_API_KEY, API_KEYS_FILE }) => REQUIRE_API_KEY === 'off' || API_KEYS_FILE, {
    path: ['REQUIRE_API_KEY'],
    message: 'expected API_KEYS_FILE to be set, too',
  })
  .refine((set) => set.REQUIRE_API_KEY === 'off' || !set.IMAGINARY_PATH || set.IMAGINARY_KEY, {
    path: ['REQUIRE_API_KEY'],
    message: 'expected IMAGINARY_KEY to be set, too, or no IMAGINARY_PATH',
  });

/** The validated, frozen settings. */
export type Config = Readonly<
  z.output<typeof schema> & {
    /** Maximum width and height of raster images and results, in pixels. No setting changes it. */
    maxSide: number;
    /** Maximum sides of a rendered SVG or PDF page, in pixels. No setting changes it. */
    maxDrawnSide: number;
  }
>;

/** An environment has invalid settings. The message has one line per setting. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  /** Names of the invalid settings. */
  readonly settings: readonly string[];
  constructor(problems: readonly string[], settings: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
    this.settings = settings;
  }
}

/**
 * Parses the settings in `environment`. An empty value counts as unset.
 *
 * @throws {ConfigError} naming every invalid setting
 */
export function loadConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const defaults = given.ACCESS === 'private' ? PRIVATE_DEFAULTS : {};
  const result = schema.safeParse({ ...defaults, ...given });
  if (result.success)
    return Object.freeze({ ...result.data, maxSide: MAX_SIDE, maxDrawnSide: MAX_DIMENSION });
  const invalid = result.error.issues.map(({ path: [name], message }) => ({ name: String(name), message }));
  throw new ConfigError(
    invalid.map(({ name, message }) => `${name}="${redacted(name, given)}": ${message}`),
    invalid.map(({ name }) => name),
  );
}

/** Returns a warning for each setting that is set, but has no effect. */
export function listWithoutEffect({ IMAGINARY_PATH, IMAGINARY_KEY }: Config): string[] {
  const isUnused = IMAGINARY_KEY !== undefined && IMAGINARY_PATH === undefined;
  return isUnused ? ['IMAGINARY_KEY has no effect: IMAGINARY_PATH is not set'] : [];
}

/** Minimum length of names that others are compared with: PORT and PATH have many neighbours. */
const MIN_NAME_LENGTH = 6;
/** Names that Kubernetes and Docker set for each service, such as IMAGEMILL_API_PORT. */
const SERVICE_NAME = /_(?:SERVICE|PORT)(?:_|$)/;

/** Returns a warning for each set variable with nearly the name of a setting: RATE_LIMIT. */
export function listMisspelled(environment: Readonly<Record<string, string | undefined>>): string[] {
  const names = Object.keys(settings.shape);
  const unknown = Object.keys(environment).filter((name) => environment[name] && !names.includes(name));
  return unknown.flatMap((name) => {
    const meant = SERVICE_NAME.test(name) ? undefined : names.find((setting) => isNear(name, setting));
    return meant === undefined ? [] : [`${name} is not a setting, and has no effect. Did you mean ${meant}?`];
  });
}

/** Returns whether a name is the first two words of a setting, or differs by a typing error. */
function isNear(name: string, setting: string): boolean {
  const [start] = /^[A-Z]+_[A-Z]+(?=_)/.exec(setting) ?? [];
  if (start !== undefined && `${name}_`.startsWith(`${start}_`)) return true;
  return setting.length >= MIN_NAME_LENGTH && editDistance(name, setting) <= (setting.length < 10 ? 1 : 2);
}

/** Returns how many characters to insert, remove or replace for another text (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const character of one) {
    const next = [(row[0] as number) + 1];
    for (const [at, each] of [...other].entries())
      next.push(
        Math.min(
          (next[at] as number) + 1,
          (row[at + 1] as number) + 1,
          (row[at] as number) + Number(each !== character),
        ),
      );
    row = next;
  }
  return row.at(-1) as number;
}

/** Settings whose values an error message hides. `REDIS_URL` can contain a password. */
const SECRETS = ['REDIS_URL', 'IMAGEMILL_API_KEY'];

/** Returns the value of a setting for an error message. */
function redacted(name: string, given: Readonly<Record<string, string | undefined>>): string {
  return SECRETS.includes(name) ? '…' : sanitizeForDisplay(given[name] ?? '', MAX_VALUE_LENGTH);
}

/** Returns whether `@redis/client` takes the URL: connecting throws if the path is no number. */
function isRedisUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, pathname, username, password } = new URL(value);
  return (
    ['redis:', 'rediss:'].includes(protocol) &&
    hostname !== '' &&
    /^(?:\/\d*)?$/.test(pathname) &&
    [username, password].every(isPercentEncoded)
  );
}

function isPercentEncoded(text: string): boolean {
  try {
    // The bundler removes a call whose result is not used.
    return typeof decodeURIComponent(text) === 'string';
  } catch {
    return false;
  }
}

/** Parses `TRUST_PROXY` as Express's `trust proxy`: a hop count, subnets, true, or false. */
function parseTrustProxy(value: string, context: z.RefinementCtx): boolean | number | string[] {
  if (value === 'true' || value === 'false') return value === 'true';
  if (/^\d{1,3}$/.test(value)) return Number(value);
  return parseSubnets(value, context, 'true, false, a number of proxies, or ');
}

/** Parses a list of addresses and subnets. `others` names other possible values. */
function parseSubnets(value: string, context: z.RefinementCtx, others = ''): string[] {
  const subnets = parseList(value);
  if (subnets.length > 0 && subnets.every(isSubnet)) return subnets;
  return addIssue(context, `expected ${others}a list of addresses and subnets`);
}

/** Names of address ranges that Express knows. */
const NAMED_SUBNETS = ['loopback', 'linklocal', 'uniquelocal'];

function isSubnet(value: string): boolean {
  if (NAMED_SUBNETS.includes(value)) return true;
  const [address = '', prefix, ...rest] = value.split('/');
  const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
  const isPrefix = prefix === undefined || (/^\d+$/.test(prefix) && Number(prefix) <= bits);
  return bits > 0 && rest.length === 0 && isPrefix;
}

/** Schema of `EXTRA_INPUTS` and `EXTRA_OUTPUTS`: `all`, or formats by one of their names. */
function extraFormats<const T extends string>(
  types: readonly T[],
  isNamed: (type: T, word: string) => boolean,
) {
  const expected = `expected all, or a list of ${types.join(', ')}`;
  return z
    .string()
    .transform((value, context): 'all' | readonly T[] => {
      const words = parseList(value.toLowerCase());
      if (words.length === 1 && words[0] === 'all') return 'all';
      const isKnown = words.every((word) => types.some((type) => isNamed(type, word)));
      if (!isKnown) return addIssue(context, expected);
      return types.filter((type) => words.some((word) => isNamed(type, word)));
    })
    .default([]);
}

/** Parses `CORS_ORIGIN`: `*`, a list of origins, or false for `off`. */
function parseCorsOrigin(value: string, context: z.RefinementCtx): '*' | string[] | false {
  if (value === '*') return '*';
  if (value === 'off') return false;
  const origins = parseList(value);
  if (
    origins.length > 0 &&
    origins.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)
  )
    return origins;
  return addIssue(context, 'expected *, off, or a list of origins such as https://example.com');
}

/** Splits a comma-separated list, and drops blanks and empty items. */
const parseList = (value: string): string[] =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

function addIssue(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}
