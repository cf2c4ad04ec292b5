/** @module Validates the options of the `convert` command. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  findConflict,
  integer,
  optionFields,
  outputFormat,
  toOptionNames,
} from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { serviceError } from '../../errors.ts';
import type { OutputType } from '../../formats.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { CliError } from '../context.ts';

/** The flag of a field of the API: `max_bytes` is `maxBytes`. */
type FlagOf<Field extends string> = Field extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Rest>}`
  : Field;
type OptionFlag = FlagOf<Exclude<keyof ReturnType<typeof optionFields>, 'strip_metadata'>>;

/** Options as given on the command line. A flag without a value is true. */
export interface Flags extends Readonly<Partial<Record<OptionFlag, string | true>>> {
  readonly output: string;
  readonly format?: string;
  readonly keepMetadata?: boolean;
  readonly jobs?: string;
  readonly force?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
  readonly update?: boolean;
  readonly delete?: boolean;
  readonly yes?: boolean;
  readonly watch?: boolean;
  readonly shard?: string;
  readonly url?: readonly string[];
  readonly report?: string;
}

/** Validated options. */
export interface CliOptions {
  readonly format: OutputType | undefined;
  readonly options: Omit<ConvertOptions, 'format'>;
  /** Number of concurrent conversions. */
  readonly jobs: number | undefined;
}

/**
 * Validates the options with the checks of the service.
 *
 * @param outputs the enabled output formats
 * @throws {CliError} naming every invalid value, with status 2
 */
export function parseOptions(flags: Flags, outputs: readonly OutputType[]): CliOptions {
  const others = { format: outputFormat(outputs).optional(), jobs: integer(1, 1024).optional() };
  const given = { ...optionTexts(flags, outputs), format: flags.format, jobs: flags.jobs };
  const result = z.object({ ...optionFields(outputs), ...others }).safeParse(given);
  if (result.success) {
    const { format, jobs, ...options } = toOptionNames(result.data);
    return { format, jobs, options };
  }
  const lines = result.error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const value = sanitizeForDisplay(String(given[name as keyof typeof given]));
    return serviceError('FIELD_INVALID', flagName(name), value, message).message;
  });
  throw new CliError(lines.join('\n'), 2);
}

/** Returns the options that were given, as texts by the field name of the API. */
function optionTexts(flags: Flags, outputs: readonly OutputType[]): Record<string, string> {
  const given = Object.keys(optionFields(outputs)).flatMap((name) => {
    const value = flags[name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as OptionFlag];
    return value === undefined ? [] : [[name, String(value)] as const];
  });
  return { ...Object.fromEntries(given), strip_metadata: String(!flags.keepMetadata) };
}

/**
 * Checks that the options do not contradict each other.
 *
 * @param outputs the enabled output formats
 * @throws {CliError} naming the option, with status 2
 */
export function assertCompatible(options: ConvertOptions, outputs: readonly OutputType[]): void {
  const conflict = findConflict(options, outputs);
  if (!conflict) return;
  const { field, value, expected } = conflict;
  throw new CliError(serviceError('FIELD_INVALID', flagName(field), value, expected).message, 2);
}

/** Converts `max_bytes` to `--max-bytes`. */
function flagName(field: string): string {
  return `--${field.replaceAll('_', '-')}`;
}

/** Returns the options as form fields of the API. */
export function toFormFields(
  flags: Flags,
  format: OutputType,
  outputs: readonly OutputType[],
): [string, string][] {
  return Object.entries({ ...optionTexts(flags, outputs), output_format: format });
}

/** Validated options for many files. */
export interface BulkOptions {
  /** Convert only files whose results are out of date, and keep an index of the output folder. */
  readonly update: boolean;
  /** Delete results whose source no longer exists. */
  readonly delete: boolean;
  /** Delete without confirmation. */
  readonly yes: boolean;
  readonly watch: boolean;
  readonly shard: Shard | undefined;
  /** URLs of the instances that convert; none for the tools of this machine. */
  readonly urls: readonly string[];
}

/**
 * Validates the options.
 *
 * @throws {CliError} with status 2, if they contradict each other
 */
export function parseBulkOptions(flags: Flags): BulkOptions {
  const { delete: deletes = false, watch = false, yes = false, url: urls = [] } = flags;
  const invalid = urls.find((url) => !/^https?:\/\//.test(url) || !URL.canParse(url));
  if (invalid !== undefined)
    throw new CliError(`Invalid --url "${invalid}": expected an address such as http://host:3000.`, 2);
  if (deletes && !yes && watch)
    throw new CliError('--delete with --watch requires --yes, because it cannot ask for confirmation.', 2);
  if (deletes && !yes && !(process.stdin.isTTY && process.stderr.isTTY))
    throw new CliError(
      '--delete requires --yes without a terminal, because it cannot ask for confirmation.',
      2,
    );
  const shard = flags.shard === undefined ? undefined : parseShard(flags.shard);
  return { update: flags.update || deletes || watch, delete: deletes, yes, watch, shard, urls };
}

/** One of several parts of the inputs. */
export interface Shard {
  /** From 1 to {@link count}. */
  readonly number: number;
  readonly count: number;
  /** Returns whether an input belongs to this part. */
  includes(key: string): boolean;
}

/** Maximum number of parts. */
const MAX_SHARDS = 10_000;

/**
 * Parses the value of `--shard`. Every input belongs to exactly one of the parts, the same one on every machine.
 *
 * @throws {CliError} with status 2
 */
export function parseShard(text: string): Shard {
  const [, number = 0, count = 0] = (/^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? []).map(Number);
  if (count < 1 || count > MAX_SHARDS)
    throw new CliError(
      `Invalid --shard "${text}": expected I/N, such as 1/4, with N up to ${MAX_SHARDS}.`,
      2,
    );
  if (number < 1 || number > count)
    throw new CliError(`--shard ${text} is out of range: the parts are numbered 1 to ${count}.`, 2);
  return { number, count, includes: (key) => hash(key) % count === number - 1 };
}

/** Returns 48 bits of the SHA-256 hash, which a number represents exactly. */
function hash(key: string): number {
  return createHash('sha256').update(key).digest().readUIntBE(0, 6);
}
