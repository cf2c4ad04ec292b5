/** @module One conversion: inspect, plan, admit, wait, measure, plan again, encode, describe. */
import { mapInTurns } from '../images/containers/event-loop.ts';
import { KnownResultError } from '../tables/errors.ts';
import type { OutputType } from '../tables/formats.ts';
import { admitPages, admitResult, planAdmitted } from './admit.ts';
import type {
  ConversionEvent,
  ConversionInput,
  ConversionResult,
  Convert,
  ConvertVariants,
  FileConversion,
  Machine,
  OwnedInput,
  Variant,
} from './context.ts';
import { type Explanation, explainJob } from './explain.ts';
import { inspectInput, ownInput, preparationKind, resolveFormat } from './input/inspect.ts';
import { withWatermark } from './input/watermark-image.ts';
import { canonicalPlan, conversionKey, digestOf } from './key.ts';
import { sumDiskBytes } from './limits/disk-bytes.ts';
import { checkTogether } from './limits/limits.ts';
import { measure, measureWatermarks } from './measure/index.ts';
import type { AdmittedJob, ConversionJob, ConvertOptions, PlannedJob } from './plan/types.ts';
import type { ConversionQueue, Slot } from './queue/queue.ts';
import { type Attempt, attemptEach, onlyResult, toAttempts, valuesOf } from './request/targets.ts';
import { encodeAll } from './steps/encode-all.ts';
import { moveOut } from './steps/run-steps.ts';

interface ConvertDeps extends Machine {
  readonly queue: Pick<ConversionQueue, 'enter'>;
  /** Maximum threads of a conversion, which uses those that no other needs when it starts. */
  readonly maxThreads: number;
  readonly onFinished?: ((conversion: ConversionEvent) => void) | undefined;
}

/** Creates the functions that convert a file, to one result or several, or only plan that. */
export function createConvert(deps: ConvertDeps) {
  const { queue, config, maxThreads } = deps;

  const convertVariants: ConvertVariants = async (source, requested, onError, signal, group) => {
    const { client, type, watermark } = source;
    const variants = requested.map((one) => ({ ...one, options: withWatermark(one.options, watermark) }));
    const conversion = { ...deps, source, onError, signal };
    const report = createReport(conversion, variants);
    await using input = ownInput(source, config.MAX_FILE_BYTES);
    try {
      using place = queue.enter({ signal, client, group, kind: preparationKind(type) });
      const prepared = await place.prepare(() => prepare(input, variants, conversion));
      using slot = await place.start();
      using timer = startTimer(source);
      report.start(slot, prepared.jobs);
      const running = {
        ...conversion,
        repairs: input.repairs,
        // Recorded commands must not depend on the load of the machine.
        threads: source.onCommand ? 1 : Math.min(1 + slot.idleSlots, maxThreads),
        sourceBytes: input.bytes,
        maxBytes: prepared.disk.folder,
        deadline: timer.startedAt + config.CONVERT_TIMEOUT_MS - timer.usedBefore,
      };
      const results = await withReservation(source, prepared.disk.reserved, async () => {
        if (type === 'svg') await moveOut(source.folder);
        const measured = await measure(prepared.jobs, running);
        const admitted = await admitEach(measured, running, (job) =>
          isPlanned(job) ? job : admitResult(job.image, job.options, job.suffix, running, job.measured),
        );
        const complete = await measureWatermarks(admitted, running);
        const jobs = await attemptEach(complete, running, (job) =>
          isPlanned(job) ? job : planAdmitted(job, source),
        );
        return encodeAll(jobs, running);
      });
      const convertedMs = performance.now() - timer.startedAt;
      const times = { queuedMs: slot.waitedMs, preparedMs: prepared.ms, convertedMs };
      report.end(results);
      return results.map(({ name, suffix, ...result }) => {
        const variant = name || undefined;
        if ('error' in result) return { variant, error: result.error };
        const key = prepared.keys.get(suffix) as string;
        return { variant, converted: { ...result.value, ...times, key } };
      });
    } catch (error) {
      report.fail(error);
      source.onFailure?.(error);
      throw error;
    }
  };

  return {
    convertVariants,
    convert: (async (source, options, signal, group) => {
      const [outcome] = await convertVariants(source, onlyResult(options), 'fail', signal, group);
      return (outcome as { converted: ConversionResult }).converted;
    }) satisfies Convert as Convert,
    /**
     * States what {@link Convert} would do. Removes the input.
     *
     * @throws {ServiceError} that names the file
     */
    async explain(source: ConversionInput, options: ConvertOptions): Promise<Explanation> {
      const { signal } = new AbortController();
      await using input = ownInput(source, config.MAX_FILE_BYTES);
      const { digest, jobs } = await plan(input, onlyResult(withWatermark(options, source.watermark)), {
        ...deps,
        source,
        onError: 'fail',
        signal,
      });
      return explainJob(valuesOf(jobs)[0] as AdmittedJob, digest, deps);
    },
  };
}

