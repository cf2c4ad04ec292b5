/** A result as it is to look at, whatever its format. */

/** RGBA, 8 bits a channel, in sRGB; what is not there at all has no colour either. */
export interface Raster {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

export interface DecodedImage {
  /** The frames of an animation, or the pages of a PDF; at least one. */
  readonly frames: readonly Raster[];
  readonly facts: ImageMetadata;
}

/** What can be told of a picture without looking at its pixels one by one. */
export interface ImageMetadata {
  /** Of the first frame or page, in pixels or points. */
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  /** How long each frame stays, in milliseconds; and how often all of them play, 0 for ever. */
  readonly delays?: readonly number[];
  readonly plays?: number;
  /** Whether anything shows through. */
  readonly alpha: boolean;
  /** Bits a channel, when there are more than 8. */
  readonly depth?: number;
  /** A digest of the embedded colour profile. */
  readonly profile?: string;
  /** EXIF, IPTC and XMP, which of them there are. */
  readonly metadata?: readonly string[];
}

/**
 * Takes the colour out of what is fully transparent: nobody can see it.
 *
 * @returns whether anything shows through at all
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
