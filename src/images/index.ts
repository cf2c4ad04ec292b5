/** @module Repairs images, and inspects them without decoding them. One row per format. */
import type { InputType } from '../formats.ts';
import { readBmp, repairBmp } from './bmp.ts';
import {
  type RepairContext,
  type RepairTarget,
  type WindowReader,
  withFile,
  withReader,
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
  /** Repairs a file in place. Returns the type of the repaired file if it is another one. */
  readonly repair?: (target: RepairTarget) => Promise<InputType | undefined>;
}

const FORMATS: { readonly [Type in InputType]: Format<Type> } = {
  png: { inspect: readPng },
  avif: { inspect: readAvif, repair: (target) => repairHeif(target, 'avif') },
  bmp: { inspect: readBmp, repair: repairBmp },
  jpg: { inspect: readJpeg },
  tiff: { inspect: readTiff, repair: repairTiff },
  gif: { inspect: readGif, repair: repairGif },
  ico: { inspect: readIco, repair: keepBestImage },
  webp: { inspect: readWebp },
  svg: { inspect: readSvg, repair: repairSvg },
  heic: { inspect: readAvif, repair: (target) => repairHeif(target, 'heic') },
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
  const { repair } = FORMATS[type];
  const repaired = repair && (await withFile(path, 'r+', (file) => repair({ ...context, path, file })));
  return repaired ?? type;
}

/**
 * Reads size, frames, colour and metadata from the header of the file at `path`. A damaged header is not an error:
 * fields are missing, and the tool that decodes the file reports the damage.
 *
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export function inspect(path: string, type: InputType): Promise<ImageInfo> {
  return withReader(path, (bytes) => inspectBytes(bytes, type));
}

/** Inspects an open file, as {@link inspect} does. The amount of reading is bounded for any content. */
export async function inspectBytes(bytes: WindowReader, type: InputType): Promise<ImageInfo> {
  return { type, ...(await FORMATS[type].inspect(bytes)) } as ImageInfo;
}
