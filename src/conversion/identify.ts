/** @module Describes an image by its header, and its conversion. Only pdfinfo runs, for a PDF. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describeProfile } from '../images/colour/icc.ts';
import { isTurnOver, waitForTurn } from '../images/containers/event-loop.ts';
import { withReader } from '../images/containers/file.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { readRevealed } from '../images/revealed/read-revealed.ts';
import { isFileError, type PublicError, serviceError, toPublicError } from '../tables/errors.ts';
import { INPUTS, listLabels, OUTPUTS } from '../tables/formats.ts';
import { planResult } from './admit.ts';
import type { ConversionInput, Machine } from './context.ts';
import { explainJob, toJson } from './explain.ts';
import {
  createRepairContext,
  limitReads,
  preparationKind,
  repairAndInspect,
  resolveFormat,
  storeProfile,
} from './input/inspect.ts';
import { digestOf } from './key.ts';
import type { Capabilities } from './limits/capabilities.ts';
import { iconSize, isLossless } from './plan/encode.ts';
import { numericQuality } from './plan/external-encoders.ts';
import { createJob } from './plan/job.ts';
import { countPages } from './plan/size.ts';
import { type AdmittedJob, type ConvertOptions, INPUT_FILE } from './plan/types.ts';
import type { ConversionQueue } from './queue/queue.ts';
import { DEFAULT_OPTIONS } from './request/checks.ts';

/** What is known of an image without its pixels, as `POST /identify` returns it, but its name. */
export type ImageDescription = Awaited<ReturnType<typeof describeImage>>;

/** A conversion to describe in addition to the image. */
export interface WantedConversion {
  readonly options: ConvertOptions;
  /** Whether to explain the conversion. */
  readonly plan: boolean;
}

/** What to describe in addition to the image. */
interface DescriptionRequest {
  readonly wanted?: WantedConversion | undefined;
  /** Whether to list the values of the metadata. */
  readonly reveal?: boolean;
}

/**
 * Describes the image of an input. Removes nothing.
 *
 * @throws {ServiceError} QUEUE_FULL, or an error that does not concern the file
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export type Identify = (
  source: ConversionInput,
  request: DescriptionRequest,
  signal: AbortSignal,
) => Promise<ImageDescription>;

interface IdentifyDeps extends Machine {
  readonly capabilities: Capabilities;
  /** The queue of conversions, which limits the number of images that are inspected at once. */
  readonly queue: Pick<ConversionQueue, 'prepare'>;
}

/** Creates the function that describes images. */
export function createIdentify(deps: IdentifyDeps): Identify {
  return (source, request, signal) =>
    deps.queue.prepare(() => describeImage(source, request, deps, signal), {
      signal,
      client: source.client,
      kind: preparationKind(source.type),
    });
}

async function describeImage(
  source: ConversionInput,
  { wanted, reveal = false }: DescriptionRequest,
  deps: IdentifyDeps,
  signal: AbortSignal,
) {
  const { type } = source;
  const path = join(source.folder, INPUT_FILE);
  const { size: bytes } = statSync(path); // before a repair changes the file
  const sha256 = await digestOf(source);
  const inspected = await catchFileError(async () => {
    const requested = wanted ? [wanted.options] : [];
    const repairs = createRepairContext(source, deps.config.MAX_FILE_BYTES, () => {});
    const image = await repairAndInspect(source, requested, repairs, { ...deps, signal });
    return wanted?.plan ? storeProfile(source.folder, image, deps.tools.magick) : image; // a plan also needs the profile
  });
  const image = 'value' in inspected ? inspected.value : undefined;
  const resolved = wanted && image && resolveFormat(wanted.options, image);
  const accepted = 'value' in inspected ? await accept(inspected.value, source, resolved, deps) : inspected;
  const job = 'value' in accepted ? accepted.value : undefined;
  const profile = image && (await withReader(path, (header) => describeProfile(header, image)));
  const revealed =
    reveal && image
      ? await catchFileError(() => limitReads(source.label, () => readRevealed(path, image.type)))
      : undefined;
  const { animation, pixels } = image ?? {};
  const transfer = image?.declaredColour?.transfer;
  const orientation = pixels?.orientation ?? image?.orientation ?? image?.pages?.[0]?.orientation ?? 1;
  const upright = image && createJob(image, { format: 'png', ...DEFAULT_OPTIONS }, deps.tools);
  const { width = null, height = null } = upright?.fittings[0]?.result ?? {};
  if (isTurnOver()) await waitForTurn();
  return {
    type,
    media_type: INPUTS[type].mediaType,
    bytes,
    width,
    height,
    orientation,
    frames: image?.hasUncountedFrames ? null : (animation?.delaysMs.length ?? 1),
    duration_ms: animation?.delaysMs.reduce((sum, delay) => sum + delay, 0) ?? null,
    pages: (image && countPages(image)) || 1,
    alpha: pixels?.alpha ?? null,
    bits: pixels?.bits ?? null,
    colour_space: pixels?.colourSpace ?? null,
    profile: profile ?? null,
    hdr: transfer && 'hdr' in transfer ? transfer.hdr : null,
    metadata: [...new Set(image?.metadata)],
    sha256,
    convertible: job !== undefined,
    problem: 'error' in accepted ? accepted.error : null,
    conversion: job && wanted && expect(job),
    explanation: job && wanted?.plan ? toJson(explainJob(job, sha256, deps)) : undefined,
    revealed: revealed && 'value' in revealed ? revealed.value : undefined,
  };
}

/** What became of a step, unless an error concerns more than the file. */
type Outcome<T> = { readonly value: T } | { readonly error: PublicError };

/** Runs a function. Returns its error if it concerns the file. */
async function catchFileError<T>(work: () => Promise<T> | T): Promise<Outcome<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!isFileError(error)) throw error;
    return { error: toPublicError(error) };
  }
}

/** Derives the job. Without options, tries each format: an image can be too large for some. */
async function accept(
  image: ImageInfo,
  source: ConversionInput,
  wanted: ConvertOptions | undefined,
  deps: IdentifyDeps,
): Promise<Outcome<AdmittedJob>> {
  const { inputs, outputs } = deps.capabilities;
  const attempt = (options: ConvertOptions): Promise<Outcome<AdmittedJob>> =>
    catchFileError(() => {
      if (!inputs.includes(source.type))
        throw serviceError('UNSUPPORTED_TYPE', source.label, listLabels(inputs), INPUTS[source.type].label);
      return planResult(image, options, '', { ...deps, source });
    });
  if (wanted) return attempt(wanted);
  const attempts: Outcome<AdmittedJob>[] = [];
  for (const format of outputs) {
    if (isTurnOver()) await waitForTurn();
    const made = await attempt({ format, ...DEFAULT_OPTIONS });
    if ('value' in made) return made;
    attempts.push(made);
  }
  return attempts[0] as Outcome<AdmittedJob>;
}

/** Describes a result. Its quality is null without loss, and if only a comparison shows it. */
function expect(job: AdmittedJob) {
  const { format } = job.options;
  const fitted = format === 'ico' ? iconSize(job) : job.fittings[0]?.result;
  const isKnown = format !== 'pdf' && job.options.trim === undefined;
  const { width, height } = (isKnown && fitted) || {};
  const isLossy = OUTPUTS[format].quality && !isLossless(job.options) && !job.isTranscoded;
  const quality = isLossy && !job.search ? numericQuality(job.options) : null;
  return { type: format, width: width ?? null, height: height ?? null, quality, notes: job.plan.notes };
}
