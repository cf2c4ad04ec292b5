/** @module What tools must find out before results can be planned, because no header states it. */
import { mapInTurns } from '../../images/containers/event-loop.ts';
import type { RunningConversion } from '../context.ts';
import { checkLimits } from '../limits/limits.ts';
import { deriveAgain } from '../plan/job.ts';
import type { ConversionJob, PlannedJob } from '../plan/types.ts';
import { type Attempt, attemptEach, valuesOf } from '../request/targets.ts';
import { withRepair } from '../steps/run-steps.ts';
import type { Measurement } from './measurement.ts';
import { MEASUREMENTS } from './measurements.ts';
import { makeWatermarks } from './prepare-watermark.ts';

type Jobs = readonly Attempt<ConversionJob>[];

/**
 * Measures what the results depend on. A job for which something was found has no plan any more.
 *
 * @throws {ServiceError} that names the file, or the first error of a result; see
 *   {@link attemptEach}
 */
export async function measure(
  planned: readonly Attempt<PlannedJob>[],
  running: RunningConversion,
): Promise<Jobs> {
  let jobs: Jobs = planned;
  for (const measurement of MEASUREMENTS) jobs = await measureEach(measurement, jobs, running);
  return jobs;
}

/** Results with the same commands share what these find. */
async function measureEach<T>(
  { isOfResult, ...row }: Measurement<T>,
  jobs: Jobs,
  running: RunningConversion,
): Promise<Jobs> {
  const { config, source } = running;
  const all = valuesOf(jobs);
  const found = new Map<string, T>();
  const measureOne = async (job: ConversionJob): Promise<ConversionJob> => {
    const measuring = row.plan(job);
    if (!measuring) return job;
    checkLimits(measuring, config, source.label);
    const commands = JSON.stringify(measuring.plan.steps);
    const value = found.has(commands) ? (found.get(commands) as T) : await row.find(measuring, running, all);
    found.set(commands, value);
    return deriveAgain(job, row.read(value, job, measuring, running));
  };
  return isOfResult
    ? attemptEach(jobs, running, (job) => withRepair(job, running, measureOne))
    : eachValue(jobs, measureOne);
}

/**
 * Makes the watermark of each result, whose size is known by now. A job with one has no plan any
 * more.
 *
 * @throws {ServiceError} that names the watermark
 */
export const measureWatermarks = (jobs: Jobs, running: RunningConversion): Promise<Jobs> =>
  eachValue(jobs, async (job) =>
    job.options.watermark ? deriveAgain(job, { watermarks: await makeWatermarks(job, running) }) : job,
  );

/** Does work for each result that has not failed. The first error is that of all. */
const eachValue = (jobs: Jobs, work: (job: ConversionJob) => Promise<ConversionJob>): Promise<Jobs> =>
  mapInTurns(jobs, async (attempt) =>
    'value' in attempt ? { ...attempt, value: await work(attempt.value) } : attempt,
  );
