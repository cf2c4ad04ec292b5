/** @module Inspects images without decoding them: size, orientation, colours, frames and metadata. */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import type { InputType } from '../../formats.ts';
import type { ImageInfo } from '../plan/image-info.ts';
import { readAvif } from './avif.ts';
import { readBmp } from './bmp.ts';
import { readGif } from './gif.ts';
import { readIco } from './ico.ts';
import { readJp2 } from './jp2.ts';
import { readJpeg } from './jpeg.ts';
import { readJxl } from './jxl.ts';
import { readPng } from './png.ts';
import { readPsd } from './psd.ts';
import { readSvg } from './svg.ts';
import { readTiff } from './tiff.ts';
import { readWebp } from './webp.ts';
import { type PositionedReader, WindowReader } from './window-reader.ts';

type Reader = (bytes: WindowReader) => Promise<Omit<ImageInfo, 'type'>>;

const READERS: Readonly<Record<InputType, Reader>> = {
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

/** Flags for opening a file that a tool has written: do not follow a symbolic link, and do not block on a pipe. */
export const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads the open file `fd` synchronously. The file was just written, so reading it from memory takes less time
 * than a round trip to another thread.
 */
export function readFrom(fd: number): PositionedReader {
  return {
    read: async (buffer, offset, length, position) => ({
      bytesRead: readSync(fd, buffer, offset, length, position),
    }),
  };
}

/**
 * Inspects an open file, as {@link inspect} does. The amount of reading is bounded for any content.
 *
 * @throws {HeaderTooComplexError} if the header takes too many reads
 */
export async function inspectFile(file: PositionedReader, type: InputType): Promise<ImageInfo> {
  return { type, ...(await READERS[type](new WindowReader(file))) };
}
