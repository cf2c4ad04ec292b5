/**
 * @module Stores a received file while its type is detected, repairs what ImageMagick or libheif would reject or misread, and inspects
 * the result.
 */
import { createHash } from 'node:crypto';
import { closeSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ServiceError, serviceError, serviceErrorFrom } from '../errors.ts';
import type { DiskAccount } from '../files/disk-space.ts';
import { workFiles } from '../files/workspace.ts';
import { EXTRA_INPUT_TYPES, INPUTS, type InputType, listLabels } from '../formats.ts';
import { declaredProfile } from '../images/colour/declared-colour.ts';
import { HeaderTooComplexError, type RepairContext } from '../images/containers/file.ts';
import { makeMetadataUpright } from '../images/exif.ts';
import { removeTransforms, takeProfile } from '../images/heif-repair.ts';
import type { ImageInfo } from '../images/image-info.ts';
import {
  DETECTION_BYTES,
  type DetectedType,
  detectType,
  type FileType,
  inspect,
  repair,
} from '../images/index.ts';
import { completePalette, correctChecksums } from '../images/png-repair.ts';
import { cutAfterFirstFrame, readWebpProfile } from '../images/webp.ts';
import { type InspectionContext, inspectPdf } from './inspect-pdf.ts';
import { chooseFormat } from './options.ts';
import { isPaletteError, isProfileError } from './output/tool-errors.ts';
import { keepsAllFrames } from './plan/size.ts';
import { type ConvertOptions, INPUT_FILE } from './plan/types.ts';
import type { PreparationKind } from './queue/queue.ts';
import type { ConversionInput } from './types.ts';

/**
 * Maximum number of files of each kind that are prepared at once. Preparing one can take 60 MB, for the unpacked text of an SVG, all of
 * its tags, or a GIF. Files of clients are prepared in turn, like their conversions. SVGs have as many places as
 * `images/svg/rewrite.ts` has threads, with the reserved one.
 */
export const MAX_PREPARATIONS: Readonly<Record<PreparationKind, number>> = { main: 4, svg: 1, pdf: 2 };

/** Returns the kind of preparation that files of a type need. */
export const preparationKind = (type: InputType): PreparationKind =>
  type === 'svg' || type === 'pdf' ? type : 'main';

export interface StoreOptions<T extends FileType> {
  /** Name of the file in error messages. */
  readonly label: string;
  readonly types: readonly T[];
  /** Returns the maximum size in bytes for a type, or for an unknown type if undefined. May throw. */
  readonly maxBytes: (type: T | undefined) => number;
  /** Aborts the writing. */
  readonly signal: AbortSignal;
  /** Disk space in which the bytes are reserved before they are written. */
  readonly disk: Pick<DiskAccount, 'store'>;
}

/** What is known of a file when it has been stored. */
export interface StoredInput<T extends FileType> {
  readonly type: T;
  /** Size in bytes. */
  readonly length: number;
  /** SHA-256 in hex. */
  readonly sha256: string;
}

/**
 * Writes a stream to a new file.
 *
 * @throws {ServiceError} EMPTY_FILE; FILE_TOO_LARGE or UNSUPPORTED_TYPE as soon as it is certain; DISK_FULL if the disk
 *   has no space for bytes beyond those that the request announced
 * @throws the signal's reason if it aborts
 */
export async function storeInput<T extends FileType>(
  bytes: AsyncIterable<Buffer>,
  path: string,
  { label, types, maxBytes, signal, disk }: StoreOptions<T>,
): Promise<StoredInput<T>> {
  const files = workFiles(path);
  const file = await files.open(path, 'wx', 0o600);
  const hash = createHash('sha256');
  let head: Buffer = Buffer.alloc(0);
  /** Bytes with which the type is detected next. Doubles, so that small chunks do not each repeat the detection. */
  let enough = DETECTION_BYTES;
  let length = 0;
  let type: T | undefined;
  const detect = async (isComplete: boolean): Promise<void> => {
    const detected = await detectType(head, isComplete);
    if (detected === 'unsure') return;
    type = types.find((accepted) => accepted === detected);
    if (type === undefined) throw unsupportedType(label, detected, types);
  };
  const checkLength = (): void => {
    if (length > maxBytes(type)) throw serviceError('FILE_TOO_LARGE', label, maxBytes(type));
  };
  try {
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      length += chunk.length;
      if (type === undefined) {
        head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
        if (head.length >= enough) {
          enough = head.length * 2;
          await detect(false);
        }
      }
      checkLength();
      await disk.store(chunk.length);
      hash.update(chunk);
      await files.append(file, chunk);
    }
    if (length === 0) throw serviceError('EMPTY_FILE', label);
    if (type === undefined) await detect(true);
    checkLength();
    return { type: type as unknown as T, length, sha256: hash.digest('hex') };
  } finally {
    closeSync(file);
  }
}

