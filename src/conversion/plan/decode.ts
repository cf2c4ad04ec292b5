/** @module Arguments that decode: frames or pages, corrections, rotation and `crop`. Pure. */
import {
  type Area,
  combineOrientations,
  type FrameDisposal,
  type Orientation,
  type Page,
  type Size,
} from '../../images/image-info.ts';
import { INPUTS, isHeif } from '../../tables/formats.ts';
import { formatPages, parsePages } from '../../tables/options.ts';
import { TOOLS } from '../../tables/tools.ts';
import { pageToSrgb } from './colour.ts';
import { crop as cropTo, formatGeometry } from './position.ts';
import { countPages, numberedPages, type Stored, shownArea, turnedSize } from './size.ts';
import { SCALED_FILE, words } from './step.ts';
import { gifDelays, leftOutFrames } from './timing.ts';
import { type ConversionJob, INPUT_FILE, MAGICK_FEATURES, type Sentence } from './types.ts';

/** Prints how many frames were read: version 7 stops silently at a damaged one of a WebP. */
const FRAMES_READ = 'frames: %n\\n';

/** Reads the input. Always names the coder, so that ImageMagick never detects the type itself. */
export function decode(job: ConversionJob): string[] {
  const { image, rasterized } = job;
  if (rasterized) return decodeRasterized(job, rasterized);
  const pages = job.pages;
  const toSrgb = pageToSrgb(job);
  if (pages.length > 0)
    return decodePages(pages, (page, at) => [
      ...repairPage(page, job.turn),
      ...toSrgb(page),
      ...cropPage(page, job, at),
    ]);
  if (job.programs[0] === 'dwebp') return [`PPM:${SCALED_FILE}`];
  const file = `${INPUTS[image.type].coder}:${INPUT_FILE}`;
  if (image.gridArea) return decodeArea(file, image.gridArea);
  if (!job.keepsAllFrames) return [`${file}[0]`];
  return image.type === 'webp' ? [file, '-print', FRAMES_READ] : [file];
}

/** Formats the numbers of pages, such as `1-3,5`. */
const listPages = (pages: readonly Page[]): string =>
  formatPages(parsePages(pages.map(({ index }) => index + 1).join()) ?? []);

export const explainDecoding: Sentence = (job) => {
  const { image, options, decoder, keepsAllFrames: all, pages } = job;
  const frames = image.animation?.delaysMs.length ?? 0;
  const allPages = countPages(image);
  const said = [
    decoder && `decoded by ${TOOLS[decoder].programs[0]}`,
    frames > 0 && (all ? explainFrames(job, frames) : `only the first of ${frames} frames`),
    allPages > 1 &&
      (pages.length === allPages
        ? `all ${allPages} pages`
        : numberedPages(options)
          ? `${pages.length === 1 ? 'page' : 'pages'} ${listPages(pages)} of ${allPages}`
          : `only the first of ${allPages} pages`),
    image.gainMap && 'the gain map for HDR screens is not used',
  ];
  return said.filter(Boolean).join('; ') || undefined;
};

function explainFrames(job: ConversionJob, frames: number): string {
  const leftOut = leftOutFrames(job).length;
  if (leftOut === 0) return `all ${frames} frames`;
  return `${frames - leftOut} of ${frames} frames, because a GIF shows each for at least 20 ms`;
}

/** Reads an area of a JPEG 2000. Otherwise, ImageMagick cuts it off from the grid's origin. */
function decodeArea(file: string, area: Area): string[] {
  return ['-extract', formatGeometry(area, area), file, '+extract'];
}

/** Reads the pages, or the frames with their delays, which PNG files do not have. */
function decodeRasterized(job: ConversionJob, rasterized: readonly string[]): string[] {
  if (job.image.type === 'pdf')
    return inTurn(
      job.pages.map((page, at) => [`PNG:${rasterized[at]}`, ...turnFrames(job), ...cropPage(page, job, at)]),
    );
  if (!job.keepsAllFrames) return [`PNG:${rasterized[0]}`];
  const { delaysMs = [], loopCount = 0 } = job.image.animation ?? {};
  const frames = rasterized.flatMap((file, at) => ['-delay', `${delaysMs[at] ?? 0}x1000`, `PNG:${file}`]);
  return [...frames, '-loop', String(loopCount)];
}

