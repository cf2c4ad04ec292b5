/** @module The input and the output of the planner, as data. */
import type { Area, ImageInfo, Orientation, Page, Scale, Size } from '../../images/image-info.ts';
import type { Fitting } from '../../tables/fitting.ts';
import type { InputType, OutputType } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import type { OptionValues } from '../../tables/options.ts';
import type { ToolName } from '../../tables/tools.ts';
import type { ScaledDecoding } from './scaled-decoding.ts';
import type { Step } from './step.ts';

/** Options of a result, parsed. The table of options describes them. */
export type ConvertOptions = OptionValues & {
  readonly format: OutputType;
  /** Quality by format, for `auto` and `smallest`. The best replaces `format` before planning. */
  readonly accepted?: Readonly<Partial<Record<OutputType, number>>> | undefined;
  /** Whether the smallest result of the accepted formats is wanted. */
  readonly smallest?: boolean;
  /** Formats of which the smallest result is kept. The first replaces `format` before planning. */
  readonly candidates?: readonly OutputType[] | undefined;
  /** Whether it is a part of a combined file. Then the pages of a PDF are drawn. Default: no. */
  readonly isPart?: boolean;
  /** Set if the source has a watermark. */
  readonly watermark?: Watermark | undefined;
};

/** The image of a watermark. Its file is that of the source. */
export interface Watermark {
  readonly type: InputType;
  /** SHA-256 in hex: the conversion key depends on it. */
  readonly sha256: string;
  /** Default: a share of the picture, at `watermarkPosition`. */
  readonly place?: WatermarkPlace | undefined;
}

/** Share of the width to the left of a point, and share of the height above it, 0 to 1. */
export interface FocalPoint {
  readonly x: number;
  readonly y: number;
}

/** What tools have found out about an image, and its header does not state. */
export interface Measured {
  /** The image as it is once it is decoded, or with the size at which librsvg draws it. */
  readonly image?: ImageInfo | undefined;
  /**
   * What `trim` keeps of each page, or of all frames, instead of `crop`, in pixels of the upright
   * image. Undefined for an image of one colour, which is kept.
   */
  readonly areas?: readonly (Area | undefined)[] | undefined;
  /** What `position=attention` keeps in the centre, or as near to it as the edges permit. */
  readonly point?: FocalPoint | undefined;
  /** Number of colours in a sample of each page of a PDF; undefined if they are not few. */
  readonly sampledColours?: readonly (number | undefined)[] | undefined;
  /** Quality and bytes of a result in another format that looks the same. */
  readonly rival?: { readonly quality: number; readonly bytes: number } | undefined;
  /** Sizes of the watermark on each of the pictures of different sizes. */
  readonly watermarks?: readonly Size[] | undefined;
}

/**
 * Place of a watermark in pixels of the picture, at its own size: the top left corner of an image;
 * or text of at most `textWidth`, whose `margin` is also the distance between its repetitions. By
 * default, the text has a sixth of the picture's width, and its margin, too. `height` is that of
 * the drawing of the text, and `minWidth` less than the width of most texts like it.
 */
export type WatermarkPlace =
  | { readonly left: number; readonly top: number }
  | {
      readonly textWidth?: number | undefined;
      readonly margin?: number | undefined;
      readonly height: number;
      readonly minWidth: number;
    };

/** Properties of the tools that a plan depends on. */
export interface ToolContext {
  /** Major version of ImageMagick. {@link MAGICK_FEATURES} has the differences. */
  readonly magick: 6 | 7;
  /** Whether ImageMagick can drop an alpha channel only if it is opaque. Default: false. */
  readonly dropsOpaqueAlpha?: boolean;
  /** Whether dwebp can decode a WebP at a smaller size. Default: false. */
  readonly scalesWebp?: boolean;
  /** Whether cwebp is installed. Default: false. */
  readonly encodesWebp?: boolean;
  /** Whether img2webp is installed. Default: no. ImageMagick 6 always needs it for animations. */
  readonly assemblesWebp?: boolean;
  /** Whether pngquant is installed. Default: false. */
  readonly selectsColours?: boolean;
  /** Whether cjxl states the right number of bits of a 16-bit alpha channel. Default: false. */
  readonly statesDeepAlpha?: boolean;
  /** Whether librsvg is version 2.60 or newer. Default: false. */
  readonly drawsNewFeatures?: boolean;
}

/** What plans do with each major version of ImageMagick. */
export const MAGICK_FEATURES = {
  /** Decoder of AVIF and HEIC: version 6 loses alpha, profile and colours (fixtures/README.md). */
  heif: { 6: 'heif', 7: undefined },
  /**
   * Whether ImageMagick can write animated WebP if img2webp is missing. Version 7 stores whole
   * frames, even if only a part changes. Version 6 shifts the delays, loses the loop count and
   * appends invalid data.
   */
  animatedWebp: { 6: false, 7: true },
  /** Whether the blending of WebP frames is read. Version 6 blends each with those before it. */
  webpBlending: { 6: false, 7: true },
  /**
   * Effort of lossless WebP, 0 to 100: the default of libwebp. ImageMagick 7 also rounds colours
   * below 100: greys of a drawing by up to 2 of 255.
   */
  losslessWebpEffort: { 6: 75, 7: 100 },
  /** Whether lossless WebP can keep the colours of invisible pixels (`webp:exact`). */
  exactWebp: { 6: false, 7: true },
  /**
   * Whether tables and a matrix convert colours in a fourth of the time of a profile: 0.4 instead
   * of 2.4 s for 12 megapixels. In version 7, they take three times as long as a profile.
   */
  colourTables: { 6: true, 7: false },
  /**
   * Operators that average blocks of pixels. Both give the same pixels. In version 7, `-scale` of
   * 8.3 megapixels takes 149 ms, and the filter 84; in version 6, both take 49 ms.
   */
  averaging: { 6: ['-scale'], 7: ['-filter', 'Box', '-resize'] },
  /** Operator with which `-channel RGBK` keeps alpha: Src copies it in 6, Atop darkens it in 7. */
  colourOperator: { 6: 'Atop', 7: 'Src' },
  /** How pixels are dithered. With FloydSteinberg, version 7 writes three times the colours. */
  dithering: { 6: 'FloydSteinberg', 7: 'Riemersma' },
  /** Operator that gives all images of a list the same palette. */
  sharedPalette: { 6: '+map', 7: '+remap' },
} as const;

