/** @module Searches the inputs once or repeatedly, converts several at a time, and ends. */
import { hashFile } from '../../files/system.ts';
import { KnownResultError } from '../../tables/errors.ts';
import { CliError, type SignalAbort } from '../context.ts';
import {
  type ConvertedFile,
  type Converter,
  FileError,
  type OutputJob,
  readUnchanged,
  STDIN,
  StopError,
  stateOf,
  toFileError,
} from './converter.ts';
import type { Input } from './find-images.ts';
import type { Flags } from './flags.ts';
import type { Inputs } from './inputs.ts';
import {
  assertWritable,
  type PlannedOutput,
  type PlanOptions,
  planOutputs,
  STDOUT,
  setModified,
  writeOutput,
} from './output.ts';
import type { Digests, Report } from './report.ts';
import { deleteOrphans, type ResultFolder } from './result-folder.ts';
import { createWatcher } from './watch.ts';

export interface Run extends PlanOptions {
  readonly inputs: Inputs;
  readonly converter: () => Promise<Converter>;
  /** The index of the output folder, with `--update`. */
  readonly resultFolder: ResultFolder | undefined;
  readonly report: Report;
  readonly flags: Flags;
  readonly jobs: number;
  /** Whether an earlier search has reported the results that are up to date. */
  readonly isRepeated?: boolean;
  readonly signal: AbortSignal;
  /** Receives each result while it is written to a file. */
  readonly writing: Set<Promise<void>>;
  readonly onFailure?: (input: string) => Promise<void>;
}

/**
 * Returns the number of files that are processed at the same time: one more than conversions, since
 * one result can be written while the others are converted. A dry run prints in the order of names.
 */
export function concurrencyOf({ bulk: { dryRun, urls }, jobs }: Pick<Run, 'bulk' | 'jobs'>): number {
  if (dryRun) return 1;
  return urls.length > 0 ? jobs : jobs + 1;
}

/**
 * @throws {StopError} if no file can be converted any more
 * @throws {CliError} if the converter cannot start
 */
async function convertJobs(jobs: AsyncIterable<PlannedOutput>, run: Run): Promise<void> {
  let stopped: unknown;
  const iterator = jobs[Symbol.asyncIterator]();
  const worker = async (): Promise<void> => {
    try {
      while (!run.signal.aborted && stopped === undefined) {
        const { done, value } = await iterator.next();
        if (done) return;
        await processJob(value, run);
      }
    } catch (error) {
      stopped ??= error;
    }
  };
  await Promise.all(Array.from({ length: concurrencyOf(run) }, worker));
  if (stopped !== undefined && !run.signal.aborted) throw stopped;
}

/** @param isRetry whether another command wrote the result in the meantime */
async function processJob(job: PlannedOutput, run: Run, isRetry = false): Promise<void> {
  const { destination, inputs, bulk, report, resultFolder, signal } = run;
  if ('notice' in job) return report.notice(job.notice);
  const input = 'error' in job ? job.path : job.input;
  try {
    if ('error' in job) throw job.error;
    if (await resultFolder?.isUpToDate(job)) return run.isRepeated ? undefined : report.upToDate(job);
    const replaces = run.flags.force || (resultFolder?.owns(job) ?? false);
    if (!job.nameLater) await assertWritable(job, replaces, destination);
    if (bulk.dryRun) {
      const check = bulk.urls.length > 0 ? stateOf : inputs.test.assertImage; // instances can accept other types
      await check(job.input);
      return (await isUnchanged(job, run)) ? report.upToDate(job) : report.planned(job);
    }
    const converter = await run.converter();
    if (signal.aborted) return;
    report.starts(job.input);
    await convertJob(job, converter, run);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof StopError || error instanceof CliError) throw error; // they concern the command and not one file
    const code = error instanceof FileError ? error.code : undefined;
    if (!isRetry && resultFolder && code === 'OUTPUT_EXISTS' && 'output' in job) {
      await resultFolder.index.refresh().catch(() => {}); // report the earlier error instead
      if (resultFolder.owns(job)) return processJob(job, run, true);
    }
    report.failed(input, toFileError(error, input));
    await run.onFailure?.(input);
    if (code === 'OUTPUT_FULL')
      throw new StopError('The disk of the output is full. Free disk space, and run the same command again.');
  }
}

/** Returns whether a conversion would give the existing result, as for a touched source. */
async function isUnchanged(job: OutputJob, { resultFolder, flags, converter }: Run): Promise<boolean> {
  const known = flags.force ? undefined : await resultFolder?.keyOf(job);
  if (known === undefined) return false;
  const { keyOf } = await converter();
  return (await keyOf?.(job)) === known;
}

async function convertJob(planned: OutputJob, converter: Converter, run: Run): Promise<void> {
  const { report, resultFolder, signal, writing } = run;
  const { json: digests, force = false, preserveTimes } = run.flags;
  let job = planned;
  const write = async (conversion: ConvertedFile): Promise<void> => {
    signal.throwIfAborted();
    job = await nameJob(job, conversion, run);
    const sha256 = digests ? await hashBoth(job, conversion) : undefined;
    const modifiedMs = preserveTimes ? conversion.sourceState?.mtimeMs : undefined;
    if (resultFolder) await resultFolder.write(job, conversion, force, modifiedMs);
    else await writeOutput(conversion.path, job.output, force, { modifiedMs });
    report.done(job, conversion, sha256);
  };
  const known = force ? undefined : await resultFolder?.keyOf(job);
  const source = known === undefined ? undefined : await stateOf(job.input);
  const use = (conversion: ConvertedFile): Promise<void> => {
    const written = write(conversion);
    if (job.output === STDOUT) return written; // its reader may never read it
    writing.add(written);
    return written.finally(() => writing.delete(written));
  };
  try {
    await converter.convert(job, use, known);
  } catch (error) {
    if (!(error instanceof KnownResultError) || !source) throw error;
    if (preserveTimes) await setModified(job.output, source.mtimeMs);
    await resultFolder?.confirm(job, source);
    report.upToDate(job);
  }
}

