/** @module Runs the jobs of a file: measures, then encodes, together or the smallest of several. */
import { rm } from 'node:fs/promises';
import { mapInTurns } from '../images/containers/event-loop.ts';
import { countArgumentBytes, MAX_ARGUMENT_BYTES, type Output } from '../process/command.ts';
import { isFileError, ServiceError } from '../tables/errors.ts';
import { canHavePalette, OUTPUTS, type OutputType } from '../tables/formats.ts';
import type { RunningConversion } from './context.ts';
import { measure } from './measure/index.ts';
import {
  canShare,
  planAnew,
  planBranch,
  planJob,
  planPaletteComparison,
  planTogether,
  selectPrinted,
} from './plan/index.ts';
import { deriveAgain } from './plan/job.ts';
import type { Step } from './plan/step.ts';
import type { ConversionJob, ConvertOptions, PlannedJob } from './plan/types.ts';
import { type Attempt, attemptEach, valuesOf } from './request/targets.ts';
import { compareResult } from './steps/compare-result.ts';
import { type Converted, type Encoded, encode } from './steps/encode-result.ts';
import { moveOut, repair, runSteps, withRepair } from './steps/run-steps.ts';

type Jobs = readonly Attempt<PlannedJob>[];

/** Converts a file to its results: measures what their plans depend on, and encodes them. */
export async function run(planned: Jobs, running: RunningConversion): Promise<Attempt<Converted>[]> {
  if (running.source.type === 'svg') await moveOut(running.source.folder);
  return encodeAll(await measure(planned, running), running);
}

/** Encodes all results with one command. If that fails, each has its own command and error. */
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

/** Encodes an image in each of the formats to choose from, and keeps the smallest result. */
async function encodeSmallest(
  job: PlannedJob,
  running: RunningConversion,
  shared?: Output,
): Promise<Encoded> {
  const { options } = job;
  const first = await encode(job, running, shared);
  const { candidates = [] } = options;
  let kept: Encoded = first;
  for (const other of otherCandidates(candidates, first, palettesOf(job, first))) {
    const quality = OUTPUTS[other.format].quality ? first.quality : undefined;
    const rival = quality ? { quality, bytes: kept.bytes } : undefined;
    const next = deriveAgain(job, { rival }, { ...options, ...other, candidates: undefined });
    const isPalette = other.colors !== undefined;
    const attempt = isPalette ? encodePalette(next, running) : encodeOrRepair(planJob(next), running);
    const result = await attempt.catch((error) => {
      if (!isFileError(error) || error.code === 'CONVERSION_TIMEOUT') throw error;
      return undefined;
    });
    if (!result) continue;
    const looksSame = result.looksSame !== false || first.looksSame === false;
    const isSmaller = looksSame && result.bytes < kept.bytes;
    await rm((isSmaller ? kept : result).path, { force: true });
    if (isSmaller) kept = result;
  }
  return kept;
}

type Candidate = Pick<ConvertOptions, 'format' | 'lossless' | 'colors'>;

/**
 * Returns the candidates with a palette. It is small for few colours and for flat ones, or if the
 * only other candidate has no loss. If it has all colours, it is as exact as the format without it,
 * and smaller.
 */
function palettesOf(
  { image, options, tools }: ConversionJob,
  { format, hasFewColours }: Encoded,
): Candidate[] {
  const { candidates = [], colors } = options;
  const isFlat = hasFewColours || image.flat || image.paletteKind !== undefined || image.type === 'svg';
  if (!tools.selectsColours || colors !== undefined || !(isFlat || canHavePalette(format))) return [];
  return candidates.filter(canHavePalette).map((type) => ({ format: type, colors: 256 }));
}

/**
 * Encodes an image with a palette; returns undefined if it does not look the same.
 *
 * @throws {ServiceError} also if the comparison fails
 */
async function encodePalette(job: ConversionJob, running: RunningConversion): Promise<Encoded | undefined> {
  const { plan, ...planned } = planJob(job);
  const steps = [...plan.steps, planPaletteComparison(job)];
  const result = await encode({ ...planned, plan: { ...plan, steps } }, running);
  const { difference } = await compareResult(job, running);
  if (difference <= 1) return result;
  await rm(result.path, { force: true });
  return undefined;
}

/**
 * Returns the formats to compare a result with, and how they are encoded. A format without loss is
 * small only for few colours, which then leave out one of the others, as a palette does.
 */
function otherCandidates(
  candidates: readonly OutputType[],
  { format, hasFewColours = false }: Encoded,
  palettes: readonly Candidate[],
): Candidate[] {
  const others = candidates.filter((type) => type !== format);
  const lossy = others.filter((type) => OUTPUTS[type].quality);
  const exact = others.filter((type) => !OUTPUTS[type].quality);
  if (!OUTPUTS[format].quality || candidates.every((type) => OUTPUTS[type].animation))
    return [...palettes, ...others.map((type) => ({ format: type }))];
  if (!hasFewColours) {
    const kept = palettes.length > 0 ? lossy.slice(0, 1) : lossy;
    return [...palettes, ...kept.map((type) => ({ format: type }))];
  }
  return [
    ...(palettes.length > 0 ? palettes : exact.slice(0, 1).map((type) => ({ format: type }))),
    ...candidates.filter((type) => OUTPUTS[type].lossless).map((type) => ({ format: type, lossless: true })),
    ...lossy.slice(0, 1).map((type) => ({ format: type })),
  ];
}
