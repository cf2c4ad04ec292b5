/** @module Repairs images, and inspects them without decoding them. One row per format. */
import { closeSync, openSync } from 'node:fs';
import type { InputType } from '../formats.ts';
import { readBmp, repairBmp } from './bmp.ts';
import {
  OPEN_FLAGS,
  type PositionedReader,
  type RepairContext,
  readFrom,
  WindowReader,
} from './containers/file.ts';
import { readGif, repairGif } from './gif.ts';
import { readAvif } from './heif.ts';
import { repairHeif } from './heif-repair.ts';
import { keepBestImage, readIco } from './ico.ts';
import type { ImageFacts, ImageInfo } from './image-info.ts';
import { readJp2 } from './jp2.ts';
import { repairJp2 } from './jp2-repair.ts';
import { readJpeg } from './jpeg.ts';
import { readJxl } from './jxl.ts';
import { readPng } from './png.ts';
import { hideLayers, readPsd } from './psd.ts';
import { readSvg } from './svg/inspect.ts';
import { repairSvg } from './svg/rewrite.ts';
import { readTiff } from './tiff.ts';
import { repairTiff } from './tiff-repair.ts';
import { readWebp } from './webp.ts';

interface Format<Type extends InputType> {
  readonly inspect: (bytes: WindowReader) => Promise<ImageFacts<Type>>;
  /** Repairs the file at a path in place. Returns the type of the repaired file. */
  readonly repair?: (path: string, context: RepairContext) => Promise<InputType>;
}

const FORMATS: { readonly [Type in InputType]: Format<Type> } = {
  png: { inspect: readPng },
  avif: { inspect: readAvif, repair: (path) => repairHeif(path, 'avif') },
  bmp: { inspect: readBmp, repair: repairBmp },
  jpg: { inspect: readJpeg },
  tiff: { inspect: readTiff, repair: repairTiff },
  gif: { inspect: readGif, repair: repairGif },
  ico: { inspect: readIco, repair: keepBestImage },
  webp: { inspect: readWebp },
  svg: { inspect: readSvg, repair: repairSvg },
  heic: { inspect: readAvif, repair: (path) => repairHeif(path, 'heic') },
  jxl: { inspect: readJxl },
  jp2: { inspect: readJp2, repair: repairJp2 },
  psd: { inspect: readPsd, repair: hideLayers },
  cur: { inspect: readIco, repair: keepBestImage },
  pdf: { inspect: async () => ({ profile: 'none', metadata: [] }) }, // only pdfinfo reads more
};

/**
 * Repairs the file at `path` in place: what the tools would reject or misread.
 *
 * @returns the type of the repaired file: `png` for an icon whose best image is a PNG
 * @throws {ServiceError} FILE_TOO_LARGE or CORRUPT_IMAGE for a compressed SVG, CONVERSION_TIMEOUT for an SVG, DISK_FULL if the disk
 *   has no space for the repaired file
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export async function repair(path: string, type: InputType, context: RepairContext): Promise<InputType> {
  return (await FORMATS[type].repair?.(path, context)) ?? type;
}

/**
 * Reads size, frames, colour and metadata from the header of the file at `path`. A damaged header is not an error:
 * fields are missing, and the tool that decodes the file reports the damage.
 *
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export async function inspect(path: string, type: InputType): Promise<ImageInfo> {
  const fd = openSync(path, OPEN_FLAGS);
  try {
    return await inspectFile(readFrom(fd), type);
  } finally {
    closeSync(fd);
  }
}

/**
 * Inspects an open file, as {@link inspect} does. The amount of reading is bounded for any content.
 *
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export async function inspectFile(file: PositionedReader, type: InputType): Promise<ImageInfo> {
  return { type, ...(await FORMATS[type].inspect(new WindowReader(file))) } as ImageInfo;
}
