/**
 * @module Selects the size at which libjpeg decodes a JPEG that becomes much smaller
 * (shrink-on-load), or dwebp a WebP. Pure. bench/README.md has the measurements.
 */
import { differsFromSrgb, type ImageInfo, type Size } from '../../images/image-info.ts';
import type { KeptMetadata } from '../../tables/options.ts';

/**
 * The scales of libjpeg's decoder that ImageMagick can request, smallest first: the number of
 * eighths that remain of each side, and the divisor that requests it. libjpeg selects 3/8 for 1/3.
 */
const DECODER_SCALES = [
  { eighths: 1, divisor: 8 },
  { eighths: 2, divisor: 4 },
  { eighths: 3, divisor: 3 },
  { eighths: 4, divisor: 2 },
];

/** Minimum decoded size relative to the result: averages within blocks show at sharp edges. */
const MIN_OVERSAMPLING = { smooth: 1.2, detailed: 3 };

/** Maximum shift of edges, in pixels of the result: partly covered pixels are not used. */
const MAX_SHIFT = 0.3;

/** How often the last column or row can be repeated: 4 shift no side by {@link MAX_SHIFT}. */
const REPEATED = [1, 2, 3, 4];

/** Columns and rows of a block of libjpeg. */
const BLOCK = 8;

/** One side of an image that libjpeg decodes at a smaller size, in pixels. */
interface ScaledSide {
  /** Decoded pixels. The last can extend beyond the image: for 2725 pixels, a quarter is 682. */
  readonly decoded: number;
  /** Decoded pixels to use, which show nothing of what the file holds beyond the image. */
  readonly from: number;
  /** How often the last one of these is repeated. */
  readonly repeated: number;
  /** Pixels to which these are resized. The rest shows only repeated pixels, and is cut off. */
  readonly resized: number;
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

/** Returns a size to decode faster without a visible difference. `target` is not rotated yet. */
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
    const sides = (['width', 'height'] as const).map((key) => {
      const side = { length: image[key] ?? 0, unit: codedUnit[key], even: codedUnit.even };
      return scaleSide(side, eighths, target[key], minOversampling);
    });
    const inPlace = sides.map((ways) => ways.find(keepsSize));
    const [columns, rows] = inPlace.every(Boolean) ? inPlace : sides.map(([first]) => first);
    if (!columns || !rows) continue;
    // ImageMagick divides the sides by those requested, and rounds the result down.
    const requested = [width, height].map((side) => (side / (divisor + 0.5)).toFixed(2)).join('x');
    return { requested, columns, rows };
  }
  return undefined;
}

/** Returns whether repeated pixels replace all that are not used, so that nothing is copied. */
export const keepsSize = ({ decoded, from, repeated }: ScaledSide): boolean => from + repeated === decoded;

/** Returns the ways to decode a side, best first; none with too few pixels or too far a shift. */
function scaleSide(
  side: JpegSide,
  eighths: number,
  target: number,
  minOversampling: number,
): readonly ScaledSide[] {
  const exact = (side.length * eighths) / BLOCK;
  const from = pixelsWithin(side, eighths);
  if (exact < target * minOversampling) return [];
  const decoded = Math.ceil(exact);
  const fill = (repeated: number): ScaledSide => {
    const resized = Math.max(target, Math.round(((from + repeated) * target) / exact));
    return { decoded, from, repeated, resized };
  };
  const shiftOf = ({ repeated, resized }: ScaledSide): number =>
    Math.abs((exact * resized) / (from + repeated) - target);
  // More than one repeated pixel would be visible as a stripe.
  const repeated = exact - from >= 1 ? [] : REPEATED.map(fill);
  repeated.sort((one, other) => shiftOf(one) - shiftOf(other));
  return [fill(0), ...repeated].filter((way) => shiftOf(way) <= MAX_SHIFT);
}

/**
 * Returns the number of decoded pixels that show nothing of what follows the edge of the image in
 * its last block. A file can hold anything there: `jpegtran -crop` and cameras leave what they have
 * cut off. libjpeg averages pixels at 1/8, 1/4 and 1/2, and keeps colours of half the resolution at
 * that of the result. At 3/8, it spreads what follows over the coded unit. Colours of half the
 * resolution in one direction only are interpolated.
 */
function pixelsWithin({ length, unit, even }: JpegSide, eighths: number): number {
  const exact = (length * eighths) / BLOCK;
  const isInterpolated = !even && unit > BLOCK;
  /** Decoded pixels of a coded unit, of a sample of colours, or one. */
  const group = eighths === 3 ? (unit * eighths) / BLOCK : isInterpolated ? unit / BLOCK : 1;
  const whole = Math.floor(exact / group) * group;
  return isInterpolated && whole < exact ? whole - 1 : whole;
}

/** Factors for dwebp, best first. Worst PSNR of text: 40 and 38 dB; of photos: 47 and 46 dB. */
const WEBP_OVERSAMPLING = [3, 2];
/** Most pixels that dwebp writes, as a share. Reading more again takes the time that is saved. */
const MAX_WEBP_SHARE = 0.4;
/** Minimum pixels of an image for which the start of another process pays off. */
const MIN_WEBP_PIXELS = 1_000_000;

/** Returns a size for dwebp, whose filter averages pixels. ImageMagick does the rest. */
function scaleWebp({ width = 0, height = 0 }: ImageInfo, target: Size): ScaledDecoding | undefined {
  const pixels = width * height;
  const scaled = (resized: number, factor: number): ScaledSide => {
    const decoded = resized * factor;
    return { decoded, from: decoded, repeated: 0, resized };
  };
  const found = WEBP_OVERSAMPLING.map((factor) => ({
    columns: scaled(target.width, factor),
    rows: scaled(target.height, factor),
  })).find(
    ({ columns: { decoded: across }, rows: { decoded: down } }) =>
      across <= width && down <= height && across * down <= pixels * MAX_WEBP_SHARE,
  );
  if (!found || pixels < MIN_WEBP_PIXELS) return undefined;
  return { requested: `${found.columns.decoded}x${found.rows.decoded}`, ...found };
}

/** Returns whether pixels are all that is needed: dwebp writes neither alpha nor metadata. */
function hasOnlyPixels({ opaque, profile, metadata }: ImageInfo, kept: KeptMetadata): boolean {
  const isUntagged = profile === 'none' && (kept === 'copyright' || metadata?.length === 0);
  return (
    opaque === true && (isUntagged || (kept === 'none' && profile !== undefined && !differsFromSrgb(profile)))
  );
}
