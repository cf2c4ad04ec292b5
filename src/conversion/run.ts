/** @module Runs the jobs of a file: decodes what ImageMagick cannot read, measures what no header states, and encodes. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isFileError, ServiceError } from '../errors.ts';
import { workFiles } from '../files/workspace.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/index.ts';
import { MAX_ARGUMENT_BYTES, type Output } from '../process/command.ts';
import type { Tool } from '../process/toolchain.ts';
import { admitTogether, checkLimits, conversionLimit, longestCommand, planResult } from './admit.ts';
import { completeInput, readDecoded } from './decoded.ts';
import { movedInput, repairAfterError } from './inspect.ts';
import { DEFAULT_OPTIONS } from './options.ts';
import {
  type CheckedResult,
  checkResult,
  collectNotes,
  inspectResult,
  isNoFile,
  keptMetadata,
} from './output/result.ts';
import {
  assertNotDenied,
  explainFailure,
  invalidOutputError,
  translateToolError,
} from './output/tool-errors.ts';
import { choosePoint, REDUCED_BYTES } from './plan/attention.ts';
import { iconSize } from './plan/encode.ts';
import { canShare, planAgain, planAnew, planTogether, selectPrinted } from './plan/index.ts';
import { kindsOf } from './plan/job.ts';
import { toPosition } from './plan/position.ts';
import { renderSmaller } from './plan/rasterize.ts';
import { countPages, extentOf } from './plan/size.ts';
import { completeStep, nameFile, outputsOf, type Step } from './plan/step.ts';
import { MEASURED_FILE, parseTrimmed } from './plan/trim.ts';
import {
  type ConversionJob,
  DECODED_FILE,
  type Fitting,
  INPUT_FILE,
  type PlannedJob,
  RASTERIZED_FILE,
} from './plan/types.ts';
import { encodeWithin } from './search-quality.ts';
import { type Attempt, attemptEach, valuesOf } from './targets.ts';
import type { ConversionInput, ConversionResult, RunningConversion } from './types.ts';
import { watermarkEach } from './watermark.ts';

/** A result, without what its conversion adds. */
export type Converted = Omit<ConversionResult, 'key' | 'queuedMs' | 'preparedMs' | 'convertedMs'>;

type Jobs = readonly Attempt<PlannedJob>[];

/** Converts a file to its results. */
export async function run(planned: Jobs, running: RunningConversion): Promise<Attempt<Converted>[]> {
  const [first] = valuesOf(planned);
  if (first?.image.type === 'svg') await moveOut(running.source.folder);
  const measured = await measure(await decodeFirst(planned, running), running);
  const chosen = await chooseParts(await trimEach(measured, running), running);
  return encodeAll(await watermarkEach(chosen, running, run), running);
}

/**
 * Moves the file that librsvg reads on standard input out of the folder that the tool can change. The file is opened outside of the
 * sandbox: inside its folder, the tool could replace it by a link to any other file.
 */
const moveOut = (folder: string): Promise<void> =>
  workFiles(folder).rename(join(folder, INPUT_FILE), movedInput(folder));

/** Plans all results again, from what a command has shown of the image. */
function replan(image: ImageInfo, jobs: Jobs, running: RunningConversion): Promise<Attempt<PlannedJob>[]> {
  return attemptEach(jobs, running, ({ options }, suffix) => planResult(image, options, suffix, running));
}

/** Converts a file that ImageMagick cannot read to PNG, and inspects the PNG. */
async function decodeFirst(jobs: Jobs, running: RunningConversion): Promise<Jobs> {
  const { source, config } = running;
  const all = valuesOf(jobs);
  const [first] = all;
  if (!first) return jobs;
  const { image, plan } = first;
  if (image.incomplete) {
    const completed = await completeInput(running);
    return replan({ ...completed, copyright: image.copyright }, jobs, running);
  }
  if (!plan.decoding) return jobs;
  await runSteps([plan.decoding], first, running).catch((error) => {
    throw explainFailure(error, kindsOf(first), source);
  });
  const keepsMetadata = all.some(({ options }) => options.metadata === 'all');
  const decoded = await readDecoded(image, source.folder, DECODED_FILE, config, keepsMetadata).catch(
    (error) => {
      throw isNoFile(error) || error.code === 'EEXIST'
        ? invalidOutputError(`${DECODED_FILE}: ${error.code}`, source)
        : error;
    },
  );
  return replan(decoded, jobs, running);
}

