/** @module An output folder with an index: finds, records and deletes (`--delete`) results. */
import { hash } from 'node:crypto';
import { lstat, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { toolSearch } from '../../conversion/limits/capabilities.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { isInside, isMissing, realPathOf, systemReason } from '../../files/system.ts';
import { fingerprintTools } from '../../process/toolchain.ts';
import type { VerifyMode } from '../../regress/verifiable.ts';
import type { Config } from '../../tables/config.ts';
import { CliError } from '../context.ts';
import type { BulkOptions } from './bulk-options.ts';
import {
  type ConvertedFile,
  fileError,
  type LazyConverter,
  type OutputJob,
  type SourceState,
} from './converter.ts';
import { resultKey } from './find-images.ts';
import type { IndexEntry } from './index-file.ts';
import type { Inputs } from './inputs.ts';
import { assertInside, withWriteErrors, writeOutput } from './output.ts';
import type { Report } from './report.ts';
import { ResultIndex } from './result-index.ts';

export type ResultFolder = Awaited<ReturnType<typeof createResultFolder>>;

type Written = Pick<ConvertedFile, 'path' | 'key' | 'sourceState' | 'verification'>;

/** Maximum difference of modification times that count as equal, in ms. FAT has even seconds. */
const TIME_TOLERANCE_MS = 2000;

/** @param verify how results must have been verified to be up to date */
async function createResultFolder(
  output: string,
  index: ResultIndex,
  hashOf: (options: ConvertOptions) => string,
  verify?: VerifyMode,
) {
  const realOutput = await realPathOf(output);
  const nameOf = (job: OutputJob): string => relative(output, job.output);
  const isVerified = (entry: IndexEntry): boolean => verify === undefined || entry.verified === verify;

  const createEntry = async (
    job: OutputJob,
    { size, mtimeMs: mtime }: SourceState,
    { key, verified }: Pick<IndexEntry, 'key' | 'verified'> = {},
  ): Promise<IndexEntry> => {
    const { size: bytes, mtimeMs: made } = await stat(job.output);
    // A link is a source of its own: its file can be elsewhere, and can outlive it.
    const real = join(await realPathOf(dirname(job.input)), basename(job.input));
    const optionsHash = hashOf(job.options);
    return { source: relative(realOutput, real), size, mtime, optionsHash, key, verified, bytes, made };
  };
  return {
    index,
    /** Path of the output folder, as the user wrote it. */
    output,
    /** Returns whether an earlier run wrote the result of a job, so that it may be replaced. */
    owns: (job: OutputJob): boolean => index.owns(nameOf(job)),
    /**
     * Returns whether a result is complete, and made from the present source with the present
     * options and tools.
     *
     * @param state state of the source; by default that of the file
     */
    async isUpToDate(job: OutputJob, state?: SourceState): Promise<boolean> {
      const entry = index.get(nameOf(job));
      if (entry?.optionsHash !== hashOf(job.options) || !isVerified(entry)) return false;
      const source = state ?? (await stat(job.input).catch(() => undefined));
      const isSame = source?.size === entry.size && source.mtimeMs === entry.mtime;
      return isSame && isResult(entry, await lstat(job.output).catch(() => undefined));
    },
    /** Returns the conversion key of a complete, verified result, whatever its source is now. */
    async keyOf(job: OutputJob): Promise<string | undefined> {
      const entry = index.get(nameOf(job));
      if (!entry || !isVerified(entry)) return undefined;
      return isResult(entry, await lstat(job.output).catch(() => undefined)) ? entry.key : undefined;
    },
    /**
     * Records that a result is still the one of a source with the present options and tools.
     *
     * @param source state of the source before it was read
     */
    async confirm(job: OutputJob, source: SourceState): Promise<void> {
      const name = nameOf(job);
      await withWriteErrors(job.output, async () =>
        index.record(name, await createEntry(job, source, index.get(name))),
      );
    },
    /**
     * Writes a result and records it.
     *
     * @throws {FileError} OUTPUT_EXISTS, OUTPUT_UNWRITABLE, OUTPUT_FULL
     */
    async write(
      job: OutputJob,
      { path, key, sourceState, verification }: Written,
      force: boolean,
      modifiedMs?: number,
    ): Promise<void> {
      const name = nameOf(job);
      const owned = index.owns(name);
      await withWriteErrors(job.output, () => index.mark(name, 'started'));
      try {
        const { temporary: temporaryFolder } = index;
        await writeOutput(path, job.output, force || owned, { temporaryFolder, modifiedMs });
      } catch (error) {
        // Another program can have written the file meanwhile.
        if (!owned) await index.mark(name, 'withdrawn').catch(() => {}); // report the earlier error instead
        throw error;
      }
      if (sourceState)
        await withWriteErrors(job.output, async () =>
          index.record(name, await createEntry(job, sourceState, { key, verified: verification?.mode })),
        );
    },
  };
}

function isResult(entry: IndexEntry, result: (SourceState & { isFile(): boolean }) | undefined): boolean {
  return (
    result?.isFile() === true &&
    result.size === entry.bytes &&
    Math.abs(result.mtimeMs - entry.made) <= TIME_TOLERANCE_MS
  );
}

/** Returns a short hash of everything that determines a result besides its source. */
function hashOptions(options: ConvertOptions, toolVersions: string, version: string): string {
  const sorted = Object.entries(options)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify([sorted, toolVersions, version])).slice(0, 16);
}

