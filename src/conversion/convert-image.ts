/** @module Plans the conversion of one image, and converts it: decode, plan, run the commands, verify the result. */

import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { serviceError, serviceErrorFrom, type TimeLimit } from '../errors.ts';
import { INPUTS, OUTPUTS } from '../formats.ts';
import type { RepairContext } from '../images/containers/file.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/inspect.ts';
import type { Output, RunCommand } from '../process/command.ts';
import type { Tool, Toolchain } from '../process/toolchain.ts';
import { decodeInProcess } from './decode-in-process.ts';
import { readDecoded } from './decoded.ts';
import { checkLimits } from './limits.ts';
import { addJxlMetadata } from './output/jxl-metadata.ts';
import { correctPdfTitle } from './output/pdf-title.ts';
import {
  assertAllFramesRead,
  collectNotes,
  isNoFile,
  keptMetadata,
  type VerifiedOutput,
  verifyOutput,
} from './output/result.ts';
import {
  assertNotDenied,
  explainRareEncoding,
  invalidOutputError,
  toServiceError,
  UNREADABLE_KINDS,
} from './output/tool-errors.ts';
import { planDecoding } from './plan/decoders.ts';
import { findMisread, plan, planAgain, planMeasuring, toolsFor } from './plan/index.ts';
import { renderSmaller } from './plan/rasterize.ts';
import { type ConvertOptions, type Plan, type Step, TO_ENCODE, type ToolContext } from './plan/types.ts';
import { repairAfterError } from './repair-after-error.ts';
import { type EncodedOutput, encodeWithin } from './search-quality.ts';
import type { ConversionInput, ConversionResult } from './types.ts';

/** What {@link createImageConverter} needs. */
export interface ImageConverterDeps {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly run: RunCommand;
}

/** A conversion whose commands are running. */
interface RunningConversion {
  readonly source: ConversionInput;
  /** Limits of the repairs of the file. */
  readonly repairs: RepairContext;
  /** The machine, with the number of threads that the conversion may use. */
  readonly tools: ToolContext;
  readonly signal: AbortSignal;
  /** Time at which the conversion times out, on the clock of `performance.now()`. */
  readonly deadline: number;
  /** New paths of the files that were moved out of the folder, by name. */
  readonly movedOut: Map<string, string>;
}

