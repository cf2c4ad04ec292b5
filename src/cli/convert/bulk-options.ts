/** @module Validates the options of the `convert` command for many files. */
import { CliError } from '../context.ts';
import type { Inputs } from './inputs.ts';
import type { Flags } from './options.ts';
import { realPathOf } from './paths.ts';
import { parseShard, type Shard } from './shard.ts';
import type { Target } from './targets.ts';

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

/**
 * Checks that the inputs and the output fit the options.
 *
 * @throws {CliError} with status 2
 */
export async function assertUsable(
  options: BulkOptions,
  { roots, areFolders }: Pick<Inputs, 'roots' | 'areFolders'>,
  target: Target,
): Promise<void> {
  const { update, delete: deletes, watch } = options;
  if (update && target.kind !== 'folder')
    throw new CliError('--update, --delete and --watch need a folder for -o.', 2);
  if (watch && !areFolders) throw new CliError('--watch needs folders as inputs.', 2);
  if (deletes && roots.length === 0) throw new CliError('--delete needs a folder among the inputs.', 2);
  if (target.kind !== 'folder') return;
  const output = await realPathOf(target.path);
  const own = roots.find(({ real }) => real === output);
  if (own) {
    const why = 'its results would be the sources of the next run';
    throw new CliError(
      `${own.path} is also the output folder: ${why}. Choose another -o, or one inside it.`,
      2,
    );
  }
}
