import { decode, encode } from '../image/codec.ts';
import { compositeOver, renderDifference } from '../image/difference.ts';
import type { DecodedImage, Raster } from '../image/image.ts';
import type { Recording, Row } from '../recording.ts';
import type { Finding } from '../verdict.ts';

/** The pictures of one finding, made small enough for a page that holds all of them. */

export interface Shown {
  readonly src: string;
  readonly width: number;
  readonly height: number;
}

export interface Pictures {
  readonly before?: Shown | undefined;
  readonly after?: Shown | undefined;
  /** Times {@link factor}, where both have the same size. */
  readonly difference?: Shown | undefined;
  readonly factor: number;
  readonly frames: number;
  /** The place that differs most, pixel by pixel. */
  readonly spot?: { readonly before: Shown; readonly after: Shown; readonly difference: Shown } | undefined;
}

/** Pixels a side of the pictures of the page. */
const WHOLE = 640;
const THUMBNAIL = 160;
/** Up to this many they are enlarged. */
const SMALL = 280;
/** Pixels a side of the place that differs most, and how much each is enlarged. */
const SPOT = { side: 48, factor: 4 };

/** @param whole whether all are wanted, or a thumbnail of each side */
export async function picturesOf(
  { before, after, difference }: Finding,
  recordings: { readonly before: Recording; readonly after: Recording },
  whole: boolean,
): Promise<Pictures> {
  const [one, other] = [await load(before, recordings.before), await load(after, recordings.after)];
  const at = difference?.frame ?? 0;
  const [a, b] = [one?.frames[at] ?? one?.frames[0], other?.frames[at] ?? other?.frames[0]];
  const side = whole ? WHOLE : THUMBNAIL;
  const factor = factorFor(difference?.max ?? 255);
  const both = whole && a && b && a.width === b.width && a.height === b.height && difference;
  return {
    before: a && (await show(a, side)),
    after: b && (await show(b, side)),
    factor,
    frames: other?.frames.length ?? 0,
    ...(both && {
      difference: await show(renderDifference(a, b, factor), side),
      ...(enlargement(a) < SPOT.factor && { spot: await spotOf(a, b, difference.at, factor) }),
    }),
  };
}

async function load(row: Row | undefined, recording: Recording): Promise<DecodedImage | undefined> {
  const file = row && recording.open(row);
  return file && decode(await file, row.format).catch(() => undefined);
}

/** So much that the largest difference is bright, and small ones are to be seen. */
function factorFor(max: number): number {
  return 2 ** Math.min(6, Math.max(0, Math.floor(Math.log2(255 / Math.max(1, max))) + 1));
}

/** Small pictures are shown larger, each pixel as a square: whole times, so that all of them have one size. */
function enlargement({ width, height }: Raster): number {
  return Math.max(1, Math.min(8, Math.floor(SMALL / Math.max(width, height))));
}

/** Around the patch that differs most. */
async function spotOf(one: Raster, other: Raster, at: { x: number; y: number }, factor: number) {
  const margin = (SPOT.side - 16) / 2;
  const [x, y] = [within(at.x - margin, one.width), within(at.y - margin, one.height)];
  return spots(cut(one, x, y), cut(other, x, y), factor);
}

async function spots(one: Raster, other: Raster, factor: number) {
  const [before, after, difference] = await Promise.all(
    [compositeOver(one, 255), compositeOver(other, 255), renderDifference(one, other, factor)].map((raster) =>
      show(raster, WHOLE, SPOT.factor),
    ),
  );
  return { before, after, difference } as { before: Shown; after: Shown; difference: Shown };
}

const within = (from: number, side: number): number => Math.max(0, Math.min(from, side - SPOT.side));

function cut({ width, height, data }: Raster, x: number, y: number): Raster {
  const [w, h] = [Math.min(SPOT.side, width), Math.min(SPOT.side, height)];
  const piece = new Uint8Array(w * h * 4);
  for (let row = 0; row < h; row += 1) {
    const from = ((y + row) * width + x) * 4;
    piece.set(data.subarray(from, from + w * 4), row * w * 4);
  }
  return { width: w, height: h, data: piece };
}

async function show(
  raster: Raster,
  most: number,
  enlarge = most < WHOLE ? 1 : enlargement(raster),
): Promise<Shown> {
  const { bytes, width, height } = await encode(raster, most, enlarge);
  return { src: `data:image/webp;base64,${bytes.toString('base64')}`, width, height };
}
