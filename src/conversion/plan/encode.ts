/** @module Arguments of ImageMagick for each format, for quality, size and time. Pure. */
import { differsFromSrgb, type ImageInfo, type Size } from '../../images/image-info.ts';
import { canHavePalette, OUTPUTS, type OutputType } from '../../tables/formats.ts';
import { documentPages, printColours, printOpaquePage, printSampled } from './document.ts';
import { EXTERNAL_ENCODERS, numericQuality, WEBP_METHOD } from './external-encoders.ts';
import { addsShades, type DrawingOptions } from './size.ts';
import { FILE_TO_ENCODE, KEPT_FILE, SUFFIX, WEBP_THREADS, words } from './step.ts';
import { leftOutFrames } from './timing.ts';
import { type ConversionJob, type DocumentPage, MAGICK_FEATURES, type Sentence } from './types.ts';

/** Returns arguments that set options of a coder of ImageMagick. */
function define(coder: string, values: Readonly<Record<string, string | number | boolean>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => ['-define', `${coder}:${name}=${value}`]);
}

const ENCODERS: Readonly<Record<OutputType, (job: ConversionJob) => readonly string[]>> = {
  // ImageMagick 7 would encode quality 100 of an animation without loss. Lossless, it is an effort.
  webp: ({ options, options: { lossless = false }, tools: { magick } }) => [
    '-quality',
    String(lossless ? MAGICK_FEATURES.losslessWebpEffort[magick] : numericQuality(options)),
    // Without `exact`, ImageMagick 7 rounds the colours of a lossless WebP.
    ...define('webp', { method: WEBP_METHOD, lossless, exact: lossless }),
    WEBP_THREADS,
  ],
  // For PNG, -quality sets zlib level and filter: 80 is slow and large.
  png: (job) => [
    ...(job.options.colors === undefined
      ? [...depth(job), ...alphaBits(job)]
      : ['-depth', '8', ...dithering(job), ...reduceColours(job.options.colors)]),
    // The resolution, which `-strip` leaves out of a PNG only.
    ...define('png', { 'include-chunks': 'pHYs' }),
    ...compressPixels(job),
    ...(isManyGreys(job) ? define('png', { 'color-type': 0 }) : []),
  ],
  jpg: encodeJpeg,
  // Dithering would change even images of few colours (48 dB), and takes 100 ms per frame.
  gif(job) {
    if (job.isPassthrough) return [];
    const leftOut = leftOutFrames(job);
    const remove = leftOut.length > 0 ? ['-delete', leftOut.join(',')] : [];
    if (changesLittle(job) && job.options.colors === undefined) return storeChanges(job);
    const crop = changesLittle(job) ? ['-layers', 'OptimizeFrame'] : [];
    const optimize = job.keepsAllFrames ? [...crop, '-layers', 'OptimizeTransparency'] : [];
    return [...remove, ...dithering(job), ...optimize, ...reduceColours(gifColours(job))];
  },
  // ImageMagick 6 would append a profile that the header of this BMP version cannot describe.
  bmp: () => ['+profile', '*', '-type', 'TrueColor'],
  pdf: () => [], // its pages are files of other formats
  // Browsers show 8 bits, which take half of the time of 16.
  avif: ({ image }) => ['-depth', '8', ...compressPng(temporaryLevel(image), 1)],
  // Fewer bits for few greys would turn white into black: cjxl 0.7 reads them unscaled.
  jxl: (job) => {
    const bits = ['-set', 'option:png:bit-depth', usedBits(job)];
    return [...depth(job), ...bits, ...compressPng(temporaryLevel(job.image), 1)];
  },
  tiff: (job) => [
    ...depth(job),
    ...words('-compress Zip -define tiff:endian=lsb'),
    // libtiff has no predictor for fewer than 8 bits. Other palettes get smaller without one, too.
    ...(job.image.paletteKind === 'palette' ? [] : ['-define', 'tiff:predictor=2']),
  ],
  ico: iconImages,
};

function compressPixels(job: ConversionJob): string[] {
  if (job.options.colors !== undefined) return compressPng(9, 1);
  if (keepsIndices(job)) return encodeIndices(job);
  return isFlat(job) ? compressPng(4, 1) : compressPng(2, 5);
}

