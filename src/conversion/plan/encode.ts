/** @module Encoder arguments of each format, chosen to balance quality, size and time. Pure. */
import { OUTPUTS, type OutputType } from '../../formats.ts';
import { encodeCopyright } from '../../images/copyright/blocks.ts';
import type { ImageInfo, Size } from '../../images/image-info.ts';
import type { ToolName } from '../../tools.ts';
import { POINTS_PER_INCH, pageScale, setsSize } from './size.ts';
import { FILE_TO_ENCODE, JXL_THREADS, KEPT_FILE, SUFFIX, THREADS, WEBP_THREADS } from './step.ts';
import {
  type ConversionJob,
  type ConvertOptions,
  INPUT_FILE,
  MAGICK_FEATURES,
  type Sentence,
} from './types.ts';

/** Effort of WebP compression, 0 (fastest) to 6 (smallest). The default of libwebp. */
const WEBP_METHOD = 4;
/** Effort of img2webp without loss, 0 to 100. The default of libwebp. */
const LOSSLESS_EFFORT = 75;

/** Returns arguments that set options of a coder of ImageMagick. */
function define(coder: string, values: Readonly<Record<string, string | number | boolean>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => ['-define', `${coder}:${name}=${value}`]);
}

/** Arguments that encode to each format. */
const ENCODERS: Readonly<Record<OutputType, (job: ConversionJob) => readonly string[]>> = {
  // ImageMagick 7 would encode an animation of quality 100 without loss. With lossless, the quality is an effort.
  webp: ({ options: { lossless = false, quality }, tools: { magick } }) => [
    ...['-quality', String(lossless ? MAGICK_FEATURES[magick].losslessWebpEffort : quality)],
    // Without `exact`, ImageMagick 7 rounds the colours of a lossless WebP.
    ...define('webp', { method: WEBP_METHOD, lossless, exact: lossless }),
    WEBP_THREADS,
  ],
  // For PNG, -quality sets zlib level and filter: 80 is slow and large.
  png: (job) => [
    ...[...depth(job), ...alphaBits(job)],
    ...(isFlat(job) ? compressPng(4, 1) : compressPng(2, 5)),
  ],
  jpg: (job) => [
    ...['-sampling-factor', job.options.quality < FULL_COLOUR_QUALITY ? '4:2:0' : '4:4:4'],
    ...['-quality', String(job.options.quality)],
    ...(resultPixels(job) < MANY_PIXELS ? [] : ['-define', 'jpeg:optimize-coding=false']),
  ],
  // Dithering would change even images of few colours (48 dB), and takes 100 ms per frame.
  gif(job) {
    if (job.isPassthrough) return [];
    return ['+dither', ...(job.keepsAllFrames ? ['-layers', 'OptimizeTransparency', '-colors', '256'] : [])];
  },
  // ImageMagick 6 would append a profile that the header of this BMP version cannot describe.
  bmp: () => ['+profile', '*', '-type', 'TrueColor'],
  // Otherwise the title would be the name of the working file.
  pdf: (job) => [
    ...['-units', 'PixelsPerInch', '-density', pageDensity(job), '-compress', pageCompression(job)],
    ...['-quality', String(job.options.quality), '-define', 'pdf:title=image'],
  ],
  // Browsers show 8 bits, which take half of the time of 16.
  avif: ({ image }) => ['-depth', '8', ...compressPng(temporaryLevel(image), 1)],
  // Fewer bits for few greys, as for black and white, would turn white into black: cjxl 0.7 reads them unscaled.
  jxl: (job) => [
    ...[...depth(job), '-set', 'option:png:bit-depth', usedBits(job)],
    ...compressPng(temporaryLevel(job.image), 1),
  ],
  tiff: (job) => [
    ...[...depth(job), '-compress', 'Zip', '-define', 'tiff:endian=lsb'],
    // libtiff has no predictor for fewer than 8 bits per pixel. Palettes of more colours get smaller without one, too.
    ...(job.image.paletteKind === 'palette' ? [] : ['-define', 'tiff:predictor=2']),
  ],
  ico: iconImages,
};

/** Returns whether a format that can lose information keeps every sample with these options. */
export const isLossless = ({
  format,
  lossless,
  quality,
}: Pick<ConvertOptions, 'format'> & Partial<Pick<ConvertOptions, 'lossless' | 'quality'>>): boolean =>
  (format === 'webp' && lossless === true) || (format === 'jxl' && quality === 100);

