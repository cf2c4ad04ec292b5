/** @module Validates the options of `convert` for many files: names, updates, parts of inputs. */
import { hash } from 'node:crypto';
import { DEFAULT_PATTERN, findPatternError, namesInputOnly } from '../../base/name-pattern.ts';
import { sanitizeForDisplay } from '../../base/text.ts';
import { CliError } from '../context.ts';
import type { Flags } from './flags.ts';

export type BulkOptions = ReturnType<typeof parseBulkOptions>;

/** @throws {CliError} if the options contradict each other */
export function parseBulkOptions(flags: Flags) {
  const { delete: deletes = false, watch = false, yes = false, dryRun = false, url: urls = [] } = flags;
  if (dryRun && watch) throw new CliError('--dry-run and --watch contradict each other.');
  if (urls.length > 0 && (flags.maxFileSize ?? flags.maxPixels) !== undefined)
    throw new CliError(
      '--max-file-size and --max-pixels are for this machine: an instance of --url has its own limits.',
    );
  const invalid = urls.find((url) => !/^https?:\/\//.test(url) || !URL.canParse(url));
  if (invalid !== undefined)
    throw new CliError(`Invalid --url "${invalid}": expected an address such as http://host:3000.`);
  if (deletes && !yes && watch)
    throw new CliError('--delete with --watch requires --yes, because it cannot ask for confirmation.');
  if (deletes && !yes && !dryRun && !(process.stdin.isTTY && process.stderr.isTTY))
    throw new CliError('--delete requires --yes without a terminal, because it cannot ask for confirmation.');
  const shard = flags.shard === undefined ? undefined : parseShard(flags.shard);
  const update = flags.update || deletes || watch;
  // Otherwise, a name would depend on files that other shards convert, or that arrive later.
  const keepExtension = flags.keepExtension || update || shard !== undefined;
  const pattern = parsePattern(flags.name, update || shard !== undefined);
  const naming = { keepExtension, safeNames: flags.safeNames ?? false, pattern };
  return { update, delete: deletes, yes: yes || dryRun, watch, dryRun, ...naming, shard, urls };
}

/**
 * @param isFixed whether the name of a result must depend on its source only
 * @throws {CliError} if the pattern is invalid
 */
function parsePattern(pattern: string | undefined, isFixed: boolean): string {
  if (pattern === undefined) return DEFAULT_PATTERN;
  const problem = findPatternError(pattern);
  if (problem) throw new CliError(`Invalid --name "${sanitizeForDisplay(pattern)}": ${problem}`);
  if (isFixed && !namesInputOnly(pattern))
    throw new CliError(
      '--name with {width}, {height} or {number} is not possible with --update, --watch, --delete and --shard: they find a result by its source.',
    );
  return pattern;
}

/** One of several parts of the inputs. */
export interface Shard {
  /** From 1 to {@link count}. */
  readonly number: number;
  readonly count: number;
  includes(key: string): boolean;
}

const MAX_SHARDS = 10_000;

/**
 * Every input belongs to exactly one of the parts, the same one on every machine.
 *
 * @throws {CliError}
 */
function parseShard(text: string): Shard {
  const [, number = 0, count = 0] = (/^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? []).map(Number);
  if (count < 1 || count > MAX_SHARDS)
    throw new CliError(`Invalid --shard "${text}": expected I/N, such as 1/4, with N up to ${MAX_SHARDS}.`);
  if (number < 1 || number > count)
    throw new CliError(`--shard ${text} is out of range: the parts are numbered 1 to ${count}.`);
  // A number represents 48 bits of the hash exactly.
  const part = (key: string): number => hash('sha256', key, 'buffer').readUIntBE(0, 6) % count;
  return { number, count, includes: (key) => part(key) === number - 1 };
}
