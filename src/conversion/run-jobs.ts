/** @module Runs the jobs of a file: decodes what ImageMagick cannot read, measures what no header states, and encodes. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isFileError, ServiceError } from '../errors.ts';
import { workFiles } from '../files/workspace.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/index.ts';
import { MAX_ARGUMENT_BYTES, type Output } from '../process/command.ts';
import type { Tool } from '../process/toolchain.ts';
import {
  acceptJob,
  acceptJobs,
  checkLimits,
  conversionLimit,
  forEachTarget,
  longestCommand,
  type RunningConversion,
} from './accept-jobs.ts';
import { decodeInProcess, readDecoded } from './decoded.ts';
import {
  collectNotes,
  inspectResult,
  isNoFile,
  keptMetadata,
  type VerifiedOutput,
  verifyOutput,
} from './output/result.ts';
import {
  assertNotDenied,
  explainRareEncoding,
  invalidOutputError,
  translateToolError,
} from './output/tool-errors.ts';
import { chooseAnchor, REDUCED_BYTES } from './plan/attention.ts';
import { iconSize } from './plan/encode.ts';
import { canShare, planAgain, planTogether, selectPrinted } from './plan/index.ts';
import { createJob } from './plan/job.ts';
import { outputsOf } from './plan/outputs.ts';
import { renderSmaller } from './plan/rasterize.ts';
import { countPages } from './plan/size.ts';
import { completeStep, type Step } from './plan/step.ts';
import {
  type ConversionJob,
  DECODED_FILE,
  type Fitting,
  type PlannedJob,
  RASTERIZED_FILE,
} from './plan/types.ts';
import { repairAfterError } from './prepare.ts';
import { encodeWithin } from './search-quality.ts';
import type { ConversionInput, ConversionResult } from './types.ts';

/** A result, by the suffix of its target. */
export type Converted = Omit<ConversionResult, 'key' | 'queuedMs' | 'preparedMs' | 'convertedMs'> & {
  readonly suffix: string;
};

/** Converts a file to its results. Those that fail and are skipped are missing. */
export async function runJobs(
  planned: readonly PlannedJob[],
  running: RunningConversion,
): Promise<Converted[]> {
  const measured = await measure(await decodeFirst(planned, running), running);
  return encodeAll(await chooseParts(measured, running), running);
}

/** Converts a file that ImageMagick cannot read to PNG, and inspects the PNG. */
async function decodeFirst(
  jobs: readonly PlannedJob[],
  running: RunningConversion,
): Promise<readonly PlannedJob[]> {
  const { source, config } = running;
  const [first] = jobs;
  if (!first) return jobs;
  const { image } = first;
  if (image.decoder) return acceptJobs(await decodeInProcess(image.decoder, image, running), jobs, running);
  const { decoding } = first.plan;
  if (!decoding) return jobs;
  await runSteps([decoding], first, running).catch((error) => {
    throw explainRareEncoding(error, image, source);
  });
  const keepsMetadata = jobs.some(({ options }) => !options.stripMetadata);
  const decoded = await readDecoded(image, source.folder, DECODED_FILE, config, keepsMetadata).catch(
    (error) => {
      throw isNoFile(error) || error.code === 'EEXIST'
        ? invalidOutputError(`${DECODED_FILE}: ${error.code}`, source)
        : error;
    },
  );
  return acceptJobs(decoded, jobs, running);
}

/** Renders an SVG to find out its size, if a plan depends on it and the header does not state it reliably. */
async function measure(
  jobs: readonly PlannedJob[],
  running: RunningConversion,
): Promise<readonly PlannedJob[]> {
  const job = jobs.find(({ plan }) => plan.measuring);
  if (job?.image.type !== 'svg' || !job.plan.measuring) return jobs;
  const ownSize = {
    format: 'png',
    width: undefined,
    height: undefined,
    fit: undefined,
    crop: undefined,
  } as const;
  await runSteps([job.plan.measuring], { ...job, options: { ...job.options, ...ownSize } }, running);
  const { width = 0, height = 0 } = await inspectRendered(running.source, RASTERIZED_FILE);
  return acceptJobs({ ...job.image, width, height, styled: false }, jobs, running);
}

