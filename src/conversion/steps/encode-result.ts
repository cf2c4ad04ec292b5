/** @module Encodes a result, at several qualities if needed, and checks and describes it. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Output } from '../../process/command.ts';
import { serviceError } from '../../tables/errors.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import { AUTO_QUALITY } from '../../tables/options.ts';
import type { ConversionInput, ConversionResult, RunningConversion } from '../context.ts';
import {
  type CheckedResult,
  checkResult,
  collectNotes,
  compareRevealed,
  inspectResult,
  keptMetadata,
} from '../output/result.ts';
import { explainByDisk } from '../output/tool-errors.ts';
import { parseSampled } from '../plan/document.ts';
import { iconSize, isLossless } from '../plan/encode.ts';
import { numericQuality } from '../plan/external-encoders.ts';
import { planAgain, planJob, planTrial } from '../plan/index.ts';
import { deriveAgain } from '../plan/job.ts';
import {
  countEncodings,
  countTrials,
  firstQuality,
  highestQuality,
  isLikeSource,
  lowestQuality,
  stripsOf,
} from '../plan/likeness.ts';
import type { Step } from '../plan/step.ts';
import { type ConversionJob, type ConvertOptions, INPUT_FILE, type PlannedJob } from '../plan/types.ts';
import { compareResult } from './compare-result.ts';
import { runSteps } from './run-steps.ts';
import { encodeWithin, type FoundQuality, type Known, searchLikeness } from './search-quality.ts';

/** A result, without what its conversion adds. */
export type Converted = Omit<ConversionResult, 'key' | 'queuedMs' | 'preparedMs' | 'convertedMs'>;

/**
 * Encodes the pages of a PDF that probably have few colours once more, without loss. Only decoded
 * pixels show how many there are, and most pictures are photos: to count them first would decode
 * every one twice. Returns the job with what it printed; undefined if no page has few colours.
 */
async function encodeFewColours(job: ConversionJob, printed: string, running: RunningConversion) {
  const sampledColours = parseSampled(job, printed);
  if (!sampledColours) return undefined;
  const exact = planJob(deriveAgain(job, { sampledColours }));
  const { stdout } = await runSteps(exact.plan.steps, exact, running);
  return { job: exact, stdout };
}

/** Converts to a result, and describes it. `shared`: output of the command for several results. */
export async function encode(job: PlannedJob, running: RunningConversion, shared?: Output): Promise<Encoded> {
  const { image, options, plan } = job;
  const { source } = running;
  const rest = shared ? plan.steps.slice(job.programs.indexOf('magick') + 1) : plan.steps;
  const printed = { stdout: '', stderr: '', ...shared };
  const runPrinting = async (steps: readonly Step[], attempt: ConversionJob): Promise<void> => {
    const { stdout, stderr } = await runSteps(steps, attempt, running);
    printed.stdout += stdout;
    printed.stderr += stderr;
  };
  const given = numericQuality(options);
  const withQuality = (quality: number): PlannedJob => ({ ...job, options: { ...options, quality } });
  const limit = job.search ? limitBytes(job, running) : Number.POSITIVE_INFINITY;
  const found =
    job.search === 'likeness' ? await findQuality(job, running, rest, runPrinting, limit) : undefined;
  const encodeAt = async (quality: number): Promise<CheckedResult> => {
    const attempt = withQuality(quality);
    await runPrinting(!found && quality === given ? rest : [planAgain(attempt)], attempt);
    const exact = await encodeFewColours(attempt, printed.stdout, running);
    if (exact) printed.stdout += exact.stdout;
    return checkOrExplain(exact?.job ?? attempt, printed.stdout, source);
  };
  const from = found?.quality ?? given;
  const result: CheckedResult & Pick<Converted, 'quality'> =
    found || Number.isFinite(limit)
      ? await encodeWithin(limit, from, encodeAt, found)
      : { ...(await encodeAt(from)), quality: job.search && from };
  const { format, maxBytes } = options;
  if (maxBytes !== undefined && result.bytes > maxBytes) {
    await rm(result.path, { force: true });
    const { bytes, quality = from } = result;
    throw serviceError('BYTES_UNREACHABLE', source.label, maxBytes, bytes, quality);
  }
  const shown = await inspectResult(result.path, format);
  const keepsBytes = job.isTranscoded || job.isEmbedded;
  const kept = keepsBytes || keptMetadata(image, shown, options);
  const withMetadata =
    keepsBytes && options.metadata === 'all'
      ? { path: join(source.folder, INPUT_FILE), type: image.type }
      : shown && { path: result.path, type: shown.type };
  const { width, height } = format === 'ico' ? iconSize(job) : (shown ?? {});
  return {
    ...result,
    quality: result.quality ?? (hasAutoQuality(options) ? given : undefined),
    format,
    width,
    height,
    isTranscoded: job.isTranscoded,
    notes: collectNotes(plan.notes, printed, {
      kept,
      others: qualityNotes(job, running, { ...result, from }, found),
    }),
    hasFewColours: found?.hasFewColours,
    looksSame: found?.looksSame,
    ...(await compareRevealed(image, withMetadata, options)),
  };
}

