/** @module Describes an image by its header, and what its conversion would result in. No tool runs, except pdfinfo for a PDF. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { ImageDescription as NamedDescription } from '../client/library/types.ts';
import { isFileError, type PublicError, serviceError, toPublicError } from '../errors.ts';
import { INPUTS, listLabels, OUTPUTS } from '../formats.ts';
import { withReader } from '../images/containers/file.ts';
import { describeProfile } from '../images/icc.ts';
import type { ImageInfo, Size } from '../images/image-info.ts';
import { planResult } from './admit.ts';
import type { Capabilities } from './capabilities.ts';
import { type ExplanationJson, explainJob, toJson } from './explain.ts';
import {
  createRepairContext,
  preparationKind,
  repairAndInspect,
  resolveFormat,
  storeExternalProfile,
} from './inspect.ts';
import { digestOf } from './key.ts';
import { DEFAULT_OPTIONS } from './options.ts';
import { iconSize } from './plan/encode.ts';
import { createJob } from './plan/job.ts';
import { countPages, sizesToMake } from './plan/size.ts';
import { type ConvertOptions, INPUT_FILE, type PlannedJob } from './plan/types.ts';
import type { ConversionQueue } from './queue/queue.ts';
import type { ConversionInput, Machine } from './types.ts';

/** What is known of an image without decoding its pixels, as `POST /identify` returns it, except its name. */
export type ImageDescription = Omit<NamedDescription, 'name' | 'explanation'> & {
  readonly explanation?: ExplanationJson;
};

/** A conversion to describe in addition to the image. */
export interface WantedConversion {
  readonly options: ConvertOptions;
  /** Whether to explain the conversion. */
  readonly plan: boolean;
}

/**
 * Describes the image of an input. Removes nothing.
 *
 * @param wanted a conversion to describe, too; undefined to describe only the image
 * @throws {ServiceError} QUEUE_FULL, or an error that does not concern the file
 * @throws {ClientDisconnectedError} if the signal aborts
 */
export type Identify = (
  source: ConversionInput,
  wanted: WantedConversion | undefined,
  signal: AbortSignal,
) => Promise<ImageDescription>;

interface IdentifyDeps extends Machine {
  readonly capabilities: Capabilities;
  /** The queue of conversions, which limits the number of images that are inspected at once. */
  readonly queue: Pick<ConversionQueue, 'prepare'>;
}

/** Creates the function that describes images. */
export function createIdentify(deps: IdentifyDeps): Identify {
  return (source, wanted, signal) =>
    deps.queue.prepare(() => describeImage(source, wanted, deps, signal), {
      ...{ signal, client: source.client, kind: preparationKind(source.type) },
    });
}

async function describeImage(
  source: ConversionInput,
  wanted: WantedConversion | undefined,
  deps: IdentifyDeps,
  signal: AbortSignal,
): Promise<ImageDescription> {
  const { type } = source;
  const { size: bytes } = statSync(join(source.folder, INPUT_FILE)); // before a repair changes the file
  const sha256 = await digestOf(source);
  const inspected = await catchFileError(async () => {
    const requested = wanted ? [wanted.options] : [];
    const repairs = createRepairContext(source, deps.config.MAX_FILE_BYTES, () => {});
    const image = await repairAndInspect(source, requested, repairs, { ...deps, signal });
    return wanted?.plan ? storeExternalProfile(source.folder, image) : image; // a plan also needs the profile
  });
  const image = 'value' in inspected ? inspected.value : undefined;
  const resolved = wanted && image && resolveFormat(wanted.options, image);
  const accepted = 'value' in inspected ? await accept(inspected.value, source, resolved, deps) : inspected;
  const profile =
    image && (await withReader(join(source.folder, INPUT_FILE), (header) => describeProfile(header, image)));
  const { animation, pixels } = image ?? {};
  const transfer = image?.declaredColour?.transfer;
  const orientation = pixels?.orientation ?? image?.orientation ?? image?.pages?.[0]?.orientation ?? 1;
  const { width = null, height = null } = (image && uprightSize(image, deps)) ?? {};
  return {
    ...{ type, media_type: INPUTS[type].mediaType, bytes, width, height, orientation },
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
    convertible: 'value' in accepted,
    problem: 'error' in accepted ? accepted.error : null,
    ...('value' in accepted && wanted && { conversion: expect(accepted.value) }),
    ...('value' in accepted &&
      wanted?.plan && { explanation: toJson(explainJob(accepted.value, sha256, deps)) }),
  };
}

type Attempt<T> = { readonly value: T } | { readonly error: PublicError };

/** Runs a function. Returns its error if it concerns the file. */
async function catchFileError<T>(work: () => Promise<T> | T): Promise<Attempt<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!isFileError(error)) throw error;
    return { error: toPublicError(error) };
  }
}

/** Derives the job for the options. Without options, tries the formats in turn, since an image can be too large for some. */
async function accept(
  image: ImageInfo,
  source: ConversionInput,
  wanted: ConvertOptions | undefined,
  deps: IdentifyDeps,
): Promise<Attempt<PlannedJob>> {
  const { inputs, outputs } = deps.capabilities;
  const attempt = (options: ConvertOptions): Promise<Attempt<PlannedJob>> =>
    catchFileError(() => {
      if (!inputs.includes(source.type))
        throw serviceError('UNSUPPORTED_TYPE', source.label, listLabels(inputs), INPUTS[source.type].label);
      const job = planResult(image, options, '', { ...deps, source });
      const { label, maxDimension = Number.POSITIVE_INFINITY } = OUTPUTS[options.format];
      if (sizesToMake(job).some(({ width, height }) => Math.max(width, height) > maxDimension))
        throw serviceError('OUTPUT_DIMENSION_TOO_LARGE', source.label, label, maxDimension);
      return job;
    });
  if (wanted) return attempt(wanted);
  const attempts: Attempt<PlannedJob>[] = [];
  for (const format of outputs) {
    const made = await attempt({ format, ...DEFAULT_OPTIONS });
    if ('value' in made) return made;
    attempts.push(made);
  }
  return attempts[0] as Attempt<PlannedJob>;
}

/** Returns the size of an image after its orientation is applied. */
function uprightSize(image: ImageInfo, { tools }: IdentifyDeps): Size | undefined {
  return createJob(image, { format: 'png', ...DEFAULT_OPTIONS }, tools).fittings[0]?.result;
}

function expect(job: PlannedJob): ImageDescription['conversion'] {
  const { format } = job.options;
  const fitted = format === 'ico' ? iconSize(job) : job.fittings[0]?.result;
  const isKnown = format !== 'pdf' && job.options.trim === undefined;
  const { width, height } = (isKnown && fitted) || {};
  return { type: format, width: width ?? null, height: height ?? null, notes: job.plan.notes };
}
