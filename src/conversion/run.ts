/** @module Runs the jobs of a file: measures what no header states, and encodes. */
import { join } from 'node:path';
import { mapInTurns } from '../images/containers/event-loop.ts';
import { countArgumentBytes, MAX_ARGUMENT_BYTES, type Output } from '../process/command.ts';
import { isFileError, ServiceError } from '../tables/errors.ts';
import type { ConversionResult, RunningConversion } from './context.ts';
import { measure } from './measure/index.ts';
import {
  type CheckedResult,
  checkResult,
  collectNotes,
  compareRevealed,
  inspectResult,
  keptMetadata,
} from './output/result.ts';
import { explainByDisk } from './output/tool-errors.ts';
import { parseSampled } from './plan/document.ts';
import { iconSize } from './plan/encode.ts';
import {
  canShare,
  planAgain,
  planAnew,
  planBranch,
  planJob,
  planTogether,
  selectPrinted,
} from './plan/index.ts';
import { createJob } from './plan/job.ts';
import type { Step } from './plan/step.ts';
import { type ConversionJob, INPUT_FILE, type PlannedJob } from './plan/types.ts';
import { type Attempt, attemptEach, valuesOf } from './request/targets.ts';
import { moveOut, repair, runSteps, withRepair } from './steps/run-steps.ts';
import { encodeWithin } from './steps/search-quality.ts';

/** A result, without what its conversion adds. */
export type Converted = Omit<ConversionResult, 'key' | 'queuedMs' | 'preparedMs' | 'convertedMs'>;

type Jobs = readonly Attempt<PlannedJob>[];

/** Converts a file to its results: measures what their plans depend on, and encodes them. */
export async function run(planned: Jobs, running: RunningConversion): Promise<Attempt<Converted>[]> {
  if (running.source.type === 'svg') await moveOut(running.source.folder);
  return encodeAll(await measure(planned, running), running);
}

/** Encodes all results with one command if possible. If that fails, each has a command of its own, and an error of its own. */
async function encodeAll(
  attempts: Jobs,
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
    return attemptEach(attempts, running, (job) => encode(job, running, printedFor(job)));
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

const encodeOrRepair = (job: PlannedJob, running: RunningConversion): Promise<Converted> =>
  withRepair(job, running, (planned) => encode(planned, running));

/**
 * Encodes the pages of a PDF that probably have few colours once more, without loss. Only the decoded pixels show how many there are, and
 * most pictures are photos: to count them first would decode every one twice.
 *
 * @param printed what the commands of the job printed
 * @returns the job with the commands that it ran, and what they printed; undefined if no page has few colours
 */
async function encodeFewColours(job: ConversionJob, printed: string, running: RunningConversion) {
  const sampledColours = parseSampled(job, printed);
  if (!sampledColours) return undefined;
  const { image, options, tools, suffix, measured } = job;
  const exact = planJob(createJob(image, options, tools, suffix, { ...measured, sampledColours }));
  const { stdout } = await runSteps(exact.plan.steps, exact, running);
  return { job: exact, stdout };
}

/**
 * Converts an image, at several qualities if its size is limited, and describes the result.
 *
 * @param shared output of the command that has written this and other results
 */
async function encode(job: PlannedJob, running: RunningConversion, shared?: Output): Promise<Converted> {
  const { image, options, plan } = job;
  const { maxBytes, quality } = options;
  const rest = shared ? plan.steps.slice(job.programs.indexOf('magick') + 1) : plan.steps;
  const printed = { stdout: '', stderr: '', ...shared };
  const encodeAt = async (tried: number): Promise<CheckedResult> => {
    const attempt = { ...job, options: { ...options, quality: tried } };
    const steps = tried === quality ? rest : [planAgain(attempt)];
    const { stdout, stderr } = await runSteps(steps, attempt, running);
    printed.stdout += stdout;
    printed.stderr += stderr;
    const exact = await encodeFewColours(attempt, printed.stdout, running);
    if (exact) printed.stdout += exact.stdout;
    return checkResult(running.source, exact?.job ?? attempt, printed.stdout).catch(async (error) => {
      throw await explainByDisk(error, running.source);
    });
  };
  const result: CheckedResult & { readonly quality?: number } =
    maxBytes === undefined
      ? await encodeAt(quality)
      : await encodeWithin(maxBytes, quality, running.source.label, encodeAt);
  const shown = await inspectResult(result.path, options.format);
  const keepsBytes = job.isTranscoded || job.isEmbedded;
  const kept = keepsBytes || keptMetadata(image, shown, options);
  const withMetadata =
    keepsBytes && options.metadata === 'all'
      ? { path: join(running.source.folder, INPUT_FILE), type: image.type }
      : shown && { path: result.path, type: shown.type };
  const lowered = result.quality !== undefined && result.quality < quality;
  const { format } = options;
  const { width, height } = format === 'ico' ? iconSize(job) : (shown ?? {});
  return {
    ...result,
    format,
    width,
    height,
    ...(job.isTranscoded && { isTranscoded: true }),
    notes: collectNotes(plan.notes, printed, { kept, lowered }),
    ...(await compareRevealed(image, withMetadata, options)),
  };
}
