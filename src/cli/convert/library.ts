/** @module An output folder with an index: finds results that are up to date, and records new ones. */
import { lstat, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { isDiskFull } from '../../errors.ts';
import { systemReason } from '../../files/system-reason.ts';
import type { Conversion, SourceState } from './converter.ts';
import { fileErrorFrom } from './file-errors.ts';
import { realPathOf } from './paths.ts';
import type { IndexEntry, ResultIndex } from './result-index.ts';
import type { Job } from './targets.ts';
import { writeOutput } from './write-output.ts';

/** An output folder with an index. */
export interface Library {
  readonly index: ResultIndex;
  /** Path of the output folder, as the user wrote it. */
  readonly output: string;
  /** Returns whether a result is complete, and made from the present source with the present options and tools. */
  isUpToDate(job: Job): Promise<boolean>;
  /** Returns whether an earlier run wrote the result of a job, so that it may be replaced. */
  owns(job: Job): boolean;
  /**
   * Writes a result and records it.
   *
   * @throws {FileError} OUTPUT_EXISTS, OUTPUT_UNWRITABLE, OUTPUT_FULL
   */
  write(job: Job, conversion: Conversion, force: boolean): Promise<void>;
}

/** Maximum difference of two modification times that count as equal, in ms. FAT stores even seconds. */
const TIME_TOLERANCE_MS = 2000;

/**
 * Creates the library of an output folder.
 *
 * @param recipe see `recipe.ts`
 */
export async function createLibrary(output: string, index: ResultIndex, recipe: string): Promise<Library> {
  const realOutput = await realPathOf(output);
  const nameOf = (job: Job): string => relative(output, job.output);

  const describe = async (job: Job, source: SourceState): Promise<IndexEntry> => {
    const { size: bytes, mtimeMs: made } = await stat(job.output);
    // A link is a source of its own: the file that it leads to can be elsewhere, and can outlive it.
    const real = join(await realPathOf(dirname(job.input)), basename(job.input));
    const path = relative(realOutput, real);
    return { source: path, size: source.size, mtime: source.mtimeMs, recipe, bytes, made };
  };
  return {
    index,
    output,
    owns: (job) => index.owns(nameOf(job)),
    async isUpToDate(job) {
      const entry = index.get(nameOf(job));
      if (entry?.recipe !== recipe) return false;
      const source = await stat(job.input).catch(() => undefined);
      return isSource(entry, source) && isResult(entry, await lstat(job.output).catch(() => undefined));
    },
    async write(job, { path, source }, force) {
      const name = nameOf(job);
      const owned = index.owns(name);
      await withIndexErrors(job, () => index.start(name));
      try {
        await writeOutput(path, job.output, force || owned, index.temporary);
      } catch (error) {
        // Another program can have written the file meanwhile.
        if (!owned) await index.withdraw(name).catch(() => {}); // report the earlier error instead
        throw error;
      }
      if (source) await withIndexErrors(job, async () => index.finish(name, await describe(job, source)));
    },
  };
}

/** Returns whether a source has the recorded state. */
function isSource(entry: IndexEntry, source: SourceState | undefined): boolean {
  return source?.size === entry.size && source.mtimeMs === entry.mtime;
}

/** Returns whether a result has the recorded state. */
export function isResult(
  entry: IndexEntry,
  result: (SourceState & { isFile(): boolean }) | undefined,
): boolean {
  return (
    result?.isFile() === true &&
    result.size === entry.bytes &&
    Math.abs(result.mtimeMs - entry.made) <= TIME_TOLERANCE_MS
  );
}

/**
 * Writes to the index.
 *
 * @throws {FileError} OUTPUT_FULL, OUTPUT_UNWRITABLE, if the index cannot be written
 */
async function withIndexErrors(job: Job, record: () => Promise<void>): Promise<void> {
  try {
    await record();
  } catch (error) {
    if (isDiskFull(error)) throw fileErrorFrom(error, 'OUTPUT_FULL', job.output);
    throw fileErrorFrom(error, 'OUTPUT_UNWRITABLE', job.output, systemReason(error));
  }
}