/**
 * Returns a job with the name of its result, which can have its size or a format that was chosen.
 *
 * @throws {FileError} OUTPUT_EXISTS, OUTPUT_IS_INPUT, OUTPUT_IS_SOURCE, OUTPUT_UNWRITABLE
 */
async function nameJob(
  job: OutputJob,
  { width, height, format = job.options.format }: ConvertedFile,
  { flags: { force = false }, destination }: Run,
): Promise<OutputJob> {
  if (!job.nameLater) return job;
  const size = width !== undefined && height !== undefined ? { width, height } : undefined;
  const named = { ...job, output: await job.nameLater(size, format) };
  await assertWritable(named, force, destination);
  return named;
}

/**
 * Hashes the source, unless it is standard input, and the result, before it is moved.
 *
 * @throws {FileError} SOURCE_CHANGED, UNREADABLE
 */
async function hashBoth({ input }: OutputJob, { path, sourceState }: ConvertedFile): Promise<Digests> {
  const source = input === STDIN ? undefined : await readUnchanged(input, sourceState, () => hashFile(input));
  return { source, result: await hashFile(path) };
}

/** Errors after which a search is incomplete, so that missing sources can still exist. */
const INCOMPLETE = ['UNREADABLE', 'NO_SUCH_FILE', 'NO_IMAGES', 'NAME_NOT_UTF8'];

/**
 * Converts all inputs, and with `--watch` those that arrive until the signal aborts.
 *
 * @throws {StopError} if no file can be converted any more
 * @throws {CliError} if the converter cannot start
 */
export async function convertInputs(run: Run): Promise<void> {
  const { inputs, bulk, report, signal } = run;
  if (!bulk.watch) return searchAll(run, inputs.find());
  const watcher = createWatcher(report.notice);
  const { complete, addFolder, failed: onFailure, nextSearch } = watcher;
  try {
    for (let isRepeated = false; ; isRepeated = true) {
      await searchAll({ ...run, onFailure, isRepeated }, complete(inputs.find(addFolder)));
      await nextSearch(signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    watcher.close();
  }
}

/** Converts the inputs of a complete search. Then deletes the results of sources that are gone. */
async function searchAll(run: Run, found: AsyncIterable<Input>): Promise<void> {
  const { bulk, report, resultFolder, signal } = run;
  let isComplete = true;
  async function* checked(): AsyncGenerator<Input> {
    for await (const input of found) {
      if ('error' in input && INCOMPLETE.includes(input.error.code)) isComplete = false;
      yield input;
    }
  }
  const done = new AbortController();
  if (report.setTotal && !bulk.watch) void countJobs(run, done.signal).then(report.setTotal, () => {}); // the search itself reports errors
  await convertJobs(planOutputs(checked(), run), run).finally(() => done.abort());
  if (!bulk.delete || !resultFolder || signal.aborted) return;
  if (!isComplete) return report.notice('Nothing was deleted, because not all of the input could be read.');
  await deleteOrphans({ ...run, resultFolder });
}

/** Counts the files for the progress bar during the conversions. Ends early if these have ended. */
async function countJobs(run: Run, done: AbortSignal): Promise<number | undefined> {
  let total = 0;
  for await (const job of planOutputs(run.inputs.find(), run)) {
    if (done.aborted) return undefined;
    if (!('notice' in job)) total += 1;
  }
  return total;
}

/** Time after a signal at which the process ends, even if something still runs, in ms. */
const MAX_STOP_MS = 800;

/** Further time for results that are being written, in ms. A disk in the network can hang. */
const MAX_WRITE_MS = 5_000;

interface StopOptions {
  /** Results that are being written. The process waits for them: none is cut off or uncounted. */
  readonly writing: ReadonlySet<Promise<unknown>>;
  /** Prints what the command did before the signal, and completes its report. */
  readonly explain: () => Promise<void>;
  readonly exit: (status: number) => void;
}

/**
 * Explains and ends the process {@link MAX_STOP_MS} after a signal, or up to {@link MAX_WRITE_MS}
 * later.
 *
 * @returns a function that explains at once, for a command that ends earlier. Only the first call
 *   explains.
 */
export function exitSoonAfter(
  { signal, status }: SignalAbort,
  { writing, explain, exit }: StopOptions,
): () => Promise<void> {
  let explained: Promise<void> | undefined;
  const explainOnce = (): Promise<void> => {
    explained ??= explain();
    return explained;
  };
  const stop = async (): Promise<void> => {
    const late = Promise.withResolvers<void>();
    setTimeout(late.resolve, MAX_WRITE_MS);
    await Promise.race([Promise.allSettled(writing), late.promise]);
    await Promise.race([explainOnce(), late.promise]);
    exit(status());
  };
  signal.addEventListener('abort', () => setTimeout(stop, MAX_STOP_MS).unref());
  return explainOnce;
}
