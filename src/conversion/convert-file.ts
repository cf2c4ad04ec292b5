/** @module Converts one file: prepare, inspect, plan, queue, reserve, run, verify, describe. */
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { serviceError, serviceErrorFrom } from '../errors.ts';
import { removeFolder } from '../files/workspace.ts';
import { INPUTS, OUTPUTS } from '../formats.ts';
import type { RepairContext } from '../images/containers/file.ts';
import type { ImageInfo } from '../images/image-info.ts';
import type { RunCommand } from '../process/command.ts';
import { type ConversionQueue, createPartRunner, type Job } from '../process/queue.ts';
import { maxToolFileBytes } from '../process/sandbox/configure.ts';
import { isAtLeast, type Toolchain } from '../process/toolchain.ts';
import { decodeInProcess, readDecoded } from './decoded.ts';
import { checkLimits, estimateDiskBytes } from './limits.ts';
import { addJxlMetadata, correctPdfTitle } from './output/metadata.ts';
import {
  assertAllFramesRead,
  collectNotes,
  isNoFile,
  keptMetadata,
  type VerifiedOutput,
  verifyOutput,
} from './output/result.ts';
import { explainRareEncoding, invalidOutputError, UNREADABLE_KINDS } from './output/tool-errors.ts';
import { misreadLabel } from './plan/decoders.ts';
import { plan, planAgain, planDecoding, planMeasuring } from './plan/index.ts';
import { createJob } from './plan/job.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  DECODED_FILE,
  INPUT_FILE,
  RASTERIZED_FILE,
  TO_ENCODE,
  type ToolContext,
} from './plan/types.ts';
import { createRepairContext, prepareInput, repairAfterError } from './prepare.ts';
import { conversionLimit, inspectRendered, type RunningConversion, runSteps } from './run-steps.ts';
import { encodeWithin } from './search-quality.ts';
import type { ConversionEvent, ConversionInput, ConversionResult, Convert } from './types.ts';

/** What {@link createConvert} needs. */
export interface ConvertDeps {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly run: RunCommand;
  readonly queue: ConversionQueue;
  /** Absolute path of an sRGB profile. */
  readonly srgbProfile: string;
  /** Maximum number of threads of a conversion. It uses those that no other conversion needs when it starts. */
  readonly maxThreads: number;
  /** Called when a conversion has finished. */
  readonly onFinished?: (conversion: ConversionEvent) => void;
}

/**
 * Oldest version of ImageMagick with which this project has tested `-alpha off-if-opaque`. Early releases of ImageMagick 7 do
 * not have it.
 */
const DROPS_OPAQUE_ALPHA_SINCE = '7.1.1-43';

/** libjxl 0.7 states 8 bits for every alpha channel (https://github.com/libjxl/libjxl/pull/1786). */
const STATES_DEEP_ALPHA_SINCE = '0.8';

/**
 * Maximum number of files that are prepared at once. Preparing one can take 60 MB, for the unpacked text of an SVG, all of its
 * tags, or a GIF. Files of clients are prepared in turn, like their conversions.
 */
export const MAX_PREPARATIONS = 4;

/** Creates the function that converts files. */
export function createConvert(deps: ConvertDeps): Convert {
  const { magick, cjxl } = deps.toolchain;
  const tools: ToolContext = {
    magick: magick?.major ?? 7,
    dropsOpaqueAlpha: magick !== undefined && isAtLeast(magick.version, DROPS_OPAQUE_ALPHA_SINCE),
    statesDeepAlpha: cjxl !== undefined && isAtLeast(cjxl.version, STATES_DEEP_ALPHA_SINCE),
    srgbProfile: deps.srgbProfile,
  };
  return async (source, options, signal, group) => {
    const progress: Progress = {
      inputBytes: inputSize(source),
      preparedMs: 0,
      queuedMs: undefined,
      startedAt: 0,
    };
    const repairs = createRepairContext(source, deps.config.MAX_FILE_BYTES, (bytes) => {
      progress.inputBytes += bytes;
    });
    return convertFile({ ...deps, tools, source, options, signal, repairs, progress }, group);
  };
}

/** A conversion, from its arrival to its result. */
interface Conversion extends ConvertDeps {
  readonly tools: ToolContext;
  readonly source: ConversionInput;
  readonly options: ConvertOptions;
  readonly signal: AbortSignal;
  /** Limits of the repairs of the input. */
  readonly repairs: RepairContext;
  readonly progress: Progress;
}

