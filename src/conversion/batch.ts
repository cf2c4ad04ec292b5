/** @module Converts or describes the files of a batch, with the same options. */
import pLimit from 'p-limit';
import { errorOfFile, isFileError, type ServiceError } from '../tables/errors.ts';
import type { ConversionInput, ConversionOutcome, OnError } from './context.ts';
import { MAX_PREPARATIONS, ownInput } from './input/inspect.ts';
import { digestOf } from './key.ts';
import type { ConvertOptions } from './plan/types.ts';
import { toFrame } from './request/conflicts.ts';

/**
 * Maximum number of files of a batch that are queued or converted at the same time: the default of
 * MAX_BATCH_FILES. Otherwise a single large batch could fill the queue, which has 200 places by
 * default.
 */
const MAX_AT_ONCE = 20;

type Outcomes = readonly ConversionOutcome[];

/** Converts a file of a batch, to the outcome of each result. `group`: see {@link Convert}. */
export type ConvertBatchFile = (
  file: ConversionInput,
  signal: AbortSignal,
  group: object,
) => Promise<Outcomes>;

/**
 * Converts all files of a batch. Identical files are converted once and share the results.
 *
 * @returns for each file, in the same order, the outcomes of its results, or its error
 * @throws {ServiceError} with `fail`, the first error of a file, after all other conversions were
 *   aborted; with `skip`, only errors that do not concern a single file
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function convertBatch(
  files: readonly ConversionInput[],
  convert: ConvertBatchFile,
  onError: OnError,
  signal: AbortSignal,
): Promise<Outcomes[]> {
  const stop = new AbortController();
  const group = {};
  let firstError: unknown;

  async function convertOrSkip(file: ConversionInput): Promise<Outcomes | undefined> {
    const isSkipped = (error: unknown): error is ServiceError => onError === 'skip' && isFileError(error);
    const onFailure = (error: unknown): void => {
      if (isSkipped(error)) return;
      firstError ??= isFileError(error) ? locate(error, file, file) : error;
      stop.abort();
    };
    try {
      return await convert({ ...file, onFailure }, AbortSignal.any([signal, stop.signal]), group);
    } catch (error) {
      if (isSkipped(error)) return [{ error: locate(error, file, file) }];
      onFailure(error);
      return undefined;
    }
  }

  const started = new Map<
    string,
    { readonly file: ConversionInput; readonly outcomes: Promise<Outcomes | undefined> }
  >();
  async function convertOnce(file: ConversionInput, digest: string): Promise<Outcomes | undefined> {
    const duplicate = started.get(digest);
    if (duplicate === undefined) {
      const outcomes = convertOrSkip(file);
      started.set(digest, { file, outcomes });
      return outcomes;
    }
    await using _unused = ownInput(file, 0);
    const outcomes = await duplicate.outcomes;
    return outcomes?.map((outcome) =>
      'error' in outcome ? { ...outcome, error: locate(outcome.error, duplicate.file, file) } : outcome,
    );
  }

  const all = await pLimit(MAX_AT_ONCE).map(files, async (file) => convertOnce(file, await digestOf(file)));
  if (firstError !== undefined) throw firstError;
  return all.filter((outcomes) => outcomes !== undefined);
}

/**
 * Converts files to pictures of one size, as the frames of an animation need it: that of the
 * options, or that of the first picture. Parameters and errors are those of {@link convertBatch}.
 *
 * @param convertTo returns the function that converts with these options
 */
export async function convertFrames(
  files: readonly ConversionInput[],
  options: ConvertOptions,
  convertTo: (options: ConvertOptions) => ConvertBatchFile,
  onError: OnError,
  signal: AbortSignal,
): Promise<Outcomes[]> {
  const { width, height } = options;
  let size = width && height ? { width, height } : undefined;
  const all: Outcomes[] = [];
  while (!size && all.length < files.length) {
    const next = files.slice(all.length, all.length + 1);
    const outcomes = await convertBatch(next, convertTo(options), onError, signal);
    const [first] = outcomes.flat();
    if (first && 'converted' in first) {
      const { width = 1, height = 1 } = first.converted;
      size = { width, height };
    }
    all.push(...outcomes);
  }
  const rest = files.slice(all.length);
  const alike = size ? toFrame(options, size) : options;
  return [...all, ...(await convertBatch(rest, convertTo(alike), onError, signal))];
}

/** Returns an error for another file with the same content, or with its place in the batch. */
function locate(
  error: ServiceError,
  from: ConversionInput,
  { label, batchFile }: ConversionInput,
): ServiceError {
  const [subject] = error.args;
  // The error of a watermark names that.
  const isOfFile = error.variant !== undefined || subject === from.label;
  return errorOfFile(error, isOfFile ? label : String(subject), batchFile);
}

/**
 * Describes the files of a request, as many at once as the queue prepares. The first error aborts
 * the others, and is thrown when these have ended.
 */
export async function describeBatch<F, T>(
  files: readonly F[],
  signal: AbortSignal,
  describe: (file: F, signal: AbortSignal) => Promise<T>,
): Promise<T[]> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const limit = pLimit(MAX_PREPARATIONS.main);
  const errors: unknown[] = [];
  const results = await Promise.all(
    files.map((file) =>
      limit(() => describe(file, either)).catch((error) => {
        errors.push(error);
        stop.abort();
      }),
    ),
  );
  if (errors.length > 0) throw errors[0];
  return results as T[];
}
