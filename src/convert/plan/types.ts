import type { InputType, OutputType } from '../../formats.ts';

/** What goes into a plan and what comes out of it, as data. */

/** What the header of an input file told. */
export interface Picture {
  readonly type: InputType;
  /** Stored size in pixels, before any orientation is applied; where the header readers know it. */
  readonly width?: number;
  readonly height?: number;
  /** EXIF's orientation of a PNG, 1 to 8. */
  readonly orientation?: number;
  /** A TIFF whose pixels its reader mirrors or turns by half for this orientation, and which still has the tag. */
  readonly mirroredFor?: number;
  /** A TIFF whose greys are read the wrong way round. */
  readonly inverted?: boolean;
  /** A BMP whose fourth byte is not transparency. */
  readonly opaque?: boolean;
  /** The pixels are CMYK or YCCK. */
  readonly cmyk?: boolean;
  /** How many pictures an AVIF has, and which one is to be shown, counted from 1. */
  readonly stills?: { readonly count: number; readonly primary: number };
  /** The pages of a TIFF that are no small versions of others, counted from 0. */
  readonly pages?: readonly number[];
  /** Which image of an ICO is the best, counted from 0. */
  readonly index?: number;
  /** Set when the file moves: it has more than one frame. */
  readonly animation?: Animation;
}

export interface Animation {
  /** How long each frame stays, in milliseconds. */
  readonly delaysMs: readonly number[];
  /** How often the whole is played; 0 is for ever. */
  readonly plays: number;
  /** How each frame of a WebP meets what is there already. */
  readonly frames?: readonly FrameTraits[];
  /** What the first frame of a WebP covers, when that is not the whole canvas. */
  readonly firstFrame?: Area;
}

/** In pixels, from the top left. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface FrameTraits {
  /** Its area is cleared before the next frame. */
  readonly clears: boolean;
  /** It replaces what is under it, instead of being laid over it. */
  readonly replaces: boolean;
}

export interface ConvertOptions {
  readonly format: OutputType;
  /** 1 (lowest) to 100 (highest); acts on webp, jpg and pdf. */
  readonly quality: number;
  /** Most pixels a side; the picture is fitted inside, its aspect kept. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly stripMetadata: boolean;
}

/** What a plan needs to know of the machine. */
export interface Machine {
  /** Version 7 does what 6 cannot: transparent AVIF, and WebP that moves. */
  readonly magick: 6 | 7;
  /** Absolute path of a small sRGB profile. */
  readonly srgbProfile: string;
}

export type ToolName = 'magick' | 'rsvg' | 'heif' | 'img2webp';

export interface Step {
  readonly tool: ToolName;
  readonly args: readonly string[];
  /** The file it reads on its standard input. */
  readonly stdin?: string;
}

export interface Plan {
  readonly steps: readonly Step[];
  /** The one file the last step leaves. Nothing else in the folder may start with {@link OUTPUT_STEM}. */
  readonly output: string;
}

/** The name every input has on disk. */
export const INPUT_FILE = 'in';

/** How the name of every output starts; version 6 makes it the title of a PDF, whatever it is told. */
export const OUTPUT_STEM = 'image';

/** One conversion while it is planned. */
export interface Job {
  readonly picture: Picture;
  readonly options: ConvertOptions;
  readonly machine: Machine;
  /** The PNG that another tool drew or decoded, when ImageMagick does not read the input itself. */
  readonly drawn?: string;
  readonly output: string;
}