function encodeJpeg(job: ConversionJob): string[] {
  const quality = numericQuality(job.options);
  const isFast = job.search !== 'likeness' && resultPixels(job) >= MANY_PIXELS;
  const sampling = quality < FULL_COLOUR_QUALITY ? '4:2:0' : '4:4:4';
  const tables = isFast ? define('jpeg', { 'optimize-coding': false }) : [];
  return [...words(`-sampling-factor ${sampling} -quality ${quality}`), ...tables];
}

/** Dithers a still image of given colours. Animations would flicker, and take 100 ms per frame. */
function dithering({ options, keepsAllFrames, tools: { magick } }: ConversionJob): string[] {
  const { colors, dither = true } = options;
  const isDithered = colors !== undefined && dither && !keepsAllFrames;
  return isDithered ? ['-dither', MAGICK_FEATURES.dithering[magick]] : ['+dither'];
}

const reduceColours = (colors: number | undefined): string[] =>
  colors === undefined ? [] : ['-colors', String(colors)];

/** Returns the maximum number of colours of a GIF; undefined if its encoder decides. */
function gifColours({ options: { colors, isPart }, keepsAllFrames }: ConversionJob): number | undefined {
  // Other frames can be transparent. Without a colour for that in each, Pillow shows none so.
  if (isPart) return Math.min(colors ?? 256, 255);
  return colors ?? (keepsAllFrames ? 256 : undefined);
}

/**
 * Returns whether only what changes is stored of a GIF, all frames of which are converted: most
 * pixels stay the same from one to the next. Of a first frame with transparent borders, only the
 * rest would be stored, and some viewers fill what it does not cover.
 */
const changesLittle = ({ image: { animation }, options, keepsAllFrames }: ConversionJob): boolean =>
  keepsAllFrames && !options.isPart && options.fit !== 'contain' && animation?.changesLittle === true;

/**
 * Turns dithering off before a GIF is read whose changes are stored: for each frame of black and
 * white only, ImageMagick 6 would fill 128 MB to dither it, and takes 50 ms for that.
 */
export const readUndithered = (job: ConversionJob): string[] => (changesLittle(job) ? ['+dither'] : []);

/** Maximum whole frames on which the palette of an animation depends, besides the changes. */
const SAMPLED_FRAMES = 4;

/**
 * Stores only what changes, in one palette for all frames. To choose its colours from all pixels of
 * all frames would take twice the time for 0.6 dB. A few whole frames, which are not kept, make
 * those of the changes count as much as they are visible.
 */
function storeChanges({ frameCount, tools: { magick } }: ConversionJob): string[] {
  const sampled = Array.from({ length: SAMPLED_FRAMES }, (_, at) =>
    Math.floor((at * frameCount) / SAMPLED_FRAMES),
  );
  const bounds = [...new Set(sampled), frameCount];
  const others = bounds.slice(1).flatMap((to, at) => {
    const from = (bounds[at] as number) + 1;
    return from < to ? `${from}-${to - 1}` : [];
  });
  return [
    // The same colour in each palette, so that the frames need none of their own.
    ...words('+dither -transparent-color black'),
    ...words('( -clone 0--1 -layers OptimizeFrame -layers OptimizeTransparency )'),
    ...(others.length > 0 ? ['-delete', others.join(',')] : []),
    MAGICK_FEATURES.sharedPalette[magick],
    '-delete',
    `0-${bounds.length - 2}`,
  ];
}

/** Returns whether a format that can lose information keeps every sample with these options. */
export const isLossless = ({ format, lossless, quality }: DrawingOptions): boolean =>
  (OUTPUTS[format].lossless && lossless === true) ||
  (OUTPUTS[format].losslessQuality === true && quality === 100);

export const explainEncoding: Sentence = ({ options, search, tools }) => {
  const { format, candidates = [format], maxBytes } = options;
  const exact = !OUTPUTS[format].quality || isLossless(options);
  const quality =
    search === 'likeness' ? 'the lowest quality that looks the same' : `quality ${numericQuality(options)}`;
  const { indexed, palette } = OUTPUTS[format];
  const colours = (indexed && options.colors) ?? (palette && 256);
  const how = colours ? `up to ${colours} colours` : exact ? 'without loss' : quality;
  const labels = candidates.map((type) => OUTPUTS[type].label).join(', ');
  const palette256 = options.candidates && tools.selectsColours && candidates.find(canHavePalette);
  const other = palette256 ? `, or ${OUTPUTS[palette256].label} of 256 colours if that looks the same` : '';
  const name = candidates.length > 1 ? `the smallest of ${labels}` : labels;
  return `${name}, ${how}${maxBytes ? `, or lower for at most ${maxBytes} bytes` : ''}${other}`;
};

