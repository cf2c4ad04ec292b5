/** @module Compares a result with its image in a thread, and decides whether it looks the same. */
import { join } from 'node:path';
import { COMPARE_WORKER } from '../../folders.ts';
import type { Comparison, Likeness } from '../../images/likeness.ts';
import { createThread, shareThreads } from '../../images/threads.ts';
import { ServiceError } from '../../tables/errors.ts';
import type { RunningConversion } from '../context.ts';
import { invalidOutputError } from '../output/tool-errors.ts';
import { DECODED_RESULT, REFERENCE_FILE } from '../plan/likeness.ts';
import { nameFile } from '../plan/step.ts';
import type { ConversionJob } from '../plan/types.ts';

/** Likeness from which a result looks the same. bench/quality.md describes the choice. */
const SAME = { mean: 0.97, low: 0.86, area: 0.92 } as const;

/** Least difference, so that its logarithm is a number. */
const MIN_DIFFERENCE = 0.001;

/** Maximum time of one comparison, in ms. Two megapixels take 0.1 s of processor time. */
const COMPARE_TIMEOUT_MS = 10_000;

const compareInThread = shareThreads(() =>
  createThread<Comparison, Likeness>(COMPARE_WORKER, { ms: COMPARE_TIMEOUT_MS, work: 'comparisons' }),
);

/**
 * Compares the files of a trial. Of the difference, 1 is the most that looks the same.
 *
 * @throws {ServiceError} if the tools have not written them, CONVERSION_TIMEOUT or OVERLOADED
 */
export async function compareResult(
  { suffix }: ConversionJob,
  { source }: Pick<RunningConversion, 'source'>,
) {
  const [one = '', other = ''] = [REFERENCE_FILE, DECODED_RESULT].map((name) =>
    join(source.folder, nameFile(name, suffix)),
  );
  const { hasFewColours, ...likeness } = await compareInThread({ one, other }, source.label).catch(
    (error) => {
      throw error instanceof ServiceError ? error : invalidOutputError(error.message, source);
    },
  );
  const measures = Object.keys(SAME) as (keyof typeof SAME)[];
  const differences = measures.map((measure) => (1 - likeness[measure]) / (1 - SAME[measure]));
  return { difference: Math.max(MIN_DIFFERENCE, ...differences), hasFewColours };
}
