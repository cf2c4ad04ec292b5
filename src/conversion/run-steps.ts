/** @module Runs the commands of a plan in the folder of a conversion. */
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { TimeLimit } from '../errors.ts';
import type { Output, RunCommand } from '../process/command.ts';
import type { Tool, Toolchain } from '../process/toolchain.ts';
import { inspect } from './inspect/index.ts';
import { checkLimits } from './limits.ts';
import { assertNotRefused, invalidOutputError, toServiceError } from './output/tool-errors.ts';
import { isNoFile } from './output/verify.ts';
import type { ImageInfo } from './plan/image-info.ts';
import { renderSmaller } from './plan/rasterize.ts';
import type { ConvertOptions, Step, ToolContext } from './plan/types.ts';
import type { ConversionInput } from './types.ts';

/** Maximum time for rendering an SVG, in milliseconds. An SVG can take any time; real ones take far less than this. */
const SVG_TIMEOUT_MS = 15_000;
/** Maximum memory for rendering an SVG, in bytes. 50 megapixels take a fifth of it. */
const SVG_MAX_MEMORY = 1024 ** 3;

/** What {@link createStepRunner} needs. */
export interface StepRunnerDeps {
  readonly toolchain: Toolchain;
  readonly run: RunCommand;
  readonly config: Config;
}

/** A conversion whose commands are running. */
export interface RunningConversion {
  readonly source: ConversionInput;
  /** The machine, with the number of threads that the conversion may use. */
  readonly tools: ToolContext;
  readonly signal: AbortSignal;
  /** Time at which the conversion times out, on the clock of `performance.now()`. */
  readonly deadline: number;
  /** New paths of the files that were moved out of the folder, by name. */
  readonly movedOut: Map<string, string>;
}

/**
 * Runs commands one after another, and returns everything that they printed.
 *
 * @throws {ServiceError} that names the file, if a command fails or the policy forbids a part of it
 * @throws {ClientDisconnectedError} if the conversion is aborted
 */
export type RunSteps = (
  steps: readonly Step[],
  options: ConvertOptions,
  conversion: RunningConversion,
) => Promise<Output>;

/** Creates the function that runs the commands of a plan. */
export function createStepRunner({ toolchain, run, config }: StepRunnerDeps): RunSteps {
  const timeoutMs = config.CONVERT_TIMEOUT_MS;
  const timeLimit = ({ tool }: Step): TimeLimit =>
    tool === 'rsvg' && timeoutMs > SVG_TIMEOUT_MS
      ? { ms: SVG_TIMEOUT_MS }
      : { ms: timeoutMs, setting: 'CONVERT_TIMEOUT_MS' };

  async function runStep(
    step: Step,
    options: ConvertOptions,
    { source, signal, deadline, movedOut }: RunningConversion,
  ): Promise<Output> {
    const { folder, client } = source;
    const stdin = step.stdin !== undefined && { stdin: moveOut(movedOut, folder, step.stdin) };
    // Under the system call filter, librsvg cannot replace a file: GLib calls fchown and fchmod for that.
    if (step.rendersTo) rmSync(join(folder, step.rendersTo), { recursive: true, force: true });
    const remainingMs = Math.max(1, Math.ceil(deadline - performance.now()));
    try {
      return await run({
        file: (toolchain[step.tool] as Tool).path,
        args: step.args,
        cwd: folder,
        timeoutMs: Math.min(remainingMs, timeLimit(step).ms),
        signal,
        ...stdin,
        ...(step.tool === 'rsvg' && { memoryBytes: SVG_MAX_MEMORY }),
        ...(client !== undefined && { client }),
      });
    } catch (error) {
      throw toServiceError(error, step.tool, source, options.format, timeLimit(step));
    }
  }

  return async (steps, options, conversion) => {
    const { source } = conversion;
    const printed = { stdout: '', stderr: '' };
    const queue = [...steps];
    for (let step = queue.shift(); step; step = queue.shift()) {
      source.onCommand?.(step);
      const { stdout, stderr } = await runStep(step, options, conversion);
      printed.stdout += stdout;
      printed.stderr += stderr;
      if (step.rendersTo) {
        const rendered = await inspectRendered(source, step.rendersTo);
        checkLimits(rendered, options, config, source.label);
        const again = renderSmaller(step.rendersTo, rendered, options);
        if (again) queue.unshift(again);
      }
    }
    assertNotRefused(printed.stderr);
    return printed;
  };
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
function moveOut(movedOut: Map<string, string>, folder: string, name: string): string {
  const moved = movedOut.get(name);
  if (moved !== undefined) return moved;
  const path = `${folder}.${name}`;
  renameSync(join(folder, name), path);
  movedOut.set(name, path);
  return path;
}
