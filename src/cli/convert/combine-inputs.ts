/** @module Converts all inputs, and combines their results to one file: `--combine`. */
import { dirname } from 'node:path';
import type { CombinedPart } from '../../conversion/context.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { toFrame } from '../../conversion/request/conflicts.ts';
import { hashFile, isInside, realPathOf } from '../../files/system.ts';
import type { FrameTiming } from '../../images/combined/combiner.ts';
import { combinesFrames } from '../../tables/formats.ts';
import { concurrencyOf, type Run } from './convert-all.ts';
import {
  type ConvertedFile,
  fileError,
  type SourceState,
  STDIN,
  StopError,
  stateOf,
  toFileError,
} from './converter.ts';
import { assertWritable, STDOUT, writeOutput } from './output.ts';

interface CombineRun extends Run {
  /** The options of each part. */
  readonly options: ConvertOptions;
  readonly timing: FrameTiming;
}

interface Source {
  readonly input: string;
  /** Undefined for standard input, and for a file that cannot be read. */
  readonly state: SourceState | undefined;
}

interface Part extends Source {
  readonly converted: ConvertedFile;
  readonly kept: CombinedPart;
}

/**
 * Converts all inputs to parts of one file, in order, and writes it if none has failed. Reports
 * each input.
 *
 * @throws {StopError} if no file can be converted any more
 */
export async function combineInputs(run: CombineRun): Promise<void> {
  const { destination, options, bulk, flags, report, resultFolder, signal } = run;
  const { path: output } = destination;
  const job = (input: string) => ({ input, output, options });
  let hasFailed = false;
  const fail = (input: string, error: unknown): void => {
    if (signal.aborted) return;
    hasFailed = true;
    report.failed(input, toFileError(error, input));
  };
  const sources = await findSources(run, fail);
  const [first] = sources;
  if (first === undefined || signal.aborted) return;
  const combined = describe(run, sources);
  if (combined.state && (await resultFolder?.isUpToDate(combined.job, combined.state))) {
    for (const { input } of sources) report.upToDate(job(input));
    return;
  }
  const replaces = flags.force || (resultFolder?.owns(combined.job) ?? false);
  await assertWritable(job(first.input), replaces, destination).catch((error) => fail(first.input, error));
  if (!hasFailed && bulk.dryRun) for (const { input } of sources) report.planned(job(input));
  if (hasFailed || bulk.dryRun) return explain(run, hasFailed);
  const { combining } = await run.converter();
  await combining?.(async ({ keep, combine }) => {
    const parts = await convertParts(run, sources, keep, fail);
    if (hasFailed || signal.aborted) return;
    const kept = parts.map((part) => part.kept);
    const { path } = await combine(kept, { format: options.format, timing: run.timing });
    await writeCombined(run, parts, combined, path);
  }).catch((error) => {
    if (error instanceof StopError) throw error;
    fail(first.input, error);
  });
  explain(run, hasFailed);
}

/** Says that there is no file, because a part is missing. */
function explain({ report, destination, signal }: CombineRun, hasFailed: boolean): void {
  if (hasFailed && !signal.aborted) report.notice(`${destination.path} was not written.`);
}

/** Returns the inputs, without the combined file of an earlier run. */
async function findSources(
  { inputs, destination, report }: CombineRun,
  fail: (input: string, error: unknown) => void,
): Promise<Source[]> {
  const output = await realPathOf(destination.path);
  const sources: Source[] = [];
  for await (const input of inputs.find()) {
    if ('notice' in input) report.notice(input.notice);
    else if ('error' in input) fail(input.path, input.error);
    else if (input.path === STDIN || (await realPathOf(input.path)) !== output)
      sources.push({ input: input.path, state: await stateOf(input.path).catch(() => undefined) });
    else if (!inputs.roots.some(({ real }) => isInside(output, real)))
      fail(input.path, fileError('OUTPUT_IS_INPUT', input.path));
  }
  return sources;
}