/** Checks a result, and explains an error by a full disk if that caused it. */
const checkOrExplain = (job: PlannedJob, stdout: string, source: ConversionInput): Promise<CheckedResult> =>
  checkResult(source, job, stdout).catch(async (error) => {
    throw await explainByDisk(error, source);
  });

/** A result, and what the comparison has shown of its image. */
export interface Encoded extends Converted {
  readonly hasFewColours?: boolean | undefined;
  readonly looksSame?: boolean | undefined;
}

/** Returns whether the quality of a result was selected. */
const hasAutoQuality = (options: ConvertOptions): boolean =>
  options.quality === 'auto' && OUTPUTS[options.format].quality && !isLossless(options);

/**
 * Finds the lowest quality that looks the same, with the results for other qualities, and returns
 * how many more encodings may follow. `first`: commands up to the first quality.
 */
async function findQuality(
  job: PlannedJob,
  running: RunningConversion,
  first: readonly Step[],
  runPrinting: (steps: readonly Step[], attempt: ConversionJob) => Promise<void>,
  limit: number,
) {
  const known: Known[] = [];
  let [trials, hasFewColours] = [0, false];
  const range = {
    from: firstQuality(job),
    lowest: lowestQuality(job),
    highest: highestQuality(job),
    trials: countTrials(job, Number.isFinite(limit)),
    maxBytes: job.measured.rival?.bytes ?? Number.POSITIVE_INFINITY,
  };
  const found = await searchLikeness(range, async (quality) => {
    const attempt = { ...job, options: { ...job.options, quality } };
    await runPrinting(trials === 0 ? first : planTrial(job, quality), attempt);
    trials += 1;
    const compared = await compareResult(job, running);
    hasFewColours = compared.hasFewColours;
    if (stripsOf(job)) return { difference: compared.difference, bytes: 0 };
    const result = await checkOrExplain(attempt, '', running.source);
    known.push({ ...result, quality });
    return { difference: compared.difference, bytes: result.bytes };
  });
  return { ...found, known, encodings: countEncodings(job) - trials, hasFewColours };
}

/** Returns the maximum bytes of a result: as requested, and of a like source for `quality=auto`. */
function limitBytes(job: ConversionJob, running: RunningConversion): number {
  const { maxBytes = Number.POSITIVE_INFINITY } = job.options;
  const isLimited = hasAutoQuality(job.options) && isLikeFile(job, running);
  return isLimited ? Math.min(maxBytes, running.sourceBytes) : maxBytes;
}

/** Returns whether format and size are those of the sent file: a repair can make an icon a PNG. */
const isLikeFile = (job: ConversionJob, { source: { type } }: RunningConversion): boolean =>
  isLikeSource({ ...job, image: { ...job.image, type } });

function qualityNotes(
  job: ConversionJob,
  running: RunningConversion,
  { bytes, quality, from }: CheckedResult & Pick<Converted, 'quality'> & { readonly from: number },
  found: FoundQuality | undefined,
): Note[] {
  const { sourceBytes } = running;
  const { maxBytes, quality: requested } = job.options;
  const isLower = quality !== undefined && quality < from;
  const isLimited = isLower && maxBytes !== undefined && maxBytes <= sourceBytes;
  if (requested !== 'auto' || !isLikeFile(job, running)) return isLower ? ['quality-lowered'] : [];
  const isReduced = (isLower && !isLimited) || (found?.looksSame === false && from < AUTO_QUALITY.max);
  return [
    ...(isLimited ? (['quality-lowered'] as const) : []),
    ...(isReduced ? (['quality-reduced'] as const) : []),
    ...(bytes > sourceBytes ? (['larger-than-source'] as const) : []),
  ];
}
