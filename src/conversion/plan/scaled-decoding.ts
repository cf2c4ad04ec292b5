/**
 * @module At which size libjpeg decodes a JPEG that becomes much smaller (shrink-on-load). Pure. bench/README.md has the
 * measurements.
 */
import type { ImageInfo, Size } from '../../images/image-info.ts';

/** A scale of libjpeg's decoder: the number of eighths that remain of each side, and the divisor that requests it. */
interface DecoderScale {
  readonly eighths: number;
  readonly divisor: number;
}

/** The scales that ImageMagick can request, smallest first. libjpeg selects 3/8 for 1/3. */
const DECODER_SCALES: readonly DecoderScale[] = [
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

/** One side of an image that libjpeg decodes at a smaller size, in pixels. */
interface ScaledSide {
  /** Decoded pixels. The last one can extend beyond the image: a quarter of 2725 pixels is 682, for 2728 pixels. */
  readonly decoded: number;
  /** Decoded pixels to resize. The last one is repeated or left out. */
  readonly from: number;
  /** What they become: the target, and pixels to cut off. */
  readonly to: number;
  readonly target: number;
}

/** How libjpeg decodes an image at a smaller size. */
export interface ScaledDecoding {
  /** Value of `jpeg:size`. */
  readonly requested: string;
  readonly columns: ScaledSide;
  readonly rows: ScaledSide;
}

/**
 * Returns the smallest size that libjpeg can decode the image in without a visible difference.
 *
 * @param resized size of the upright result, before it is cropped or padded
 * @returns undefined for full size
 */
export function scaleDecoding(image: ImageInfo, resized: Size): ScaledDecoding | undefined {
  const { type, width = 0, height = 0, detailed, orientation = 1 } = image;
  if (type !== 'jpg') return undefined;
  const target = orientation < 5 ? resized : { width: resized.height, height: resized.width };
  const minOversampling = MIN_OVERSAMPLING[detailed ? 'detailed' : 'smooth'];
  for (const { eighths, divisor } of DECODER_SCALES) {
    const columns = scaledSide((width * eighths) / 8, target.width, minOversampling);
    const rows = scaledSide((height * eighths) / 8, target.height, minOversampling);
    // ImageMagick divides the sides by those requested, and rounds the result down.
    const requested = [width, height].map((side) => (side / (divisor + 0.5)).toFixed(2)).join('x');
    if (columns && rows) return { requested, columns, rows };
  }
  return undefined;
}

/**
 * Returns how many decoded pixels become how many pixels, so that the scale is that of the image, as far as whole numbers allow.
 *
 * @param exact length of the side in decoded pixels
 */
function scaledSide(exact: number, target: number, minOversampling: number): ScaledSide | undefined {
  if (exact < target * minOversampling) return undefined;
  const sides = Array.from({ length: MAX_EXTRA + 1 }, (_, extra) => {
    const to = target + extra;
    const from = Math.round((exact * to) / target);
    return { decoded: Math.ceil(exact), from, to, target, shift: Math.abs((exact * to) / from - target) };
  });
  const [best] = sides.sort((one, other) => one.shift - other.shift);
  return best && best.shift <= MAX_SHIFT ? best : undefined;
}