/** Keeps 16 bits per channel. */
const depth = ({ image }: ConversionJob): string[] => ['-depth', image.deep ? '16' : '8'];

/**
 * Returns 8 or 16, or an expression for 8 if the values of a deep image need no more: ImageMagick
 * writes damaged pixels if black and white get 16 bits. ImageMagick 6 divides the depth by
 * QuantumRange. Also 8 for transparency of which cjxl would state the wrong number of bits. Without
 * an alpha channel, the minimum of alpha is a huge number.
 */
function usedBits({ image, tools }: ConversionJob): string {
  if (!image.deep) return '8';
  const isOpaque = tools.statesDeepAlpha ? '' : '&&minima.a>=1';
  return `%[fx:${IS_DEEP}${isOpaque}?16:8]`;
}

/** Writes 16 bits if a deep image has transparency. Otherwise, the bits of its colours count. */
const alphaBits = ({ image }: ConversionJob): string[] =>
  image.deep && image.pixels?.alpha
    ? ['-set', 'option:png:bit-depth', `%[fx:minima.a<1||${IS_DEEP}?16:8]`]
    : [];

const IS_DEEP = 'depth*(depth<1?QuantumRange:1)>8.5';

/** Widths in pixels of the images in an icon, which Windows recommends. */
const ICON_SIZES = [256, 48, 32, 16];

type IconJob = Pick<ConversionJob, 'options' | 'fittings'>;

/**
 * Returns the sizes of the images in an icon: those up to `width` and `height` and, unless it may
 * be enlarged, up to the longer side of the fitted image, but at least the smallest.
 */
function iconSizes({ options, fittings: [fitting] }: IconJob): number[] {
  const { width = 256, height = 256, scale, enlarge } = options;
  const isLimited = fitting && (!enlarge || scale !== undefined);
  const fitted = isLimited ? Math.max(fitting.result.width, fitting.result.height) : 256;
  const [smallest = 16] = ICON_SIZES.slice(-1);
  return ICON_SIZES.filter((size) => size <= Math.max(smallest, Math.min(width, height, fitted)));
}

/** Returns the size of the largest image in an icon. */
export function iconSize(job: IconJob): Size {
  const side = Math.max(...iconSizes(job));
  return { width: side, height: side };
}

/** Fits the image into a transparent square of each size. */
function iconImages(job: ConversionJob): string[] {
  const copies = iconSizes(job).flatMap((size) =>
    words(
      `( -clone 0 -filter Lanczos -resize ${size}x${size} -background none -gravity center -extent ${size}x${size} )`,
    ),
  );
  return ['-alpha', 'set', ...copies, '-delete', '0', '-depth', '8'];
}

/** Writes the result, or the files that the next program encodes. */
export function encode(job: ConversionJob): string[] {
  const { format } = job.options;
  // Each frame becomes a numbered, uncompressed file.
  if (job.programs.includes('img2webp')) return ['-depth', '8', `PAM:frame${SUFFIX}-%05d.pam`];
  const keepsResolution = job.programs.includes('pngquant');
  if (keepsResolution || job.programs.includes('cwebp')) {
    // A PNG of greys would lose a profile of colours. -depth 8 would round down.
    const chunks = keepsResolution ? define('png', { 'include-chunks': 'pHYs' }) : [];
    const rgba = define('png', { 'bit-depth': 8, 'color-type': 6 });
    return [...compressPng(0, 1), ...chunks, ...rgba, `PNG:${FILE_TO_ENCODE}`];
  }
  if (format === 'pdf') return encodePages(job);
  const file = EXTERNAL_ENCODERS[format] ? FILE_TO_ENCODE : job.output;
  return [...ENCODERS[format](job), `${OUTPUTS[format].coder}:${file}`];
}

/**
 * Writes the files of the pages of a PDF. If the colours of samples are known, it only writes those
 * that few colours add. The last argument is a file.
 */
