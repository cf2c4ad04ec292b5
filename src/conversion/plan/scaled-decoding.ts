/**
 * @module Selects the size at which libjpeg decodes a JPEG that becomes much smaller (shrink-on-load), or dwebp a WebP. Pure.
 * bench/README.md has the measurements.
 */
import { differsFromSrgb, type ImageInfo, type Size } from '../../images/image-info.ts';
import type { KeptMetadata } from '../../options.ts';

/**
 * The scales of libjpeg's decoder that ImageMagick can request, smallest first: the number of eighths that remain of each side, and the
 * divisor that requests it. libjpeg selects 3/8 for 1/3.
 */
const DECODER_SCALES = [
  { eighths: 1, divisor: 8 },
  { eighths: 2, divisor: 4 },
  { eighths: 3, divisor: 3 },
  { eighths: 4, divisor: 2 },
];

/**
 * Minimum size of the decoded image, relative to the result. libjpeg averages within blocks, which is visible at sharp edges if
 * fewer pixels are left.
 */
const MIN_OVERSAMPLING = { smooth: 1.5, detailed: 3 };

/** Maximum shift of the right and bottom edges in pixels of the result. 0.06 pixels are a PSNR of at least 44 dB. */
const MAX_SHIFT = 0.06;

/** Maximum number of columns or rows that are resized beyond the edge, in pixels of the result. */
const MAX_EXTRA = 8;

/**
 * Maximum part of the last pixel of the result that no whole decoded pixel shows. The last whole one is repeated there. A colour of
 * half the resolution at an odd edge is half that of what follows the image, and the decoder at full size shows it, too.
 */
const MAX_REPEATED = { pixels: 0.17, colours: 0.03 };

/** One side of an image that libjpeg decodes at a smaller size, in pixels. */
interface ScaledSide {
  /** Decoded pixels. The last one can extend beyond the image: a quarter of 2725 pixels is 682, for 2728 pixels. */
  readonly decoded: number;
  /**
   * Decoded pixels that do not extend beyond the image. A file can hold anything there: `jpegtran -crop` and cameras leave what
   * they have cut off.
   */
  readonly whole: number;
  /** Decoded pixels to resize. The last whole one is repeated, or some are left out. */
  readonly from: number;
  /** What they become: the target, and pixels to cut off. */
  readonly to: number;
  readonly target: number;
}

/** One side of a JPEG: its pixels, and those of its minimum coded unit. */
interface JpegSide {
  readonly length: number;
  readonly unit: number;
  readonly even: boolean;
}

/** How libjpeg decodes an image at a smaller size. */
export interface ScaledDecoding {
  /** Value of `jpeg:size`, or the size that dwebp writes. */
  readonly requested: string;
  readonly columns: ScaledSide;
  readonly rows: ScaledSide;
}

/**
 * Returns a size at which the tools decode the image faster, without a visible difference.
 *
 * @param target size of the result, before it is rotated, cropped or padded
 * @returns undefined for full size
 */
export function scaleDecoding(
  image: ImageInfo,
  target: Size,
  { metadata }: { readonly metadata: KeptMetadata },
  { scalesWebp = false }: { readonly scalesWebp?: boolean },
): ScaledDecoding | undefined {
  const { type } = image;
  if (type === 'jpg') return scaleJpeg(image, target);
  return type === 'webp' && scalesWebp && hasOnlyPixels(image, metadata)
    ? scaleWebp(image, target)
    : undefined;
}

/** Returns the smallest size that libjpeg can decode the image in without a visible difference. */
function scaleJpeg(image: ImageInfo, target: Size): ScaledDecoding | undefined {
  const { width = 0, height = 0, detailed, codedUnit = { width: 8, height: 8, even: true } } = image;
  const minOversampling = MIN_OVERSAMPLING[detailed ? 'detailed' : 'smooth'];
  for (const { eighths, divisor } of DECODER_SCALES) {
    const [allColumns = [], allRows = []] = (['width', 'height'] as const).map((key) => {
      const side = { length: image[key] ?? 0, unit: codedUnit[key], even: codedUnit.even };
      return mayScale(side, eighths, target[key])
        ? scaledSides((side.length * eighths) / 8, target[key], minOversampling)
        : [];
    });
    // ImageMagick divides the sides by those requested, and rounds the result down.
    const requested = [width, height].map((side) => (side / (divisor + 0.5)).toFixed(2)).join('x');
    for (const isChosen of PREFERRED_SIDES) {
      const [columns, rows] = [allColumns.find(isChosen), allRows.find(isChosen)];
      if (columns && rows) return { requested, columns, rows };
    }
  }
  return undefined;
}

