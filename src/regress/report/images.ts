/** @module Renders the images of a finding as data URLs, small enough for one page with all findings. */

import { decode, encode } from '../image/codec.ts';
import { compositeOver, renderDifference } from '../image/difference.ts';
import type { DecodedImage, Raster } from '../image/image.ts';
import type { Recording, Row } from '../recording.ts';
import type { Finding } from '../verdict.ts';

/** An image of the report. */
export interface ReportImage {
  /** Data URL. */
  readonly src: string;
  readonly width: number;
  readonly height: number;
}

/** The images of one finding. */
export interface FindingImages {
  readonly before?: ReportImage | undefined;
  readonly after?: ReportImage | undefined;
  /** Difference, multiplied by {@link factor}, if both images have the same size. */
  readonly difference?: ReportImage | undefined;
  readonly factor: number;
  /** Number of frames or pages after the change. */
  readonly frames: number;
  /** Enlarged detail around the worst block. */
  readonly spot?:
    | { readonly before: ReportImage; readonly after: ReportImage; readonly difference: ReportImage }
    | undefined;
}

/** Maximum side of a full-size image, in pixels. */
const FULL_SIZE_PX = 640;
/** Maximum side of a thumbnail, in pixels. */
const THUMBNAIL_PX = 160;
/** Maximum side to which small images are enlarged, in pixels. */
const ENLARGED_PX = 280;
/** Side of the detail in pixels, and the factor of its enlargement. */
const DETAIL = { side: 48, factor: 4 };

/**
 * Renders the images of a finding.
 *
 * @param fullSize true for full-size images with the difference, false for thumbnails
 */
export async function renderImages(
  { before, after, difference }: Finding,
  recordings: { readonly before: Recording; readonly after: Recording },
  fullSize: boolean,
): Promise<FindingImages> {
  const [one, other] = [await load(before, recordings.before), await load(after, recordings.after)];
  const at = difference?.frame ?? 0;
  const [a, b] = [one?.frames[at] ?? one?.frames[0], other?.frames[at] ?? other?.frames[0]];
  const side = fullSize ? FULL_SIZE_PX : THUMBNAIL_PX;
  const factor = factorFor(difference?.max ?? 255);
  const both = fullSize && a && b && a.width === b.width && a.height === b.height && difference;
  return {
    before: a && (await toDataUrl(a, side)),
    after: b && (await toDataUrl(b, side)),
    factor,
    frames: other?.frames.length ?? 0,
    ...(both && {
      difference: await toDataUrl(renderDifference(a, b, factor), side),
      ...(enlargement(a) < DETAIL.factor && { spot: await renderDetail(a, b, difference.at, factor) }),
    }),
  };
}

async function load(row: Row | undefined, recording: Recording): Promise<DecodedImage | undefined> {
  // The file can be missing, or no decoder reads it.
  const read = async (file: Promise<Buffer>, { format }: Row) => decode(await file, format);
  const file = row && recording.open(row);
  return file && read(file, row).catch(() => undefined);
}

/** Returns the power of two, 1 to 64, by which the largest difference becomes bright. */
function factorFor(max: number): number {
  return 2 ** Math.min(6, Math.max(0, Math.floor(Math.log2(255 / Math.max(1, max))) + 1));
}

/** Returns the integer factor, 1 to 8, by which small images are enlarged. */
function enlargement({ width, height }: Raster): number {
  return Math.max(1, Math.min(8, Math.floor(ENLARGED_PX / Math.max(width, height))));
}

/** Renders the detail around the worst block. */
async function renderDetail(one: Raster, other: Raster, at: { x: number; y: number }, factor: number) {
  const margin = (DETAIL.side - 16) / 2;
  const [x, y] = [clampToImage(at.x - margin, one.width), clampToImage(at.y - margin, one.height)];
  return encodeDetail(crop(one, x, y), crop(other, x, y), factor);
}

async function encodeDetail(one: Raster, other: Raster, factor: number) {
  const [before, after, difference] = await Promise.all(
    [compositeOver(one, 255), compositeOver(other, 255), renderDifference(one, other, factor)].map((raster) =>
      toDataUrl(raster, FULL_SIZE_PX, DETAIL.factor),
    ),
  );
  return { before, after, difference } as {
    before: ReportImage;
    after: ReportImage;
    difference: ReportImage;
  };
}

const clampToImage = (from: number, side: number): number => Math.max(0, Math.min(from, side - DETAIL.side));

function crop({ width, height, data }: Raster, x: number, y: number): Raster {
  const [w, h] = [Math.min(DETAIL.side, width), Math.min(DETAIL.side, height)];
  const piece = new Uint8Array(w * h * 4);
  for (let row = 0; row < h; row += 1) {
    const from = ((y + row) * width + x) * 4;
    piece.set(data.subarray(from, from + w * 4), row * w * 4);
  }
  return { width: w, height: h, data: piece };
}

/** Encodes a raster as a data URL. */
async function toDataUrl(
  raster: Raster,
  maxSide: number,
  enlarge = maxSide < FULL_SIZE_PX ? 1 : enlargement(raster),
): Promise<ReportImage> {
  const { bytes, width, height } = await encode(raster, maxSide, enlarge);
  return { src: `data:image/webp;base64,${bytes.toString('base64')}`, width, height };
}
