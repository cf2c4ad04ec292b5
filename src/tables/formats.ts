/** @module The table of formats. Other code tests for a capability in it, not for a format. */

/** Maximum sides in pixels that can be asked for, and of a service's drawing or page. */
export const MAX_DIMENSION = 16_384;
/** Maximum width and height in pixels of raster images and results, as in the policy. */
export const MAX_SIDE = 65_535;
/** Maximum size of the file of a watermark, and of its image. */
export const MAX_WATERMARK = { bytes: 10 * 1024 ** 2, pixels: 25_000_000 } as const;

/** Pixels per inch of a page of a PDF: two pixels per point by default, as on a dense screen. */
export const DPI = { min: 36, max: 600, default: 144 } as const;

/** All input types, in the order of documents and messages. */
export const INPUT_TYPES = ['png', 'jpg', 'gif', 'bmp', 'tiff', 'svg', 'avif', 'ico', 'webp'] as const;
/** All output types, in the order of documents and messages: the extensions of their files. */
export const OUTPUT_TYPES = ['webp', 'png', 'jpg', 'gif', 'bmp', 'pdf'] as const;

/** Types that an instance reads only when `EXTRA_INPUTS` lists them. */
export const EXTRA_INPUT_TYPES = ['heic', 'jxl', 'jp2', 'psd', 'cur', 'pdf'] as const;
/** Types that an instance writes only when `EXTRA_OUTPUTS` lists them. */
export const EXTRA_OUTPUT_TYPES = ['avif', 'jxl', 'tiff', 'ico'] as const;

/** All types that any instance can read. */
export const ALL_INPUT_TYPES = [...INPUT_TYPES, ...EXTRA_INPUT_TYPES] as const;
/** All types that any instance can write. */
export const ALL_OUTPUT_TYPES = [...OUTPUT_TYPES, ...EXTRA_OUTPUT_TYPES] as const;

/** A type in {@link ALL_INPUT_TYPES}. */
export type InputType = (typeof ALL_INPUT_TYPES)[number];
/** A type in {@link ALL_OUTPUT_TYPES}. */
export type OutputType = (typeof ALL_OUTPUT_TYPES)[number];
/** Returns whether a type is a HEIF container (ISO/IEC 23008-12). */
export const isHeif = (type: InputType): boolean => type === 'avif' || type === 'heic';

/** Capabilities of an input format. */
export interface InputFormat {
  /** Name in messages. */
  readonly label: string;
  /** Media type (RFC 6838): that of IANA's registry, if there is one. */
  readonly mediaType: string;
  /** Names in `GET /formats`. */
  readonly names: readonly string[];
  /** Name of ImageMagick's coder; undefined for what others decode: SVG, PDF and JPEG XL. */
  readonly coder: string | undefined;
  /** Whether a file can be animated. */
  readonly animation: boolean;
  /** Whether a file can have several pages. */
  readonly pages?: true;
  /** Whether no file can be transparent. */
  readonly opaque?: true;
  /** Whether only EXIF has the orientation. Others have a field for it, or no orientation. */
  readonly exifOrientation: boolean;
  /** Whether the header reliably states the size of the decoded image. */
  readonly trustedSize?: true;
  /** Program that decodes files to PNG for both versions of ImageMagick, which do not read them. */
  readonly decoder?: 'djxl';
  /** Debian package that the coder needs, besides that of ImageMagick. */
  readonly coderPackage?: string;
}

