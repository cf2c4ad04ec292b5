import type { InputType, OutputType } from '../../formats.ts';

/** What goes into a plan and what comes out of it, as data. */

/** What the header of a file told; what it did not tell is undefined. */
export interface ImageInfo {
  readonly type: InputType;
  /** Stored size in pixels, before any orientation is applied. That of an SVG may have a fraction. */
  readonly width?: number;
  readonly height?: number;
  /** Undefined, as 1, when there is nothing to do. */
  readonly orientation?: Orientation;
  /** The colours are multiplied by the alpha. */
  readonly premultiplied?: boolean;
  /** A BMP whose fourth byte is not transparency. */
  readonly opaque?: boolean;
  /** It is decoded in this process before the plan is made, because ImageMagick misreads or rejects such bitmaps. */
  readonly decoder?: 'bmp';
  /** The file ends before the image does. */
  readonly truncated?: boolean;
  /** The pixels are CMYK or YCCK. */
  readonly cmyk?: boolean;
  /** A JPEG coded in a way that libjpeg does not read, or not in every version. */
  readonly unsupportedJpegProcess?: boolean;
  /** The pixels are CIELab. */
  readonly lab?: boolean;
  readonly profile?: Profile;
  /** The profile is one that the tools do not see in the file. */
  readonly externalProfile?: boolean;
  /** The name of the file that has the external profile. */
  readonly profileFile?: string;
  /** Colours that the file declares by numbers and that are not sRGB; they count for more than a profile. */
  readonly declaredColour?: DeclaredColour;
  /** What the one or first frame of a WebP covers, when that is not the whole canvas. */
  readonly firstFrame?: Area;
  /** An SVG with a style sheet, which may set another size than the root element. */
  readonly styled?: boolean;
  /** An SVG that uses what librsvg ignores, and browsers draw. */
  readonly hasUnsupportedFeatures?: boolean;
  /** A JPEG with so many bits per pixel that it has sharp edges: text, a screenshot, dense foliage. */
  readonly detailed?: boolean;
  /** A PNG that packs so well that it is no photo: a screenshot, a diagram. */
  readonly flat?: boolean;
  /** It has few colours by its kind, so that it must not be made blurred. */
  readonly paletteKind?: PaletteKind;
  readonly metadata?: readonly MetadataKind[];
  /** How many pictures an AVIF has, and which one is to be shown, counted from 1. */
  readonly images?: { readonly count: number; readonly primary: number };
  /** The pages of a TIFF that are no small versions of others. */
  readonly pages?: readonly Page[];
  /** Set when the file moves: it has more than one frame. */
  readonly animation?: Animation;
  /** It has more than 8 bits a channel. */
  readonly deep?: boolean;
  /** A JPEG XL whose transparency has other bits than its colours. */
  readonly unevenDepth?: boolean;
  /** The parts of the header contradict each other about the size. */
  readonly contradictory?: boolean;
  /** The header says that no tool here shows the picture right. */
  readonly unreadable?: UnreadableKind;
  /** The PNG files, one a frame, that another program has turned the picture into. */
  readonly decoded?: readonly string[];
  /** An animation whose frames are counted when it is decoded. */
  readonly hasUncountedFrames?: boolean;
  /** It has frames that the tools here do not read: those of an animated PNG, or of an AVIF sequence. */
  readonly hasIgnoredFrames?: boolean;
}

/** How a stored picture is turned to be seen upright, as EXIF and TIFF number it (EXIF 2.32, 4.6.4); 1 is upright. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Kinds of files that are refused, by what their headers say. */
export type UnreadableKind = 'cmyk-jxl' | 'psd-without-merged-picture' | 'psd-mode' | 'psd-layers';

/** An embedded colour profile: none; sRGB, whatever it calls itself; another; or one that turned out to be useless. */
export type Profile = 'none' | 'srgb' | 'other' | 'useless';

