/** @module Deletes results whose source no longer exists (`--delete`). */
import { lstat, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { isInside, realPathOf, systemReason } from '../../files/system.ts';
import { fileErrorFrom } from './file-errors.ts';
import { resultKey } from './find-images.ts';
import type { Root } from './inputs.ts';
import type { Shard } from './options.ts';
import { assertInside } from './output.ts';
import type { Report } from './report.ts';
import { isResult, type ResultFolder } from './result-folder.ts';
import type { IndexEntry } from './result-index.ts';

/** Options of {@link deleteOrphans}. */
export interface DeleteOptions {
  readonly resultFolder: ResultFolder;
  /** Folders that were searched. Results of sources elsewhere are kept. */
  readonly roots: readonly Root[];
  readonly shard: Shard | undefined;
  readonly report: Report;
  /** Only report what would be deleted. */
  readonly dryRun: boolean;
  /** Returns whether the user agrees. */
  readonly confirm: (count: number) => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** Deletes results whose source no longer exists, after confirmation, and the folders that become empty. */
export async function deleteOrphans(options: DeleteOptions): Promise<void> {
  const { resultFolder, report, dryRun, confirm, signal } = options;
  const orphans = await findOrphans(options);
  if (orphans.length === 0 || signal.aborted || !(await confirm(orphans.length))) return;
  for (const [name, entry] of orphans) {
    if (signal.aborted) return;
    const output = join(resultFolder.output, name);
    const input = relative('.', resolve(await realPathOf(resultFolder.output), entry.source));
    try {
      await assertInside(output, resultFolder.output);
      await deleteResult(output, entry, options, input);
      if (!dryRun) await resultFolder.index.remove(name);
    } catch (error) {
      report.failed(input, fileErrorFrom(error, 'OUTPUT_UNDELETABLE', output, systemReason(error)));
    }
  }
}

async function findOrphans({
  resultFolder,
  roots,
  shard,
  signal,
}: DeleteOptions): Promise<(readonly [string, IndexEntry])[]> {
  const output = await realPathOf(resultFolder.output);
  const orphans: (readonly [string, IndexEntry])[] = [];
  for (const [name, entry] of resultFolder.index.entries()) {
    if (signal.aborted) break;
    const source = resolve(output, entry.source);
    const root = roots.find(({ real }) => isInside(source, real));
    if (!root) continue;
    const key = resultKey(relative(root.real, dirname(source)), basename(source));
    if (shard && !shard.includes(key)) continue;
    const info = await lstat(source).catch((error: NodeJS.ErrnoException) => error);
    if (info instanceof Error && ['ENOENT', 'ENOTDIR'].includes(info.code ?? '')) orphans.push([name, entry]);
  }
  return orphans;
}

async function deleteResult(
  output: string,
  entry: IndexEntry,
  { resultFolder, report, dryRun }: DeleteOptions,
  input: string,
): Promise<void> {
  const info = await lstat(output).catch(() => undefined);
  if (!info) return;
  if (!isResult(entry, info)) return report.notice(`${output} was changed, and is kept.`);
  if (dryRun) return report.deleted({ input, output });
  await unlink(output);
  report.deleted({ input, output });
  const top = resolve(resultFolder.output);
  for (let folder = dirname(resolve(output)); folder !== top; folder = dirname(folder)) {
    const isEmpty = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!isEmpty) return;
  }
}

/** Asks on the terminal whether to delete results. */
export async function askToDelete(count: number, signal: AbortSignal): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const results =
      count === 1
        ? '1 result whose source no longer exists'
        : `${count} results whose sources no longer exist`;
    const answer = await terminal.question(`Delete ${results}? [y/N] `, { signal });
    return /^y(?:es)?$/i.test(answer.trim());
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  } finally {
    terminal.close();
  }
}