/** Chooses what `position=attention` keeps. Results of the same part of the image share its reduced image. */
async function chooseParts(
  jobs: readonly PlannedJob[],
  running: RunningConversion,
): Promise<readonly PlannedJob[]> {
  const bitmaps = new Map<string, Uint8Array>();
  return forEachTarget(jobs, running, async (job) => {
    const { reducing } = job.plan;
    if (!reducing) return job;
    const steps = JSON.stringify(reducing.plan.steps);
    const bitmap = bitmaps.get(steps) ?? (await reduce(reducing, running));
    bitmaps.set(steps, bitmap);
    const options = { ...job.options, anchor: chooseAnchor(bitmap, job.fittings[0] as Fitting) };
    return acceptJob(job.image, { ...job, options }, running);
  });
}

async function reduce(job: PlannedJob, running: RunningConversion): Promise<Uint8Array> {
  const { path, bytes } = await encodeOrRepair(job, running);
  try {
    if (bytes !== REDUCED_BYTES) throw invalidOutputError(`a bitmap of ${bytes} bytes`, running.source);
    return await readFile(path);
  } finally {
    await rm(path, { force: true });
  }
}

/** Encodes all results with one command if possible. If that fails, each has a command of its own, and an error of its own. */
async function encodeAll(
  jobs: readonly PlannedJob[],
  running: RunningConversion,
  isRepaired = false,
): Promise<Converted[]> {
  const [first] = jobs;
  const together = canShare(jobs) ? planTogether(jobs) : [];
  if (!first || together.length === 0 || longestCommand(together) > MAX_ARGUMENT_BYTES)
    return forEachTarget(jobs, running, (job) => encodeOrRepair(job, running));
  const shared = await runSteps(together, first, running).catch((error) => {
    if (!isFileError(error) || error.code === 'CONVERSION_TIMEOUT') throw error;
    return error;
  });
  if (!(shared instanceof ServiceError)) {
    const printedFor = (job: PlannedJob): Output => ({
      stdout: selectPrinted(shared.stdout, jobs.indexOf(job)),
      stderr: shared.stderr,
    });
    return forEachTarget(jobs, running, (job) => encode(job, running, printedFor(job)));
  }
  const repaired = isRepaired ? undefined : await repair(shared, first, running);
  if (repaired) return encodeAll(await acceptJobs(repaired, jobs, running), running, true);
  return forEachTarget(jobs, running, (job) => encodeOrRepair(job, running));
}

async function encodeOrRepair(job: PlannedJob, running: RunningConversion): Promise<Converted> {
  try {
    return await encode(job, running);
  } catch (error) {
    const repaired = await repair(error as Error, job, running);
    if (!repaired) throw explainRareEncoding(error as Error, job.image, running.source);
    return encode(acceptJob(repaired, job, running), running);
  }
}

/** Repairs the image after an error; see {@link repairAfterError}. */
function repair(
  error: Error,
  { image }: ConversionJob,
  { source, repairs }: RunningConversion,
): Promise<ImageInfo | undefined> {
  return repairAfterError(error, image, source.folder, repairs);
}

/**
 * Converts an image, at several qualities if its size is limited, and describes the result.
 *
 * @param shared output of the command that has written this and other results
 */
async function encode(job: PlannedJob, running: RunningConversion, shared?: Output): Promise<Converted> {
  const { image, options, suffix, plan } = job;
  const { maxBytes, quality } = options;
  const rest = shared ? plan.steps.slice(job.programs.indexOf('magick') + 1) : plan.steps;
  const printed = { stdout: '', stderr: '', ...shared };
  const encodeAt = async (tried: number): Promise<VerifiedOutput> => {
    const attempt = { ...job, options: { ...options, quality: tried } };
    const steps = tried === quality ? rest : [planAgain(attempt)];
    const { stdout, stderr } = await runSteps(steps, attempt, running);
    printed.stdout += stdout;
    printed.stderr += stderr;
    return verifyOutput(running.source, attempt, printed.stdout);
  };
  const result: VerifiedOutput & { readonly quality?: number } =
    maxBytes === undefined
      ? await encodeAt(quality)
      : await encodeWithin(maxBytes, quality, running.source.label, encodeAt);
  const shown = await inspectResult(result.path, options.format);
  const kept = job.isTranscoded || keptMetadata(image, shown, options);
  const lowered = result.quality !== undefined && result.quality < quality;
  const { format } = options;
  const { width, height } = format === 'ico' ? iconSize(options) : (shown ?? {});
  return {
    ...result,
    suffix,
    format,
    width,
    height,
    ...(job.isTranscoded && { isTranscoded: true }),
    notes: collectNotes(plan.notes, printed, { kept, lowered }),
  };
}

