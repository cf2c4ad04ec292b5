/** @module Converts one file: queues it, prepares and plans it, reserves disk space, and runs its jobs. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { KnownResultError } from '../errors.ts';
import { removeFolder, workFiles } from '../files/workspace.ts';
import { maxToolFileBytes } from '../process/sandbox/configure.ts';
import { isAtLeast, type Toolchain } from '../process/toolchain.ts';
import {
  acceptJobs,
  estimateDiskBytes,
  type FileConversion,
  maxFolderBytes,
  type RunningConversion,
  type Target,
} from './accept-jobs.ts';
import { type Explanation, explainJob } from './explain.ts';
import { canonicalPlan, conversionKey, digestOf } from './key.ts';
import { type ConvertOptions, INPUT_FILE, type PlannedJob, type ToolContext } from './plan/types.ts';
import { createRepairContext, preparationKind, prepareInput, resolveFormat } from './prepare.ts';
import { type ConversionQueue, createPartRunner, type RunJob } from './queue/queue.ts';
import { type Converted, runJobs } from './run-jobs.ts';
import type {
  ConversionEvent,
  ConversionInput,
  ConversionOutcome,
  ConversionResult,
  Convert,
  ConvertVariants,
  Machine,
  Variant,
} from './types.ts';

interface ConvertDeps extends Machine {
  readonly queue: Pick<ConversionQueue, 'prepareAndRun'>;
  /** Maximum number of threads of a conversion. It uses those that no other conversion needs when it starts. */
  readonly maxThreads: number;
  /** Called when a conversion has finished. */
  readonly onFinished?: ((conversion: ConversionEvent) => void) | undefined;
}

/**
 * Oldest version of ImageMagick with which this project has tested `-alpha off-if-opaque`. Early releases of ImageMagick 7 do
 * not have it.
 */
const DROPS_OPAQUE_ALPHA_SINCE = '7.1.1-43';

/** libjxl 0.7 states 8 bits for every alpha channel (https://github.com/libjxl/libjxl/pull/1786). */
const STATES_DEEP_ALPHA_SINCE = '0.8';

/** The functions that convert a file, to one result or to several, and the one that only plans. */
export type FileConverter = ReturnType<typeof createConvert>;

/** Returns the properties of the tools that plans depend on. */
export function toolContext({ magick, cjxl, dwebp, img2webp }: Toolchain): ToolContext {
  return {
    magick: magick?.major ?? 7,
    dropsOpaqueAlpha: magick !== undefined && isAtLeast(magick.version, DROPS_OPAQUE_ALPHA_SINCE),
    scalesWebp: dwebp !== undefined,
    assemblesWebp: img2webp !== undefined,
    statesDeepAlpha: cjxl !== undefined && isAtLeast(cjxl.version, STATES_DEEP_ALPHA_SINCE),
  };
}

/** Creates the functions that convert files. */
export function createConvert(deps: ConvertDeps) {
  const convertVariants: ConvertVariants = async (source, variants, onError, signal, group) =>
    convertFile(openConversion({ ...deps, source, onError, signal }, variants), group);
  const convert: Convert = async (source, options, signal, group) => {
    const [outcome] = await convertVariants(source, onlyResult(options), 'fail', signal, group);
    return (outcome as { converted: ConversionResult }).converted;
  };
  return {
    convert,
    convertVariants,
    /**
     * States what {@link Convert} would do. Removes the input.
     *
     * @throws {ServiceError} that names the file
     */
    async explain(source: ConversionInput, options: ConvertOptions): Promise<Explanation> {
      const { signal } = new AbortController();
      const conversion = openConversion({ ...deps, source, onError: 'fail', signal }, onlyResult(options));
      try {
        const { digest, jobs } = await prepareJobs(conversion);
        return explainJob(jobs[0] as PlannedJob, digest, deps);
      } finally {
        await discardSource(source, conversion.progress.inputBytes);
      }
    },
  };
}

/** Returns the options of a file with one result, as a list of variants. The only variant has no name in messages. */
const onlyResult = (options: ConvertOptions): Variant[] => [{ name: '', options }];

/** A conversion that has no slot of the queue yet. */
interface Conversion extends ConvertDeps, FileConversion {
  /** The results to make. The preparation replaces those with `output_format=auto` by targets with the chosen format. */
  targets: readonly Target[];
  readonly progress: Progress;
}

interface Progress {
  /** Bytes of the input for which disk space is reserved. A repair can change them. */
  inputBytes: number;
  /** The {@link conversionKey} of each result, by the suffix of its target. */
  readonly keys: Map<string, string>;
  preparedMs: number;
  /** Time in the queue, in milliseconds. Undefined before the conversion starts. */
  queuedMs: number | undefined;
  /** Time at which the conversion started, on the clock of `performance.now()`. */
  startedAt: number;
}

function openConversion(
  given: ConvertDeps & Pick<Conversion, 'source' | 'onError' | 'signal'>,
  variants: readonly Variant[],
): Conversion {
  const { source, config } = given;
  const inputBytes = inputSize(source);
  const progress: Progress = {
    inputBytes,
    keys: new Map(),
    preparedMs: 0,
    queuedMs: undefined,
    startedAt: 0,
  };
  const repairs = createRepairContext(source, config.MAX_FILE_BYTES, (bytes) => {
    progress.inputBytes += bytes;
  });
  const targets = variants.map(({ name, options }, at) => {
    return { name, options, suffix: name && String(at).padStart(2, '0') };
  });
  const names = new Map(targets.map(({ name, suffix }) => [suffix, name]));
  return { ...given, repairs, failures: new Map(), names, targets, progress };
}