/** States what a stage does to an image, for people; undefined if it changes nothing. */
export type Sentence = (job: ConversionJob) => string | undefined;

/** Commands that convert an image. */
export interface Plan {
  readonly steps: readonly Step[];
  /** Notes that are known before the steps run. The output of the steps can add others. */
  readonly notes: readonly Note[];
  /** What becomes of the files that the steps write for the pages of a PDF. */
  readonly document?: DocumentPlan | undefined;
}

/** The options that determine a page. */
export type PageOptions = Pick<ConvertOptions, 'pageSize' | 'pageMargin' | 'pageOrientation'>;

/** A picture on a page, and the files that contain it, with placeholders in their names. */
export interface DocumentPage {
  /** With losses, or the JPEG of the client. */
  readonly jpeg?: string;
  /** Without loss. It takes the place of {@link jpeg} if the picture has few colours. */
  readonly png?: string;
  /** A TIFF of black and white, in Group 4. It takes the place of {@link png} if it is smaller. */
  readonly fax?: string | undefined;
  /** Alpha as greys. It is used if the picture has transparency. */
  readonly mask?: string | undefined;
  /** Pixels per inch. */
  readonly resolution?: Scale | undefined;
  /** What is done to the pixels on the page. */
  readonly orientation: Orientation;
}

/** What becomes of the pages of a PDF. */
export interface DocumentPlan extends PageOptions {
  readonly pages: readonly DocumentPage[];
  /** Whether a JPEG of the client keeps EXIF, XMP and IPTC. */
  readonly keepsMetadata: boolean;
}

/** Name of every input on disk. */
export const INPUT_FILE = 'in';

/** PNG that an external program has decoded the input to. */
export const DECODED_FILE = 'decoded.png';
/** JPEG that djxl has restored from a JPEG XL; see {@link ConversionJob.isTranscoded}. */
export const RESTORED_FILE = 'restored.jpg';
/** PNG that librsvg renders for ImageMagick. */
export const RASTERIZED_FILE = 'rasterized.png';

/** A conversion to plan, and what follows from image and options. `createJob` derives it once. */
export interface ConversionJob {
  /** The image of {@link measured} if there is one, otherwise that of the header. */
  readonly image: ImageInfo;
  readonly options: ConvertOptions;
  readonly measured: Measured;
  readonly tools: ToolContext;
  /**
   * Two digits that distinguish the files of one of several results of an image; empty for its only
   * result. No command depends on it.
   */
  readonly suffix: string;
  /**
   * The only file that the last step leaves, with placeholders; see `nameFile`. No other name in
   * the folder starts with its name without the extension.
   */
  readonly output: string;
  /** External program that decodes the input to PNG first. Undefined if none does, or if it has. */
  readonly decoder: ToolName | undefined;
  /** Programs of the plan, in the order in which they run after the decoder. */
  readonly programs: readonly ToolName[];
  /** PNGs, one per frame, of another tool. Undefined if ImageMagick reads the input itself. */
  readonly rasterized: readonly string[] | undefined;
  /** Whether all frames are converted: by default for an animation, and on request as pages. */
  readonly keepsAllFrames: boolean;
  /** Pages of a TIFF or a PDF to convert. Those of a PDF have a size in pixels. */
  readonly pages: readonly Page[];
  /** One page of each kind of colours, by the kind: the others need the same arguments. */
  readonly colourPages: ReadonlyMap<string, Page>;
  /** What `rotate` and `flip` do to the upright image. */
  readonly turn: Orientation;
  /** What the decoded pixels of an image or each frame still need: their orientation and `turn`. */
  readonly orientation: Orientation;
  /** Number of frames or pages that are converted. */
  readonly frameCount: number;
  /** Whether a GIF stays a GIF of the same size, so that its pixels are not changed. */
  readonly isPassthrough: boolean;
  /** Whether a JPEG becomes a JPEG XL from which djxl restores the same bytes. */
  readonly isTranscoded: boolean;
  /** Sizes of the image or of the pages to convert, upright and after {@link turn}, if known. */
  readonly turnedSizes: readonly Size[];
  /** Whether a PDF contains a JPEG as it is. */
  readonly isEmbedded: boolean;
  /** How the quality is found: by likeness and bytes, only by bytes, or not at all. */
  readonly search: 'likeness' | 'bytes' | undefined;
  /** Sizes of each frame or page whose size the header states. */
  readonly fittings: readonly Fitting[];
  /** Sizes of the image, if they are certain, and all frames or pages to resize have the same. */
  readonly trustedFitting: Fitting | undefined;
  /** Smaller size at which libjpeg decodes a JPEG, or dwebp a WebP. Undefined for full size. */
  readonly scaledDecoding: ScaledDecoding | undefined;
}

/** A job and its plan. */
export interface PlannedJob extends ConversionJob {
  readonly plan: Plan;
}

/** A job within the limits. */
export interface AdmittedJob extends PlannedJob {
  /** The measurements that its result needs, as they are known before any has run. */
  readonly measuring: readonly PlannedJob[];
}