/** Capabilities of an output format. */
export interface OutputFormat {
  readonly label: string;
  readonly mediaType: string;
  /** ImageMagick's coder; `PNG` for what other programs encode, `JPEG` for pages of a PDF. */
  readonly coder: string;
  /** Coder with which ImageMagick 7 writes a part of the file. */
  readonly innerCoder?: string;
  /** Whether `quality` has an effect. */
  readonly quality: boolean;
  /** Whether the option `lossless` has an effect. */
  readonly lossless: boolean;
  /** Whether the format is compressed, so that an archive stores it without deflating it. */
  readonly compressed: boolean;
  /** First bytes of every file of this format. `undefined` matches any byte. */
  readonly signature: readonly (number | undefined)[];
  /** Last bytes of every file, if they are the same. A PNG can have other data behind its end. */
  readonly ending?: readonly (number | undefined)[];
  /** Transparency: `full`, `binary` (opaque or transparent), or `none` (on the background). */
  readonly alpha: 'full' | 'binary' | 'none';
  /** Whether a background replaces alpha although a file can have it, and borders are white. */
  readonly takesBackground?: true;
  /** Whether a file can contain all frames of an animation. */
  readonly animation: boolean;
  /** Whether a file can have several pages. */
  readonly pages: boolean;
  /** Whether its pages have a size in points, and can be larger than their pictures. */
  readonly paper?: true;
  /** Whether viewers apply an embedded colour profile. */
  readonly profile: boolean;
  /** Whether a file can store only greys, so that viewers apply a colour profile of greys. */
  readonly greys: boolean;
  /** Whether a file can store CMYK pixels. */
  readonly cmyk: boolean;
  /** Whether `metadata=copyright` writes EXIF and XMP to a file. */
  readonly copyright: boolean;
  /** Whether a file can store 16 bits per channel. */
  readonly deep?: true;
  /** Whether a file has at most 256 colours. */
  readonly palette?: true;
  /** Whether a file can have a palette, so that the option `colors` has an effect. */
  readonly indexed?: true;
  /** Whether `quality` 100 is without loss. */
  readonly losslessQuality?: true;
  /** Program that restores the bytes of a JPEG, which `lossless` with all metadata stores. */
  readonly restorer?: 'djxl';
  /**
   * Maximum bytes per pixel with 8 bits per channel. Measured on noise at quality 100, with
   * ImageMagick 6.9.11: webp 2.2, png 4.01, jpg 4.1, gif 1.4, bmp 3. With transparency: avif 3.8
   * with libaom 3.6, jxl 4.4 with libjxl 0.7, tiff 4.01, which has a fifth channel for CMYK.
   */
  readonly maxBytesPerPixel: number;
  /** Maximum width and height that the header can express, if less than the service allows. */
  readonly maxDimension?: number;
}

/** Names in messages, and media types (RFC 6838): those of IANA's registry, if there is one. */
const NAMES = {
  png: { label: 'PNG', mediaType: 'image/png' },
  jpg: { label: 'JPEG', mediaType: 'image/jpeg' },
  gif: { label: 'GIF', mediaType: 'image/gif' },
  bmp: { label: 'BMP', mediaType: 'image/bmp' },
  tiff: { label: 'TIFF', mediaType: 'image/tiff' },
  svg: { label: 'SVG', mediaType: 'image/svg+xml' },
  avif: { label: 'AVIF', mediaType: 'image/avif' },
  ico: { label: 'ICO', mediaType: 'image/vnd.microsoft.icon' },
  webp: { label: 'WebP', mediaType: 'image/webp' },
  heic: { label: 'HEIC', mediaType: 'image/heic' },
  jxl: { label: 'JPEG XL', mediaType: 'image/jxl' },
  jp2: { label: 'JPEG 2000', mediaType: 'image/jp2' },
  psd: { label: 'PSD', mediaType: 'image/vnd.adobe.photoshop' },
  cur: { label: 'CUR', mediaType: 'image/vnd.microsoft.icon' },
  pdf: { label: 'PDF', mediaType: 'application/pdf' },
} as const;

/** What an input format differs in from {@link STILL}, with its type as its only name. */
type InputRow = Partial<InputFormat> & Pick<InputFormat, 'coder'>;

/** An input format that cannot be animated, and has another field for the orientation, or none. */
const STILL = { animation: false, exifOrientation: false };