export const explainEncoding: Sentence = ({ options }) => {
  const { format, quality, maxBytes } = options;
  const exact = !OUTPUTS[format].quality || isLossless(options);
  const how = format === 'gif' ? 'up to 256 colours' : exact ? 'without loss' : `quality ${quality}`;
  return `${OUTPUTS[format].label}, ${how}${maxBytes ? `, or lower for at most ${maxBytes} bytes` : ''}`;
};

/** Keeps 16 bits per channel. */
const depth = ({ image }: ConversionJob): string[] => ['-depth', image.deep ? '16' : '8'];

/**
 * Returns 8 or 16, or an expression for 8 if the values of a deep image need no more: ImageMagick writes damaged pixels if black
 * and white get 16 bits. ImageMagick 6 divides the depth by QuantumRange. Also 8 for transparency of which cjxl would state the
 * wrong number of bits. Without an alpha channel, the minimum of alpha is a huge number.
 */
function usedBits({ image, tools }: ConversionJob): string {
  if (!image.deep) return '8';
  const isOpaque = tools.statesDeepAlpha ? '' : '&&minima.a>=1';
  return `%[fx:${IS_DEEP}${isOpaque}?16:8]`;
}

/** Writes 16 bits if a deep image has transparency: otherwise, the bits that the colours need would count. */
const alphaBits = ({ image }: ConversionJob): string[] =>
  image.deep && image.pixels?.alpha
    ? ['-set', 'option:png:bit-depth', `%[fx:minima.a<1||${IS_DEEP}?16:8]`]
    : [];

const IS_DEEP = 'depth*(depth<1?QuantumRange:1)>8.5';

/** Widths in pixels of the images in an icon, which Windows recommends. */
const ICON_SIZES = [256, 48, 32, 16];

/** What the sizes of an icon depend on. */
type IconJob = Pick<ConversionJob, 'options' | 'fittings'>;

/** Returns the sizes of the images in an icon. Width, height and the size of a scaled image leave out larger sizes. */
function iconSizes({ options, fittings: [fitting] }: IconJob): number[] {
  const { width = 256, height = 256, scale } = options;
  const scaled = scale && fitting ? Math.max(fitting.result.width, fitting.result.height) : 256;
  const [smallest = 16] = ICON_SIZES.slice(-1);
  return ICON_SIZES.filter((size) => size <= Math.max(smallest, Math.min(width, height, scaled)));
}

/** Returns the size of the largest image in an icon. */
export function iconSize(job: IconJob): Size {
  const side = Math.max(...iconSizes(job));
  return { width: side, height: side };
}

/** Fits the image into a transparent square of each size. */
function iconImages(job: ConversionJob): string[] {
  const copies = iconSizes(job).flatMap((size) => [
    ...['(', '-clone', '0', '-filter', 'Lanczos', '-resize', `${size}x${size}`],
    ...['-background', 'none', '-gravity', 'center', '-extent', `${size}x${size}`, ')'],
  ]);
  return ['-alpha', 'set', ...copies, '-delete', '0', '-depth', '8'];
}

/** Program that encodes a PNG of ImageMagick. */
export interface ExternalEncoder {
  readonly tool: ToolName;
  /** Returns the arguments, without the names of the input and the output, which follow them. */
  args(job: Pick<ConversionJob, 'options'> & Partial<Pick<ConversionJob, 'isTranscoded'>>): readonly string[];
}

/** Encoders of formats that ImageMagick writes as PNG first. */
export const EXTERNAL_ENCODERS: Partial<Readonly<Record<OutputType, ExternalEncoder>>> = {
  avif: {
    tool: 'avifenc',
    // Full chroma resolution, for screenshots, and lossless transparency.
    args: ({ options: { quality } }) => [
      ...['-c', 'aom', '-j', THREADS, '-s', '9', '-y', '444', '--min', '0', '--max', '63'],
      ...['--minalpha', '0', '--maxalpha', '0'],
      ...['-a', 'end-usage=q', '-a', `color:cq-level=${Math.round(valueAt(AVIF_LEVELS, quality))}`],
    ],
  },
  jxl: {
    tool: 'cjxl',
    // A JPEG that is transcoded keeps its data, so that its bytes can be restored.
    args: ({ options: { quality }, isTranscoded }) => [
      ...[JXL_THREADS, '--container=1', '--quiet'],
      ...(isTranscoded
        ? ['--lossless_jpeg=1']
        : ['-d', valueAt(JXL_DISTANCES, quality).toFixed(2), '-e', quality === 100 ? '2' : '4']),
    ],
  },
};

