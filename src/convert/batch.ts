import { ServiceError } from '../errors.ts';
import type { Convert, Converted, Source } from './convert.ts';
import type { ConvertOptions } from './plan/types.ts';

/** Several files with the same options: all of them, or as many as go. */

/** What becomes of the others when one fails. */
export type OnError = 'fail' | 'skip';

export type Outcome = { readonly converted: Converted } | { readonly error: ServiceError };

/** Troubles of the service, not of a picture: there is no use in going on without the one file. */
const OURS = ['BUSY', 'DISK_FULL', 'SHUTTING_DOWN', 'TOOLS_FAILING', 'INTERNAL'];

/**
 * Converts all files, as many at once as the pool has places for.
 *
 * With `fail`, the first failure stops what waits and what runs, and is thrown once nothing
 * runs any more. With `skip`, what is wrong with one picture is its outcome.
 *
 * @returns an outcome for each file, in the same order
 */
export async function convertAll(
  files: readonly Source[],
  convert: Convert,
  options: ConvertOptions,
  onError: OnError,
  signal: AbortSignal,
): Promise<Outcome[]> {
  const stop = new AbortController();
  const group = {};
  let first: unknown;

  const outcomes = await Promise.all(
    files.map(async (file): Promise<Outcome | undefined> => {
      try {
        return { converted: await convert(file, options, AbortSignal.any([signal, stop.signal]), group) };
      } catch (error) {
        if (onError === 'skip' && isAboutThePicture(error)) return { error };
        first ??= error;
        stop.abort();
        return undefined;
      }
    }),
  );
  if (first !== undefined) throw first;
  return outcomes.filter((outcome) => outcome !== undefined);
}

function isAboutThePicture(error: unknown): error is ServiceError {
  return error instanceof ServiceError && !OURS.includes(error.code);
}
