/**
 * @module Prepares a received file for the tools: repairs what ImageMagick or libheif would reject or misread, and inspects
 * the result.
 */

import { createHash } from 'node:crypto';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { serviceErrorFrom } from '../errors.ts';
import type { InputType } from '../formats.ts';
import { declaredProfile } from '../images/colour/declared-profile.ts';
import type { RepairContext } from '../images/containers/file.ts';
import { HeaderTooComplexError, WindowReader } from '../images/containers/window-reader.ts';
import { makeMetadataUpright } from '../images/exif.ts';
import { repairGif } from '../images/gif-repair.ts';
import { removeRotation, repairHeif, takeProfile } from '../images/heif-repair.ts';
import { keepBestImage } from '../images/ico-repair.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { inspect } from '../images/inspect.ts';
import { repairJp2 } from '../images/jp2-repair.ts';
import { findLayerCount, MAX_LAYERS } from '../images/psd.ts';
import { rewriteSvg } from '../images/svg/rewrite.ts';
import { unpackSvg } from '../images/svg/unpack.ts';
import { repairTiff } from '../images/tiff-repair.ts';
import { cutAfterFirstFrame, readWebpProfile } from '../images/webp.ts';
import { keepsAllFrames } from './plan/size.ts';
import { type ConvertOptions, INPUT_FILE } from './plan/types.ts';
import type { ConversionInput } from './types.ts';

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
 * Prepares the file of an input in place, and writes its external profile to the folder of the input.
 *
 * @returns the properties of the repaired image
 * @throws {ServiceError} FILE_TOO_LARGE or CORRUPT_IMAGE for a compressed SVG, DISK_FULL if the disk has no space for a repaired file,
 *   RESOURCE_LIMIT_EXCEEDED if the header takes too many reads
 */
export async function prepareInput(
  { folder, type, label }: ConversionInput,
  options: ConvertOptions,
  context: RepairContext,
): Promise<ImageInfo> {
  const path = join(folder, INPUT_FILE);
  const repairAndInspect = async (): Promise<ImageInfo> =>
    inspect(path, (await REPAIRS[type]?.(path, context)) ?? type);
  const image = await repairAndInspect().catch((error) => {
    throw error instanceof HeaderTooComplexError
      ? serviceErrorFrom(error, 'RESOURCE_LIMIT_EXCEEDED', label)
      : error;
  });
  if (image.type === 'webp' && image.animation && !keepsAllFrames(image, options))
    await cutAfterFirstFrame(path);
  if (image.plannedRotation) await removeRotation(path);
  if (!options.stripMetadata) await makeMetadataUpright(path, image);
  return storeExternalProfile(folder, image);
}

/** Repairs the file at a path in place. Returns the type of the repaired file. */
type Repair = (path: string, context: RepairContext) => Promise<InputType>;

const REPAIRS: Partial<Record<InputType, Repair>> = {
  ico: keepBestImage,
  bmp: resetBmpFields,
  gif: repairGif,
  avif: (path) => repairHeif(path, 'avif'),
  heic: (path) => repairHeif(path, 'heic'),
  cur: keepBestImage,
  jp2: repairJp2,
  psd: hideLayers,
  tiff: repairTiff,
  svg: repairSvg,
};

/** Unpacks a compressed SVG, and rewrites constructs that librsvg renders wrongly. */
async function repairSvg(path: string, context: RepairContext): Promise<InputType> {
  await unpackSvg(path, context);
  await rewriteSvg(path, context);
  return 'svg';
}

/** Offset of the four-byte file size in a BMP (BITMAPFILEHEADER). */
const LENGTH_AT = 2;
/** Offset of the second header, which starts with its length, and the minimum length with endpoints and gammas. */
const HEADER_AT = 14;
const V4_HEADER = 108;
/** Length of the header of OS/2 1.x, and the offset of the number of planes in it and in all others. */
const CORE_HEADER = 12;
const PLANES_AT = { core: HEADER_AT + 8, other: HEADER_AT + 12 } as const;
/** Position of the endpoints and gammas of calibrated colours (BITMAPV4HEADER, bV4Endpoints to bV4GammaBlue). */
const CALIBRATION = { at: HEADER_AT + 60, length: 48 } as const;

/**
 * Resets fields of a BMP that viewers ignore. Many files state a wrong size, and ImageMagick 6 rejects a size that is larger
 * than the file. Both versions reject a number of planes other than 1. Browsers ignore calibrated colours in a BMP, but
 * ImageMagick would copy them to a PNG that keeps metadata, where browsers apply them.
 */
async function resetBmpFields(path: string): Promise<InputType> {
  await overwrite(path, LENGTH_AT, Buffer.alloc(4));
  const header = (await readBytes(path, HEADER_AT, 4)).readUInt32LE();
  await overwrite(path, header === CORE_HEADER ? PLANES_AT.core : PLANES_AT.other, Buffer.from([1, 0]));
  if (header >= V4_HEADER) await overwrite(path, CALIBRATION.at, Buffer.alloc(CALIBRATION.length));
  return 'bmp';
}

/**
 * Reduces the layer count to one. Only the merged image is converted, but ImageMagick 7 counts layers as frames and
 * rejects too many. A file with more layers than Photoshop allows is not changed, and is rejected later.
 */
async function hideLayers(path: string): Promise<InputType> {
  const file = await open(path);
  const { offset, count } = await findLayerCount(new WindowReader(file)).finally(() => file.close());
  if (Math.abs(count) > 1 && Math.abs(count) <= MAX_LAYERS) {
    const one = Buffer.alloc(2);
    one.writeInt16BE(Math.sign(count));
    await overwrite(path, offset, one);
  }
  return 'psd';
}

/** Reads bytes of the file at `path`. Bytes beyond the end of the file are 0. */
async function readBytes(path: string, at: number, length: number): Promise<Buffer> {
  const file = await open(path);
  return (await file.read(Buffer.alloc(length), 0, length, at).finally(() => file.close())).buffer;
}

/** Overwrites bytes of the file at `path`. */
async function overwrite(path: string, at: number, bytes: Buffer): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.write(bytes, 0, bytes.length, at);
  } finally {
    await file.close();
  }
}

/**
 * Writes the external profile of an image to the folder of its input.
 *
 * The name of the file depends on its content, because ImageMagick 7 remembers every profile by its name: a worker
 * would apply the profile of its first job to all others.
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