/** A colour space declared by numbers instead of a profile. */
export interface DeclaredColour {
  readonly primaries: Primaries;
  readonly transfer: Transfer;
}

/** CIE 1931 chromaticities x and y. */
export type Chromaticity = readonly [x: number, y: number];

export interface Primaries {
  readonly red: Chromaticity;
  readonly green: Chromaticity;
  readonly blue: Chromaticity;
  readonly white: Chromaticity;
}

/** How a signal from 0 to 1 becomes light: by a curve, or as PQ or HLG (ITU-R BT.2100). */
export type Transfer =
  /** Parameters g, a, b, c, d of Y = (aX + b)^g for X ≥ d, and Y = cX below. */
  { readonly curve: readonly number[] } | HdrTransfer;

export interface HdrTransfer {
  readonly hdr: 'pq' | 'hlg';
  /** Largest luminance in cd/m² that a PQ image states. */
  readonly peak?: number;
}

/** Black and white only, or the colours of a table. */
type PaletteKind = 'bilevel' | 'palette';

/** GPS, dates and cameras are EXIF. */
export type MetadataKind = 'exif' | 'iptc' | 'xmp';

/** One page of a TIFF, and what its reader gets wrong. */
export interface Page {
  /** Its place in the file, counted from 0. */
  readonly index: number;
  readonly width?: number;
  readonly height?: number;
  readonly cmyk?: boolean;
  readonly lab?: boolean;
  readonly profile?: Profile;
  /** Undefined, as 1, when there is nothing to do. */
  readonly orientation?: Orientation;
  readonly paletteKind?: PaletteKind;
  /** Its greys are read the wrong way round. */
  readonly inverted?: boolean;
  /** Its pixels are mirrored or turned by half for this orientation, and it still has the tag. */
  readonly mirroredFor?: Orientation;
  /** It has more channels than its colour space, and none of them is transparency. */
  readonly unusedSamples?: boolean;
  /** Its colours are decoded multiplied by its alpha. */
  readonly premultiplied?: boolean;
  /** Why one of the versions of ImageMagick may misread it. */
  readonly misread?: readonly MisreadKind[];
}

/** Kinds of files that ImageMagick misreads; `misread.ts` explains each. */
export type MisreadKind =
  | 'old-jpeg'
  | 'ycbcr-subsampled'
  | 'ycbcr-matrix'
  | 'stray-predictor'
  | 'signed-samples'
  | 'samples-24'
  | 'samples-64'
  | 'uneven-samples'
  | 'white-half-float'
  | 'planar-grey-alpha'
  | 'planar-unused'
  | 'planar-alpha-first'
  | 'alpha-not-first'
  | 'other-inks'
  | 'float-lab'
  | 'lightness-only'
  | 'icc-lab'
  | 'sensor-mosaic'
  | 'tiled-cmyk-jpeg';

export interface Animation {
  /** How long each frame stays, in milliseconds. */
  readonly delaysMs: readonly number[];
  /** How often the whole is played; 0 is for ever. */
  readonly loopCount: number;
  /** A WebP that says it has transparency. */
  readonly transparent?: boolean;
  /** How each frame of a WebP meets what is there already. */
  readonly frames?: readonly FrameDisposal[];
}

/** In pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** In pixels, from the top left. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface FrameDisposal {
  /** Its area is cleared before the next frame. */
  readonly disposeToBackground: boolean;
  /** It replaces what is under it, instead of being laid over it. */
  readonly noBlend: boolean;
}