async function convertFile(conversion: Conversion, group: object | undefined): Promise<ConversionOutcome[]> {
  const { source, signal, queue, progress, failures, names } = conversion;
  const owner = { signal, client: source.client, group, kind: preparationKind(source.type) };
  try {
    const results = await queue.prepareAndRun(() => prepare(conversion), owner);
    const { keys, queuedMs = 0, preparedMs } = progress;
    const convertedMs = performance.now() - progress.startedAt;
    for (const target of conversion.targets) report(conversion, target, failures.get(target.suffix));
    return conversion.targets.map(({ suffix }): ConversionOutcome => {
      const variant = names.get(suffix) || undefined;
      const error = failures.get(suffix);
      if (error) return { variant, error };
      const { suffix: _, ...result } = results.find((one) => one.suffix === suffix) as Converted;
      const key = keys.get(suffix) as string;
      return { variant, converted: { ...result, key, queuedMs, preparedMs, convertedMs } };
    });
  } catch (error) {
    if (!(error instanceof KnownResultError))
      for (const target of conversion.targets) report(conversion, target, error);
    source.onFailure?.(error);
    throw error;
  } finally {
    await discardSource(source, progress.inputBytes);
  }
}

/** Repairs and inspects the input, and derives a job for each result. */
async function prepareJobs(
  conversion: Conversion,
): Promise<{ readonly digest: string; readonly jobs: PlannedJob[] }> {
  const { source, targets, repairs } = conversion;
  const digest = await digestOf(source);
  const requested = targets.map(({ options }) => options);
  const image = await prepareInput(source, requested, repairs, conversion);
  conversion.targets = targets.map((target) => ({
    ...target,
    options: resolveFormat(target.options, image),
  }));
  return { digest, jobs: await acceptJobs(image, conversion.targets, conversion) };
}

/**
 * Prepares the jobs. Returns the function that the queue calls when a slot is free.
 *
 * @throws {KnownResultError} if the caller has the result
 */
async function prepare(conversion: Conversion): Promise<RunJob<Converted[]>> {
  const { source, config, maxThreads, toolchain, progress } = conversion;
  const started = performance.now();
  const { digest, jobs } = await prepareJobs(conversion);
  for (const job of jobs) progress.keys.set(job.suffix, conversionKey(digest, canonicalPlan(job, toolchain)));
  const known = [...progress.keys.values()].find((key) => source.knows?.(key));
  if (known !== undefined) throw new KnownResultError(known);
  const inputBytes = inputSize(source);
  const bytes = jobs.map((job) => estimateDiskBytes(job, inputBytes) ?? maxToolFileBytes(config));
  progress.preparedMs = performance.now() - started;
  return (queuedMs, idleSlots, slot) => {
    progress.queuedMs = queuedMs;
    progress.startedAt = performance.now();
    const running: RunningConversion = {
      ...conversion,
      // Recorded commands must not depend on the load of the machine.
      threads: source.onCommand ? 1 : Math.min(1 + idleSlots, maxThreads),
      movedOut: new Map(),
      maxBytes: maxFolderBytes(jobs, inputBytes, config),
      deadline: progress.startedAt + config.CONVERT_TIMEOUT_MS,
      runPart: createPartRunner(slot, conversion.signal, (lostMs) => {
        progress.queuedMs = queuedMs + lostMs;
        progress.startedAt += lostMs;
        running.deadline += lostMs;
      }),
    };
    return withReservation(source, sum(bytes), () => runJobs(jobs, running));
  };
}

/** Returns the size of a source in bytes. A repair can change it. */
export const inputSize = ({ folder }: ConversionInput): number => statSync(join(folder, INPUT_FILE)).size;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Reports a finished result. Results of one file share its time equally. */
function report(
  { source, targets, onFinished, progress }: Conversion,
  { options }: Target,
  error: unknown,
): void {
  const { queuedMs, startedAt } = progress;
  const { type: input, client } = source;
  const ranMs = queuedMs === undefined ? undefined : (performance.now() - startedAt) / targets.length;
  onFinished?.({ input, output: options.format, client, error, queuedMs, ranMs });
}

/**
 * Removes an input, and releases its disk space. Files that cannot be removed now are removed with the workspace of the request.
 *
 * @param bytes reserved size of the input
 */
export async function discardSource({ folder, disk }: ConversionInput, bytes: number): Promise<void> {
  // A tool that reads standard input gets the file from this path, outside of the folder.
  await workFiles(folder)
    .rm(`${folder}.${INPUT_FILE}`, { force: true })
    .catch(() => {});
  await removeFolder(folder).catch(() => {});
  disk?.release(bytes);
}

/** Reserves disk space during a conversion. Afterwards, only the bytes of the result stay reserved. */
async function withReservation(
  { disk }: ConversionInput,
  maxBytes: number,
  convert: () => Promise<Converted[]>,
): Promise<Converted[]> {
  const settle = await disk?.reserve(maxBytes);
  let bytes = 0;
  try {
    const results = await convert();
    bytes = sum(results.map((result) => result.bytes));
    return results;
  } finally {
    settle?.(bytes);
  }
}
