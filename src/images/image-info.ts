/** @module Properties of an image, as data. */
import type { Area, Size } from '../tables/fitting.ts';
import type { InputType } from '../tables/formats.ts';
import type { Copyright } from './copyright/fields.ts';
import type { Kind } from './kinds.ts';
import type { RevealedKind } from './revealed/fields-table.ts';

export type { Area, Size };

export interface ImageInfo extends ImageFacts {
  readonly type: InputType;
}

/** Properties of an image, from its header. What the header does not state is undefined. */
export interface ImageFacts {
  /** Stored size in pixels, before any orientation is applied. An SVG can have fractions. */
  readonly width?: number;
  readonly height?: number;
  /** Undefined means 1, upright. */
  readonly orientation?: Orientation | undefined;
  /** Pixels per inch of the stored width and height, if usable; see `resolutionOf`. */
  readonly resolution?: Scale;
  /** The colours are multiplied by alpha. */
  readonly premultiplied?: boolean;
  readonly truncated?: boolean;
  /** A JPEG from whose JPEG XL libjxl cannot restore the same bytes. */
  readonly unrestorable?: boolean;
  readonly cmyk?: boolean;
  readonly lab?: boolean;
  readonly profile?: Profile | undefined;
  /** Kinds of files that can be rejected. */
  readonly kinds?: readonly Kind[];
  /** The tools get the profile as a file of its own. */
  readonly externalProfile?: boolean;
  /** Name of the file with the external profile, in the job's folder. */
  readonly profileFile?: string | undefined;
  /** Set for a profile that tables and a matrix replace. */
  readonly colourTables?: ColourTablesFile | undefined;
  /** Colour space other than sRGB that the file declares by numbers; overrides a profile. */
  readonly declaredColour?: DeclaredColour;
  /** Set for a palette or bilevel image, which must be compressed without loss. */
  readonly paletteKind?: PaletteKind | undefined;
  readonly metadata?: readonly MetadataKind[];
  /** Kinds of what the metadata gives away. Read for conversions only. */
  readonly revealed?: readonly RevealedKind[];
  /** Set if a result keeps it. */
  readonly copyright?: Copyright | undefined;
  /** Set if the file has more than one frame. */
  readonly animation?: Animation | undefined;
  readonly pixels?: PixelFormat | undefined;
  /** The image has more than 8 bits per channel. */
  readonly deep?: boolean | undefined;
  /**
   * The parts of the header contradict each other about the size or the samples, or it states an
   * image that the file does not have.
   */
  readonly contradictory?: boolean;
  /** PNG files, one per frame, that another program has decoded the image to. */
  readonly decoded?: readonly string[];
  /** An animation without the number of frames in its header. They are counted after decoding. */
  readonly hasUncountedFrames?: boolean;
  /** The image has frames that the tools do not decode: an animated PNG or an AVIF sequence. */
  readonly hasIgnoredFrames?: boolean | undefined;
  /** The fourth byte of a bitmap is not alpha, or a still WebP or GIF has no transparency. */
  readonly opaque?: boolean;
  /** Pages of a TIFF, without smaller versions, or the needed ones of a PDF: upright, in points. */
  readonly pages?: readonly Page[];
  /** Number of all pages of a PDF. */
  readonly pageCount?: number;

  /** Quality of a JPEG, by its quantization table. */
  readonly jpegQuality?: number | undefined;
  /** A JPEG that probably has sharp edges: text, a screenshot, dense foliage, a line drawing. */
  readonly detailed?: boolean;
  /** Set for a JPEG unless greys or 8 × 8 pixels with colours of full resolution. */
  readonly codedUnit?: CodedUnit;
  /** A JPEG, AVIF or HEIC with a gain map, with which some screens show it in HDR. */
  readonly gainMap?: boolean;

  /** A colour, such as `#ff8000`, whose pixels are transparent in an indexed PSD. */
  readonly transparentColour?: string | undefined;

  /** Number of rows that the file of a truncated PNG contains. */
  readonly shownRows?: number;
  /** The end of a PNG is missing. It is completed before planning: ImageMagick rejects it. */
  readonly incomplete?: boolean;
  /** A PNG that is compressed too well for a photo: a screenshot or a diagram. */
  readonly flat?: boolean | undefined;

  /** An SVG with a style sheet, which can set another size than the root element. */
  readonly styled?: boolean;
  /** Colour below the drawing of an SVG, as `rgb()` or `rgba()`. */
  readonly canvasColour?: string;
  /** An SVG with features that browsers render and librsvg ignores. */
  readonly hasUnsupportedFeatures?: boolean;
  /** An SVG with features that librsvg renders from version 2.60. */
  readonly hasNewFeatures?: boolean;
  /** An SVG without entities that can have an attribute of more than 10 MB, such as a photo. */
  readonly hasLongText?: boolean;

