/**
 * @module The table of formats. Other code does not test for a format by name: it tests for a capability in the table.
 */

/** All input types, in the order of documents and messages. */
export const INPUT_TYPES = ['png', 'jpg', 'gif', 'bmp', 'tiff', 'svg', 'avif', 'ico', 'webp'] as const;
/** All output types, in the order of documents and messages. */
export const OUTPUT_TYPES = ['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf'] as const;

export type InputType = (typeof INPUT_TYPES)[number];
export type OutputType = (typeof OUTPUT_TYPES)[number];

/** Capabilities of an input format. */
export interface InputFormat {
  /** Name in messages. */
  readonly label: string;
  /** Names in `GET /formats`. */
  readonly names: readonly string[];
  /** Canonical name of ImageMagick's coder; undefined for SVG, which only librsvg renders. */
  readonly coder: string | undefined;
  /** Whether a file can be animated. */
  readonly animation: boolean;
  /** Whether only EXIF contains the orientation. Other formats have a field of their own, or no orientation. */
  readonly exifOrientation: boolean;
}

/** Capabilities of an output format. */
export interface OutputFormat {
  readonly label: string;
  readonly mediaType: string;
  readonly extension: string;
  /** Prefix of ImageMagick's coder for writing. */
  readonly coder: string;
  /** Whether `quality` has an effect. */
  readonly quality: boolean;
  /** Whether the format is compressed, so that an archive stores it without deflating it. */
  readonly compressed: boolean;
  /** First bytes of every file of this format. `undefined` matches any byte. */
  readonly signature: readonly (number | undefined)[];
  /** Transparency: `full`, `binary` (each pixel is opaque or transparent), or `none` (flattened onto the background). */
  readonly alpha: 'full' | 'binary' | 'none';
  readonly animation: boolean;
  /** Whether a file can have several pages. */
  readonly pages: boolean;
  /** Whether viewers apply an embedded colour profile. */
  readonly profile: boolean;
  /** Whether a file can store CMYK pixels. */
  readonly cmyk: boolean;
  /** Maximum width and height in pixels that the header can express, if that is less than the service allows. */
  readonly maxDimension?: number;
}

/** Input formats by type. */
export const INPUTS: Readonly<Record<InputType, InputFormat>> = {
  png: { label: 'PNG', names: ['png'], coder: 'PNG', animation: false, exifOrientation: true },
  jpg: { label: 'JPEG', names: ['jpg', 'jpeg'], coder: 'JPEG', animation: false, exifOrientation: true },
  gif: { label: 'GIF', names: ['gif'], coder: 'GIF', animation: true, exifOrientation: false },
  bmp: { label: 'BMP', names: ['bmp'], coder: 'BMP', animation: false, exifOrientation: false },
  tiff: { label: 'TIFF', names: ['tiff'], coder: 'TIFF', animation: false, exifOrientation: false },
  svg: { label: 'SVG', names: ['svg'], coder: undefined, animation: false, exifOrientation: false },
  avif: { label: 'AVIF', names: ['avif'], coder: 'AVIF', animation: false, exifOrientation: false },
  ico: { label: 'ICO', names: ['ico'], coder: 'ICO', animation: false, exifOrientation: false },
  webp: { label: 'WebP', names: ['webp'], coder: 'WEBP', animation: true, exifOrientation: true },
};

const ascii = (text: string): number[] => [...text].map((character) => character.charCodeAt(0));
const ANY_FOUR = [undefined, undefined, undefined, undefined];

/** Output formats by type. */
export const OUTPUTS: Readonly<Record<OutputType, OutputFormat>> = {
  webp: {
    label: 'WebP',
    mediaType: 'image/webp',
    extension: 'webp',
    coder: 'WEBP',
    quality: true,
    compressed: true,
    signature: [...ascii('RIFF'), ...ANY_FOUR, ...ascii('WEBP')],
    alpha: 'full',
    animation: true,
    pages: false,
    profile: true,
    cmyk: false,
    // 14 bits per dimension in the frame headers of VP8 and VP8L (RFC 9649).
    maxDimension: 16383,
  },
  png: {
    label: 'PNG',
    mediaType: 'image/png',
    extension: 'png',
    coder: 'PNG',
    quality: false,
    compressed: true,
    signature: [0x89, ...ascii('PNG\r\n'), 0x1a, 0x0a],
    alpha: 'full',
    animation: false,
    pages: false,
    profile: true,
    cmyk: false,
  },
  jpg: {
    label: 'JPEG',
    mediaType: 'image/jpeg',
    extension: 'jpg',
    coder: 'JPEG',
    quality: true,
    compressed: true,
    signature: [0xff, 0xd8, 0xff],
    alpha: 'none',
    animation: false,
    pages: false,
    profile: true,
    cmyk: true,
  },
  gif: {
    label: 'GIF',
    mediaType: 'image/gif',
    extension: 'gif',
    coder: 'GIF',
    quality: false,
    compressed: true,
    signature: ascii('GIF8'),
    alpha: 'binary',
    animation: true,
    pages: false,
    profile: false,
    cmyk: false,
  },
  bmp: {
    label: 'BMP',
    mediaType: 'image/bmp',
    extension: 'bmp',
    coder: 'BMP3',
    quality: false,
    compressed: false,
    signature: ascii('BM'),
    alpha: 'none',
    animation: false,
    pages: false,
    profile: false,
    cmyk: false,
  },
  pdf: {
    label: 'PDF',
    mediaType: 'application/pdf',
    extension: 'pdf',
    coder: 'PDF',
    quality: true,
    compressed: true,
    signature: ascii('%PDF-'),
    alpha: 'none',
    animation: false,
    pages: true,
    profile: false,
    cmyk: false,
  },
};

/** Other accepted values of the format field. */
const OUTPUT_ALIASES: Readonly<Record<string, OutputType>> = { jpeg: 'jpg' };

/** Parses the name of an output type, in any case. Returns undefined for an unknown name. */
export function parseOutputType(text: string): OutputType | undefined {
  const name = text.toLowerCase();
  return (
    OUTPUT_TYPES.find((type) => type === name) ??
    (Object.hasOwn(OUTPUT_ALIASES, name) ? OUTPUT_ALIASES[name] : undefined)
  );
}

/** Returns whether `head`, the start of a file, matches the signature of the format. */
export function hasSignature(format: OutputFormat, head: Uint8Array): boolean {
  return format.signature.every((byte, index) => byte === undefined || head[index] === byte);
}
