/** @module Runs the commands of a plan, within the time and the memory of a conversion. */
import { join } from 'node:path';
import { workFiles } from '../../files/workspace.ts';
import { isTurnOver, waitForTurn } from '../../images/containers/event-loop.ts';
import type { ImageInfo } from '../../images/image-info.ts';
import { inspect } from '../../images/index.ts';
import type { Output } from '../../process/command.ts';
import type { Tool } from '../../process/toolchain.ts';
import { TOOLS } from '../../tables/tools.ts';
import type { ConversionInput, RunningConversion } from '../context.ts';
import { movedInput, repairAfterError } from '../input/inspect.ts';
import { checkLimits, conversionLimit } from '../limits/limits.ts';
import {
  assertNotDenied,
  explainByDisk,
  explainFailure,
  invalidOutputError,
  isNoFile,
  translateToolError,
} from '../output/tool-errors.ts';
import { planAnew } from '../plan/index.ts';
import { kindsOf } from '../plan/job.ts';
import { renderSmaller } from '../plan/rasterize.ts';
import { countPages, extentOf } from '../plan/size.ts';
import { completeStep, nameFile, outputsOf, type Step } from '../plan/step.ts';
import { type ConversionJob, INPUT_FILE, type PlannedJob } from '../plan/types.ts';

/** Maximum time for rendering an SVG, in ms. It can take any time; real ones take far less. */
const SVG_TIMEOUT_MS = 15_000;
/** Maximum memory for rendering an SVG, in bytes. 50 megapixels take a fifth of it. */
const SVG_MAX_MEMORY = 1024 ** 3;

/** Maximum number of files in the folder of a conversion, besides two for each frame or page. */
const MAX_NAMES = 1000;

/**
 * Runs commands one after another, and returns what they printed on standard output, and
 * ImageMagick on standard error.
 *
 * @throws {ServiceError} that names the file, if a command fails or the policy forbids a part of it
 * @throws {ClientDisconnectedError} if the conversion is aborted
 */
export async function runSteps(
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
    // Only warnings of ImageMagick are parsed, without other lines, such as cjxl prints.
    if (next.tool === 'magick') printed.stderr += stderr;
    if (next.rendersTo) {
      const rendered = await inspectRendered(source, nameFile(next.rendersTo, job.suffix));
      const whole = { crop: undefined, trim: undefined, scale: undefined };
      checkLimits(extentOf(rendered, { ...job.options, ...whole }), config, source.label);
      const again = renderSmaller(job, rendered);
      if (again) queue.unshift(again);
    }
  }
  if (printed.stderr !== '') assertNotDenied(printed.stderr);
  return printed;
}

/** Runs one command, and returns what it printed. Throws the errors of {@link runSteps}. */
export async function runStep(
  given: Step,
  job: ConversionJob,
  conversion: RunningConversion,
): Promise<Output> {
  const { source, config, toolchain, run: runCommand, deadline, signal, maxBytes } = conversion;
  const { folder } = source;
  const { image, options, suffix } = job;
  const step = completeStep(given, conversion, suffix);
  const { tool, args, stdin, stdout, rendersTo, deflateLevel } = step;
  source.onCommand?.(step);
  if (isTurnOver()) await waitForTurn(); // completing 100 000 arguments takes 20 ms, and sending them as long
  const isSvg = tool === 'rsvg';
  const limit =
    isSvg && config.CONVERT_TIMEOUT_MS > SVG_TIMEOUT_MS
      ? { ms: SVG_TIMEOUT_MS, work: 'SVGs' }
      : conversionLimit(config);
  // Under the filter, librsvg cannot replace a file: GLib calls fchown and fchmod for that.
  if (rendersTo) await workFiles(folder).rm(join(folder, rendersTo), { recursive: true, force: true });
  const remainingMs = Math.max(1, Math.ceil(deadline - performance.now()));
  return runCommand({
    file: (toolchain[tool] as Tool).path,
    args,
    cwd: folder,
    timeoutMs: Math.min(remainingMs, limit.ms),
    signal,
    outputs: outputsOf(step, job),
    maxBytes,
    maxNames: MAX_NAMES + 2 * (image.animation?.delaysMs.length ?? countPages(image)),
    stdin: stdin && movedInput(folder),
    stdout,
    env: TOOLS[tool].env,
    deflateLevel,
    memoryBytes: isSvg ? SVG_MAX_MEMORY : undefined,
  }).catch(async (error) => {
    throw await explainByDisk(translateToolError(error, tool, source, limit, options.format), source);
  });
}

/**
 * Inspects the PNG that librsvg rendered.
 *
 * @throws {ServiceError} if librsvg reported success, but wrote no file
 */
export function inspectRendered(source: ConversionInput, name: string): Promise<ImageInfo> {
  return inspect(join(source.folder, name), 'png').catch((error: NodeJS.ErrnoException) => {
    throw isNoFile(error) ? invalidOutputError(`${name}: ${error.code}`, source) : error;
  });
}

/**
 * Does a part of a conversion, and once more if the image can be repaired after an error.
 *
 * @throws {ServiceError} that names the kind of the file, if this explains the error
 */
export async function withRepair<J extends ConversionJob, T>(
  job: J,
  running: RunningConversion,
  work: (job: J | PlannedJob) => Promise<T>,
): Promise<T> {
  try {
    return await work(job);
  } catch (error) {
    const image = await repair(error as Error, job, running);
    if (!image) throw explainFailure(error as Error, kindsOf(job), running.source);
    return work(planAnew(job, image));
  }
}

/** Repairs the image after an error; see {@link repairAfterError}. */
export const repair = (error: Error, job: ConversionJob, { source, repairs }: RunningConversion) =>
  repairAfterError(error, job, source.folder, repairs);

/**
 * Moves the file that librsvg reads on standard input out of the folder that the tool can change.
 * The file is opened outside of the sandbox: inside its folder, the tool could replace it by a link
 * to any other file.
 */
export const moveOut = (folder: string): Promise<void> =>
  workFiles(folder).rename(join(folder, INPUT_FILE), movedInput(folder));