/** Returns the combined file as the index of its folder records it. */
function describe({ destination: { path }, options, timing }: CombineRun, sources: readonly Source[]) {
  const states = sources.flatMap(({ state }) => state ?? []);
  const parts = sources.map(({ input, state }) => [input, state?.size, state?.mtimeMs]);
  const described: ConvertOptions & { readonly parts: unknown } = { ...options, ...timing, parts };
  const size = states.reduce((sum, state) => sum + state.size, 0);
  const mtimeMs = Math.max(...states.map((state) => state.mtimeMs));
  return {
    /** The source is the folder: it stays if an input is gone, and the options have all inputs. */
    job: { input: dirname(path), output: path, options: described },
    /** Undefined if the index cannot record it, because one of the inputs has no state. */
    state: states.length === sources.length ? { size, mtimeMs } : undefined,
  };
}

/** Returns the positions of further sources with the same bytes, by that of the first one. */
async function findIdentical(sources: readonly Source[]): Promise<ReadonlyMap<number, readonly number[]>> {
  const sizes = Map.groupBy(sources, ({ state }) => state?.size);
  const firsts = new Map<string, number>();
  const identical = new Map<number, number[]>();
  for (const [at, { input, state }] of sources.entries()) {
    // Only files of one size are read.
    const isAlone = state === undefined || sizes.get(state.size)?.length === 1;
    // Its conversion reports a file that cannot be read.
    const digest = isAlone ? undefined : await hashFile(input).catch(() => undefined);
    if (digest === undefined) continue;
    const first = firsts.get(digest);
    if (first === undefined) firsts.set(digest, at);
    else identical.set(first, [...(identical.get(first) ?? []), at]);
  }
  return identical;
}

/** Converts all inputs, several at a time, identical ones once. Frames get the first size. */
async function convertParts(
  { options, destination, report, converter, bulk, jobs, signal }: CombineRun,
  sources: readonly Source[],
  keep: (converted: ConvertedFile) => Promise<CombinedPart>,
  fail: (input: string, error: unknown) => void,
): Promise<Part[]> {
  const { convert } = await converter();
  const parts: Part[] = [];
  const { width, height } = options;
  const isFrame = combinesFrames(options.format);
  let wanted = isFrame && width && height ? toFrame(options, { width, height }) : options;
  const convertOne = async (at: number, others: readonly number[] = []): Promise<void> => {
    const { input } = sources[at] as Source;
    report.starts(input);
    const use = async (converted: ConvertedFile): Promise<void> => {
      const kept = await keep(converted);
      for (const same of [at, ...others]) parts[same] = { ...(sources[same] as Source), converted, kept };
    };
    await convert({ input, output: destination.path, options: wanted }, use).catch(async (error) => {
      if (error instanceof StopError) throw error;
      fail(input, error);
      for (const same of others) await convertOne(same); // with the message of its own
    });
  };
  const isFirst = isFrame && wanted === options;
  if (isFirst) {
    await convertOne(0);
    const { width = 1, height = 1 } = parts[0]?.converted ?? {};
    wanted = toFrame(options, { width, height });
  }
  const rest = sources.map((source, at) => (isFirst && at === 0 ? { ...source, state: undefined } : source));
  const identical = await findIdentical(rest);
  const repeated = new Set([...identical.values()].flat());
  const queue = [...rest.keys()].filter((at) => !repeated.has(at) && !(isFirst && at === 0));
  const worker = async (): Promise<void> => {
    for (let at = queue.shift(); at !== undefined && !signal.aborted; at = queue.shift())
      await convertOne(at, identical.get(at));
  };
  await Promise.all(Array.from({ length: concurrencyOf({ bulk, jobs }) }, worker));
  return parts;
}

async function writeCombined(
  { destination, options, flags, report, resultFolder, writing }: CombineRun,
  parts: readonly Part[],
  { job, state: sourceState }: ReturnType<typeof describe>,
  path: string,
): Promise<void> {
  const { path: output } = destination;
  const { json: digests, force = false, preserveTimes } = flags;
  const result = digests ? await hashFile(path) : '';
  const newest = Math.max(...parts.map(({ state }) => state?.mtimeMs ?? 0));
  const modifiedMs = preserveTimes ? newest : undefined;
  const written = resultFolder
    ? resultFolder.write(job, { path, sourceState }, force, modifiedMs)
    : writeOutput(path, output, force, { modifiedMs });
  if (output !== STDOUT) writing.add(written);
  await written.finally(() => writing.delete(written));
  for (const { input, converted } of parts) {
    const source = digests && input !== STDIN ? await hashFile(input) : undefined;
    report.done({ input, output, options }, converted, digests ? { source, result } : undefined);
  }
}
