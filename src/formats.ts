/**
 * Every format the service knows, one row each. Nothing else in the code asks
 * "is this a GIF?": it asks what the row says a GIF can do.
 */

export const INPUT_TYPES = ['png', 'jpg', 'gif', 'bmp', 'tiff', 'svg', 'avif', 'ico', 'webp'] as const;
export const OUTPUT_TYPES = ['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf'] as const;

export type InputType = (typeof INPUT_TYPES)[number];
export type OutputType = (typeof OUTPUT_TYPES)[number];

export interface InputFormat {
  /** How sentences name it. */
  readonly label: string;
  /** How `GET /formats` names it. */
  readonly names: readonly string[];
  /** ImageMagick's canonical coder name; an SVG has none, since only librsvg draws it. */
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
  /** ImageMagick's coder prefix for writing. */
  readonly coder: string;
  /** Whether `quality` changes its pictures. */
  readonly quality: boolean;
  /** Compressed by itself, so that an archive would gain nothing by compressing it again. */
  readonly compressed: boolean;
  /** The first bytes every file of this format has; `undefined` stands for any byte. */
  readonly signature: readonly (number | undefined)[];
  /** `full`: kept as it is; `binary`: a pixel is there or not; `none`: laid over white. */
  readonly alpha: 'full' | 'binary' | 'none';
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
};

/** What a client may write in the format field, in any case, besides the names themselves. */
const OUTPUT_ALIASES: Readonly<Record<string, OutputType>> = { jpeg: 'jpg' };

/** The output type a client's word stands for, or undefined when it stands for none. */
export function parseOutputType(word: string): OutputType | undefined {
  const name = word.toLowerCase();
  return (
    OUTPUT_TYPES.find((type) => type === name) ??
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