export interface ConvertOptions {
  readonly format: OutputType;
  /** 1 (lowest) to 100 (highest); acts on webp, jpg, pdf, avif and jxl. */
  readonly quality: number;
  /** Most pixels a side; the picture is fitted inside, its aspect kept. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** How the picture is put into the box of width and height; by default `inside`. */
  readonly fit?: Fit | undefined;
  /** Where `cover` cuts and `contain` places; by default the center. */
  readonly position?: Position | undefined;
  /** Whether a raster picture may grow; by default it does not. An SVG is drawn at any size. */
  readonly enlarge?: boolean | undefined;
  /** The most bytes that the result may have. Its quality goes down for that. */
  readonly maxBytes?: number | undefined;
  /** A WebP without any loss; by default false. */
  readonly lossless?: boolean | undefined;
  readonly stripMetadata: boolean;
  /** Of an animation: all frames, or the first. By default all where the output can move. */
  readonly frames?: AllOrFirst | undefined;
  /** Of a TIFF that becomes a PDF; by default all. */
  readonly pages?: AllOrFirst | undefined;
  /**
   * What transparency is laid over where the output has none, and what `contain` adds, as #rrggbb. By default white
   * where the output has no transparency, and transparent where it has.
   */
  readonly background?: string | undefined;
}

/**
 * `inside`: the whole picture, no larger than the box. `cover`: the box is full, and the picture is cut. `contain`: the
 * box is full, and has borders around the whole picture. `fill`: the box is full, and the picture is stretched.
 */
export const FITS = ['inside', 'cover', 'contain', 'fill'] as const;
export type Fit = (typeof FITS)[number];

export const POSITIONS = [
  ...(['center', 'top', 'right top', 'right', 'right bottom'] as const),
  ...(['bottom', 'left bottom', 'left', 'left top'] as const),
] as const;
export type Position = (typeof POSITIONS)[number];

type AllOrFirst = 'all' | 'first';

/** What a result has lost, or what was wrong with what it was made from; clients get them as they are. */
export type Note =
  | 'first-frame-only'
  | 'first-page-only'
  | 'alpha-flattened'
  | 'colour-converted-to-srgb'
  | 'truncated-input'
  | 'metadata-partly-kept'
  | 'quality-lowered'
  | 'partial-alpha-lost'
  | 'svg-features-ignored';

/** What a plan needs to know of the machine. */
export interface ToolContext {
  /** What it can do: {@link ABILITIES}. */
  readonly magick: 6 | 7;
  /** Absolute path of a small sRGB profile. */
  readonly srgbProfile: string;
  /** Maximum number of threads of a tool. Defaults to 1. The result is the same for every number. */
  readonly threads?: number;
}

export type ToolName = 'magick' | 'rsvg' | 'heif' | 'img2webp' | 'djxl' | 'cjxl' | 'avifenc';

export interface Step {
  readonly tool: ToolName;
  readonly args: readonly string[];
  /** The file it reads on its standard input. */
  readonly stdin?: string;
  /** The PNG it draws, whose size nobody knew for sure before. */
  readonly rendersTo?: string;
}

/** How another program makes a PNG of the input, before the plan is made. */
export interface Decoding {
  readonly step: Step;
  /** The PNG that the step leaves; an animated one has every frame on the whole canvas. */
  readonly output: string;
}

export interface Plan {
  readonly steps: readonly Step[];
  /** The one file the last step leaves. Nothing else in the folder may start with {@link OUTPUT_STEM}. */
  readonly output: string;
  /** What is known beforehand; running the steps may add to it. */
  readonly notes: readonly Note[];
}

/** The name every input has on disk. */
export const INPUT_FILE = 'in';

/** The picture as it is before it is encoded, for those results that are encoded several times. */
export const KEPT_FILE = 'kept.miff';

/** How the name of every output starts; version 6 makes it the title of a PDF, whatever it is told. */
export const OUTPUT_STEM = 'image';

/** One conversion while it is planned. */
export interface PlanContext {
  readonly image: ImageInfo;
  readonly options: ConvertOptions;
  readonly tools: ToolContext;
  /** The PNG files, one a frame, that another tool drew or decoded, when ImageMagick does not read the input itself. */
  readonly rasterized?: readonly string[];
  readonly output: string;
}
