/** @module Repairs what ImageMagick or libheif would reject or misread, and inspects the file. */
import { hash } from 'node:crypto';
import { statSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFolder, workFiles } from '../../files/workspace.ts';
import { readColourTables } from '../../images/colour/colour-tables.ts';
import { declaredProfile } from '../../images/colour/declared-colour.ts';
import { alignProfile, MAX_EXTRACTED_BYTES, readEmbeddedProfile } from '../../images/colour/icc.ts';
import {
  HeaderTooComplexError,
  type RepairContext,
  readAt,
  withReader,
} from '../../images/containers/file.ts';
import { encodeCopyright } from '../../images/copyright/blocks.ts';
import type { Copyright } from '../../images/copyright/fields.ts';
import { readCopyright } from '../../images/copyright/read.ts';
import { correctMetadata } from '../../images/exif.ts';
import { removeTransforms, takeProfile } from '../../images/heif/heif-repair.ts';
import type { ImageInfo } from '../../images/image-info.ts';
import { inspect, repair } from '../../images/index.ts';
import { readJpegProfile } from '../../images/jpeg/jpeg.ts';
import { completePalette, correctChecksums } from '../../images/png/png-repair.ts';
import type { RevealedKind } from '../../images/revealed/fields-table.ts';
import { readRevealedKinds } from '../../images/revealed/read-revealed.ts';
import { cutAfterFirstFrame } from '../../images/webp.ts';
import { ServiceError, serviceErrorFrom } from '../../tables/errors.ts';
import { canHavePalette, type InputType, isHeif, type OutputType } from '../../tables/formats.ts';
import type { ConversionInput, FileConversion, Inspector, OwnedInput } from '../context.ts';
import { isPaletteError, isProfileError } from '../output/tool-errors.ts';
import { COPYRIGHT_FILES } from '../plan/external-encoders.ts';
import { transcodes } from '../plan/job.ts';
import { commonScale, exceedsFormat, extentOf, keepsAllFrames, turnOf } from '../plan/size.ts';
import { type ConvertOptions, INPUT_FILE, MAGICK_FEATURES } from '../plan/types.ts';
import type { PreparationKind } from '../queue/queue.ts';
import { suitableFormats } from '../request/checks.ts';
import { inspectPdf } from './inspect-pdf.ts';

/**
 * Maximum number of files of each kind that are prepared at once. Preparing one can take 60 MB, for
 * the unpacked text of an SVG, all of its tags, or a GIF. Files of clients are prepared in turn,
 * like their conversions. SVGs have as many places as `images/svg/rewrite.ts` has threads, with the
 * reserved one.
 */
export const MAX_PREPARATIONS: Readonly<Record<PreparationKind, number>> = { main: 4, svg: 1, pdf: 2 };

/** Returns the kind of preparation that files of a type need. */
export const preparationKind = (type: InputType): PreparationKind =>
  type === 'svg' || type === 'pdf' ? type : 'main';

/**
 * Takes over a file, which repairs can let grow to `maxBytes`, until it is disposed: then the
 * folder is removed, and its disk space released. What cannot be removed goes with the workspace of
 * the request.
 */
export function ownInput(source: ConversionInput, maxBytes: number): OwnedInput {
  const { folder, disk } = source;
  let { size: bytes } = statSync(join(folder, INPUT_FILE));
  return {
    get bytes() {
      return bytes;
    },
    repairs: createRepairContext(source, maxBytes, (more) => {
      bytes += more;
    }),
    async [Symbol.asyncDispose]() {
      // A tool that reads standard input gets the file from this path, outside of the folder.
      await workFiles(folder)
        .rm(movedInput(folder), { force: true })
        .catch(() => {});
      await removeFolder(folder).catch(() => {});
      disk?.release(bytes);
    },
  };
}

/** Returns the path beside its folder to which a file is moved for a tool with standard input. */
export const movedInput = (folder: string): string => `${folder}.${INPUT_FILE}`;

/** Creates the limits of repairs. `onGrow` gets the bytes that they add, or, negative, remove. */
export function createRepairContext(
  { label, disk }: ConversionInput,
  maxBytes: number,
  onGrow: (bytes: number) => void,
): RepairContext {
  return {
    label,
    maxBytes,
    async store(bytes) {
      await disk?.store(bytes);
      onGrow(bytes);
    },
    release(bytes) {
      disk?.release(bytes);
      onGrow(-bytes);
    },
  };
}

