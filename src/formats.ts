/**
 * Every format the service knows, one row each. Nothing else in the code asks
 * "is this a GIF?": it asks what the row says a GIF can do.
 */

export const INPUT_TYPES = ['png', 'jpg', 'gif', 'bmp', 'tiff', 'svg', 'avif', 'ico', 'webp'] as const;
export const OUTPUT_TYPES = ['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf'] as const;

/** Types that an instance reads only when `EXTRA_INPUTS` lists them. */
export const EXTRA_INPUT_TYPES = ['heic', 'jxl', 'jp2', 'psd', 'cur'] as const;
/** Types that an instance writes only when `EXTRA_OUTPUTS` lists them. */
export const EXTRA_OUTPUT_TYPES = ['avif', 'jxl', 'tiff', 'ico'] as const;

export const ALL_INPUT_TYPES = [...INPUT_TYPES, ...EXTRA_INPUT_TYPES] as const;
export const ALL_OUTPUT_TYPES = [...OUTPUT_TYPES, ...EXTRA_OUTPUT_TYPES] as const;

export type InputType = (typeof ALL_INPUT_TYPES)[number];
export type OutputType = (typeof ALL_OUTPUT_TYPES)[number];
export type ExtraInputType = (typeof EXTRA_INPUT_TYPES)[number];
export type ExtraOutputType = (typeof EXTRA_OUTPUT_TYPES)[number];

export interface InputFormat {
  /** How sentences name it. */
  readonly label: string;
  /** How `GET /formats` names it. */
  readonly names: readonly string[];
  /** The canonical name of ImageMagick's coder; undefined for types that another program decodes: SVG and JPEG XL. */
  readonly coder: string | undefined;
  /** May hold several frames that make one moving picture. */
  readonly animation: boolean;
  /** Says only in EXIF how it is to be turned; the others have their own way, or none. */
  readonly exifOrientation: boolean;
}

export interface OutputFormat {
  readonly label: string;
  readonly mediaType: string;
  readonly extension: string;
  /** The coder that ImageMagick writes with; `PNG` for the types that another program encodes from one. */
  readonly coder: string;
  /** Another coder, which ImageMagick 7 writes a part of the file with. */
  readonly innerCoder?: string;
  /** Whether `quality` changes its pictures. */
  readonly quality: boolean;
  /** Compressed by itself, so that an archive would gain nothing by compressing it again. */
  readonly compressed: boolean;
  /** The first bytes every file of this format has; `undefined` stands for any byte. */
  readonly signature: readonly (number | undefined)[];
  /** `full`: kept as it is; `binary`: a pixel is there or not; `none`: laid over white. */
  readonly alpha: 'full' | 'binary' | 'none';
  /** Holds all frames of an animation. */
  readonly animation: boolean;
  /** Can hold several pages. */
  readonly pages: boolean;
  /** Can carry an embedded colour profile that viewers honour. */
  readonly profile: boolean;
  /** Can store CMYK pixels. */
  readonly cmyk: boolean;
  /** Pixels a side that the format's own header can express, where that is a limit worth a word. */
  readonly maxDimension?: number;
}

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
  heic: { label: 'HEIC', names: ['heic', 'heif'], coder: 'HEIC', animation: false, exifOrientation: false },
  jxl: { label: 'JPEG XL', names: ['jxl'], coder: undefined, animation: true, exifOrientation: true },
  jp2: { label: 'JPEG 2000', names: ['jp2', 'j2k'], coder: 'JP2', animation: false, exifOrientation: true },
  psd: { label: 'PSD', names: ['psd'], coder: 'PSD', animation: false, exifOrientation: true },
  cur: { label: 'CUR', names: ['cur'], coder: 'ICO', animation: false, exifOrientation: false },
};

const ascii = (text: string): number[] => [...text].map((character) => character.charCodeAt(0));
const ANY_FOUR = [undefined, undefined, undefined, undefined];

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
    // 14 bits a side in the VP8 and VP8L frame headers, RFC 9649.
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
  avif: {
    label: 'AVIF',
    mediaType: 'image/avif',
    extension: 'avif',
    coder: 'PNG',
    quality: true,
    compressed: true,
    signature: [...ANY_FOUR, ...ascii('ftypavif')],
    alpha: 'full',
    animation: false,
    pages: false,
    profile: true,
    cmyk: false,
  },
  jxl: {
    label: 'JPEG XL',
    mediaType: 'image/jxl',
    extension: 'jxl',
    coder: 'PNG',
    quality: true,
    compressed: true,
    // The container of ISO/IEC 18181-2; the encoder is told to write one always.
    signature: [0, 0, 0, 12, ...ascii('JXL \r\n'), 0x87, 0x0a],
    alpha: 'full',
    animation: false,
    pages: false,
    profile: true,
    cmyk: false,
  },
  tiff: {
    label: 'TIFF',
    mediaType: 'image/tiff',
    extension: 'tiff',
    coder: 'TIFF',
    quality: false,
    compressed: true,
    signature: [...ascii('II*'), 0],
    alpha: 'full',
    animation: true,
    pages: true,
    profile: true,
    cmyk: true,
  },
  ico: {
    label: 'ICO',
    mediaType: 'image/vnd.microsoft.icon',
    extension: 'ico',
    coder: 'ICO',
    innerCoder: 'PNG32',
    quality: false,
    compressed: false,
    signature: [0, 0, 1, 0],
    alpha: 'full',
    animation: false,
    pages: false,
    profile: false,
    cmyk: false,
  },
};

/** What a client may write in the format field, in any case, besides the names themselves. */
const OUTPUT_ALIASES: Readonly<Record<string, OutputType>> = { jpeg: 'jpg', tif: 'tiff' };

/** The output type a client's word stands for, or undefined when it stands for none. */
export function parseOutputType(word: string): OutputType | undefined {
  const name = word.toLowerCase();
  return (
    ALL_OUTPUT_TYPES.find((type) => type === name) ??
    (Object.hasOwn(OUTPUT_ALIASES, name) ? OUTPUT_ALIASES[name] : undefined)
  );
}

/**
 * Whether the quality of this format goes down for a limit of bytes. Not that of a PDF: its pages share one quality, and
 * much of it may be text.
 */
export function hasBytesLimit(type: OutputType): boolean {
  return OUTPUTS[type].quality && !OUTPUTS[type].pages;
}

/** Whether a file that starts with `head` is what the output format's files start like. */
export function hasSignature(format: OutputFormat, head: Uint8Array): boolean {
  return format.signature.every((byte, at) => byte === undefined || head[at] === byte);
}