  /** Area of the first frame of a WebP, if it does not cover the whole canvas. */
  readonly firstFrame?: Area | undefined;

  /** Area of a JPEG 2000 on the reference grid, if it does not start at the origin of the grid. */
  readonly gridArea?: Area | undefined;
  /** ImageMagick reads the colours of a JPEG 2000 as YCbCr, and converts them to RGB later. */
  readonly ycc?: boolean;

  /** Bits per channel that the decoder of JPEG XL must be told to write. */
  readonly decodedDepth?: 8 | 16;

  /** Size of the largest image in an AVIF or HEIC, which limits apply to, too. */
  readonly largest?: Size | undefined;
  /** The decoder of AVIF or HEIC must not crop and rotate: it would not do so with the alpha. */
  readonly plannedTransforms?: boolean;
  /** Area to which an AVIF or HEIC is cropped before it is rotated. */
  readonly aperture?: Area | undefined;
  /** Samples of black and white, from 0 to 1, of greys in AVIF or HEIC of limited range. */
  readonly greyRange?: readonly [black: number, white: number];
}

/** Pixels of a minimum coded unit (MCU) of a JPEG. */
interface CodedUnit extends Size {
  /** All components have the full or half the resolution on both sides, and are scaled alike. */
  readonly even: boolean;
}

/** How the pixels are stored, for a description. Plans depend on the orientation only. */
export interface PixelFormat {
  readonly alpha: boolean;
  /** Bits per channel, or per index of a palette. */
  readonly bits: number;
  readonly colourSpace: 'rgb' | 'grey' | 'cmyk' | 'lab';
  /** Place of the embedded colour profile. */
  readonly profile?: { readonly at: number; readonly length: number } | undefined;
  /**
   * Set for formats whose {@link ImageInfo} has none, because their decoders apply it. The size is
   * that before it is applied.
   */
  readonly orientation?: Orientation | undefined;
}

/** The most common format of pixels. */
export const RGB_PIXELS: PixelFormat = { alpha: false, bits: 8, colourSpace: 'rgb' };

/** Adds the properties that a part of a file states to those of earlier parts. */
export const addFacts = (facts: ImageFacts, more: ImageFacts | undefined): ImageFacts => ({
  ...facts,
  ...more,
  metadata: [...new Set([...(facts.metadata ?? []), ...(more?.metadata ?? [])])],
});

/** Orientation of the stored pixels, as in EXIF and TIFF (EXIF 2.32, 4.6.4). 1 is upright. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Returns whether an orientation swaps width and height. */
export const swapsSides = (orientation: Orientation): boolean => orientation >= 5;

/** Returns the upright size of stored pixels, or the stored size of upright ones. */
export const turnSize = ({ width, height }: Size, orientation: Orientation = 1): Size =>
  swapsSides(orientation) ? { width: height, height: width } : { width, height };

/**
 * What each orientation does to stored pixels: whether it reflects them from left to right, and how
 * many quarters it turns them clockwise afterwards.
 */
const MOVES: Readonly<Record<Orientation, readonly [reflects: boolean, quarters: number]>> = {
  1: [false, 0],
  2: [true, 0],
  3: [false, 2],
  4: [true, 2],
  5: [true, 3],
  6: [false, 1],
  7: [true, 1],
  8: [false, 3],
};
const ORIENTATIONS = [1, 2, 3, 4, 5, 6, 7, 8] as const;

/** Returns the orientation that does what two do, one after the other. */
export function combineOrientations(first: Orientation, second: Orientation): Orientation {
  const [reflected, turned] = MOVES[first];
  const [reflects, quarters] = MOVES[second];
  const sum = (4 + quarters + (reflects ? -turned : turned)) % 4;
  return ORIENTATIONS.find(
    (each) => MOVES[each][0] === (reflected !== reflects) && MOVES[each][1] === sum,
  ) as Orientation;
}

/** Returns the orientation that undoes one. */
export const invertOrientation = (orientation: Orientation): Orientation =>
  orientation === 6 ? 8 : orientation === 8 ? 6 : orientation;

/** Returns where an area of an image is after the image is turned. */
export function turnArea({ x, y, width, height }: Area, image: Size, orientation: Orientation): Area {
  const [reflects, quarters] = MOVES[orientation];
  const left = reflects ? image.width - x - width : x;
  const [right, below] = [image.width - left - width, image.height - y - height];
  const corners = [
    { x: left, y },
    { x: below, y: left },
    { x: right, y: below },
    { x: y, y: right },
  ];
  return { ...turnSize({ width, height }, orientation), ...(corners[quarters] as Pick<Area, 'x' | 'y'>) };
}