/**
 * Opens the index of an output folder. Starts no tool if the index knows the versions of the
 * installed tools.
 *
 * @throws {CliError} if the folder cannot be written
 */
export async function openResultFolder(
  output: string,
  { urls, shard, dryRun }: BulkOptions,
  config: Config,
  converter: LazyConverter,
  version: string,
  verify: VerifyMode | undefined,
): Promise<ResultFolder> {
  const index = await ResultIndex.open(output, shard, dryRun).catch((error) => {
    throw new CliError(`${output} cannot be written: ${systemReason(error)}.`);
  });
  const fingerprint = urls.length > 0 ? undefined : await fingerprintTools(toolSearch(config));
  const known = fingerprint && index.toolVersionsOf(fingerprint);
  const toolVersions = known ?? (await converter.start()).toolVersions;
  if (fingerprint) await index.setToolVersions(fingerprint, toolVersions);
  return createResultFolder(output, index, (options) => hashOptions(options, toolVersions, version), verify);
}

export interface DeleteOptions {
  readonly resultFolder: ResultFolder;
  /** Folders that were searched. Results of sources elsewhere are kept. */
  readonly inputs: Pick<Inputs, 'roots'>;
  readonly bulk: BulkOptions;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Deletes results whose source is gone, after confirmation, and folders that become empty. */
export async function deleteOrphans(options: DeleteOptions): Promise<void> {
  const { resultFolder, report, bulk, signal } = options;
  const orphans = await findOrphans(options);
  if (orphans.length === 0 || signal.aborted) return;
  if (!bulk.yes && !(await askToDelete(orphans.length, signal))) return;
  for (const [name, entry] of orphans) {
    if (signal.aborted) return;
    const output = join(resultFolder.output, name);
    const input = relative('.', resolve(await realPathOf(resultFolder.output), entry.source));
    try {
      await assertInside(output, resultFolder.output);
      await deleteResult(output, entry, options, input);
      if (!bulk.dryRun) await resultFolder.index.mark(name, 'removed');
    } catch (error) {
      report.failed(input, fileError('OUTPUT_UNDELETABLE', output, systemReason(error)));
    }
  }
}

/** Finds the results of the searched folders and of this shard whose source no longer exists. */
async function findOrphans({ resultFolder, inputs, bulk: { shard }, signal }: DeleteOptions) {
  const output = await realPathOf(resultFolder.output);
  const orphans: (readonly [string, IndexEntry])[] = [];
  for (const [name, entry] of resultFolder.index.entries()) {
    if (signal.aborted) break;
    const source = resolve(output, entry.source);
    const root = inputs.roots.find(({ real }) => isInside(source, real));
    if (!root) continue;
    const key = resultKey(relative(root.real, dirname(source)), basename(source));
    if (shard && !shard.includes(key)) continue;
    const info = await lstat(source).catch((error: NodeJS.ErrnoException) => error);
    if (info instanceof Error && isMissing(info)) orphans.push([name, entry]);
  }
  return orphans;
}

async function deleteResult(
  output: string,
  entry: IndexEntry,
  { resultFolder, report, bulk: { dryRun } }: DeleteOptions,
  input: string,
): Promise<void> {
  const info = await lstat(output).catch(() => undefined);
  if (!info) return;
  if (!isResult(entry, info)) return report.notice(`${output} was changed, and is kept.`);
  if (dryRun) return report.deleted({ input, output });
  await unlink(output);
  report.deleted({ input, output });
  const top = resolve(resultFolder.output);
  try {
    for (let folder = dirname(resolve(output)); folder !== top; folder = dirname(folder)) await rmdir(folder);
  } catch {
    // The folder is not empty, or cannot be removed.
  }
}

async function askToDelete(count: number, signal: AbortSignal): Promise<boolean> {
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