/** Creates the error of a file of another type than the accepted ones. */
export function unsupportedType(
  label: string,
  detected: DetectedType,
  accepts: readonly FileType[],
): ServiceError {
  const disabled = EXTRA_INPUT_TYPES.find((extra) => extra === detected);
  const others = disabled ? [INPUTS[disabled].label] : [];
  const images = accepts.filter((type) => type !== 'zip' && type !== 'archive');
  return serviceError('UNSUPPORTED_TYPE', label, listLabels(images), ...others);
}

/**
 * Creates the limits of the repairs of an input.
 *
 * @param maxBytes maximum size of the repaired file
 * @param onGrow called with the number of bytes that a repair is about to write, or, negative, that it has removed
 */
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
 * Repairs the file of an input in place, and inspects it.
 *
 * @param requested the options of each result. They determine which pages are inspected.
 * @param inspection how to run the program that inspects a PDF. Without it, only the type of a PDF is known.
 * @throws {ServiceError} as {@link prepareInput}
 */
export async function repairAndInspect(
  source: ConversionInput,
  requested: readonly ConvertOptions[],
  context: RepairContext,
  inspection?: InspectionContext,
): Promise<ImageInfo> {
  const { folder, type, label } = source;
  const path = join(folder, INPUT_FILE);
  try {
    const image = await inspect(path, await repair(path, type, context));
    return image.type === 'pdf' && inspection
      ? { ...image, ...(await inspectPdf(source, requested, inspection)) }
      : image;
  } catch (error) {
    throw error instanceof HeaderTooComplexError
      ? serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label)
      : error;
  }
}

/** Returns the options with the best of the accepted formats, if the format is to be chosen. */
export function resolveFormat({ accepted, ...options }: ConvertOptions, image: ImageInfo): ConvertOptions {
  return accepted ? { ...options, format: chooseFormat(accepted, image, options) } : options;
}

/**
 * Prepares the file of an input in place, and writes its external profile to the folder of the input.
 *
 * @param requested the options of each result
 * @returns the properties of the repaired image
 * @throws {ServiceError} FILE_TOO_LARGE or CORRUPT_IMAGE for a compressed SVG, DISK_FULL if the disk has no space for a repaired
 *   file, RESOURCE_LIMIT_EXCEEDED if the header takes too many reads, FILE_ENCRYPTED or CORRUPT_IMAGE for a PDF
 */
export async function prepareInput(
  source: ConversionInput,
  requested: readonly ConvertOptions[],
  context: RepairContext,
  inspection?: InspectionContext,
): Promise<ImageInfo> {
  const { folder } = source;
  const path = join(folder, INPUT_FILE);
  const image = await repairAndInspect(source, requested, context, inspection);
  if (
    image.type === 'webp' &&
    image.animation &&
    !requested.some((options) => keepsAllFrames(image, options))
  )
    await cutAfterFirstFrame(path);
  if (image.plannedTransforms) await removeTransforms(path);
  if (requested.some(({ stripMetadata }) => !stripMetadata)) await makeMetadataUpright(path, image);
  return storeExternalProfile(folder, image);
}

/**
 * Writes the external profile of an image to the folder of its input.
 *
 * The name of the file depends on its content, so that plans with different profiles have different conversion keys.
 *
 * @returns the image with the name of the file, if there is one
 */
export async function storeExternalProfile(folder: string, image: ImageInfo): Promise<ImageInfo> {
  const profile = await externalProfileOf(folder, image);
  if (!profile) return image;
  const profileFile = `${createHash('sha256').update(profile).digest('hex').slice(0, 32)}.icc`;
  await writeFile(join(folder, profileFile), profile);
  return { ...image, profileFile };
}

function externalProfileOf(
  folder: string,
  { declaredColour, externalProfile, type }: ImageInfo,
): Promise<Buffer | undefined> | undefined {
  if (declaredColour) return declaredProfile(declaredColour);
  if (!externalProfile) return undefined;
  return (type === 'webp' ? readWebpProfile : takeProfile)(join(folder, INPUT_FILE));
}

const isDamaged = (error: Error): boolean => error instanceof ServiceError && error.code === 'CORRUPT_IMAGE';

/**
 * Repairs an image, so that it can be converted again.
 *
 * @param folder folder of the input
 * @returns undefined if no repair avoids the error
 * @throws {ServiceError} DISK_FULL if the disk has no space for the repaired file beside the input
 */
export async function repairAfterError(
  error: Error,
  image: ImageInfo,
  folder: string,
  context: RepairContext,
): Promise<ImageInfo | undefined> {
  // librsvg uses no profile, and its input is not in the folder any more.
  if (image.type === 'svg') return undefined;
  if (isProfileError(error)) return { ...image, profile: 'unusable' };
  if (image.type !== 'png') return undefined;
  const path = join(folder, INPUT_FILE);
  const isRepaired =
    (isPaletteError(error) && (await completePalette(path, context))) ||
    (isDamaged(error) && (await correctChecksums(path))); // ImageMagick 6 does not state the cause
  return isRepaired ? image : undefined;
}