/** Returns the arguments of the program that encodes the PNG of ImageMagick, or transcodes the input. */
export function encoderArguments(job: ConversionJob): string[] {
  const args = EXTERNAL_ENCODERS[job.options.format]?.args(job) ?? [];
  return [...args, ...copyrightArguments(job), job.isTranscoded ? INPUT_FILE : FILE_TO_ENCODE, job.output];
}

/** Files with the copyright for the encoder of AVIF. Other formats get it after they are encoded. */
export const COPYRIGHT_FILES = [
  ['exif', 'copyright.exif'],
  ['xmp', 'copyright.xmp'],
] as const;

function copyrightArguments({ image: { copyright }, options }: ConversionJob): string[] {
  if (options.format !== 'avif' || options.metadata !== 'copyright' || !copyright) return [];
  const blocks = encodeCopyright(copyright, 'avif');
  return COPYRIGHT_FILES.flatMap(([kind, name]) => (blocks[kind] ? [`--${kind}`, name] : []));
}

/** Returns the arguments of img2webp, which assembles the frames of ImageMagick. An option applies to all frames after it. */
export function webpArguments({ image, options, output }: ConversionJob): string[] {
  const { delaysMs = [], loopCount = 0 } = image.animation ?? {};
  const coding = options.lossless
    ? ['-lossless', '-q', String(LOSSLESS_EFFORT)]
    : ['-lossy', '-q', String(options.quality)];
  const frames = delaysMs.flatMap((delay, at) => [
    ...(delay === delaysMs[at - 1] ? [] : ['-d', String(delay)]),
    `frame${SUFFIX}-${String(at).padStart(5, '0')}.pam`,
  ]);
  return ['-loop', String(loopCount), ...coding, '-m', String(WEBP_METHOD), ...frames, '-o', output];
}

/** Writes the result, or the files that the next program encodes. */
export function encode(job: ConversionJob): string[] {
  const { format } = job.options;
  // Each frame becomes a numbered, uncompressed file.
  if (job.programs.includes('img2webp')) return ['-depth', '8', `PAM:frame${SUFFIX}-%05d.pam`];
  const file = EXTERNAL_ENCODERS[format] ? FILE_TO_ENCODE : job.output;
  return [...ENCODERS[format](job), `${OUTPUTS[format].coder}:${file}`];
}

/**
 * Stores the image if `maxBytes` can require ImageMagick to encode it again. MIFF holds frames and CMYK and is not
 * compressed: 6 megapixels take 0.05 s to write and 0.03 s to read; an uncompressed PNG takes 0.35 s and 0.1 s.
 */
export const storeForRetries = ({ options, programs }: ConversionJob): string[] =>
  options.maxBytes && programs.at(-1) === 'magick' ? ['-depth', '8', '-write', `MIFF:${KEPT_FILE}`] : [];

/**
 * Chunks with the gamma of 2.2 and the primaries that ImageMagick 6 declares in a PNG. Browsers would use them instead of sRGB.
 */
const GAMMA_CHUNKS = 'gAMA,cHRM';
/** Chunks of a PNG with properties of the source, except the profile. */
const PROPERTY_CHUNKS = 'bKGD,caNv,date,eXIf,iTXt,orNT,pHYs,sRGB,tEXt,tIME,zCCP,zTXt';

const excludeChunks = (names: string): string[] => ['-define', `png:exclude-chunks=${names}`];
const unset = (names: readonly string[]): string[] => names.flatMap((name) => ['+set', name]);

/**
 * Removes all metadata; all but the profile, before the copyright is written to the result; or only what ImageMagick would add to it.
 */
export function removeMetadata({ options: { metadata, format } }: ConversionJob): string[] {
  if (metadata === 'all') return [...unset(WORKING_FILE_DATES), ...excludeChunks(GAMMA_CHUNKS)];
  if (metadata === 'none' || !OUTPUTS[format].copyright) return ['-strip'];
  // A TIFF has comments and labels as properties.
  return [
    ...['+profile', '!icc,*', ...unset(['comment', 'label'])],
    ...excludeChunks(`${GAMMA_CHUNKS},${PROPERTY_CHUNKS}`),
  ];
}

/** Returns whether the copyright, or a part of it, cannot be read or kept. */
export const losesCopyright = ({ image: { copyright }, options }: ConversionJob): boolean =>
  options.metadata === 'copyright' &&
  copyright !== undefined &&
  (copyright.isPartial || (copyright.texts.length > 0 && !OUTPUTS[options.format].copyright));

const WHAT_REMAINS = { none: 'removed', copyright: 'removed, except the copyright', all: 'kept' } as const;

export const explainMetadata: Sentence = ({ image: { metadata = [] }, options }) => {
  const kinds = metadata.map((kind) => kind.toUpperCase()).join(' and ');
  return kinds === '' ? undefined : `${kinds} metadata is ${WHAT_REMAINS[options.metadata]}`;
};

