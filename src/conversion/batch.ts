import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ServiceError } from '../errors.ts';
import { discardSource } from './convert.ts';
import { type ConvertOptions, INPUT_FILE } from './plan/types.ts';
import type { ConversionInput, ConversionResult, Convert } from './types.ts';

/** Several files with the same options: all of them, or as many as go. */

/** What becomes of the others when one fails. */
export type OnError = 'fail' | 'skip';

/**
 * Files of one request that wait or run at once: the default of MAX_BATCH_FILES. A larger batch would fill the queue,
 * whose default is 200, by itself.
 */
const MAX_AT_ONCE = 20;

export type BatchItemResult = { readonly converted: ConversionResult } | { readonly error: ServiceError };

/** Troubles of the service, not of a picture: there is no use in going on without the one file. */
const SERVICE_ERRORS = [
  'QUEUE_FULL',
  'OVERLOADED',
  'DISK_FULL',
  'SHUTTING_DOWN',
  'CONVERTER_UNAVAILABLE',
  'INTERNAL',
];

/**
 * Converts all files, as many at once as the pool has places for, and at most {@link MAX_AT_ONCE}. Of files that are the
 * same, byte for byte, one is converted, and its result is that of all.
 *
 * With `fail`, the first failure stops what waits and what runs, and is thrown once nothing
 * runs any more. With `skip`, what is wrong with one picture is its outcome.
 *
 * @returns an outcome for each file, in the same order
 */
export async function convertAll(
  files: readonly ConversionInput[],
  convert: Convert,
  options: ConvertOptions,
  onError: OnError,
  signal: AbortSignal,
): Promise<BatchItemResult[]> {
  const stop = new AbortController();
  const group = {};
  let first: unknown;

  async function convertOne(file: ConversionInput): Promise<BatchItemResult | undefined> {
    try {
      return { converted: await convert(file, options, AbortSignal.any([signal, stop.signal]), group) };
    } catch (error) {
      if (onError === 'skip' && isImageError(error)) return { error };
      first ??= error;
      stop.abort();
      return undefined;
    }
  }

  const looks = await lookAt(files);
  const begun = new Map<string, { file: ConversionInput; outcome: Promise<BatchItemResult | undefined> }>();
  async function outcomeOf(
    file: ConversionInput,
    digest: string,
    bytes: number,
  ): Promise<BatchItemResult | undefined> {
    const duplicate = begun.get(digest);
    if (duplicate === undefined) {
      const outcome = convertOne(file);
      begun.set(digest, { file, outcome });
      return outcome;
    }
    await discardSource(file, bytes);
    const outcome = await duplicate.outcome;
    return outcome && 'error' in outcome ? { error: relabel(file, outcome.error, duplicate.file) } : outcome;
  }

  const outcomes: (BatchItemResult | undefined)[] = [];
  const rest = files.entries();
  const convertRest = async (): Promise<void> => {
    for (const [at, file] of rest) {
      const { digest = String(at), bytes } = looks[at] as Look;
      outcomes[at] = await outcomeOf(file, digest, bytes);
    }
  };
  await Promise.all(Array.from({ length: MAX_AT_ONCE }, convertRest));
  if (first !== undefined) throw first;
  return outcomes.filter((outcome) => outcome !== undefined);
}

/** What a file has to be told from the others by. */
interface Look {
  readonly bytes: number;
  /** Of a file that has as many bytes as another one, since only those can be the same. */
  readonly digest?: string;
}

async function lookAt(files: readonly ConversionInput[]): Promise<Look[]> {
  const paths = files.map(({ folder }) => join(folder, INPUT_FILE));
  const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size));
  const looks: Look[] = [];
  // One after another: so many open files would be missed elsewhere.
  for (const [at, path] of paths.entries()) {
    const bytes = sizes[at] as number;
    const isSingle = sizes.filter((size) => size === bytes).length === 1;
    looks.push(isSingle ? { bytes } : { bytes, digest: await hashFile(path) });
  }
  return looks;
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** What is wrong with a file is said under its own name. */
function relabel({ label }: ConversionInput, error: ServiceError, twin: ConversionInput): ServiceError {
  const { code, status, retryAfter, cause } = error;
  return new ServiceError(
    code,
    error.message.replace(twin.label, () => label),
    status,
    retryAfter,
    cause,
  );
}

function isImageError(error: unknown): error is ServiceError {
  return error instanceof ServiceError && !SERVICE_ERRORS.includes(error.code);
}
