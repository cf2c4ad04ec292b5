/** @module Converts the files of a batch, with the same options. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorOfFile, isFileError, type ServiceError } from '../errors.ts';
import { discardSource } from './convert-file.ts';
import { hashFile } from './key.ts';
import { type ConvertOptions, INPUT_FILE } from './plan/types.ts';
import type { ConversionInput, ConversionResult, Convert } from './types.ts';

/** Whether the first failed file fails the whole batch, or is skipped. */
export type OnError = 'fail' | 'skip';

/**
 * Maximum number of files of a batch that are queued or converted at the same time: the default of MAX_BATCH_FILES.
 * Otherwise a single large batch could fill the queue, which has 200 places by default.
 */
const MAX_AT_ONCE = 20;

/** Result of one file of a batch, or the error if it was skipped. */
export type BatchItemResult = { readonly converted: ConversionResult } | { readonly error: ServiceError };

/**
 * Converts all files of a batch. Identical files are converted once and share the result.
 *
 * @returns a result for each file, in the same order
 * @throws {ServiceError} with `fail`, the first error of a file, after all other conversions were aborted; with `skip`,
 *   only errors that do not concern a single file
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export async function convertBatch(
  files: readonly ConversionInput[],
  convert: Convert,
  options: ConvertOptions,
  onError: OnError,
  signal: AbortSignal,
): Promise<BatchItemResult[]> {
  const stop = new AbortController();
  const group = {};
  let firstError: unknown;

  async function convertOrSkip(file: ConversionInput): Promise<BatchItemResult | undefined> {
    try {
      return { converted: await convert(file, options, AbortSignal.any([signal, stop.signal]), group) };
    } catch (cause) {
      const error = locate(cause, file);
      if (onError === 'skip' && isFileError(error)) return { error };
      firstError ??= error;
      stop.abort();
      return undefined;
    }
  }

  const digests = await digestFiles(files);
  const started = new Map<string, Promise<BatchItemResult | undefined>>();
  async function convertOnce(
    file: ConversionInput,
    digest: string,
    bytes: number,
  ): Promise<BatchItemResult | undefined> {
    const duplicate = started.get(digest);
    if (duplicate === undefined) {
      const outcome = convertOrSkip(file);
      started.set(digest, outcome);
      return outcome;
    }
    await discardSource(file, bytes);
    const outcome = await duplicate;
    return outcome && 'error' in outcome ? { error: locate(outcome.error, file) } : outcome;
  }

  const outcomes: (BatchItemResult | undefined)[] = [];
  const rest = files.entries();
  const convertRest = async (): Promise<void> => {
    for (const [at, file] of rest) {
      const { digest = String(at), bytes } = digests[at] as FileDigest;
      outcomes[at] = await convertOnce(file, digest, bytes);
    }
  };
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, convertRest));
  if (firstError !== undefined) throw firstError;
  return outcomes.filter((outcome) => outcome !== undefined);
}

/** Makes an error that concerns a file only name this file. */
function locate<E>(error: E, { label, batchFile }: ConversionInput): E | ServiceError {
  return isFileError(error) ? errorOfFile(error, label, batchFile) : error;
}

/** Size of a file, and its digest if it can have duplicates. */
interface FileDigest {
  readonly bytes: number;
  /** SHA-256. Only set if another file has the same size. */
  readonly digest?: string;
}

async function digestFiles(files: readonly ConversionInput[]): Promise<FileDigest[]> {
  const paths = files.map(({ folder }) => join(folder, INPUT_FILE));
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  const digests: FileDigest[] = [];
  // One after another, so that only one file is open at a time.
  for (const [at, path] of paths.entries()) {
    const bytes = sizes[at] as number;
    const isSingle = sizes.filter((size) => size === bytes).length === 1;
    digests.push(isSingle ? { bytes } : { bytes, digest: await hashFile(path) });
  }
  return digests;
}
