/**
 * @module Decodes the kinds of bitmaps that ImageMagick misreads or rejects, and that browsers show. Those with run-length encoding
 * (BI_RLE4, BI_RLE8, and RLE24 of OS/2) are decoded here.
 */
import { type FileHandle, rename } from 'node:fs/promises';
import { type Dib, readBmpLayout } from './bmp.ts';
import { decodeRows, PIXEL_BYTES, type Truncation } from './bmp-rows.ts';
import { readAt, WindowReader, withFile, withReader } from './containers/file.ts';
import { MAX_EXTRACTED_BYTES } from './icc.ts';
import { readIconLayout } from './ico.ts';
import type { ImageInfo } from './image-info.ts';
import { readPng } from './png.ts';
import { writePng } from './png-writer.ts';

/** Bytes per read. Decoding them takes about 1 ms. */
const READ_BYTES = 32 * 1024;
const BLOCK_BYTES = 256 * 1024;
/** Second byte of an escape, whose first byte is 0. From 3 on, it is the number of literal pixels. */
const ESCAPE = { endOfLine: 0, endOfBitmap: 1, delta: 2 } as const;

/**
 * Yields blocks of decoded rows, in their stored order. Skipped pixels are black, and pixels beyond the end of the file
 * are transparent, as in Chromium.
 *
 * @param truncation is set to the completeness of the data
 */
async function* decodeRuns(file: FileHandle, dib: Dib, truncation: Truncation): AsyncGenerator<Buffer> {
  const { runLength: bits = 8, palette = Buffer.alloc(0) } = dib;
  const canvas = new Canvas(dib);
  const input = new Input(file, dib.pixelsAt);
  const colours = Array.from({ length: 256 }, (_, index) => {
    const [red = 0, green = 0, blue = 0] = palette.subarray(index * 3, index * 3 + 3);
    return Buffer.of(red, green, blue, OPAQUE);
  });
  /** Returns the colour of a pixel. With 4 bits, a byte has two. With 24 bits, two more bytes follow. */
  const colourOf = (byte: number, at: number): Buffer => {
    if (bits !== 24) return colours[bits === 8 ? byte : at % 2 === 0 ? byte >> 4 : byte & 15] as Buffer;
    const [green, red] = [input.next(), input.next()];
    return Buffer.of(red, green, byte, OPAQUE);
  };
  const drawLiterals = (count: number): void => {
    let byte = 0;
    for (let at = 0; at < count; at += 1) {
      if (bits !== 4 || at % 2 === 0) byte = input.next();
      const colour = colourOf(byte, at);
      if (input.isCut) return;
      canvas.fill(1, colour);
    }
    if (Math.ceil((count * bits) / 8) % 2 === 1) input.next(); // padding
  };
  while (!canvas.isFull) {
    if (input.left < MAX_CODE_BYTES) await input.fill();
    const count = input.next();
    const value = input.next();
    if (input.isCut) {
      truncation.cut = true;
      canvas.cut();
      break;
    }
    if (count > 0)
      canvas.fill(
        count,
        bits === 4 ? Buffer.concat([0, 1].map((at) => colourOf(value, at))) : colourOf(value, 0),
      );
    else if (value === ESCAPE.endOfBitmap) break;
    else if (value === ESCAPE.endOfLine) canvas.skip(0, 1, true);
    else if (value === ESCAPE.delta) canvas.skip(input.next(), input.next(), false);
    else drawLiterals(value);
    truncation.shown ||= !input.isCut;
    if (canvas.hasBlock) yield canvas.take();
  }
  while (!canvas.isFull) {
    canvas.skip(0, 1, true);
    if (canvas.hasBlock) yield canvas.take();
  }
  yield canvas.take();
}

/** Length of the longest code in bytes: 255 literal pixels of 3 bytes, padded. */
const MAX_CODE_BYTES = 2 + 256 * 3;

/** Reads the bytes of the file, from the first pixel on. */
class Input {
  readonly #file: FileHandle;
  #position: number;
  #bytes = Buffer.alloc(0);
  #at = 0;
  /** Whether more was read than the file contains. */
  isCut = false;