/**
 * Repairs a file in place, and inspects the pages that the results need, and the copyright. Without
 * `inspection`, only the type of a PDF is known.
 *
 * @throws {ServiceError} as {@link inspectInput}
 */
export async function repairAndInspect(
  source: ConversionInput,
  requested: readonly ConvertOptions[],
  context: RepairContext,
  inspection?: Inspector,
): Promise<ImageInfo> {
  const { folder, type, label } = source;
  const path = join(folder, INPUT_FILE);
  return limitReads(label, async () => {
    const inspected = await inspect(path, await repair(path, type, context));
    const isKept = requested.some(({ metadata }) => metadata === 'copyright');
    const image = isKept ? { ...inspected, copyright: await readCopyright(path, inspected) } : inspected;
    return image.type === 'pdf' && inspection
      ? { ...image, ...(await inspectPdf(source, requested, inspection)) }
      : image;
  });
}

/**
 * Reads the header of a file.
 *
 * @throws {ServiceError} RESOURCE_LIMIT_EXCEEDED if it takes too many reads
 */
export async function limitReads<T>(label: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof HeaderTooComplexError
      ? serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label)
      : error;
  }
}

/** Replaces `accepted` by the best format that can hold the result, or by all as candidates. */
export function resolveFormat(
  { accepted, smallest, ...options }: ConvertOptions,
  image: ImageInfo,
): ConvertOptions {
  if (!accepted) return options;
  const holding = Object.entries(accepted).filter(
    ([format]) => !exceedsFormat(extentOf(image, { ...options, format: format as OutputType })),
  );
  const choice = holding.length > 0 ? Object.fromEntries(holding) : accepted;
  const [format = options.format, ...others] = suitableFormats(choice, image, options);
  const isChosen = smallest && (others.length > 0 || canHavePalette(format));
  return { ...options, format, candidates: isChosen ? [format, ...others] : undefined };
}

/**
 * Repairs a file in place, inspects it, and writes its external profile to its folder.
 *
 * @throws {ServiceError} FILE_TOO_LARGE or CORRUPT_IMAGE for a compressed SVG, DISK_FULL if the
 *   disk has no space for a repaired file, RESOURCE_LIMIT_EXCEEDED if the header takes too many
 *   reads, FILE_ENCRYPTED or CORRUPT_IMAGE for a PDF
 */
export async function inspectInput(
  source: ConversionInput,
  requested: readonly ConvertOptions[],
  context: RepairContext,
  inspection?: Inspector & Pick<FileConversion, 'tools'>,
): Promise<ImageInfo> {
  const { folder } = source;
  const path = join(folder, INPUT_FILE);
  const inspected = await repairAndInspect(source, requested, context, inspection);
  const image = { ...inspected, revealed: await limitReads(source.label, () => revealedIn(path, inspected)) };
  const canBeAvif = requested.some(({ format, accepted }) => format === 'avif' || accepted?.avif);
  if (image.copyright && canBeAvif) await storeCopyright(folder, image.copyright);
  if (
    image.type === 'webp' &&
    image.animation &&
    !requested.some((options) => keepsAllFrames(image, options))
  )
    await cutAfterFirstFrame(path);
  if (image.plannedTransforms) await removeTransforms(path);
  const kept = requested.filter(({ metadata }) => metadata === 'all');
  const isTranscoded = kept.some((options) => transcodes(image, options));
  if (kept.length > 0 && !isTranscoded)
    await correctMetadata(path, image, kept.map(turnOf), commonScale(image, kept));
  return storeProfile(folder, image, inspection?.tools.magick);
}

/** Reads what kinds of metadata give something away. A TIFF has texts without any metadata. */
const revealedIn = async (path: string, { type, metadata = [] }: ImageInfo): Promise<RevealedKind[]> =>
  metadata.length === 0 && type !== 'tiff' ? [] : readRevealedKinds(path, type);

