/** @module Finds the image data of a PNG (W3C PNG, third edition, sections 4.5, 7.2, 8 and 11.2). */

import type { WindowReader } from './containers/window-reader.ts';

/** Maximum number of chunks to read; later chunks are ignored. */
export const MAX_CHUNKS = 10_000;

/** A chunk of image data. In a truncated file, it may extend beyond the end. */
export interface PngDataChunk {
  /** Offset of its content. */
  readonly at: number;
  readonly length: number;
}

/** Where and how a PNG stores its image. */
export interface PngLayout {
  /** Number of bytes before the first chunk of image data. */
  readonly head: number;
  readonly data: readonly PngDataChunk[];
  /** Range of the complete chunks after the image data, without IEND. */
  readonly tail: { readonly from: number; readonly to: number };
  /** The image, or the seven reduced images of an interlaced one, in the order in which they are stored. */
  readonly passes: readonly PngPass[];
  readonly interlaced: boolean;
}

/** Rows of one image, as they are before compression. All have the same length. */
interface PngPass {
  readonly rows: number;
  /** Bytes per row, including the byte that names the filter. */
  readonly rowBytes: number;
}

/** Samples per pixel by colour type. */
const SAMPLES: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

/** First column and row, and the distance between columns and between rows, of the passes of Adam7. */
const ADAM7 = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;
const WHOLE = [[0, 0, 1, 1]] as const;

/** Reads the layout of a PNG; undefined if it has no image data. */
export async function readPngLayout(bytes: WindowReader): Promise<PngLayout | undefined> {
  const header = Buffer.from(await bytes.read(16, 13));
  const samples = SAMPLES[header[9] ?? -1];
  if (header.length < 13 || !samples) return undefined;
  const data: PngDataChunk[] = [];
  let head = 0;
  let tail = { from: 0, to: 0 };
  let offset = 8;
  for (let chunk = 0; chunk < MAX_CHUNKS; chunk += 1) {
    const start = await bytes.read(offset, 8);
    if (start.length < 8) break;
    const length = start.readUInt32BE(0);
    const name = start.toString('latin1', 4, 8);
    const end = offset + 12 + length;
    const isWhole = (await bytes.read(end - 1, 1)).length === 1;
    if (name === 'IDAT') {
      if (data.length === 0) head = offset;
      data.push({ at: offset + 8, length });
      tail = { from: end, to: end };
    } else if (name === 'IEND' || !isWhole) {
      break;
    } else {
      tail = { ...tail, to: end };
    }
    offset = end;
  }
  if (data.length === 0) return undefined;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const interlaced = header[12] === 1;
  const bitsPerPixel = (header[8] as number) * samples;
  return { head, data, tail, passes: passesOf(width, height, bitsPerPixel, interlaced), interlaced };
}

function passesOf(width: number, height: number, bitsPerPixel: number, interlaced: boolean): PngPass[] {
  return (interlaced ? ADAM7 : WHOLE).map(([x, y, stepX, stepY]) => {
    const columns = Math.max(0, Math.ceil((width - x) / stepX));
    const rows = Math.max(0, Math.ceil((height - y) / stepY));
    const rowBytes = columns === 0 ? 0 : 1 + Math.ceil((columns * bitsPerPixel) / 8);
    return { rows: rowBytes === 0 ? 0 : rows, rowBytes };
  });
}
