/** @module Converts all inputs, and combines their results to one file: `--combine`. */
import { stat } from 'node:fs/promises';
import { toFrame } from '../../conversion/batch.ts';
import type { CombinedPart } from '../../conversion/context.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { hashFile, isInside, realPathOf } from '../../files/system.ts';
import type { FrameTiming } from '../../images/combined/combiner.ts';
import { combinesFrames } from '../../tables/formats.ts';
import type { Run } from './convert-all.ts';
import { type ConvertedFile, fileError, STDIN, StopError, stateOf, toFileError } from './converter.ts';
import { assertWritable, STDOUT, writeOutput } from './output.ts';

interface CombineRun extends Run {
  /** The options of each part. */
  readonly options: ConvertOptions;
  readonly timing: FrameTiming;
}

/** A converted input. */
interface Part {
  readonly input: string;
  readonly converted: ConvertedFile;
  readonly kept: CombinedPart;
}

/**
 * Converts all inputs to parts of one file, in order, and writes it if none has failed. Reports each input.
 *
 * @throws {StopError} if no file can be converted any more
 */
export async function combineInputs(run: CombineRun): Promise<void> {
  const { destination, options, bulk, report, force, signal } = run;
  const { path: output } = destination;
  const job = (input: string) => ({ input, output, options });
  const replaces = force || bulk.update;
  let hasFailed = false;
  const fail = (input: string, error: unknown): void => {
    if (signal.aborted) return;
    hasFailed = true;
    report.failed(input, toFileError(error, input));
  };
  const sources = await findSources(run, fail);
  const [first] = sources;
  if (first === undefined || signal.aborted) return;
  if (bulk.update && (await isUpToDate(output, sources))) {
    for (const input of sources) report.upToDate(job(input));
    return;
  }
  await assertWritable(job(first), replaces, destination).catch((error) => fail(first, error));
  if (!hasFailed && bulk.dryRun) for (const input of sources) report.planned(job(input));
  if (hasFailed || bulk.dryRun) return explain(run, hasFailed);
  const { combining } = await run.converter();
  await combining?.(async ({ keep, combine }) => {
    const parts = await convertParts(run, sources, keep, fail);
    if (hasFailed || signal.aborted) return;
    const kept = parts.map((part) => part.kept);
    const combined = await combine(kept, { format: options.format, timing: run.timing });
    await writeCombined(run, parts, combined.path, replaces);
  }).catch((error) => {
    if (error instanceof StopError) throw error;
    fail(first, error);
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
): Promise<string[]> {
  const output = await realPathOf(destination.path);
  const sources: string[] = [];
  for await (const input of inputs.find()) {
    if ('notice' in input) report.notice(input.notice);
    else if ('error' in input) fail(input.path, input.error);
    else if (input.path === STDIN || (await realPathOf(input.path)) !== output) sources.push(input.path);
    else if (!inputs.roots.some(({ real }) => isInside(output, real)))
      fail(input.path, fileError('OUTPUT_IS_INPUT', input.path));
  }
  return sources;
}

/** Returns whether the file is newer than all inputs. */
async function isUpToDate(output: string, sources: readonly string[]): Promise<boolean> {
  const written = await stat(output).catch(() => undefined);
  const states = await Promise.all(sources.map((input) => stateOf(input).catch(() => undefined)));
  return written !== undefined && states.every((state) => state && state.mtimeMs <= written.mtimeMs);
}

/** Converts all inputs, several at a time. Frames get the size of the first one. */
async function convertParts(
  { options, destination, report, converter, concurrency, signal }: CombineRun,
  sources: readonly string[],
  keep: (converted: ConvertedFile) => Promise<CombinedPart>,
  fail: (input: string, error: unknown) => void,
): Promise<Part[]> {
  const { convert } = await converter();
  const parts: Part[] = [];
  const { width, height } = options;
  const isFrame = combinesFrames(options.format);
  let wanted = isFrame && width && height ? toFrame(options, { width, height }) : options;
  const convertOne = async (input: string, at: number): Promise<void> => {
    report.starts(input);
    const use = async (converted: ConvertedFile): Promise<void> => {
      parts[at] = { input, converted, kept: await keep(converted) };
    };
    await convert({ input, output: destination.path, options: wanted }, use).catch((error) => {
      if (error instanceof StopError) throw error;
      fail(input, error);
    });
  };
  const queue = [...sources.entries()];
  if (isFrame && wanted === options) {
    const [at, input] = queue.shift() as [number, string];
    await convertOne(input, at);
    const { width = 1, height = 1 } = parts[at]?.converted ?? {};
    wanted = toFrame(options, { width, height });
  }
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next && !signal.aborted; next = queue.shift())
      await convertOne(next[1], next[0]);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return parts;
}

/** Writes the combined file, and reports each part. */
async function writeCombined(
  { destination, options, report, digests, preserveTimes, writing }: CombineRun,
  parts: readonly Part[],
  path: string,
  replaces: boolean,
): Promise<void> {
  const { path: output } = destination;
  const result = digests ? await hashFile(path) : '';
  const newest = Math.max(...parts.map(({ converted }) => converted.sourceState?.mtimeMs ?? 0));
  const written = writeOutput(path, output, replaces, { modifiedMs: preserveTimes ? newest : undefined });
  if (output !== STDOUT) writing.add(written);
  await written.finally(() => writing.delete(written));
  for (const { input, converted } of parts) {
    const source = digests && input !== STDIN ? await hashFile(input) : undefined;
    report.done({ input, output, options }, converted, digests ? { source, result } : undefined);
  }
}
