/** @module Encodes the results of a file: together if possible, otherwise each on its own. */
import { mapInTurns } from '../../images/containers/event-loop.ts';
import { countArgumentBytes, MAX_ARGUMENT_BYTES, type Output } from '../../process/command.ts';
import { isFileError, ServiceError } from '../../tables/errors.ts';
import type { RunningConversion } from '../context.ts';
import { canShare, planAnew, planBranch, planTogether, selectPrinted } from '../plan/index.ts';
import type { Step } from '../plan/step.ts';
import type { PlannedJob } from '../plan/types.ts';
import { type Attempt, attemptEach, valuesOf } from '../request/targets.ts';
import { type Converted, type Encoded, encode } from './encode-result.ts';
import { encodeSmallest } from './encode-smallest.ts';
import { repair, runSteps, withRepair } from './run-steps.ts';

/** Encodes all results with one command. If that fails, each has its own command and error. */
export async function encodeAll(
  attempts: readonly Attempt<PlannedJob>[],
  running: RunningConversion,
  isRepaired = false,
): Promise<Attempt<Converted>[]> {
  const jobs = valuesOf(attempts);
  const [first] = jobs;
  const encodeEach = () => attemptEach(attempts, running, (job) => encodeOrRepair(job, running));
  const together = canShare(jobs) ? await shareCommand(jobs) : [];
  if (!first || together.length === 0) return encodeEach();
  const shared = await runSteps(together, first, running).catch((error) => {
    if (!isFileError(error) || error.code === 'CONVERSION_TIMEOUT') throw error;
    return error;
  });
  if (!(shared instanceof ServiceError)) {
    const printedFor = (job: PlannedJob): Output => ({
      stdout: selectPrinted(shared.stdout, job.suffix),
      stderr: shared.stderr,
    });
    return attemptEach(attempts, running, (job) => encodeResult(job, running, printedFor(job)));
  }
  const image = isRepaired ? undefined : await repair(shared, first, running);
  if (!image) return encodeEach();
  return encodeAll(await attemptEach(attempts, running, (job) => planAnew(job, image)), running, true);
}

/** Plans the commands that write all results; none if one would have too many arguments. */
async function shareCommand(jobs: readonly PlannedJob[]): Promise<readonly Step[]> {
  const { decoding, parts } = planTogether(await mapInTurns(jobs, planBranch));
  const bytes = await mapInTurns(parts, countArgumentBytes);
  const isTooLong = bytes.reduce((total, one) => total + one) > MAX_ARGUMENT_BYTES;
  return isTooLong ? [] : [...decoding, { tool: 'magick', args: parts.flat() }];
}

const encodeOrRepair = (job: PlannedJob, running: RunningConversion): Promise<Encoded> =>
  withRepair(job, running, (planned) => encodeResult(planned, running));

/** Converts an image to its result, or to the smallest of several. */
const encodeResult = (job: PlannedJob, running: RunningConversion, shared?: Output): Promise<Encoded> =>
  (job.options.candidates ? encodeSmallest : encode)(job, running, shared);
