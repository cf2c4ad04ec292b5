/** @module Converts the jobs of a command, several at a time. */
import { CliError } from '../context.ts';
import { type Conversion, type Converter, StopError } from './converter.ts';
import { FileError, toFileError } from './file-errors.ts';
import type { Library } from './library.ts';
import type { Report } from './report.ts';
import { type Job, type OutputJob, STDOUT } from './targets.ts';
import { assertWritable, writeOutput } from './write-output.ts';

/** Options of {@link convertAll}. */
export interface RunOptions {
  /** Starts the converter when it is first called. */
  readonly converter: () => Promise<Converter>;
  /** The index of the output folder, with `--update`. */
  readonly library: Library | undefined;
  /** The output folder, if the output is not one file. */
  readonly folder: string | undefined;
  readonly report: Report;
  /** Replace existing files. */
  readonly force: boolean;
  /** Number of jobs at the same time. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
  /** Receives each result while it is written to a file. */
  readonly writing: Set<Promise<void>>;
  /** Called for each file that could not be converted. */
  readonly onFailure?: (input: string) => Promise<void>;
}

/**
 * Converts all jobs, and reports the result or error of each.
 *
 * @throws {StopError} if no file can be converted any more
 * @throws {CliError} if the converter cannot start
 */
export async function convertAll(jobs: AsyncIterable<OutputJob>, options: RunOptions): Promise<void> {
  let stopped: unknown;
  const iterator = jobs[Symbol.asyncIterator]();
  const worker = async (): Promise<void> => {
    while (!options.signal.aborted && stopped === undefined) {
      const { done, value } = await iterator.next();
      if (done) return;
      await processJob(value, options);
    }
  };
  const guarded = (): Promise<void> =>
    worker().catch((error) => {
      stopped ??= error;
    });
  await Promise.all(Array.from({ length: options.concurrency }, guarded));
  if (stopped !== undefined && !options.signal.aborted) throw stopped;
}

/** @param isRepeated whether another command wrote the result in the meantime */
async function processJob(job: OutputJob, options: RunOptions, isRepeated = false): Promise<void> {
  const { report, library, signal } = options;
  if ('notice' in job) return report.notice(job.notice);
  try {
    if ('error' in job) throw job.error;
    if (await library?.isUpToDate(job)) return report.upToDate(job);
    const converter = await options.converter();
    if (signal.aborted) return;
    report.starts(job.input);
    await convertOne(job, converter, options);
  } catch (error) {
    if (signal.aborted) return;
    if (isFatal(error)) throw error;
    if (!isRepeated && library && isExisting(error) && 'output' in job) {
      await library.index.refresh().catch(() => {}); // report the earlier error instead
      if (library.owns(job)) return processJob(job, options, true);
    }
    report.failed(job.input, toFileError(error, job.input));
    await options.onFailure?.(job.input);
    if (error instanceof FileError && error.code === 'OUTPUT_FULL')
      throw new StopError('The disk of the output is full. Free disk space, and run the same command again.');
  }
}

/** Returns whether the result of a job exists already. */
const isExisting = (error: unknown): boolean => error instanceof FileError && error.code === 'OUTPUT_EXISTS';

/** Returns whether an error concerns the command and not one file. */
function isFatal(error: unknown): boolean {
  return error instanceof StopError || error instanceof CliError;
}

async function convertOne(
  job: Job,
  converter: Converter,
  { report, library, folder, force, signal, writing }: RunOptions,
): Promise<void> {
  await assertWritable(job.output, force || (library?.owns(job) ?? false), folder);
  const write = async (conversion: Conversion): Promise<void> => {
    signal.throwIfAborted();
    if (library) await library.write(job, conversion, force);
    else await writeOutput(conversion.path, job.output, force);
    const { path: _, source: __, ...done } = conversion;
    report.done(job, done);
  };
  await converter.convert(job.input, (conversion) => {
    const written = write(conversion);
    if (job.output === STDOUT) return written; // its reader may never read it
    writing.add(written);
    return written.finally(() => writing.delete(written));
  });
}