/** Renders an SVG to find out its size, if a plan depends on it and the header does not state it reliably. */
async function measure(jobs: Jobs, running: RunningConversion): Promise<Jobs> {
  const { source, config } = running;
  const job = valuesOf(jobs).find(({ plan }) => plan.measuring);
  if (job?.image.type !== 'svg' || !job.plan.measuring) return jobs;
  const { stderr } = await runStep(job.plan.measuring, job, running);
  assertNotDenied(stderr);
  const rendered = await inspectRendered(source, RASTERIZED_FILE);
  checkLimits(extentOf(rendered, { ...DEFAULT_OPTIONS, format: 'png' }), config, source.label);
  const { width = 0, height = 0 } = rendered;
  return replan({ ...job.image, width, height, styled: false }, jobs, running);
}

/** Measures what `trim` keeps. Results of the same part of the image share it. The size of a result can exceed the limits only now. */
async function trimEach(jobs: Jobs, running: RunningConversion): Promise<Jobs> {
  if (!valuesOf(jobs).some(({ plan }) => plan.trimming)) return jobs;
  const { config, source } = running;
  const found = new Map<string, string>();
  const trimmed = await attemptEach(jobs, running, async (job, suffix) => {
    const { trimming } = job.plan;
    if (!trimming) return job;
    checkLimits(trimming, config, source.label);
    const steps = JSON.stringify(trimming.plan.steps);
    const printed = found.get(steps) ?? (await printTrimmed(job, running));
    found.set(steps, printed);
    const areas = parseTrimmed(printed, trimming);
    if (!areas) throw invalidOutputError('a frame was not measured', source);
    return planResult(job.image, { ...job.options, areas }, suffix, running);
  });
  admitTogether(valuesOf(trimmed), config, source.label);
  return trimmed;
}

/** Returns what the commands of `trim` print, and removes their files. */
const printTrimmed = (job: PlannedJob, running: RunningConversion): Promise<string> =>
  withRepair(job, running, async ({ plan: { trimming } }) => {
    const { folder } = running.source;
    if (!trimming) return '';
    try {
      return (await runSteps(trimming.plan.steps, trimming, running)).stdout;
    } finally {
      const written = trimming.plan.steps.flatMap((step) => outputsOf(step, trimming) ?? [MEASURED_FILE]);
      const paths = written.map((name) => join(folder, nameFile(name, trimming.suffix)));
      await Promise.all(paths.map((path) => workFiles(folder).rm(path, { recursive: true, force: true })));
    }
  });