/** Returns whether two sizes are equal. */
export const isSameSize = (one: Size, other: Size): boolean =>
  one.width === other.width && one.height === other.height;

/**
 * Embedded colour profile: none, sRGB under any name, another one of colours or of greys, or one
 * for other pixels or that cannot be applied.
 */
export type Profile = 'none' | 'srgb' | 'other' | 'grey' | 'unusable';

/** Returns whether pixels with this profile differ from those of sRGB. */
export const differsFromSrgb = (profile?: Profile): boolean => profile === 'other' || profile === 'grey';

/** Conversion to sRGB: a table to linear light, a matrix, and a table to the encoding of sRGB. */
export interface ColourTablesFile {
  /** Name in the job's folder of the PPM with the two tables as images of one row. */
  readonly file: string;
  /** The nine coefficients by rows, with commas between them. */
  readonly matrix: string;
}

/** Colour space declared by numbers instead of a profile. */
export interface DeclaredColour {
  readonly primaries: Primaries;
  readonly transfer: Transfer;
}

/** CIE 1931 chromaticities x and y. */
export type Chromaticity = readonly [x: number, y: number];

/** Chromaticities of the primaries and the white point of a colour space. */
export interface Primaries {
  readonly red: Chromaticity;
  readonly green: Chromaticity;
  readonly blue: Chromaticity;
  readonly white: Chromaticity;
}

/** Transfer function from a signal of 0 to 1 to light: a curve, PQ or HLG (ITU-R BT.2100). */
export type Transfer =
  /** Parameters g, a, b, c, d of Y = (aX + b)^g for X ≥ d, and Y = cX below. */
  { readonly curve: readonly number[] } | HdrTransfer;

/** Transfer function of a high dynamic range image. */
export interface HdrTransfer {
  readonly hdr: 'pq' | 'hlg';
  /** Peak luminance in cd/m², if a PQ image states it. */
  readonly peak?: number | undefined;
}

/** Black and white only, or colours from a table. */
type PaletteKind = 'bilevel' | 'palette';

/** Standards of embedded metadata. GPS position, dates and camera settings are EXIF. */
export type MetadataKind = 'exif' | 'iptc' | 'xmp';

/** Factors by which an image is resized, or other numbers for each direction. */
export interface Scale {
  readonly x: number;
  readonly y: number;
}

/** Properties that a page has in common with images. */
type PageFacts =
  | ('width' | 'height' | 'orientation' | 'resolution' | 'paletteKind')
  | ('cmyk' | 'lab' | 'profile' | 'premultiplied' | 'kinds' | 'contradictory');

/** Page of a TIFF, with the decoder errors to correct, or of a PDF. */
export interface Page extends Pick<ImageFacts, PageFacts> {
  /** Index in the file, counted from 0. */
  readonly index: number;
  /** The pixels are stored as RGB or YCbCr: there is no palette. */
  readonly trueColour?: boolean;
  /** The pixels are decoded as YCbCr of ITU-R BT.601. */
  readonly ycc?: boolean;
  /** ImageMagick decodes the greys inverted. */
  readonly inverted?: boolean;
  /** libtiff has applied the mirroring part of this orientation, but the tag is still there. */
  readonly mirroredFor?: Orientation | undefined;
  /** The page has more channels than its colour space, and none of them is alpha. */
  readonly unusedSamples?: boolean;
}

/** Timing and frames of an animation. */
export interface Animation {
  /** Duration of each frame, in milliseconds. */
  readonly delaysMs: readonly number[];
  /** Number of times the animation is played. 0 means forever. */
  readonly loopCount: number;
  /** A WebP whose header states that it has transparency. */
  readonly transparent?: boolean;
  /** A GIF in which every pixel of every frame is opaque once the frames are composed. */
  readonly opaque?: boolean;
  /**
   * A GIF whose later frames have at most half the bytes of the first, or half its pixels, in the
   * mean: it stores what changes.
   */
  readonly changesLittle?: boolean;
  /** Blending and disposal of each frame of a WebP. */
  readonly frames?: readonly FrameDisposal[];
}

/** Blending and disposal of a WebP frame. */
export interface FrameDisposal {
  /** Clears the area of the frame before the next frame is drawn. */
  readonly disposeToBackground: boolean;
  /** Replaces the pixels under the frame, instead of blending with them. */
  readonly noBlend: boolean;
}
