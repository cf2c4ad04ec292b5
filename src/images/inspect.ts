/** @module Inspects images without decoding them: size, orientation, colours, frames and metadata. */
import { closeSync, openSync } from 'node:fs';
import type { InputType } from '../formats.ts';
import { readBmp } from './bmp.ts';
import { OPEN_FLAGS, readFrom } from './containers/file.ts';
import { type PositionedReader, WindowReader } from './containers/window-reader.ts';
import { readGif } from './gif.ts';
import { readAvif } from './heif.ts';
import { readIco } from './ico.ts';
import type { ImageFacts, ImageInfo } from './image-info.ts';
import { readJp2 } from './jp2.ts';
import { readJpeg } from './jpeg.ts';
import { readJxl } from './jxl.ts';
import { readPng } from './png.ts';
import { readPsd } from './psd.ts';
import { readSvg } from './svg/inspect.ts';
import { readTiff } from './tiff.ts';
import { readWebp } from './webp.ts';

const READERS: {
  readonly [Type in InputType]: (bytes: WindowReader) => Promise<ImageFacts<Type>>;
} = {
  png: readPng,
  avif: readAvif,
  bmp: readBmp,
  jpg: readJpeg,
  tiff: readTiff,
  gif: readGif,
  ico: readIco,
  webp: readWebp,
  svg: readSvg,
  heic: readAvif,
  jxl: readJxl,
  jp2: readJp2,
  psd: readPsd,
  cur: readIco,
};

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
  return { type, ...(await READERS[type](new WindowReader(file))) } as ImageInfo;
}