/** What is known of a conversion so far. */
interface Progress {
  /** Bytes of the input for which disk space is reserved. A repair can change them. */
  inputBytes: number;
  preparedMs: number;
  /** Time in the queue, in milliseconds. Undefined before the conversion starts. */
  queuedMs: number | undefined;
  /** Time at which the conversion started, on the clock of `performance.now()`. */
  startedAt: number;
}

type Converted = Omit<ConversionResult, 'queuedMs' | 'preparedMs' | 'convertedMs'>;

async function convertFile(conversion: Conversion, group: object | undefined): Promise<ConversionResult> {
  const { source, signal, queue, progress } = conversion;
  const owner = { signal, client: source.client, group };
  try {
    const converted = await queue.prepareAndRun(() => prepare(conversion), owner);
    const { queuedMs = 0, preparedMs } = progress;
    return { ...converted, queuedMs, preparedMs, convertedMs: report(conversion) };
  } catch (error) {
    report(conversion, error);
    throw error;
  } finally {
    await discardSource(source, progress.inputBytes);
  }
}

/** Prepares, inspects and plans. Returns the job that the queue runs when a slot is free. */
async function prepare(conversion: Conversion): Promise<Job<Converted>> {
  const { source, options, config, maxThreads, repairs, progress } = conversion;
  const started = performance.now();
  const image = await prepareInput(source, options, repairs);
  const job = createAcceptedJob(image, conversion);
  const bytes = estimateDiskBytes(job, inputSize(source)) ?? maxToolFileBytes(config);
  progress.preparedMs = performance.now() - started;
  return (queuedMs, idleSlots, slot) => {
    progress.queuedMs = queuedMs;
    progress.startedAt = performance.now();
    // Recorded commands must not depend on the load of the machine.
    const threads = source.onCommand ? 1 : Math.min(1 + idleSlots, maxThreads);
    const tools = { ...job.tools, threads };
    const runPart = createPartRunner(slot, conversion.signal, (lostMs) => {
      progress.queuedMs = queuedMs + lostMs;
      progress.startedAt += lostMs;
      running.deadline += lostMs;
    });
    const deadline = progress.startedAt + config.CONVERT_TIMEOUT_MS;
    const running = { ...conversion, tools, runPart, deadline, movedOut: new Map() };
    return withReservation(source, bytes, () => runJob({ ...job, tools }, running));
  };
}

const inputSize = ({ folder }: ConversionInput): number => statSync(join(folder, INPUT_FILE)).size;

const CONTRADICTORY = new Error('the parts of the header contradict each other about the size');

/**
 * Derives the job of an image.
 *
 * @throws {ServiceError} if the image exceeds a limit, or if it cannot be converted on this machine
 */
function createAcceptedJob(
  image: ImageInfo,
  { source, options, tools, config, toolchain }: Conversion,
): ConversionJob {
  const { type, label, readsMisread } = source;
  const job = createJob(image, options, tools);
  checkLimits(job, config, label);
  const isUnknown = options.crop !== undefined && type !== 'svg' && !job.decoder && job.fittings.length === 0;
  if (image.contradictory || isUnknown)
    throw serviceErrorFrom(CONTRADICTORY, 'CORRUPT_IMAGE', label, INPUTS[type].label);
  const misread = readsMisread ? undefined : misreadLabel(job);
  if (misread) throw serviceError('UNSUPPORTED_ENCODING', label, misread);
  if (image.unreadable) throw serviceError('UNSUPPORTED_ENCODING', label, UNREADABLE_KINDS[image.unreadable]);
  if ([job.decoder, ...job.programs].some((tool) => tool && !toolchain[tool]))
    throw serviceError('CONVERSION_UNSUPPORTED', label, INPUTS[type].label, OUTPUTS[options.format].label);
  return job;
}

/** A conversion that has got a slot. `tools` has the number of threads that it may use. */
type Running = Conversion & RunningConversion;

/** Decodes what ImageMagick cannot read, measures what no header states, and encodes. */
async function runJob(planned: ConversionJob, running: Running): Promise<Converted> {
  const job = await measure(await decodeFirst(planned, running), running);
  try {
    return await encode(job, running);
  } catch (error) {
    const { source, repairs } = running;
    const repaired = await repairAfterError(error as Error, job.image, source.folder, repairs);
    if (!repaired) throw explainRareEncoding(error as Error, job.image, source);
    return encode(createAcceptedJob(repaired, running), running);
  }
}

