/** @module Runs the commands of a plan in the folder of the input. */
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { TimeLimit } from '../errors.ts';
import { workFiles } from '../files/work-files.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/index.ts';
import type { Output, RunCommand } from '../process/command.ts';
import type { Tool, Toolchain } from '../process/toolchain.ts';
import { checkLimits } from './limits.ts';
import { isNoFile } from './output/result.ts';
import { assertNotDenied, invalidOutputError, toServiceError } from './output/tool-errors.ts';
import { createJob } from './plan/job.ts';
import { renderSmaller } from './plan/rasterize.ts';
import type { ConversionJob, Step } from './plan/types.ts';
import type { RunPart } from './queue/queue.ts';
import type { ConversionInput } from './types.ts';

/** A conversion whose commands are running. */
export interface RunningConversion {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly run: RunCommand;
  readonly source: ConversionInput;
  readonly signal: AbortSignal;
  /** Runs each command, again if another client has needed the slot of the conversion. */
  readonly runPart: RunPart;
  /** Time at which the conversion times out, on the clock of `performance.now()`. */
  deadline: number;
  /** New paths of the files that were moved out of the folder, by name. */
  readonly movedOut: Map<string, Promise<string>>;
}

/** Maximum time for rendering an SVG, in milliseconds. An SVG can take any time; real ones take far less than this. */
const SVG_TIMEOUT_MS = 15_000;
/** Maximum memory for rendering an SVG, in bytes. 50 megapixels take a fifth of it. */
const SVG_MAX_MEMORY = 1024 ** 3;

export const conversionLimit = ({ CONVERT_TIMEOUT_MS: ms }: Config): TimeLimit => ({
  ms,
  setting: 'CONVERT_TIMEOUT_MS',
});

/**
 * Runs commands one after another, and returns everything that they printed.
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
  for (let step = queue.shift(); step; step = queue.shift()) {
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
  assertNotDenied(printed.stderr);
  return printed;
}

async function runStep(
  { tool, args, stdin, rendersTo, deflateLevel }: Step,
  { options }: ConversionJob,
  conversion: RunningConversion,
): Promise<Output> {
  const { source, config, toolchain, run, runPart, movedOut } = conversion;
  const { folder } = source;
  const isSvg = tool === 'rsvg';
  const limit =
    isSvg && config.CONVERT_TIMEOUT_MS > SVG_TIMEOUT_MS ? { ms: SVG_TIMEOUT_MS } : conversionLimit(config);
  const input = stdin !== undefined && { stdin: await moveOut(movedOut, folder, stdin) };
  const attempt = async (signal: AbortSignal): Promise<Output> => {
    // Under the system call filter, librsvg cannot replace a file: GLib calls fchown and fchmod for that.
    if (rendersTo) await workFiles(folder).rm(join(folder, rendersTo), { recursive: true, force: true });
    const remainingMs = Math.max(1, Math.ceil(conversion.deadline - performance.now()));
    return run({
      file: (toolchain[tool] as Tool).path,
      args,
      cwd: folder,
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
    throw toServiceError(error, tool, source, options.format, limit);
  }
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
