/** @module The results of a file, and what becomes of each: one that fails can be skipped. */
import { mapInTurns } from '../../images/containers/event-loop.ts';
import { errorOfFile, isFileError, type ServiceError } from '../../tables/errors.ts';
import type { FileConversion, Variant } from '../context.ts';
import type { ConvertOptions } from '../plan/types.ts';

/** What has become of one result of a file so far. */
export type Attempt<T> = {
  /** Name of the variant; empty for the only result of a file. */
  readonly name: string;
  /** Two digits or letters that tell this result's files from others; empty for the only one. */
  readonly suffix: string;
} & ({ readonly value: T } | { readonly error: ServiceError });

/** Returns the options of a file with one result, as a list of variants. */
export const onlyResult = (options: ConvertOptions): Variant[] => [{ name: '', options }];

/** Returns the options of each variant, for a start. */
export const toAttempts = (variants: readonly Variant[]): Attempt<ConvertOptions>[] =>
  variants.map(({ name, options }, at) => ({
    name,
    suffix: name && at.toString(36).padStart(2, '0'),
    value: options,
  }));

/** Returns the values of those that have not failed. */
export const valuesOf = <T>(attempts: readonly Attempt<T>[]): T[] =>
  attempts.flatMap((attempt) => ('value' in attempt ? [attempt.value] : []));

/**
 * Does a part of the work for each result that has not failed, one after another. Yields to the
 * event loop between results.
 *
 * @throws {ServiceError} with `onError: 'fail'`, the first error of a variant, which it names; any
 *   error of the only result
 */
export async function attemptEach<T, R>(
  attempts: readonly Attempt<T>[],
  { source, onError }: Pick<FileConversion, 'source' | 'onError'>,
  work: (value: T, suffix: string) => Promise<R> | R,
): Promise<Attempt<R>[]> {
  return mapInTurns(attempts, async (attempt) => {
    const { name, suffix } = attempt;
    if ('error' in attempt) return attempt;
    try {
      return { name, suffix, value: await work(attempt.value, suffix) };
    } catch (cause) {
      if (!name || !isFileError(cause)) throw cause;
      const error = errorOfFile(cause, source.label, source.batchFile, name);
      if (onError === 'fail') throw error;
      return { name, suffix, error };
    }
  });
}