/** Converts a file that ImageMagick cannot read to PNG, and inspects the PNG. */
async function decodeFirst(job: ConversionJob, running: Running): Promise<ConversionJob> {
  const { source, config, signal, deadline } = running;
  const { image, options } = job;
  if (image.decoder) {
    const limits = { signal, deadline, limit: conversionLimit(config) };
    return createAcceptedJob(await decodeInProcess(image.decoder, image, source, limits), running);
  }
  const decoding = planDecoding(job);
  if (!decoding) return job;
  await runSteps([decoding], job, running);
  const decoded = await readDecoded(
    ...([image, source.folder, DECODED_FILE, config, !options.stripMetadata] as const),
  ).catch((error) => {
    throw isNoFile(error) || error.code === 'EEXIST'
      ? invalidOutputError(`${DECODED_FILE}: ${error.code}`, source)
      : error;
  });
  return createAcceptedJob(decoded, running);
}

/** Renders an SVG to find out its size, if the plan depends on it and the header does not state it reliably. */
async function measure(job: ConversionJob, running: Running): Promise<ConversionJob> {
  const { image } = job;
  const step = planMeasuring(job);
  if (image.type !== 'svg' || !step) return job;
  const ownSize = {
    format: 'png',
    width: undefined,
    height: undefined,
    fit: undefined,
    crop: undefined,
  } as const;
  await runSteps([step], { ...job, options: { ...job.options, ...ownSize } }, running);
  const { width = 0, height = 0 } = await inspectRendered(running.source, RASTERIZED_FILE);
  return createAcceptedJob({ ...image, width, height, styled: false }, running);
}

/** Converts an image, at several qualities if its size is limited, and describes the result. */
async function encode(job: ConversionJob, running: Running): Promise<Converted> {
  const { image, options } = job;
  const { maxBytes, quality } = options;
  const planned = plan(job);
  const printed = { stdout: '', stderr: '' };
  const encodeAt = async (tried: number): Promise<VerifiedOutput> => {
    const attempt = { ...job, options: { ...options, quality: tried } };
    const steps = tried === quality ? planned.steps : [planAgain(attempt)];
    const { stdout, stderr } = await runSteps(steps, attempt, running);
    printed.stdout += stdout;
    printed.stderr += stderr;
    return verify(attempt, stdout, running.source);
  };
  const result: VerifiedOutput & { readonly quality?: number } =
    maxBytes === undefined
      ? await encodeAt(quality)
      : await encodeWithin(maxBytes, quality, running.source.label, encodeAt);
  const kept = await keptMetadata(image, result.path, options);
  const lowered = result.quality !== undefined && result.quality < quality;
  return { ...result, notes: collectNotes(planned.notes, printed, { kept, lowered }) };
}

/** Verifies the result, and completes its metadata. */
async function verify(job: ConversionJob, stdout: string, source: ConversionInput): Promise<VerifiedOutput> {
  const { image, options, output } = job;
  assertAllFramesRead(image, stdout, source);
  const verified = verifyOutput(source, options, output);
  if (options.format === 'pdf') correctPdfTitle(verified.path);
  if (options.format !== 'jxl' || options.stripMetadata) return verified;
  return addJxlMetadata(verified, join(source.folder, TO_ENCODE));
}

/** Reports a finished conversion. Returns the time since its start, in milliseconds. */
function report({ source, options, onFinished, progress }: Conversion, error?: unknown): number {
  const { queuedMs, startedAt } = progress;
  const ms = performance.now() - startedAt;
  const { type: input, client } = source;
  const ranMs = queuedMs === undefined ? undefined : ms;
  onFinished?.({ input, output: options.format, client, error, queuedMs, ranMs });
  return ms;
}

/** Removes an input and releases its disk space. Files that cannot be removed are removed with the request. */
export async function discardSource({ folder, disk }: ConversionInput, bytes: number): Promise<void> {
  rmSync(`${folder}.${INPUT_FILE}`, { force: true }); // if a tool has read it on standard input
  await removeFolder(folder).catch(() => {});
  disk?.release(bytes);
}

/** Reserves disk space during a conversion. Afterwards, only the bytes of the result stay reserved. */
async function withReservation(
  { disk }: ConversionInput,
  maxBytes: number,
  convert: () => Promise<Converted>,
): Promise<Converted> {
  const settle = await disk?.reserve(maxBytes);
  let bytes = 0;
  try {
    const result = await convert();
    bytes = result.bytes;
    return result;
  } finally {
    settle?.(bytes);
  }
}