  constructor(file: FileHandle, position: number) {
    this.#file = file;
    this.#position = position;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  async fill(): Promise<void> {
    const { bytes, found } = await readAt(this.#file, this.#position, READ_BYTES);
    this.#position += found;
    this.#bytes = Buffer.concat([this.#bytes.subarray(this.#at), bytes.subarray(0, found)]);
    this.#at = 0;
  }

  /** Returns the next byte, or 0 beyond the end of the file. */
  next(): number {
    const byte = this.#bytes[this.#at];
    this.#at += 1;
    if (byte === undefined) this.isCut = true;
    return byte ?? 0;
  }
}

const OPAQUE = 255;

/** Collects the rows of the image. Drops pixels outside of it. */
class Canvas {
  readonly #rowBytes: number;
  readonly #width: number;
  #rowsLeft: number;
  #row: Buffer;
  #skipped: Buffer;
  #x = 0;
  #done: Buffer[] = [];

  constructor({ width, height }: Dib) {
    this.#width = width;
    this.#rowBytes = width * PIXEL_BYTES;
    this.#rowsLeft = height;
    this.#skipped = Buffer.alloc(this.#rowBytes, Buffer.of(0, 0, 0, 255));
    this.#row = Buffer.from(this.#skipped);
  }

  get isFull(): boolean {
    return this.#rowsLeft === 0;
  }

  /** Fills this number of pixels with the colours, which repeat. */
  fill(count: number, colours: Buffer): void {
    const end = Math.min(this.#x + count, this.#width);
    if (this.#x < end) this.#row.fill(colours, this.#x * PIXEL_BYTES, end * PIXEL_BYTES);
    this.#x += count;
  }

  cut(): void {
    this.#skipped = Buffer.alloc(this.#rowBytes);
    if (this.#x < this.#width) this.#row.fill(0, this.#x * PIXEL_BYTES);
  }

  skip(columns: number, rows: number, toStart: boolean): void {
    for (let row = 0; row < rows && this.#rowsLeft > 0; row += 1) {
      this.#done.push(this.#row);
      this.#rowsLeft -= 1;
      this.#row = Buffer.from(this.#skipped);
    }
    this.#x = toStart ? 0 : this.#x + columns;
  }

  /** Whether the finished rows have the size of a block. */
  get hasBlock(): boolean {
    return this.#done.length * this.#rowBytes >= BLOCK_BYTES;
  }

  /** Removes the finished rows, and returns them. */
  take(): Buffer {
    const block = Buffer.concat(this.#done);
    this.#done = [];
    return block;
  }
}

/** Orientation of rows that are stored from the bottom to the top (EXIF 2.32, 4.6.4). */
const FLIPPED = 4;

/**
 * Replaces the BMP or icon at `path` by a PNG. Rows stay in their stored order, and `orientation` states the direction,
 * so only a few rows are in memory. Blocks the event loop for at most about 2 ms at a time.
 *
 * @returns the properties of the PNG; undefined if the file contains no pixels
 */
export async function decodeBitmap(
  path: string,
  image: ImageInfo,
  signal: AbortSignal,
): Promise<ImageInfo | undefined> {
  const output = `${path}.png`;
  const truncation: Truncation = { cut: false, shown: false };
  const dib = await withFile(path, 'r', async (file) => {
    const bytes = new WindowReader(file);
    const layout = await (image.type === 'ico' ? readIconLayout(bytes) : readBmpLayout(bytes));
    if (!layout) return undefined;
    const { width, height, runLength } = layout;
    const profile = await readProfile(file, layout);
    const blocks = (runLength ? decodeRuns : decodeRows)(file, layout, truncation);
    await writePng(output, { width, height, profile }, blocks, signal);
    return layout;
  });
  if (!dib || !truncation.shown) return undefined;
  await rename(output, path);
  const { paletteKind } = image;
  const info = await withReader(path, readPng);
  return {
    ...{ type: 'png', ...info },
    ...(paletteKind && { paletteKind }),
    ...(!dib.topDown && { orientation: FLIPPED }),
    ...(truncation.cut && { truncated: true }),
  };
}

async function readProfile(file: FileHandle, { profile }: Dib): Promise<Buffer | undefined> {
  if (!profile || profile.length > MAX_EXTRACTED_BYTES) return undefined;
  const { bytes, found } = await readAt(file, profile.at, profile.length);
  return found === profile.length ? bytes : undefined;
}
