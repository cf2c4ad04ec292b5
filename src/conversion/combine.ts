/** @module Combines results of several images: pages of a document, frames of an animation. */
import { basename, join } from 'node:path';
import { removeFolder, workFiles } from '../files/workspace.ts';
import { CombineError } from '../images/combined/combiner.ts';
import { COMBINERS } from '../images/combined/index.ts';
import { countBytes, writePieces } from '../images/containers/pieces.ts';
import type { Tool, Toolchain } from '../process/toolchain.ts';
import { ClientDisconnectedError, ServiceError, serviceError, serviceErrorFrom } from '../tables/errors.ts';
import { combinesFrames, OUTPUTS, type OutputType } from '../tables/formats.ts';
import { TOOLS } from '../tables/tools.ts';
import type { Combination, Combine, Machine } from './context.ts';
import { combinedKey } from './key.ts';
import { missingCombiner } from './limits/capabilities.ts';
import { conversionLimit } from './limits/limits.ts';
import { inspectResult, takeResult } from './output/result.ts';
import { translateToolError } from './output/tool-errors.ts';
import type { ConversionQueue } from './queue/queue.ts';

/** Name of the combined file in messages. */
const LABEL = 'The combined file';
const OUTPUT = 'combined.pdf';
/** Bytes of a combined file besides its parts: the directory and page tree, to which each adds. */
const BYTES_PER_PART = 4096;
const FIXED_BYTES = 64 * 1024;

interface CombineDeps extends Machine {
  readonly queue: Pick<ConversionQueue, 'enter'>;
}

/** A combination that has a slot. */
interface Running extends Combination {
  /** Folder for the files of a tool. The combined file is beside it. */
  readonly folder: string;
  readonly path: string;
  /** Paths of the results, in order. Identical images share one. */
  readonly parts: readonly string[];
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Checks that results can be combined to a format.
 *
 * @throws {ServiceError} NOT_AVAILABLE
 */
export function assertCombinable(format: OutputType, toolchain: Toolchain): void {
  const missing = missingCombiner(format, toolchain);
  if (!missing) return;
  const { label, debianPackage } = TOOLS[missing];
  throw serviceError('NOT_AVAILABLE', OUTPUTS[format].label, label, debianPackage);
}

/** Creates the function that combines results. */
export function createCombine(deps: CombineDeps): Combine {
  return async (results, combination, { folder, disk, client, signal }) => {
    const { format, timing } = combination;
    using place = deps.queue.enter({ signal, client });
    using slot = await place.start();
    const startedAt = performance.now();
    const distinct = [...new Map(results.map((result) => [result.path, result])).values()];
    const partBytes = distinct.reduce((sum, { bytes }) => sum + bytes, 0);
    const maxBytes = partBytes + results.length * BYTES_PER_PART + FIXED_BYTES;
    const settle = await disk?.reserve(maxBytes);
    const path = `${folder}.${format}`;
    const parts = results.map((result) => result.path);
    let bytes = 0;
    try {
      const running = { ...combination, folder, path, parts, maxBytes, signal };
      bytes = await (format === 'pdf' ? joinPdf(running, deps) : joinHere(running));
    } catch (error) {
      throw signal.aborted ? new ClientDisconnectedError({ cause: error }) : error;
    } finally {
      settle?.(bytes);
    }
    await removeFolder(folder);
    for (const part of distinct) {
      await workFiles(folder).rm(part.path, { force: true });
      disk?.release(part.bytes);
    }
    const { width, height } = (await inspectResult(path, format)) ?? {};
    const version = format === 'pdf' ? deps.toolchain.qpdf?.version : undefined;
    const keys = results.map(({ key }) => key);
    const key = combinedKey(keys, format, combinesFrames(format) ? timing : undefined, version);
    const convertedMs = performance.now() - startedAt;
    return {
      path,
      bytes,
      format,
      width,
      height,
      key,
      queuedMs: slot.waitedMs,
      preparedMs: 0,
      convertedMs,
      notes: [],
      removed: [],
      kept: [],
    };
  };
}

/** Joins PDFs with qpdf. Returns the size of the combined file. */
async function joinPdf(
  { folder, path, parts, maxBytes, signal }: Running,
  { run, config, toolchain }: CombineDeps,
): Promise<number> {
  const limit = conversionLimit(config);
  for (const part of new Set(parts)) await workFiles(folder).rename(part, join(folder, basename(part)));
  await run({
    file: (toolchain.qpdf as Tool).path,
    args: [
      '--empty',
      '--deterministic-id', // depends on the content only, not on the time
      '--keep-files-open=n', // a tool can have few files open
      '--pages',
      ...parts.map((part) => basename(part)),
      '--',
      OUTPUT,
    ],
    cwd: folder,
    outputs: [OUTPUT],
    timeoutMs: limit.ms,
    signal,
    fileBytes: maxBytes,
    maxBytes: 2 * maxBytes, // with the parts
    maxNames: parts.length + 10,
  }).catch((error) => {
    const translated = translateToolError(error, 'qpdf', { type: 'pdf', label: LABEL }, limit);
    // Tools have written the parts, so a wrong one is not the fault of the client.
    throw translated instanceof ServiceError && translated.code === 'CORRUPT_IMAGE' ? error : translated;
  });
  const bytes = await takeResult(join(folder, OUTPUT), path, 'pdf');
  if (bytes === undefined) throw new Error('qpdf has written no PDF');
  return bytes;
}

/** Joins files in this process, without decoding them. Returns the size of the combined file. */
async function joinHere({ format, timing, path, parts, signal }: Running): Promise<number> {
  try {
    const pieces = await COMBINERS[format as keyof typeof COMBINERS](parts, timing);
    await writePieces(path, pieces, signal);
    return countBytes(pieces);
  } catch (error) {
    if (error instanceof CombineError && error.isTooLarge)
      throw serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', LABEL);
    throw error;
  }
}