/** Reads adjacent pages with the same corrections together, and corrects them before the next. */
function decodePages(pages: readonly Page[], repairsFor: (page: Page, at: number) => string[]): string[] {
  const groups: { numbers: number[]; repairs: readonly string[] }[] = [];
  for (const [at, page] of pages.entries()) {
    const repairs = repairsFor(page, at);
    const last = groups.at(-1);
    if (last && last.repairs.join(' ') === repairs.join(' ')) last.numbers.push(page.index);
    else groups.push({ numbers: [page.index], repairs });
  }
  const reads = groups.map(({ numbers, repairs }) => [
    `${INPUTS.tiff.coder}:${INPUT_FILE}[${numbers}]`,
    ...repairs,
  ]);
  return inTurn(reads);
}

/** Reads images, each with operations that apply only to it. */
function inTurn(reads: readonly string[][]): string[] {
  const isAlone = (read: readonly string[]): boolean => reads.length === 1 || read.length === 1;
  return reads.flatMap((read) => (isAlone(read) ? read : ['(', ...read, ')']));
}

/** Divides premultiplied colours by alpha. This turns alpha off, so it is activated again. */
const DIVIDE_BY_ALPHA = ['-alpha', 'disassociate', '-alpha', 'activate'];

/**
 * Converts YCbCr of ITU-R BT.601 with a matrix of red, green, blue, black, alpha and an offset. The
 * profile of the file, which `-colorspace` would remove, describes the RGB colours. Other
 * operations would take the values for RGB.
 */
const YCC_TO_RGB = [
  ...words('-set colorspace sRGB -color-matrix'),
  [
    [1, 0, 1.402, 0, 0, -0.701],
    [1, -0.344136, -0.714136, 0, 0, 0.529136],
    [1, 1.772, 0, 0, 0, -0.886],
    [0, 0, 0, 1, 0, 0],
    [0, 0, 0, 0, 1, 0],
    [0, 0, 0, 0, 0, 1],
  ].join(),
];

/**
 * Works around errors of ImageMagick's TIFF decoder: converts YCbCr, expands palettes to true
 * colour, inverts 2- and 4-bit greys, and undoes the partial orientation of JPEG-compressed pages.
 * Ignores an orientation in XMP. Rotates the page as in `orient`.
 */
function repairPage(page: Page, turn: Orientation): string[] {
  const { trueColour, ycc, paletteKind, inverted, unusedSamples, premultiplied } = page;
  const { mirroredFor = UPRIGHT, orientation = UPRIGHT } = page;
  const repairs = [
    ...(ycc ? YCC_TO_RGB : []),
    // Expands palettes, also used for greys. Black and white are right: 8 megapixels take 100 ms.
    ...(trueColour || paletteKind === 'bilevel' ? [] : ['-evaluate', 'add', '0']),
    ...(inverted ? ['-channel', 'RGB', '-negate', '+channel'] : []), // not alpha
    ...(unusedSamples ? ['-alpha', 'off'] : []),
    ...(premultiplied ? DIVIDE_BY_ALPHA : []),
    ...(UNDO_ORIENTATION[mirroredFor] ?? []),
  ];
  return [...repairs, ...autoOrient(combineOrientations(orientation, turn))];
}

/** Arguments that undo what libtiff has applied of an orientation (TIFFReadRGBAImageOriented). */
const UNDO_ORIENTATION: Readonly<Partial<Record<Orientation, readonly string[]>>> = {
  2: ['-flop'],
  3: ['-rotate', '180'],
  4: ['-flip'],
  6: ['-flop'],
  7: ['-rotate', '180'],
  8: ['-flip'],
};

/** Expands each frame to the canvas: it can hold only what changes, and the first be smaller. */
export function coalesceFrames(job: ConversionJob): string[] {
  const { image, tools, rasterized } = job;
  if (!INPUTS[image.type].animation || job.isPassthrough || isOpaqueStill(job)) return [];
  if (rasterized && !job.keepsAllFrames) return []; // a decoded frame covers the canvas already
  const { frames } = image.animation ?? {};
  const needsDisposal =
    job.keepsAllFrames && (rasterized !== undefined || !MAGICK_FEATURES.webpBlending[tools.magick]);
  const alpha = isOpaqueAnimation(job) ? [] : ['-alpha', 'set'];
  const compose = needsDisposal && frames ? composeFrames(frames) : [...alpha, '-coalesce'];
  return [...cropFirstFrame(image.firstFrame), ...compose, ...disposePrevious(job), ...setDelays(job)];
}

