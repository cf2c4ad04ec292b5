/** @module Plans each result of a file, and rejects those above a limit or impossible here. */
import type { ImageInfo } from '../images/image-info.ts';
import { countArgumentBytes, MAX_ARGUMENT_BYTES } from '../process/command.ts';
import type { Config } from '../tables/config.ts';
import { serviceError, serviceErrorFrom } from '../tables/errors.ts';
import { INPUTS, OUTPUTS } from '../tables/formats.ts';
import type { ConversionInput, FileConversion } from './context.ts';
import { checkLimits } from './limits/limits.ts';
import { measuringJobs } from './measure/measurements.ts';
import { planJob } from './plan/index.ts';
import { createJob, refusedLabel } from './plan/job.ts';
import { isPoint } from './plan/position.ts';
import { countPages, exceedsFormat, findMissingPage, numberedPages } from './plan/size.ts';
import type { Step } from './plan/step.ts';
import type { AdmittedJob, ConversionJob, ConvertOptions, Measured } from './plan/types.ts';
import { MAX_PAGE_IMAGES } from './request/variants.ts';

const CONTRADICTORY = new Error('the parts of the header contradict each other');

type PlanContext = Pick<FileConversion, 'config' | 'toolchain' | 'tools' | 'source'>;

/**
 * Derives the job of a result before it is planned: a plan can take a hundred times as long.
 *
 * @throws {ServiceError} if the image exceeds a limit, or if it cannot be converted on this machine
 */
export function admitResult(
  image: ImageInfo,
  options: ConvertOptions,
  suffix: string,
  { source, tools, config, toolchain }: PlanContext,
  measured: Measured = {},
): ConversionJob {
  const { type, label } = source;
  if (type === 'pdf' && options.format === 'pdf' && !options.isPart) throw serviceError('PDF_TO_PDF', label);
  assertPages(image, options, label);
  const job = createJob(image, options, tools, suffix, measured);
  checkLimits(job, config, label);
  const { label: format, maxDimension = 0 } = OUTPUTS[options.format];
  if (exceedsFormat(job)) throw serviceError('OUTPUT_DIMENSION_TOO_LARGE', label, format, maxDimension);
  const { crop, trim, watermark, position } = options;
  const needsSize = (crop ?? trim ?? watermark) !== undefined || isPoint(position);
  const isUnknown = needsSize && type !== 'svg' && !job.decoder && job.fittings.length === 0;
  if (isUnknown || [job.image, ...job.pages].some(({ contradictory }) => contradictory))
    throw serviceErrorFrom(CONTRADICTORY, 'CORRUPT_IMAGE', label, INPUTS[type].label);
  const refused = refusedLabel(job);
  if (refused) throw serviceError('UNSUPPORTED_ENCODING', label, refused);
  if ([job.decoder, ...job.programs].some((tool) => tool && !toolchain[tool]))
    throw serviceError('CONVERSION_UNSUPPORTED', label, INPUTS[type].label, OUTPUTS[options.format].label);
  return job;
}

/**
 * Plans one result.
 *
 * @throws {ServiceError} if a command would have too many arguments
 */
export function planAdmitted(job: ConversionJob, { label }: Pick<ConversionInput, 'label'>): AdmittedJob {
  const planned = { ...planJob(job), measuring: measuringJobs(job) };
  const bytes = longestCommand([...planned.measuring, planned].flatMap(({ plan }) => plan.steps));
  if (bytes > MAX_ARGUMENT_BYTES) {
    const frames = job.frameCount;
    const max = Math.floor((frames * MAX_ARGUMENT_BYTES) / bytes);
    throw serviceError('TOO_MANY_FRAMES', label, frames, max, true);
  }
  return planned;
}

/**
 * Admits and plans one result.
 *
 * @throws {ServiceError} as {@link admitResult} and {@link planAdmitted}
 */
export const planResult = (...admitted: Parameters<typeof admitResult>): AdmittedJob =>
  planAdmitted(admitResult(...admitted), admitted[3].source);

/**
 * Checks the pages of all results of one image, before these are planned.
 *
 * @throws {ServiceError} if results of single pages are too many, or if one is asked for that does
 *   not exist
 */
export function admitPages(
  image: ImageInfo,
  requested: readonly ConvertOptions[],
  { MAX_FRAMES }: Config,
  label: string,
): void {
  const max = Math.min(MAX_FRAMES, MAX_PAGE_IMAGES);
  // A variant that asks for a missing page can be skipped.
  if (requested.every(numberedPages)) for (const options of requested) assertPages(image, options, label);
  if (requested.length > 1 && requested.length > max && requested.some(numberedPages))
    throw serviceError('TOO_MANY_FRAMES', label, requested.length, max, max < MAX_FRAMES);
}

/** @throws {ServiceError} if a page is asked for that does not exist */
function assertPages(image: ImageInfo, options: ConvertOptions, label: string): void {
  const missing = findMissingPage(image, options);
  if (missing !== undefined) throw serviceError('PAGE_MISSING', label, missing, countPages(image) || 1);
}

/** Returns the bytes of the arguments of the longest command. */
const longestCommand = (steps: readonly Step[]): number =>
  Math.max(0, ...steps.map(({ args }) => countArgumentBytes(args)));
