/** @module Validates the options of the `convert` command. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { findConflict, integer, optionFields, outputFormat } from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { serviceError } from '../../errors.ts';
import type { OutputType } from '../../formats.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { CliError } from '../context.ts';

/** Options as given on the command line. */
export interface Flags {
  readonly output: string;
  readonly format?: string;
  readonly quality?: string;
  readonly width?: string;
  readonly height?: string;
  readonly fit?: string;
  readonly position?: string;
  readonly enlarge?: boolean;
  readonly lossless?: boolean;
  readonly maxBytes?: string;
  readonly frames?: string;
  readonly pages?: string;
  readonly background?: string;
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

/** Options of the API, except those that are flags on the command line, which have no value to validate. */
const schemaFor = (outputs: readonly OutputType[]) => {
  const {
    strip_metadata: _,
    enlarge: __,
    lossless: ___,
    max_bytes: maxBytes,
    ...fields
  } = optionFields(outputs);
  const format = outputFormat(outputs).optional();
  return z.object({ ...fields, maxBytes, format, jobs: integer(1, 1024).optional() });
};

/**
 * Validates the options with the checks of the service.
 *
 * @param outputs the enabled output formats
 * @throws {CliError} naming every invalid value, with status 2
 */
export function parseOptions(flags: Flags, outputs: readonly OutputType[]): CliOptions {
  const result = schemaFor(outputs).safeParse(flags);
  if (result.success) {
    const { format, jobs, ...options } = result.data;
    const { enlarge = false, lossless = false, keepMetadata = false } = flags;
    return { format, jobs, options: { ...options, enlarge, lossless, stripMetadata: !keepMetadata } };
  }
  const lines = result.error.issues.map(({ path, message }) => {
    const name = String(path[0]) as keyof Flags;
    return serviceError('FIELD_INVALID', flagName(name), sanitizeForDisplay(String(flags[name])), message)
      .message;
  });
  throw new CliError(lines.join('\n'), 2);
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

/** Converts `maxBytes` or `max_bytes` to `--max-bytes`. */
function flagName(name: string): string {
  return `--${name.replace(/_|(?=[A-Z])/g, '-').toLowerCase()}`;
}

/** Returns the options as form fields of the API. */
export function toFormFields(
  flags: Flags,
  format: OutputType,
  outputs: readonly OutputType[],
): [string, string][] {
  const given = Object.keys(optionFields(outputs)).flatMap((name): [string, string][] => {
    const flag = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as keyof Flags;
    return flags[flag] === undefined ? [] : [[name, String(flags[flag])]];
  });
  return [...given, ['output_format', format], ['strip_metadata', String(!flags.keepMetadata)]];
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