/** Returns whether all frames of an animation are known to be opaque, and stay so in the result. */
export const isOpaqueAnimation = ({ image, keepsAllFrames, options }: ConversionJob): boolean =>
  keepsAllFrames && options.format === 'webp' && image.animation?.opaque === true;

/** Returns whether a still image or the only frame is all opaque. The decoder may add alpha. */
export const isOpaqueStill = ({ image, keepsAllFrames }: ConversionJob): boolean =>
  image.opaque === true || (!keepsAllFrames && image.animation?.opaque === true);

/**
 * Sets the GIF disposal method `Previous` if a frame can uncover transparent pixels, because it
 * replaces or clears earlier frames. It is the only method that all viewers handle alike here.
 */
function disposePrevious({ image: { animation }, options }: ConversionJob): string[] {
  const uncovers =
    animation?.transparent &&
    animation.frames?.some(({ noBlend, disposeToBackground }) => noBlend || disposeToBackground);
  return uncovers && options.format === 'gif' ? ['-set', 'dispose', 'Previous'] : [];
}

/** Crops the first frame of a WebP to its area: ImageMagick reads it with an opaque canvas. */
function cropFirstFrame(area: Area | undefined): string[] {
  if (!area) return [];
  const crop = ['-crop', formatGeometry(area, area)];
  return ['(', '-clone', '0', ...crop, '-alpha', 'set', ')', '-swap', '0,-1', '+delete'];
}

/**
 * Sets the delay of each frame if a WebP has delays that are not whole hundredths of a second, to
 * which ImageMagick rounds them. A WebP gets milliseconds. A GIF gets hundredths that add up to the
 * same total duration; the encoder leaves out frames without a delay.
 */
function setDelays(job: ConversionJob): string[] {
  const { image, options } = job;
  const { delaysMs = [], frames } = image.animation ?? {};
  const exact = options.format !== 'gif' && delaysMs.every((delay) => delay % 10 === 0);
  if (!job.keepsAllFrames || !frames || exact) return [];
  const delays = gifDelays(job)?.map((delay) => `${delay}x100`) ?? delaysMs.map((delay) => `${delay}x1000`);
  const copies = delays.flatMap((delay, at) => words(`( -clone ${at} -set delay ${delay} )`));
  return [...copies, '-delete', `0-${delays.length - 1}`];
}

/**
 * Composes the frames of a WebP with their disposal methods. A frame that replaces the pixels under
 * it is duplicated: the first copy clears the area and is deleted afterwards.
 */
function composeFrames(frames: readonly FrameDisposal[]): string[] {
  const dropped: number[] = [];
  const copies = frames.flatMap(({ disposeToBackground, noBlend }, at) => {
    const copy = (dispose: string) => words(`( -clone ${at} -alpha set -set dispose ${dispose} )`);
    const helper = noBlend && at > 0;
    if (helper) dropped.push(at + dropped.length);
    return [...(helper ? copy('Background') : []), ...copy(disposeToBackground ? 'Background' : 'None')];
  });
  const drop = dropped.length > 0 ? ['-delete', dropped.join(',')] : [];
  return [...copies, '-delete', `0-${frames.length - 1}`, '-coalesce', ...drop];
}

/**
 * Ignores the gamma chunk of a PNG, which would shift the colours, and a fourth byte of a BMP that
 * is not alpha. Expands greys of limited range. Converts YCbCr, which later stages would take for
 * RGB.
 */
export function repairColours(job: ConversionJob): string[] {
  const { image, rasterized } = job;
  const gamma = image.type === 'png' || rasterized ? ['-set', 'colorspace', 'sRGB'] : [];
  const ycc = image.ycc ? ['-colorspace', 'sRGB'] : [];
  const range = (image.greyRange ?? []).map((sample) => `${(sample * 100).toFixed(4)}%`).join(',');
  const repairs = [...gamma, ...ycc, ...(range ? ['-channel', 'RGB', '-level', range, '+channel'] : [])];
  if (image.transparentColour) return ['-fuzz', '0', '-transparent', image.transparentColour];
  if (image.premultiplied) return [...repairs, ...DIVIDE_BY_ALPHA];
  if (repairs.length > 0) return repairs;
  return isOpaqueStill(job) ? ['-alpha', 'off'] : [];
}