const WORKING_FILE_DATES = ['date:create', 'date:modify', 'date:timestamp'];

/**
 * Values of an encoder that lead to the same visible quality as in WebP. Between two qualities, they are interpolated.
 * bench/README.md describes the measurements.
 */
interface QualityTable {
  readonly qualities: readonly number[];
  /** The value for each of the qualities. */
  readonly values: readonly number[];
}

/** Quantizer of libaom, 0 (best) to 63. */
const AVIF_LEVELS: QualityTable = {
  qualities: [1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100],
  values: [51.9, 47.6, 44.4, 40, 36.9, 33.9, 31, 28.8, 26.2, 25.1, 21.1, 16.7, 11, 6.3, 3.5],
};

/** Butteraugli distance of libjxl, 0 (lossless) to 25. */
const JXL_DISTANCES: QualityTable = {
  qualities: [1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 99, 100],
  values: [17, 11.8, 9, 6.2, 4.5, 3.4, 2.94, 2.4, 2.05, 1.85, 1.55, 1.25, 0.95, 0.65, 0.5, 0],
};

/** Returns the encoder's value for a quality of 1 to 100. */
function valueAt({ qualities, values }: QualityTable, quality: number): number {
  const next = Math.max(
    1,
    qualities.findIndex((from) => quality <= from),
  );
  const [low = 0, high = 0] = qualities.slice(next - 1);
  const [lowValue = 0, highValue = 0] = values.slice(next - 1);
  return lowValue + ((quality - low) / (high - low)) * (highValue - lowValue);
}

/** From this quality on, a JPEG has colour in full resolution, as ImageMagick's PDF and libvips have it. */
const FULL_COLOUR_QUALITY = 90;

/** Returns pixels per inch, rounded up to two decimals. One pixel is one point, unless a page would be too large. */
function pageDensity(job: ConversionJob): string {
  return String(Math.ceil((POINTS_PER_INCH / pageScale(job)) * 100) / 100);
}

/**
 * Number of pixels from which a JPEG gets standard Huffman tables. Optimized tables take a fifth more time, and save 2%
 * of the bytes of large images and 5% of small ones.
 */
const MANY_PIXELS = 500_000;

/** Returns the pixels of the first frame or page; 0 if the size is not known. */
function resultPixels(job: ConversionJob): number {
  const { width, height } = job.fittings[0]?.result ?? { width: 0, height: 0 };
  return width * height;
}

/**
 * Returns the arguments that compress a PNG, with a level of zlib and a filter. Filter 1 is none; with 5, the encoder selects a
 * filter per row. The levels were chosen by the measurements in bench/README.md.
 *
 * ImageMagick 7 stores a transparent grey as its luma, rounded down: 191 for 192, so that no pixel is transparent. The brightness
 * of a grey is exact.
 */
function compressPng(level: number, filter: 1 | 5): string[] {
  return [
    '-intensity',
    'Brightness',
    ...define('png', { 'compression-level': level, 'compression-filter': filter }),
  ];
}

/**
 * Returns the level of zlib for a PNG that the next tool reads once. Level 0 takes a third of the time of level 1, and 4 bytes per
 * pixel. With 16 bits per channel, these would be 8, more than a tool may write for the largest images.
 */
export const temporaryLevel = ({ deep }: ImageInfo): 0 | 1 => (deep ? 1 : 0);

/** Returns whether neighbouring pixels are often equal, so that filters make a PNG larger. */
function isFlat({ image: { flat, paletteKind, type }, options }: ConversionJob): boolean {
  return !addsShades(options) && (flat || paletteKind !== undefined || type === 'gif');
}

/** Returns whether the result has colours between those of the image. */
const addsShades = (options: ConvertOptions): boolean =>
  setsSize(options) || (options.blur ?? options.sharpen ?? options.watermark) !== undefined;

/**
 * Returns the compression of a PDF, which ImageMagick applies to all pages. Palette images are compressed without loss.
 * Bilevel images get fax compression (Group 4), a twentieth of the size, unless an option adds greys.
 */
function pageCompression(job: ConversionJob): 'JPEG' | 'Zip' | 'Group4' {
  const { image, options } = job;
  const pages = image.pages ? job.pages : [image];
  if (pages.every(({ paletteKind }) => paletteKind === undefined)) return 'JPEG';
  return pages.every(({ paletteKind }) => paletteKind === 'bilevel') && !addsShades(options)
    ? 'Group4'
    : 'Zip';
}