/** Starts the time of a conversion, which is added to that of its request. */
function startTimer({ timeUsed = { ms: 0 } }: ConversionInput) {
  const [startedAt, usedBefore] = [performance.now(), timeUsed.ms];
  return {
    startedAt,
    usedBefore,
    [Symbol.dispose](): void {
      timeUsed.ms = usedBefore + performance.now() - startedAt;
    },
  };
}

/** Plans the results, and derives what is known before the tools run. */
async function prepare(input: OwnedInput, variants: readonly Variant[], conversion: FileConversion) {
  const { source, config, toolchain } = conversion;
  const started = performance.now();
  const { digest, jobs } = await plan(input, variants, conversion);
  const planned = valuesOf(jobs);
  const keys = new Map(
    await mapInTurns(planned, (job) => [job.suffix, conversionKey(digest, canonicalPlan(job, toolchain))]),
  );
  const known = [...keys.values()].find((key) => source.knows?.(key));
  if (known !== undefined) throw new KnownResultError(known);
  const disk = sumDiskBytes(planned, input.bytes, config);
  return { jobs, keys, disk, ms: performance.now() - started };
}

/**
 * Repairs and inspects the input, and plans each result within the limits.
 *
 * @throws {ServiceError} that names the file
 */
async function plan(input: OwnedInput, variants: readonly Variant[], conversion: FileConversion) {
  const { source, config } = conversion;
  const digest = await digestOf(source); // before a repair changes the file
  const requested = variants.map(({ options }) => options);
  const image = await inspectInput(source, requested, input.repairs, conversion);
  admitPages(image, requested, config, source.label);
  const admitted = await admitEach(toAttempts(variants), conversion, (options, suffix) =>
    admitResult(image, resolveFormat(options, image), suffix, conversion),
  );
  return { digest, jobs: await attemptEach(admitted, conversion, (job) => planAdmitted(job, source)) };
}

/** Admits the result of each, and all results together. */
async function admitEach<T>(
  attempts: readonly Attempt<T>[],
  conversion: FileConversion,
  admit: (value: T, suffix: string) => ConversionJob,
): Promise<Attempt<ConversionJob>[]> {
  const { config, source } = conversion;
  const admitted = await attemptEach(attempts, conversion, admit);
  checkTogether(valuesOf(admitted), config, source.label);
  return admitted;
}

/** Returns whether a job has a plan: nothing was found that changes it. */
const isPlanned = (job: ConversionJob): job is PlannedJob => 'plan' in job;

/** Reserves disk space during a conversion. Afterwards, only the results stay reserved. */
async function withReservation<T extends { readonly bytes: number }>(
  { disk }: ConversionInput,
  maxBytes: number,
  convert: () => Promise<Attempt<T>[]>,
): Promise<Attempt<T>[]> {
  const settle = await disk?.reserve(maxBytes);
  let bytes = 0;
  try {
    const results = await convert();
    bytes = valuesOf(results).reduce((total, result) => total + result.bytes, 0);
    return results;
  } finally {
    settle?.(bytes);
  }
}

/** Creates the report of a conversion to the metrics. Its results share its time equally. */
function createReport({ source, onFinished }: ConvertDeps & FileConversion, variants: readonly Variant[]) {
  let formats: OutputType[] = variants.map(({ options }) => options.format);
  let started: { readonly queuedMs: number; readonly at: number } | undefined;
  const report = (format: OutputType, error: unknown): void => {
    const ranMs = started && (performance.now() - started.at) / variants.length;
    const { type: input, client } = source;
    onFinished?.({ input, output: format, client, error, queuedMs: started?.queuedMs, ranMs });
  };
  return {
    start({ waitedMs }: Slot, jobs: readonly Attempt<PlannedJob>[]): void {
      started = { queuedMs: waitedMs, at: performance.now() };
      formats = jobs.map(
        (job, at) => ('value' in job ? job.value.options.format : formats[at]) as OutputType,
      );
    },
    end(results: readonly Attempt<unknown>[]): void {
      for (const [at, result] of results.entries())
        report(formats[at] as OutputType, 'error' in result ? result.error : undefined);
    },
    fail(error: unknown): void {
      if (!(error instanceof KnownResultError)) for (const format of formats) report(format, error);
    },
  };
}
