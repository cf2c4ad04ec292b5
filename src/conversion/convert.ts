/** @module Converts one file, from the received bytes to the result. */
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { removeFolder } from '../files/workspace.ts';
import type { RepairContext } from '../images/containers/file.ts';
import type { ConversionQueue, Job } from '../process/queue.ts';
import { maxToolFileBytes } from '../process/sandbox/configure.ts';
import { isAtLeast } from '../process/toolchain.ts';
import { createImageConverter, type ImageConverterDeps } from './convert-image.ts';
import { estimateDiskBytes } from './limits.ts';
import { type ConvertOptions, INPUT_FILE, type ToolContext } from './plan/types.ts';
import { createRepairContext, prepareInput } from './prepare.ts';
import type { ConversionEvent, ConversionInput, ConversionResult, Convert } from './types.ts';

/** What {@link createConvert} needs. */
export interface ConvertDeps extends ImageConverterDeps {
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
export function createConvert({
  config,
  toolchain,
  queue,
  run,
  srgbProfile,
  maxThreads,
  onFinished = () => {},
}: ConvertDeps): Convert {
  const { magick, cjxl } = toolchain;
  const tools: ToolContext = {
    magick: magick?.major ?? 7,
    dropsOpaqueAlpha: magick !== undefined && isAtLeast(magick.version, DROPS_OPAQUE_ALPHA_SINCE),
    statesDeepAlpha: cjxl !== undefined && isAtLeast(cjxl.version, STATES_DEEP_ALPHA_SINCE),
    srgbProfile,
  };
  const { planConversion, convertImage } = createImageConverter({ config, toolchain, run });

  /**
   * Waits in the queue, prepares the input, and converts it when a slot is free.
   *
   * @param onStart called when the conversion starts, with its time in the queue in milliseconds
   * @param repairs limits of the repairs of the input
   */
  async function convertQueued(
    source: ConversionInput,
    options: ConvertOptions,
    signal: AbortSignal,
    group: object | undefined,
    onStart: (queuedMs: number) => void,
    repairs: RepairContext,
  ): Promise<Omit<ConversionResult, 'convertedMs'>> {
    const prepare = async (): Promise<Job<Omit<ConversionResult, 'convertedMs'>>> => {
      const started = performance.now();
      const image = await prepareInput(source, options, repairs);
      const planned = planConversion(image, source, options, tools); // rejects an invalid request
      const job = { image, options, tools, output: planned.output };
      const inputBytes = statSync(join(source.folder, INPUT_FILE)).size;
      const bytes = estimateDiskBytes(job, planned, inputBytes) ?? maxToolFileBytes(config);
      const preparedMs = performance.now() - started;
      return async (queuedMs, idleSlots) => {
        onStart(queuedMs);
        const deadline = performance.now() + config.CONVERT_TIMEOUT_MS;
        // Recorded commands must not depend on the load of the machine.
        const threads = source.onCommand ? 1 : Math.min(1 + idleSlots, maxThreads);
        const conversion = {
          source,
          repairs,
          signal,
          deadline,
          movedOut: new Map<string, string>(),
          tools: { ...tools, threads },
        };
        const result = await withReservation(source, bytes, () => convertImage(image, options, conversion));
        return { ...result, queuedMs, preparedMs };
      };
    };
    return queue.prepareAndRun(prepare, { signal, client: source.client, group });
  }

  return async function convertFile(source, options, signal, group) {
    let startedAt = 0;
    let queuedMs: number | undefined;
    let inputBytes = statSync(join(source.folder, INPUT_FILE)).size;
    const finish = (error?: unknown): number => {
      const ms = performance.now() - startedAt;
      const { type: input, client } = source;
      const ranMs = queuedMs === undefined ? undefined : ms;
      onFinished({ input, output: options.format, client, error, queuedMs, ranMs });
      return ms;
    };
    try {
      const onStart = (waitedMs: number): void => {
        queuedMs = waitedMs;
        startedAt = performance.now();
      };
      const repairs = createRepairContext(source, config.MAX_FILE_BYTES, (bytes) => {
        inputBytes += bytes;
      });
      const result = await convertQueued(source, options, signal, group, onStart, repairs);
      return { ...result, convertedMs: finish() };
    } catch (error) {
      finish(error);
      throw error;
    } finally {
      await discardSource(source, inputBytes);
    }
  };
}

/** Removes an input and releases its disk space. Files that cannot be removed are removed with the request. */
export async function discardSource({ folder, disk }: ConversionInput, bytes: number): Promise<void> {
  rmSync(`${folder}.${INPUT_FILE}`, { force: true }); // if a tool has read it on standard input
  await removeFolder(folder).catch(() => {});
  disk?.release(bytes);
}

/** Reserves disk space during a conversion. Afterwards, only the bytes of the result stay reserved. */
async function withReservation<T extends { readonly bytes: number }>(
  { disk }: ConversionInput,
  maxBytes: number,
  convert: () => Promise<T>,
): Promise<T> {
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