const INPUT_ROWS: Readonly<Record<InputType, InputRow>> = {
  png: { coder: 'PNG', exifOrientation: true, trustedSize: true },
  jpg: { names: ['jpg', 'jpeg'], coder: 'JPEG', opaque: true, exifOrientation: true, trustedSize: true },
  gif: { coder: 'GIF', animation: true },
  bmp: { coder: 'BMP', trustedSize: true },
  tiff: { coder: 'TIFF', pages: true },
  svg: { coder: undefined },
  avif: { coder: 'AVIF', coderPackage: 'libheif-plugin-dav1d' },
  ico: { coder: 'ICO' },
  webp: { coder: 'WEBP', animation: true, exifOrientation: true, trustedSize: true },
  heic: { names: ['heic', 'heif'], coder: 'HEIC', coderPackage: 'libheif-plugin-libde265' },
  jxl: { coder: undefined, decoder: 'djxl', animation: true, exifOrientation: true },
  jp2: { names: ['jp2', 'j2k'], coder: 'JP2', exifOrientation: true },
  psd: { coder: 'PSD', exifOrientation: true },
  cur: { coder: 'ICO' },
  pdf: { coder: undefined, pages: true, opaque: true },
};

export const INPUTS = Object.fromEntries(
  ALL_INPUT_TYPES.map((type): [InputType, InputFormat] => [
    type,
    { ...NAMES[type], ...STILL, names: [type], ...INPUT_ROWS[type] },
  ]),
) as Readonly<Record<InputType, InputFormat>>;

const CAPABILITIES = [
  'quality',
  'lossless',
  'compressed',
  'animation',
  'pages',
  'profile',
  'greys',
  'cmyk',
  'copyright',
] as const;

/** Returns all capabilities, of which a format has these. */
const has = (...names: readonly (typeof CAPABILITIES)[number][]) =>
  Object.fromEntries(CAPABILITIES.map((name) => [name, names.includes(name)])) as Readonly<
    Record<(typeof CAPABILITIES)[number], boolean>
  >;

/** Returns the bytes of a signature. `?` stands for any byte. */
const bytesOf = (signature: string): (number | undefined)[] =>
  Array.from(signature, (character) => (character === '?' ? undefined : character.charCodeAt(0)));

export const OUTPUTS: Readonly<Record<OutputType, OutputFormat>> = {
  webp: {
    ...NAMES.webp,
    ...has('quality', 'lossless', 'compressed', 'animation', 'profile', 'copyright'),
    coder: 'WEBP',
    alpha: 'full',
    signature: bytesOf('RIFF????WEBP'),
    // 14 bits per dimension in the frame headers of VP8 and VP8L (RFC 9649).
    maxDimension: 16383,
    maxBytesPerPixel: 3,
  },
  png: {
    ...NAMES.png,
    ...has('compressed', 'profile', 'greys', 'copyright'),
    coder: 'PNG',
    alpha: 'full',
    signature: bytesOf('\x89PNG\r\n\x1a\n'),
    deep: true,
    indexed: true,
    maxBytesPerPixel: 4.1,
  },
  jpg: {
    ...NAMES.jpg,
    ...has('quality', 'compressed', 'profile', 'greys', 'cmyk', 'copyright'),
    coder: 'JPEG',
    alpha: 'none',
    signature: bytesOf('\xff\xd8\xff'),
    ending: bytesOf('\xff\xd9'),
    maxDimension: 65_500, // JPEG_MAX_DIMENSION of libjpeg
    maxBytesPerPixel: 4.2,
  },
  gif: {
    ...NAMES.gif,
    ...has('compressed', 'animation'),
    coder: 'GIF',
    alpha: 'binary',
    signature: bytesOf('GIF8'),
    ending: bytesOf(';'),
    palette: true,
    indexed: true,
    maxBytesPerPixel: 2,
  },
  bmp: {
    ...NAMES.bmp,
    ...has(),
    coder: 'BMP3',
    alpha: 'none',
    signature: bytesOf('BM'),
    maxBytesPerPixel: 3.1,
  },
  pdf: {
    ...NAMES.pdf,
    ...has('quality', 'lossless', 'compressed', 'pages'),
    paper: true,
    coder: 'JPEG',
    alpha: 'full',
    takesBackground: true,
    signature: bytesOf('%PDF-'),
    maxBytesPerPixel: 14, // a JPEG, a PNG and a mask for each page, which stay, and the larger one with the mask in the PDF
  },
  avif: {
    ...NAMES.avif,
    ...has('quality', 'compressed', 'profile', 'copyright'),
    coder: 'PNG',
    alpha: 'full',
    signature: bytesOf('????ftypavif'),
    maxBytesPerPixel: 4.2,
  },
  jxl: {
    ...NAMES.jxl,
    ...has('quality', 'compressed', 'profile', 'greys', 'copyright'),
    coder: 'PNG',
    alpha: 'full',
    // Container of ISO/IEC 18181-2, which `--container=1` makes the encoder always write.
    signature: bytesOf('\0\0\0\x0cJXL \r\n\x87\n'),
    deep: true,
    losslessQuality: true,
    restorer: 'djxl',
    maxBytesPerPixel: 4.6,
  },
  tiff: {
    ...NAMES.tiff,
    ...has('compressed', 'animation', 'pages', 'profile', 'greys', 'cmyk', 'copyright'),
    coder: 'TIFF',
    alpha: 'full',
    signature: bytesOf('II*\0'),
    deep: true,
    maxBytesPerPixel: 5.1,
  },
  ico: {
    ...NAMES.ico,
    ...has(),
    coder: 'ICO',
    alpha: 'full',
    signature: bytesOf('\0\0\x01\0'),
    innerCoder: 'PNG32',
    maxBytesPerPixel: 0, // its images have fixed sizes
  },
};