/** Maximum time for rendering an SVG, in milliseconds. An SVG can take any time; real ones take far less than this. */
const SVG_TIMEOUT_MS = 15_000;
/** Maximum memory for rendering an SVG, in bytes. 50 megapixels take a fifth of it. */
const SVG_MAX_MEMORY = 1024 ** 3;

/** Maximum number of files in the folder of a conversion, besides two for each frame or page. */
const MAX_NAMES = 1000;

/**
 * Runs commands one after another, and returns everything that they printed.
 *
 * @throws {ServiceError} that names the file, if a command fails or the policy forbids a part of it
 * @throws {ClientDisconnectedError} if the conversion is aborted
 */
async function runSteps(
  steps: readonly Step[],
  job: ConversionJob,
  conversion: RunningConversion,
): Promise<Output> {
  const { source, config } = conversion;
  const printed = { stdout: '', stderr: '' };
  const queue = [...steps];
  for (let next = queue.shift(); next; next = queue.shift()) {
    const step = completeStep(next, conversion, job.suffix);
    source.onCommand?.(step);
    const { stdout, stderr } = await runStep(step, job, conversion);
    printed.stdout += stdout;
    printed.stderr += stderr;
    if (step.rendersTo) {
      const rendered = await inspectRendered(source, step.rendersTo);
      checkLimits(createJob(rendered, { ...job.options, crop: undefined }, job.tools), config, source.label);
      const again = renderSmaller(job, rendered);
      if (again) queue.unshift(again);
    }
  }
  if (printed.stderr !== '') assertNotDenied(printed.stderr);
  return printed;
}

async function runStep(step: Step, job: ConversionJob, conversion: RunningConversion): Promise<Output> {
  const { tool, args, stdin, rendersTo, deflateLevel } = step;
  const { source, config, toolchain, run, runPart, movedOut, maxBytes } = conversion;
  const { folder } = source;
  const { image } = job;
  const isSvg = tool === 'rsvg';
  const limit =
    isSvg && config.CONVERT_TIMEOUT_MS > SVG_TIMEOUT_MS
      ? { ms: SVG_TIMEOUT_MS, work: 'SVGs' }
      : conversionLimit(config);
  const input = stdin !== undefined && { stdin: await moveOut(movedOut, folder, stdin) };
  const attempt = async (signal: AbortSignal): Promise<Output> => {
    // Under the system call filter, librsvg cannot replace a file: GLib calls fchown and fchmod for that.
    if (rendersTo) await workFiles(folder).rm(join(folder, rendersTo), { recursive: true, force: true });
    const remainingMs = Math.max(1, Math.ceil(conversion.deadline - performance.now()));
    return run({
      file: (toolchain[tool] as Tool).path,
      args,
      cwd: folder,
      outputs: outputsOf(step, job),
      maxBytes,
      maxNames: MAX_NAMES + 2 * (image.animation?.delaysMs.length ?? countPages(image)),
      timeoutMs: Math.min(remainingMs, limit.ms),
      signal,
      ...input,
      ...(deflateLevel !== undefined && { deflateLevel }),
      ...(isSvg && { memoryBytes: SVG_MAX_MEMORY }),
    });
  };
  try {
    return await runPart(attempt);
  } catch (error) {
    throw translateToolError(error, tool, source, limit, job.options.format);
  }
}

/**
 * Inspects the PNG that librsvg rendered.
 *
 * @throws {ServiceError} if librsvg reported success, but wrote no file
 */
function inspectRendered(source: ConversionInput, name: string): Promise<ImageInfo> {
  return inspect(join(source.folder, name), 'png').catch((error: NodeJS.ErrnoException) => {
    throw isNoFile(error) ? invalidOutputError(`${name}: ${error.code}`, source) : error;
  });
}

/**
 * Moves a file that a tool reads on standard input out of the folder that the tool can change, but only once. The file
 * is opened outside of the sandbox: inside its folder, the tool could replace it by a link to any other file.
 *
 * @returns the new path, beside the folder
 */
function moveOut(movedOut: RunningConversion['movedOut'], folder: string, name: string): Promise<string> {
  const path = `${folder}.${name}`;
  const moved =
    movedOut.get(name) ??
    workFiles(path)
      .rename(join(folder, name), path)
      .then(() => path);
  movedOut.set(name, moved);
  return moved;
}
