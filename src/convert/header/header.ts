import { closeSync, constants, openSync, readSync } from 'node:fs';
import type { InputType } from '../../formats.ts';
import type { Picture } from '../plan/types.ts';
import { readAvif } from './avif.ts';
import { readBmp } from './bmp.ts';
import { Bytes, type Readable } from './bytes.ts';
import { readGif } from './gif.ts';
import { readIco } from './ico.ts';
import { readJpeg } from './jpeg.ts';
import { readPng } from './png.ts';
import { readSvg } from './svg.ts';
import { readTiff } from './tiff.ts';
import { readWebp } from './webp.ts';

type Reader = (bytes: Bytes) => Promise<Omit<Picture, 'type'>>;

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
};

/**
 * What the header of the file at `path` tells. A damaged header is no error here:
 * it tells less, and the tool that reads the file says what is wrong with it.
 */
export async function readHeader(path: string, type: InputType): Promise<Picture> {
  const fd = openSync(path, ONLY_A_FILE);
  try {
    return await readHeaderOf(readFrom(fd), type);
  } finally {
    closeSync(fd);
  }
}

/** What a tool has left may be a link out of the folder, or a pipe, which would be waited for for ever. */
const ONLY_A_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads the open file `fd` synchronously. The file was written a moment ago, so reading it from memory takes less time
 * than a round trip to another thread.
 */
export function readFrom(fd: number): Readable {
  return {
    read: async (buffer, offset, length, position) => ({
      bytesRead: readSync(fd, buffer, offset, length, position),
    }),
  };
}

/** As {@link readHeader}, of a file that is open. Of any bytes at all it reads little, and comes to an end. */
export async function readHeaderOf(file: Readable, type: InputType): Promise<Picture> {
  return { type, ...(await READERS[type](new Bytes(file))) };
}