/** Plans and runs conversions of images that were inspected. */
export interface ImageConverter {
  /**
   * Plans a conversion.
   *
   * @throws {ServiceError} if the image exceeds a limit, or if it cannot be converted on this machine
   */
  planConversion(
    image: ImageInfo,
    source: ConversionInput,
    options: ConvertOptions,
    tools: ToolContext,
  ): Plan;
  /**
   * Converts an image.
   *
   * @throws {ServiceError} that names the file
   * @throws {ClientDisconnectedError} if the conversion is aborted
   */
  convertImage(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<Omit<ConversionResult, 'queuedMs' | 'preparedMs' | 'convertedMs'>>;
}

const CONTRADICTORY = new Error('the parts of the header contradict each other about the size');

/** Creates the functions that plan and run conversions. */
export function createImageConverter(deps: ImageConverterDeps): ImageConverter {
  const { toolchain, config } = deps;
  const runSteps = createStepRunner(deps);

  const planConversion: ImageConverter['planConversion'] = (
    image,
    { type, label, readsMisread },
    options,
    tools,
  ) => {
    checkLimits(image, options, config, label);
    if (image.contradictory)
      throw serviceErrorFrom(CONTRADICTORY, 'CORRUPT_IMAGE', label, INPUTS[type].label);
    const misread = readsMisread ? undefined : findMisread(image, options, tools);
    if (misread) throw serviceError('UNSUPPORTED_ENCODING', label, misread);
    if (image.unreadable)
      throw serviceError('UNSUPPORTED_ENCODING', label, UNREADABLE_KINDS[image.unreadable]);
    const planned = plan(image, options, tools);
    const needed = [
      ...toolsFor(image.type, options.format, tools.magick),
      ...planned.steps.map(({ tool }) => tool),
    ];
    if (needed.some((tool) => !toolchain[tool]))
      throw serviceError('CONVERSION_UNSUPPORTED', label, INPUTS[type].label, OUTPUTS[options.format].label);
    return planned;
  };

  /** Converts a file that ImageMagick cannot read to PNG, and inspects the PNG. */
  async function decodeFirst(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<ImageInfo> {
    const { source, signal, deadline } = conversion;
    if (image.decoder)
      return decodeInProcess(image.decoder, image, source, {
        signal,
        deadline,
        limit: conversionLimit(config),
      });
    const decoding = planDecoding(image, conversion.tools);
    if (!decoding) return image;
    await runSteps([decoding.step], options, conversion);
    const keepsMetadata = !options.stripMetadata;
    return readDecoded(image, source.folder, decoding.output, config, keepsMetadata).catch((error) => {
      throw isNoFile(error) || error.code === 'EEXIST'
        ? invalidOutputError(`${decoding.output}: ${error.code}`, source)
        : error;
    });
  }

  /** Renders an SVG to find out its size, if the plan depends on it and the header does not state it reliably. */
  async function measure(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<ImageInfo> {
    const step = planMeasuring(image, options);
    if (!step) return image;
    const ownSize = { format: 'png', width: undefined, height: undefined, fit: undefined } as const;
    await runSteps([step], { ...options, ...ownSize }, conversion);
    const { width = 0, height = 0 } = await inspectRendered(conversion.source, step.rendersTo as string);
    return { ...image, width, height, styled: false };
  }

  /** Converts an image, at several qualities if its size is limited. */
  async function encode(
    image: ImageInfo,
    options: ConvertOptions,
    conversion: RunningConversion,
  ): Promise<Omit<ConversionResult, 'queuedMs' | 'preparedMs' | 'convertedMs'>> {
    const { source, tools } = conversion;
    const planned = planConversion(image, source, options, tools);
    const printed = { stdout: '', stderr: '' };
    const make = async ({ steps, output }: Plan, attempt: ConvertOptions) => {
      const { stdout, stderr } = await runSteps(steps, attempt, conversion);
      printed.stdout += stdout;
      printed.stderr += stderr;
      assertAllFramesRead(image, stdout, source);
      const verified = verifyOutput(source, attempt, output);
      if (attempt.format === 'pdf') correctPdfTitle(verified.path);
      if (attempt.format !== 'jxl' || attempt.stripMetadata) return verified;
      return addJxlMetadata(verified, join(source.folder, TO_ENCODE));
    };
    const first = (): Promise<VerifiedOutput> => make(planned, options);
    const again = (attempt: ConvertOptions): Promise<VerifiedOutput> =>
      make(planAgain(image, attempt, tools), attempt);
    const { maxBytes } = options;
    const result: VerifiedOutput & Partial<EncodedOutput> =
      maxBytes === undefined
        ? await first()
        : await encodeWithin(maxBytes, options, source.label, first, again);
    const kept = await keptMetadata(image, result.path, options);
    const lowered = result.quality !== undefined && result.quality < options.quality;
    return { ...result, notes: collectNotes(planned.notes, printed, { kept, lowered }) };
  }

  return {
    planConversion,
    async convertImage(image, options, conversion) {
      const { source, repairs } = conversion;
      const decoded = await decodeFirst(image, options, conversion);
      const known = await measure(decoded, options, conversion);
      return encode(known, options, conversion).catch(async (error) => {
        const repaired = await repairAfterError(error, known, source.folder, repairs);
        if (!repaired) throw explainRareEncoding(error, known, source);
        return encode(repaired, options, conversion);
      });
    },
  };
}

/** Returns the time limit of a conversion. */
const conversionLimit = ({ CONVERT_TIMEOUT_MS: ms }: Config): TimeLimit => ({
  ms,
  setting: 'CONVERT_TIMEOUT_MS',
});

/** Maximum time for rendering an SVG, in milliseconds. An SVG can take any time; real ones take far less than this. */
const SVG_TIMEOUT_MS = 15_000;
/** Maximum memory for rendering an SVG, in bytes. 50 megapixels take a fifth of it. */
const SVG_MAX_MEMORY = 1024 ** 3;

/**
 * Runs commands one after another, and returns everything that they printed.
 *
 * @throws {ServiceError} that names the file, if a command fails or the policy forbids a part of it
 * @throws {ClientDisconnectedError} if the conversion is aborted
 */
type RunSteps = (
  steps: readonly Step[],
  options: ConvertOptions,
  conversion: RunningConversion,
) => Promise<Output>;

/** Creates the function that runs the commands of a plan. */
function createStepRunner({ toolchain, run, config }: ImageConverterDeps): RunSteps {
  const timeoutMs = config.CONVERT_TIMEOUT_MS;
  const timeLimit = ({ tool }: Step): TimeLimit =>
    tool === 'rsvg' && timeoutMs > SVG_TIMEOUT_MS ? { ms: SVG_TIMEOUT_MS } : conversionLimit(config);

  async function runStep(
    step: Step,
    options: ConvertOptions,
    { source, signal, deadline, movedOut }: RunningConversion,
  ): Promise<Output> {
    const { folder } = source;
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
        const again = renderSmaller(step, step.rendersTo, rendered, options);
        if (again) queue.unshift(again);
      }
    }
    assertNotDenied(printed.stderr);
    return printed;
  };
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
function moveOut(movedOut: Map<string, string>, folder: string, name: string): string {
  const moved = movedOut.get(name);
  if (moved !== undefined) return moved;
  const path = `${folder}.${name}`;
  renameSync(join(folder, name), path);
  movedOut.set(name, path);
  return path;
}
