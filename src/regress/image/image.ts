/** @module Types of decoded images. */

/** RGBA pixels, 8 bits per channel, in sRGB. Fully transparent pixels are black. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

/** A decoded file, independent of its format. */
export interface DecodedImage {
  /** The frames of an animation, or the pages of a PDF; at least one. */
  readonly frames: readonly Raster[];
  readonly facts: ImageMetadata;
}

/** Properties of an image other than its pixels. */
export interface ImageMetadata {
  /** Size of the first frame or page, in pixels or, for PDF, points. */
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  /** Duration of each frame in ms. */
  readonly delays?: readonly number[];
  /** Loop count; 0 is infinite. */
  readonly plays?: number;
  /** Whether any pixel is not opaque. */
  readonly alpha: boolean;
  /** Bits per channel, if more than 8. */
  readonly depth?: number;
  /** Digest of the embedded colour profile: the first 32 bits of SHA-256, in hex. */
  readonly profile?: string;
  /** Kinds of metadata in the file: `exif`, `iptc`, `xmp`. */
  readonly metadata?: readonly string[];
}

/**
 * Sets the colour of fully transparent pixels to black in place, since it is invisible.
 *
 * @returns whether any pixel is not opaque
 */
export function clearHidden(data: Uint8Array): boolean {
  let alpha = false;
  for (let at = 3; at < data.length; at += 4) {
    if (data[at] === 255) continue;
    alpha = true;
    if (data[at] === 0) data.fill(0, at - 3, at);
  }
  return alpha;
}