/** Formats of which one file can have the results of several images, as pages or frames. */
export const COMBINED_TYPES: readonly OutputType[] = ALL_OUTPUT_TYPES.filter(
  (type) => OUTPUTS[type].pages || OUTPUTS[type].animation,
);

/** Returns whether images become frames of one size in this format, instead of pages. */
export const combinesFrames = (type: OutputType): boolean => !OUTPUTS[type].pages;

/** Time of each frame of such an animation in ms. Browsers show a shorter one for 100 ms. */
export const FRAME_DELAY_MS = { min: 20, max: 600_000, default: 500 } as const;

/** Output types by the values of the format field, in lower case; any case is accepted. */
export const OUTPUT_NAMES: ReadonlyMap<string, OutputType> = new Map<string, OutputType>([
  ...ALL_OUTPUT_TYPES.map((type) => [type, type] as const),
  ['jpeg', 'jpg'],
  ['tif', 'tiff'],
]);

/** Lists all output types, or those with a capability: `webp, jpg and avif`. */
export function listOutputs(word: 'and' | 'or', has: (type: OutputType) => boolean = () => true): string {
  const types = ALL_OUTPUT_TYPES.filter(has);
  return `${types.slice(0, -1).join(', ')} ${word} ${types.at(-1)}`;
}

/** Lists the labels of types of images, for messages. */
export const listLabels = (types: readonly InputType[]): string =>
  types.map((type) => INPUTS[type].label).join(', ');

/** States that a format is disabled. The page looks for this in messages. */
export const describeDisabled = (setting: 'EXTRA_INPUTS' | 'EXTRA_OUTPUTS', format: string): string =>
  `${setting} does not enable ${format}`;

/** Returns the end of a message about a disabled format; empty without `EXTRA_OUTPUTS` for it. */
export function explainDisabled(name: string): string {
  const type = OUTPUT_NAMES.get(name.toLowerCase());
  const disabled = EXTRA_OUTPUT_TYPES.find((extra) => extra === type);
  return disabled ? `: ${describeDisabled('EXTRA_OUTPUTS', disabled)}` : '';
}

/** Returns whether a format can have a palette, or keep all colours without one. */
export const canHavePalette = (type: OutputType): boolean =>
  OUTPUTS[type].indexed === true && OUTPUTS[type].palette !== true;

/** Returns whether `max_bytes` can lower the quality. Pages of a PDF share one, often of text. */
export function hasBytesLimit(type: OutputType): boolean {
  return OUTPUTS[type].quality && !OUTPUTS[type].pages;
}
