/** @module Converts one file, from the received bytes to the result. */
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { serviceErrorFrom } from '../errors.ts';
import { removeFolder } from '../files/workspace.ts';
import type { RunCommand } from '../process/command.ts';
import type { ConversionQueue } from '../process/queue.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { createImageConverter } from './convert-image.ts';
import { repairInput } from './input/repair.ts';
import { inspect } from './inspect/index.ts';
import { HeaderTooComplexError } from './inspect/window-reader.ts';
import type { ImageLimits } from './limits.ts';
import { bytesOnDisk } from './plan/disk-estimate.ts';
import { type ConvertOptions, type ImageInfo, INPUT_FILE, type ToolContext } from './plan/types.ts';
import { createStepRunner } from './run-steps.ts';
import type { ConversionEvent, ConversionInput, ConversionResult, Convert } from './types.ts';

/** What {@link createConvert} needs. */
export interface ConvertDeps {
  readonly toolchain: Toolchain;
  readonly pool: ConversionQueue;
  readonly run: RunCommand;
  readonly srgbProfile: string;
  readonly namedProfiles: ToolContext['namedProfiles'];
  readonly limits: ImageLimits;
  /** Maximum time for one conversion, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum size of a file that a tool writes, in bytes. */
  readonly maxFileBytes: number;
  /** Maximum number of threads of a conversion. It uses those that no other conversion needs when it starts. */
  readonly maxThreads: number;
  /** Called when a conversion has finished. */
  readonly onFinished?: (conversion: ConversionEvent) => void;
}

/** Creates the function that converts files. */
export function createConvert({
  toolchain,
  pool,
  run,
  srgbProfile,
  namedProfiles,
  limits,
  timeoutMs,
  maxFileBytes,
  maxThreads,
  onFinished = () => {},
}: ConvertDeps): Convert {
  const tools: ToolContext = { magick: toolchain.magick?.major ?? 7, srgbProfile, namedProfiles };
  const runSteps = createStepRunner({ toolchain, run, limits, timeoutMs });
  const { prepare, convertImage } = createImageConverter({ toolchain, limits, runSteps });

  /** @param onStart called when the conversion starts, with its time in the queue in milliseconds */
  async function convertInTurn(
    source: ConversionInput,
    options: ConvertOptions,
    signal: AbortSignal,
    group: object | undefined,
    onStart: (queuedMs: number) => void,
  ): Promise<Omit<ConversionResult, 'convertedMs'>> {
    const image = await repairAndInspect(source);
    const prepared = prepare(image, source, options, tools); // reject what cannot be converted before it waits
    const job = { image, options, tools, output: prepared.output };
    const inputBytes = statSync(join(source.folder, INPUT_FILE)).size;
    const bytes = bytesOnDisk(job, prepared, inputBytes) ?? maxFileBytes;
    return pool.run(
      async (queuedMs, idleSlots) => {
        onStart(queuedMs);
        const deadline = performance.now() + timeoutMs;
        // Recorded commands must not depend on the load of the machine.
        const threads = source.onCommand ? 1 : Math.min(1 + idleSlots, maxThreads);
        const conversion = {
          ...{ source, signal, deadline, movedOut: new Map<string, string>() },
          tools: { ...tools, threads },
        };
        const result = await inRoom(source, bytes, () => convertImage(image, options, conversion));
        return { ...result, queuedMs };
      },
      { signal, client: source.client, group },
    );
  }

  return async (source, options, signal, group) => {
    let startedAt = 0;
    let queuedMs: number | undefined;
    const receivedBytes = statSync(join(source.folder, INPUT_FILE)).size;
    const finish = (error?: unknown): number => {
      const ms = performance.now() - startedAt;
      const { type: input, client } = source;
      const ranMs = queuedMs === undefined ? undefined : ms;
      onFinished({ input, output: options.format, client, error, queuedMs, ranMs });
      return ms;
    };
    try {
      const result = await convertInTurn(source, options, signal, group, (waitedMs) => {
        queuedMs = waitedMs;
        startedAt = performance.now();
      });
      return { ...result, convertedMs: finish() };
    } catch (error) {
      finish(error);
      throw error;
    } finally {
      await discardSource(source, receivedBytes);
    }
  };
}

/** @throws {ServiceError} if the header takes too long to read */
async function repairAndInspect({ folder, type, label }: ConversionInput): Promise<ImageInfo> {
  const path = join(folder, INPUT_FILE);
  return inspect(path, await repairInput(path, type)).catch((error) => {
    throw error instanceof HeaderTooComplexError
      ? serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label)
      : error;
  });
}

/** Removes an input and releases its disk space. Files that cannot be removed are removed with the request. */
export async function discardSource({ folder, room }: ConversionInput, bytes: number): Promise<void> {
  rmSync(`${folder}.${INPUT_FILE}`, { force: true }); // where a tool has read it on standard input
  await removeFolder(folder).catch(() => {});
  room?.release(bytes);
}

/** Reserves disk space for the largest possible result during a conversion, and keeps as much as the result has. */
async function inRoom<T extends { readonly bytes: number }>(
  { room }: ConversionInput,
  maxBytes: number,
  convert: () => Promise<T>,
): Promise<T> {
  const settle = await room?.reserve(maxBytes);
  let bytes = 0;
  try {
    const result = await convert();
    bytes = result.bytes;
    return result;
  } finally {
    settle?.(bytes);
  }
}