function encodePages(job: ConversionJob): string[] {
  const { sampledColours } = job.measured;
  const pages = documentPages(job);
  const written = [...pages.keys()].filter((at) => !sampledColours || sampledColours[at] !== undefined);
  const final = written.at(-1);
  return written.flatMap((at) => {
    const page = pages[at] as DocumentPage;
    const args = encodePage(job, page, at);
    const reset = page.fax ? ['+compress'] : []; // would apply to the next page
    if (at !== final) return ['(', '-clone', String(at), ...writeNow(args), ...reset, '+delete', ')'];
    const others = [...pages.keys()].filter((other) => other !== at);
    return [...(others.length > 0 ? ['-delete', others.join(',')] : []), ...args];
  });
}

/** Returns the arguments with `-write` before the last, a file, so that operators can follow. */
export const writeNow = (args: readonly string[]): string[] => args.toSpliced(-1, 0, '-write');

function encodePage(job: ConversionJob, page: DocumentPage, at: number): string[] {
  const { jpeg, png, fax, mask } = page;
  const colours = job.measured.sampledColours ? printColours(at) : printSampled(job, page, at);
  const opaque = mask ? writeMask(mask, at) : [];
  if (!png) return [...opaque, ...colours, ...encodeJpeg(job), `JPEG:${jpeg}`];
  const encoded = [
    '-depth',
    job.options.lossless && job.image.deep ? '16' : '8',
    ...(isFlat(job) || jpeg ? compressPng(4, 1) : compressPng(2, 5)),
    ...(isManyGreys(job) ? define('png', { 'color-type': 0 }) : []),
    `PNG:${png}`,
  ];
  return [...opaque, ...colours, ...(fax ? [...writeNow(encoded), ...encodeFax(fax)] : encoded)];
}

/**
 * Encodes Group 4 in one strip of a TIFF, after which the image is black and white. Bare data, the
 * coder GROUP4, would take 0.02 s more for each page, and 0.2 s without huge pages: ImageMagick
 * clears 128 MB twice.
 */
const encodeFax = (file: string): string[] => [
  ...words('-compress Group4 -define tiff:rows-per-strip=1000000'),
  `TIFF:${file}`,
];

/** Writes alpha as greys, prints whether it is needed, and turns it off. */
function writeMask(file: string, at: number): string[] {
  const greys = define('png', { 'color-type': 0 }); // a soft mask has no palette
  // With a background in colour (bKGD), ImageMagick would write RGB, which a soft mask cannot be.
  const extract = words('( +clone -alpha set -alpha extract -strip -depth 8');
  const write = [...compressPng(4, 1), ...greys, '-write', `PNG:${file}`, '+delete', ')'];
  return [...printOpaquePage(at), ...extract, ...write, '+define', 'png:color-type', '-alpha', 'off'];
}

/**
 * Stores the image if a limit of the bytes can require ImageMagick to encode it again. MIFF holds
 * frames and CMYK and is not compressed: 6 megapixels take 0.05 s to write and 0.03 s to read; an
 * uncompressed PNG takes 0.35 s and 0.1 s.
 */
export const storeForRetries = ({ search, programs }: ConversionJob): string[] =>
  search === 'bytes' && programs.at(-1) === 'magick' ? ['-depth', '8', '-write', `MIFF:${KEPT_FILE}`] : [];

/** Chunks with gamma and primaries of ImageMagick 6, which browsers would use instead of sRGB. */
const GAMMA_CHUNKS = 'gAMA,cHRM';
/**
 * Chunks of a PNG with properties of the source, except the profile and texts: without both tEXt
 * and zTXt, ImageMagick would leave out the profile (WriteOnePNGImage in its png.c). The texts are
 * removed from the result.
 */
const PROPERTY_CHUNKS = 'bKGD,caNv,date,eXIf,iTXt,orNT,pHYs,sRGB,tEXt,tIME,zCCP';

const excludeChunks = (names: string): string[] => ['-define', `png:exclude-chunks=${names}`];
const unset = (names: readonly string[]): string[] => names.flatMap((name) => ['+set', name]);

/** Properties that `-strip` keeps: PDF and TIFF get the label, and version 7 gives PNG the time. */
const NOT_STRIPPED = ['label', 'png:tIME'];