/**
 * What happens to both sides, fastest first: pixels are left out, repeated, or each. For 4 megapixels, ImageMagick 6 takes 4, 6 and
 * 60 ms, and 7 takes 11, 18 and 19 ms.
 */
const PREFERRED_SIDES: readonly ((side: ScaledSide) => boolean)[] = [
  ({ from, whole }) => from <= whole,
  ({ from, whole }) => from > whole,
  () => true,
];

/**
 * Returns whether what a file holds beyond the edge of the image, such as the rest of a larger image, stays invisible. A decoder of
 * 3/8 spreads it over its block.
 */
function mayScale({ length, unit, even }: JpegSide, eighths: number, target: number): boolean {
  if (length % unit === 0) return true;
  const decoded = (length * eighths) / 8;
  const isMixed = unit > 8 && length % 2 > 0;
  const repeated = ((decoded % 1) * target) / decoded;
  return even && eighths !== 3 && repeated <= MAX_REPEATED[isMixed ? 'colours' : 'pixels'];
}

/**
 * Returns how many decoded pixels can become how many pixels, so that the scale is that of the image, as far as whole numbers
 * allow, best first.
 *
 * @param exact length of the side in decoded pixels
 */
function scaledSides(exact: number, target: number, minOversampling: number): ScaledSide[] {
  if (exact < target * minOversampling) return [];
  return Array.from({ length: MAX_EXTRA + 1 }, (_, extra) => {
    const to = target + extra;
    const from = Math.round((exact * to) / target);
    return {
      decoded: Math.ceil(exact),
      whole: Math.floor(exact),
      from,
      to,
      target,
      shift: Math.abs((exact * to) / from - target),
    };
  })
    .filter(({ shift }) => shift <= MAX_SHIFT)
    .sort((one, other) => one.shift - other.shift);
}

/** Sizes at which dwebp decodes, relative to the result, best first: worst PSNR of text 40 and 38 dB, of photos 47 and 46 dB. */
const WEBP_OVERSAMPLING = [3, 2];
/** Maximum share of the pixels that dwebp writes. Reading more of them again would take the time that is saved. */
const MAX_WEBP_SHARE = 0.4;
/** Minimum pixels of an image for which the start of another process pays off. */
const MIN_WEBP_PIXELS = 1_000_000;

/** Returns a size for dwebp, whose filter averages pixels. ImageMagick does the rest. */
function scaleWebp({ width = 0, height = 0 }: ImageInfo, target: Size): ScaledDecoding | undefined {
  const pixels = width * height;
  const scaled = (target: number, decoded: number): ScaledSide => ({
    ...{ decoded, whole: decoded, from: decoded, target, to: target },
  });
  const found = WEBP_OVERSAMPLING.map((factor) => ({
    columns: scaled(target.width, target.width * factor),
    rows: scaled(target.height, target.height * factor),
  })).find(
    ({ columns: { decoded: across }, rows: { decoded: down } }) =>
      across <= width && down <= height && across * down <= pixels * MAX_WEBP_SHARE,
  );
  if (!found || pixels < MIN_WEBP_PIXELS) return undefined;
  return { requested: `${found.columns.decoded}x${found.rows.decoded}`, ...found };
}

/** Returns whether the pixels of a WebP are all that its conversion needs: dwebp writes neither alpha nor metadata to a PPM. */
function hasOnlyPixels({ opaque, profile, metadata }: ImageInfo, kept: KeptMetadata): boolean {
  const isUntagged = profile === 'none' && (kept === 'copyright' || metadata?.length === 0);
  return (
    opaque === true && (isUntagged || (kept === 'none' && profile !== undefined && !differsFromSrgb(profile)))
  );
}