/** Writes the copyright for the encoder of AVIF. Other formats get it after they are encoded. */
async function storeCopyright(folder: string, copyright: Copyright): Promise<void> {
  const blocks = encodeCopyright(copyright, 'avif');
  for (const [kind, name] of COPYRIGHT_FILES) {
    const block = blocks[kind];
    if (block) await writeFile(join(folder, name), block);
  }
}

/**
 * Writes the external profile of an image, and the tables that replace a profile, to its folder.
 * Their names depend on the content, so that plans with different profiles have different keys.
 */
export async function storeProfile(folder: string, image: ImageInfo, magick: 6 | 7 = 7): Promise<ImageInfo> {
  const stored = await externalProfileOf(folder, image);
  const profile = stored && alignProfile(stored);
  const tables = MAGICK_FEATURES.colourTables[magick] ? await readTables(folder, image, profile) : undefined;
  return {
    ...image,
    profileFile: profile && (await storeNamed(folder, profile, 'icc')),
    colourTables: tables && {
      file: await storeNamed(folder, tables.images, 'ppm'),
      matrix: tables.matrix
        .flat()
        .map((value) => value.toFixed(6))
        .join(','),
    },
  };
}

async function storeNamed(folder: string, content: Buffer, extension: string): Promise<string> {
  const name = `${hash('sha256', content).slice(0, 32)}.${extension}`;
  await writeFile(join(folder, name), content);
  return name;
}

/** Types of photos with a profile. */
const PHOTO_TYPES: readonly InputType[] = ['jpg', 'png', 'webp', 'tiff', 'avif', 'heic'];

/** Reads the tables of an opaque image in RGB with 8 bits. */
async function readTables(folder: string, image: ImageInfo, external: Buffer | undefined) {
  const { type, profile, pixels, deep, pages = [], animation } = image;
  const isRgb = pixels?.colourSpace === 'rgb' && pixels.bits <= 8 && !pixels.alpha && !deep;
  if (profile !== 'other' || !isRgb || !PHOTO_TYPES.includes(type) || animation || pages.length > 1)
    return undefined;
  const path = join(folder, INPUT_FILE);
  const stored = external ?? (await withReader(path, (file) => readEmbeddedProfile(file, image)));
  return stored && readColourTables(stored);
}

async function externalProfileOf(folder: string, image: ImageInfo): Promise<Buffer | undefined> {
  const { declaredColour, externalProfile, type, pixels } = image;
  if (declaredColour) return declaredProfile(declaredColour);
  if (!externalProfile) return undefined;
  const path = join(folder, INPUT_FILE);
  if (isHeif(type)) return takeProfile(path);
  if (type === 'jpg') return readJpegProfile(path); // in several parts
  const { at = 0, length = 0 } = pixels?.profile ?? {};
  if (length === 0 || length > MAX_EXTRACTED_BYTES) return undefined;
  await using file = await open(path, 'r');
  return (await readAt(file, at, length)).bytes;
}

const isDamaged = (error: Error): boolean => error instanceof ServiceError && error.code === 'CORRUPT_IMAGE';

/** What is repaired after an error. */
interface Failed {
  readonly image: ImageInfo;
  /** Whether the data of a JPEG should have been stored in a JPEG XL. */
  readonly isTranscoded?: boolean;
}

/**
 * Repairs an image, so that it can be converted again; undefined if no repair avoids the error.
 *
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export async function repairAfterError(
  error: Error,
  { image, isTranscoded = false }: Failed,
  folder: string,
  context: RepairContext,
): Promise<ImageInfo | undefined> {
  // librsvg uses no profile, and its input is not in the folder any more.
  if (image.type === 'svg') return undefined;
  if (isProfileError(error)) return { ...image, profile: 'unusable' };
  const path = join(folder, INPUT_FILE);
  // libjxl is stricter than decoders, as about the end of the data and the order of a profile.
  if (isTranscoded && isDamaged(error)) {
    await correctMetadata(path, image, [], undefined);
    return { ...image, unrestorable: true };
  }
  if (image.type !== 'png') return undefined;
  const isRepaired =
    (isPaletteError(error) && (await completePalette(path, context))) ||
    (isDamaged(error) && (await correctChecksums(path))); // ImageMagick 6 does not state the cause
  return isRepaired ? image : undefined;
}