/** Makes the missing rows of a truncated PNG, which are zeros, transparent, as browsers do. */
export function hideMissingPart({ image }: ConversionJob): string[] {
  const { width = 0, height = 0, shownRows } = image;
  if (!shownRows || shownRows >= height) return [];
  return [
    ...cropTo({ width, height: shownRows }),
    ...words(
      `-alpha set -background none -compose Copy -extent ${formatGeometry({ width, height })} -compose Over`,
    ),
  ];
}

export const explainMissingPart: Sentence = ({ image }) =>
  image.truncated ? 'the file is cut off: what is missing stays empty' : undefined;

/** ImageMagick's names of the EXIF orientations. */
const ORIENTATIONS: Readonly<Record<Orientation, string>> = {
  1: 'TopLeft',
  2: 'TopRight',
  3: 'BottomRight',
  4: 'BottomLeft',
  5: 'LeftTop',
  6: 'RightTop',
  7: 'RightBottom',
  8: 'LeftBottom',
};
const UPRIGHT = 1;

/**
 * Rotates the image upright. Sets the orientation explicitly, because ImageMagick 6 ignores EXIF in
 * a PNG, and 7 uses XMP, which no viewer does. Resets it afterwards, because it would be written to
 * the output with other metadata.
 */
function autoOrient(orientation: Orientation = UPRIGHT): string[] {
  const rotate = orientation === UPRIGHT ? [] : ['-orient', ORIENTATIONS[orientation], '-auto-orient'];
  return [...rotate, '-orient', ORIENTATIONS[UPRIGHT]];
}

/** Crops the image to its clean aperture. */
export function cropToAperture({ image: { aperture } }: ConversionJob): string[] {
  return aperture ? cropTo(aperture, aperture) : [];
}

/**
 * Rotates the image upright and as `rotate` and `flip` request, and resets its canvas, which would
 * keep its old size. Frames are upright.
 */
export function orient(job: ConversionJob): string[] {
  const { image, orientation, rasterized } = job;
  if (job.keepsAllFrames) return turnFrames(job);
  if (job.pages.length > 0) return ['+repage']; // they were rotated when they were read
  // The decoder states the orientation that the pixels still have.
  const isStated = !image.plannedTransforms && !rasterized && !INPUTS[image.type].exifOrientation;
  if (isStated) return ['-auto-orient', '+repage', ...turnFrames(job)];
  return [...autoOrient(orientation), '+repage'];
}

/** Does to upright images what `rotate` and `flip` request. */
function turnFrames({ turn }: ConversionJob): string[] {
  return turn === UPRIGHT ? [] : [...autoOrient(turn), '+repage'];
}

export const explainOrientation: Sentence = ({ image, options, keepsAllFrames }) => {
  const { type, orientation = UPRIGHT } = image;
  const { rotate, flip } = options;
  const said = [
    // HEIF has its own properties for rotation and reflection, and EXIF has no effect.
    orientation !== UPRIGHT &&
      !keepsAllFrames &&
      `turned upright (${isHeif(type) ? 'irot and imir, like ' : ''}EXIF ${orientation})`,
    rotate && `rotated by ${rotate}°`,
    flip && `flipped: ${flip}`,
  ];
  return said.filter(Boolean).join('; ') || undefined;
};

/** Cuts an image that ImageMagick has rotated. librsvg renders only the shown part of an SVG. */
export function crop(job: ConversionJob): string[] {
  if (job.image.type === 'svg' || job.pages.length > 0) return []; // pages are cut when they are read
  return cutShown(job.turnedSizes, job);
}

/** Cuts a page that ImageMagick has rotated, whose canvas would keep its old size. */
function cropPage(page: Stored, job: ConversionJob, at: number): string[] {
  const cut = cutShown(turnedSize(page, job.turn), job, at);
  return cut.length > 0 ? ['+repage', ...cut] : [];
}

function cutShown([size]: readonly Size[], job: ConversionJob, at = 0): string[] {
  if (!size || (job.options.crop ?? job.measured.areas?.[at]) === undefined) return [];
  const area = shownArea(size, job, at);
  return cropTo(area, area);
}

export const explainCrop: Sentence = (job) => {
  const [size] = job.turnedSizes;
  if (!size || job.options.crop === undefined) return undefined;
  const { x, y, width, height } = shownArea(size, job);
  return `cut to ${width} × ${height} from ${x}, ${y}`;
};

export const explainTrim: Sentence = ({ options: { trim } }) =>
  trim === undefined
    ? undefined
    : `a border of the colour of the top left corner is cut off, with a tolerance of ${trim}%: the commands keep it`;