/** Removes all metadata; all but the profile, for `copyright`; or what ImageMagick would add. */
export function removeMetadata(job: ConversionJob): string[] {
  const { metadata, format } = job.options;
  // The background of ImageMagick would become one more colour of a palette.
  const added = keepsIndices(job) ? `${GAMMA_CHUNKS},bKGD` : GAMMA_CHUNKS;
  if (metadata === 'all') return [...unset(WORKING_FILE_DATES), ...excludeChunks(added)];
  if (metadata === 'none' || !OUTPUTS[format].copyright) return ['-strip', ...unset(NOT_STRIPPED)];
  // A TIFF has comments and labels as properties. Encoders would find XMP in a PNG of version 6.
  return [
    '+profile',
    '!icc,*',
    ...unset(['comment', ...NOT_STRIPPED, 'XML:com.adobe.xmp']),
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

/** Quality from which a JPEG has full colour resolution, as in ImageMagick's PDF and libvips. */
const FULL_COLOUR_QUALITY = 90;

/**
 * Number of pixels from which a JPEG gets standard Huffman tables. Optimized tables take a fifth
 * more time, and save 2% of the bytes of large images and 5% of small ones. `quality=auto` always
 * has them.
 */
const MANY_PIXELS = 500_000;

/** Returns the pixels of the first frame or page; 0 if the size is not known. */
function resultPixels(job: ConversionJob): number {
  const { width, height } = job.fittings[0]?.result ?? { width: 0, height: 0 };
  return width * height;
}

/**
 * Returns the arguments that compress a PNG, with a level of zlib and a filter. Filter 1 is none;
 * with 5, the encoder selects a filter per row. The levels were chosen by the measurements in
 * bench/README.md.
 *
 * ImageMagick 7 stores a transparent grey as its luma, rounded down: 191 for 192, so that no pixel
 * is transparent. The brightness of a grey is exact.
 */
function compressPng(level: number, filter: 1 | 5): string[] {
  const compression = define('png', { 'compression-level': level, 'compression-filter': filter });
  return ['-intensity', 'Brightness', ...compression];
}

/**
 * Returns the level of zlib for a PNG that the next tool reads once. Level 0 takes a third of the
 * time of level 1, and 4 bytes per pixel. With 16 bits per channel, these would be 8, more than a
 * tool may write for the largest images.
 */
export const temporaryLevel = ({ deep }: ImageInfo): 0 | 1 => (deep ? 1 : 0);

/**
 * Returns whether the result has greys of 8 bits and nothing else. Without the colour type,
 * ImageMagick would number the greys as a palette, comparing each pixel with those before it, and
 * write the same bytes: 1.6 megapixels take 310 instead of 490 ms.
 */
function isManyGreys({ image, options, pages }: ConversionJob): boolean {
  const { type, pixels, profile, flat, shownRows } = image;
  const isGrey =
    pixels?.colourSpace === 'grey' && pixels.bits === 8 && !pixels.alpha && !differsFromSrgb(profile);
  const isWhole = ['png', 'jpg', 'tiff'].includes(type) && pages.length <= 1 && shownRows === undefined;
  const keepsGrey =
    options.watermark === undefined && options.background === undefined && options.fit !== 'contain';
  return isGrey && isWhole && keepsGrey && (addsShades(options) || !flat);
}

/** Returns whether neighbouring pixels are often equal, so that filters make a PNG larger. */
function isFlat({ image: { flat, paletteKind, type }, options }: ConversionJob): boolean {
  return !addsShades(options) && (flat || paletteKind !== undefined || type === 'gif');
}

/** Returns whether the result has the few colours of an indexed PNG, each in fewer than 8 bits. */
function keepsIndices({ image, options }: ConversionJob): boolean {
  const { type, paletteKind, pixels, shownRows } = image;
  const isIndexed = type === 'png' && paletteKind === 'palette' && (pixels?.bits ?? 8) < 8;
  const addsColours = addsShades(options) || options.fit === 'contain' || shownRows !== undefined;
  return options.format === 'png' && options.colors === undefined && isIndexed && !addsColours;
}

/**
 * Returns the arguments that write such colours as a palette. ImageMagick would write greys with 8
 * bits, and alpha with as many. If the palette is asked for, it loses alpha, so a hidden colour
 * that is no grey decides. Small pictures take little time to compress well.
 */
const encodeIndices = (job: ConversionJob): string[] => [
  ...(job.image.pixels?.alpha
    ? ['-background', 'rgb(0,0,1)', '-alpha', 'background']
    : define('png', { 'color-type': 3 })),
  ...(resultPixels(job) < MANY_PIXELS ? compressPng(9, 1) : compressPng(4, 1)),
];