/** Chooses what `position=attention` keeps. Results of the same part of the image share its reduced image. */
async function chooseParts(jobs: Jobs, running: RunningConversion): Promise<Jobs> {
  const bitmaps = new Map<string, Uint8Array>();
  return attemptEach(jobs, running, async (job) => {
    const { reducing } = job.plan;
    if (!reducing) return job;
    const steps = JSON.stringify(reducing.plan.steps);
    const bitmap = bitmaps.get(steps) ?? (await reduce(reducing, running));
    bitmaps.set(steps, bitmap);
    const position = toPosition(choosePoint(bitmap, job.fittings[0] as Fitting));
    return planAnew(job, { options: { ...job.options, position } });
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
  attempts: Jobs,
  running: RunningConversion,
  isRepaired = false,
): Promise<Attempt<Converted>[]> {
  const jobs = valuesOf(attempts);
  const [first] = jobs;
  const encodeEach = () => attemptEach(attempts, running, (job) => encodeOrRepair(job, running));
  const together = canShare(jobs) ? planTogether(jobs) : [];
  if (!first || together.length === 0 || longestCommand(together) > MAX_ARGUMENT_BYTES) return encodeEach();
  const shared = await runSteps(together, first, running).catch((error) => {
    if (!isFileError(error) || error.code === 'CONVERSION_TIMEOUT') throw error;
    return error;
  });
  if (!(shared instanceof ServiceError)) {
    const printedFor = (job: PlannedJob): Output => ({
      stdout: selectPrinted(shared.stdout, jobs.indexOf(job)),
      stderr: shared.stderr,
    });
    return attemptEach(attempts, running, (job) => encode(job, running, printedFor(job)));
  }
  const image = isRepaired ? undefined : await repair(shared, first, running);
  if (!image) return encodeEach();
  return encodeAll(await attemptEach(attempts, running, (job) => planAnew(job, { image })), running, true);
}

/** Repairs the image after an error; see {@link repairAfterError}. */
const repair = (error: Error, { image }: ConversionJob, { source, repairs }: RunningConversion) =>
  repairAfterError(error, image, source.folder, repairs);

const encodeOrRepair = (job: PlannedJob, running: RunningConversion): Promise<Converted> =>
  withRepair(job, running, (planned) => encode(planned, running));

/** Does a part of a conversion, and once more if the image can be repaired after an error. */
async function withRepair<T>(
  job: PlannedJob,
  running: RunningConversion,
  work: (job: PlannedJob) => Promise<T>,
): Promise<T> {
  try {
    return await work(job);
  } catch (error) {
    const image = await repair(error as Error, job, running);
    if (!image) throw explainFailure(error as Error, kindsOf(job), running.source);
    return work(planAnew(job, { image }));
  }
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
    return checkResult(running.source, attempt, printed.stdout);
  };
  const result: CheckedResult & { readonly quality?: number } =
    maxBytes === undefined
      ? await encodeAt(quality)
      : await encodeWithin(maxBytes, quality, running.source.label, encodeAt);
  const shown = await inspectResult(result.path, options.format);
  const kept = job.isTranscoded || keptMetadata(image, shown, options);
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
    const { stdout, stderr } = await runStep(next, job, conversion);
    printed.stdout += stdout;
    printed.stderr += stderr;
    if (next.rendersTo) {
      const rendered = await inspectRendered(source, nameFile(next.rendersTo, job.suffix));
      const whole = { crop: undefined, trim: undefined, areas: undefined, scale: undefined };
      const fitted = { ...job.options, ...whole };
      checkLimits(extentOf(rendered, fitted), config, source.label);
      const again = renderSmaller(job, rendered);
      if (again) queue.unshift(again);
    }
  }
  if (printed.stderr !== '') assertNotDenied(printed.stderr);
  return printed;
}

async function runStep(given: Step, job: ConversionJob, conversion: RunningConversion): Promise<Output> {
  const { source, config, toolchain, run: runCommand, deadline, signal, maxBytes } = conversion;
  const { folder } = source;
  const { image, options, suffix } = job;
  const step = completeStep(given, conversion, suffix);
  const { tool, args, stdin, rendersTo, deflateLevel } = step;
  source.onCommand?.(step);
  const isSvg = tool === 'rsvg';
  const limit =
    isSvg && config.CONVERT_TIMEOUT_MS > SVG_TIMEOUT_MS
      ? { ms: SVG_TIMEOUT_MS, work: 'SVGs' }
      : conversionLimit(config);
  // Under the system call filter, librsvg cannot replace a file: GLib calls fchown and fchmod for that.
  if (rendersTo) await workFiles(folder).rm(join(folder, rendersTo), { recursive: true, force: true });
  const remainingMs = Math.max(1, Math.ceil(deadline - performance.now()));
  return runCommand({
    file: (toolchain[tool] as Tool).path,
    ...{ args, cwd: folder, timeoutMs: Math.min(remainingMs, limit.ms), signal },
    ...{ outputs: outputsOf(step, job), maxBytes },
    maxNames: MAX_NAMES + 2 * (image.animation?.delaysMs.length ?? countPages(image)),
    ...(stdin !== undefined && { stdin: movedInput(folder) }),
    ...(deflateLevel !== undefined && { deflateLevel }),
    ...(isSvg && { memoryBytes: SVG_MAX_MEMORY }),
  }).catch((error) => {
    throw translateToolError(error, tool, source, limit, options.format);
  });
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
