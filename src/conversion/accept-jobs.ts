/** @module Derives the jobs of a file, one for each result, and rejects those that exceed a limit or cannot work here. */
import type { Config } from '../config.ts';
import { errorOfFile, isFileError, type ServiceError, serviceError, serviceErrorFrom } from '../errors.ts';
import { INPUTS, OUTPUTS } from '../formats.ts';
import type { RepairContext } from '../images/containers/file.ts';
import type { ImageInfo } from '../images/image-info.ts';
import type { Toolchain } from '../process/toolchain.ts';
import { checkLimits, checkTogether } from './limits.ts';
import { UNREADABLE_KINDS } from './output/tool-errors.ts';
import { misreadLabel } from './plan/decoders.ts';
import { createJob } from './plan/job.ts';
import type { ConversionJob, ToolContext } from './plan/types.ts';
import type { ConversionInput, OnError } from './types.ts';

/** One result to make of a file. */
export type Target = Pick<ConversionJob, 'options' | 'suffix'>;

/** A conversion of a file, from its arrival to its results. */
export interface FileConversion {
  readonly config: Config;
  readonly toolchain: Toolchain;
  readonly tools: ToolContext;
  readonly source: ConversionInput;
  readonly signal: AbortSignal;
  /** Names of the variants by the suffix of their target. The only result of a file has the name ''. */
  readonly names: ReadonlyMap<string, string>;
  /** Limits of the repairs of the input. */
  readonly repairs: RepairContext;
  readonly onError: OnError;
  /** Errors of the variants that are skipped, by the suffix of their target. */
  readonly failures: Map<string, ServiceError>;
}

/**
 * Does a part of the work for each result, one after another. With `onError: 'skip'`, the error of a variant is recorded, and the
 * variant is left out.
 */
export async function forEachTarget<T extends Pick<Target, 'suffix'>, R>(
  targets: readonly T[],
  { source, names, onError, failures }: FileConversion,
  work: (target: T) => Promise<R> | R,
): Promise<R[]> {
  const done: R[] = [];
  for (const target of targets) {
    try {
      done.push(await work(target));
    } catch (cause) {
      const name = names.get(target.suffix);
      if (!name || !isFileError(cause)) throw cause;
      const error = errorOfFile(cause, `${source.label} (variant "${name}")`, source.batchFile);
      if (onError === 'fail') throw error;
      failures.set(target.suffix, error);
    }
  }
  return done;
}

/**
 * Derives the jobs of an image.
 *
 * @throws {ServiceError} if the image exceeds a limit, or if it cannot be converted on this machine
 */
export async function acceptJobs(
  image: ImageInfo,
  targets: readonly Target[],
  conversion: FileConversion,
): Promise<ConversionJob[]> {
  const jobs = await forEachTarget(targets, conversion, (target) => acceptJob(image, target, conversion));
  checkTogether(jobs, conversion.config, conversion.source.label);
  return jobs;
}

const CONTRADICTORY = new Error('the parts of the header contradict each other about the size');

/**
 * Derives the job of one result.
 *
 * @throws {ServiceError} as {@link acceptJobs}
 */
export function acceptJob(
  image: ImageInfo,
  { options, suffix }: Target,
  { source, tools, config, toolchain }: Pick<FileConversion, 'source' | 'tools' | 'config' | 'toolchain'>,
): ConversionJob {
  const { type, label, readsMisread } = source;
  if (type === 'pdf' && options.format === 'pdf') throw serviceError('PDF_TO_PDF', label);
  const job = createJob(image, options, tools, suffix);
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
