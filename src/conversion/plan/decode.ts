import { INPUTS } from '../../formats.ts';
import { pageToSrgb } from './colour.ts';
import { MAGICK_FEATURES } from './magick-features.ts';
import { isPassthrough, keepsAllFrames, selectedPages } from './selection.ts';
import {
  type Area,
  type FrameDisposal,
  INPUT_FILE,
  type Orientation,
  type Page,
  type PlanContext,
} from './types.ts';

/** How a file is read so that it is what viewers show: which pictures of it, and what its reader gets wrong. Pure. */

/** The coder is always named, so that ImageMagick never guesses a type. */
export function decode(job: PlanContext): string[] {
  const { image, rasterized } = job;
  if (rasterized) return decodeRasterized(job, rasterized);
  const pages = selectedPages(job);
  if (pages.length > 0) return decodePages(pages, (page) => [...repairPage(page), ...pageToSrgb(job, page)]);
  return [`${INPUTS[image.type].coder}:${INPUT_FILE}${keepsAllFrames(job) ? '' : '[0]'}`];
}

/** ImageMagick reads no delays from a PNG: each frame gets its own before it is read. */
function decodeRasterized(job: PlanContext, rasterized: readonly string[]): string[] {
  if (!keepsAllFrames(job)) return [`PNG:${rasterized[0]}`];
  const { delaysMs = [], loopCount = 0 } = job.image.animation ?? {};
  const frames = rasterized.flatMap((file, at) => ['-delay', `${delaysMs[at] ?? 0}x1000`, `PNG:${file}`]);
  return [...frames, '-loop', String(loopCount)];
}

/** Neighbours with the same troubles are read in one go, and mended before they meet the others. */
function decodePages(pages: readonly Page[], repairsOf: (page: Page) => string[]): string[] {
  const groups: { numbers: number[]; repairs: readonly string[] }[] = [];
  for (const page of pages) {
    const repairs = repairsOf(page);
    const last = groups.at(-1);
    if (last && last.repairs.join(' ') === repairs.join(' ')) last.numbers.push(page.index);
    else groups.push({ numbers: [page.index], repairs });
  }
  const written = groups.map(({ numbers, repairs }) => [
    `${INPUTS.tiff.coder}:${INPUT_FILE}[${numbers}]`,
    ...repairs,
  ]);
  return written.length === 1 ? (written[0] as string[]) : written.flatMap((group) => ['(', ...group, ')']);
}

/** Divides premultiplied colours by alpha. The division turns alpha off, so it is activated again. */
const DIVIDE_BY_ALPHA = ['-alpha', 'disassociate', '-alpha', 'activate'];

/** Palettes need a touch to become true; few greys may come inverted, JPEG half turned. XMP turns nothing. */
function repairPage(page: Page): string[] {
  const { inverted, unusedSamples, premultiplied, mirroredFor = UPRIGHT, orientation } = page;
  const touch = [
    '-evaluate',
    'add',
    '0',
    ...(inverted ? ['-channel', 'RGB', '-negate', '+channel'] : []), // not alpha
    ...(unusedSamples ? ['-alpha', 'off'] : []),
    ...(premultiplied ? DIVIDE_BY_ALPHA : []),
    ...(UNDO_ORIENTATION[mirroredFor] ?? []),
  ];
  return [...touch, ...autoOrient(orientation)];
}

/** What undoes the half of an orientation that a reader has applied: as TIFFReadRGBAImageOriented of libtiff does. */
const UNDO_ORIENTATION: Readonly<Partial<Record<Orientation, readonly string[]>>> = {
  2: ['-flop'],
  3: ['-rotate', '180'],
  4: ['-flip'],
  6: ['-flop'],
  7: ['-rotate', '180'],
  8: ['-flip'],
};

/**
 * Stored frames may hold only what changed; and a first frame may be smaller than the canvas,
 * whose rest is transparent only in a picture that has transparency.
 */
export function coalesceFrames(job: PlanContext): string[] {
  const { image, tools, rasterized } = job;
  if (!INPUTS[image.type].animation || isPassthrough(job)) return [];
  if (rasterized && !keepsAllFrames(job)) return []; // a frame that was decoded is whole
  const { frames } = image.animation ?? {};
  const toldHow =
    keepsAllFrames(job) && (rasterized !== undefined || !MAGICK_FEATURES[tools.magick].webpBlending);
  const lay = toldHow && frames ? composeFrames(frames) : ['-alpha', 'set', '-coalesce'];
  return [...cropFirstFrame(image.firstFrame), ...lay, ...disposePrevious(job), ...setDelays(job)];
}

/**
 * A frame that replaces or clears others may leave nothing where they were, which a GIF shows only if they are gone
 * by then. Going back to what was before, which is nothing, is the one way that all viewers agree on.
 */
function disposePrevious({ image: { animation }, options }: PlanContext): string[] {
  const uncovers =
    animation?.transparent &&
    animation.frames?.some(({ noBlend, disposeToBackground }) => noBlend || disposeToBackground);
  return uncovers && options.format === 'gif' ? ['-set', 'dispose', 'Previous'] : [];
}

/** The first frame of a WebP is read with an opaque canvas around it: it is cut out again. */
function cropFirstFrame(area: Area | undefined): string[] {
  if (!area) return [];
  const { x, y, width, height } = area;
  const cut = ['-crop', `${width}x${height}+${x}+${y}`];
  return ['(', '-clone', '0', ...cut, '-alpha', 'set', ')', '-swap', '0,-1', '+delete'];
}

/**
 * ImageMagick counts hundredths of a second when it reads a WebP. Where that is not exact each frame is told how
 * long it stays: in milliseconds for a WebP; for a GIF so that the whole takes as long as it did.
 */
function setDelays(job: PlanContext): string[] {
  const { image, options } = job;
  const { delaysMs = [], frames } = image.animation ?? {};
  const exact = options.format !== 'gif' && delaysMs.every((delay) => delay % 10 === 0);
  if (!keepsAllFrames(job) || !frames || exact) return [];
  const delays =
    options.format === 'gif' ? toCentiseconds(delaysMs) : delaysMs.map((delay) => `${delay}x1000`);
  const told = delays.flatMap((delay, at) => `( -clone ${at} -set delay ${delay} )`.split(' '));
  return [...told, '-delete', `0-${delays.length - 1}`];
}

/** What a GIF can say; and less than two hundredths is taken for ten by browsers. */
const MAX_DELAY_CS = 65_535;
const MIN_DELAY_CS = 2;

function toCentiseconds(delaysMs: readonly number[]): string[] {
  let shown = 0;
  let passed = 0;
  return delaysMs.map((delay) => {
    passed += delay;
    const length = Math.max(MIN_DELAY_CS, Math.min(MAX_DELAY_CS, Math.round(passed / 10) - shown));
    shown += length;
    return `${length}x100`;
  });
}

/**
 * Tells how the frames of a WebP meet each other. A frame that replaces what is under it
 * comes twice, first to clear its area; the first of the two is dropped.
 */
function composeFrames(frames: readonly FrameDisposal[]): string[] {
  const dropped: number[] = [];
  const copies = frames.flatMap(({ disposeToBackground, noBlend }, at) => {
    const copy = (dispose: string) => `( -clone ${at} -alpha set -set dispose ${dispose} )`.split(' ');
    const helper = noBlend && at > 0;
    if (helper) dropped.push(at + dropped.length);
    return [...(helper ? copy('Background') : []), ...copy(disposeToBackground ? 'Background' : 'None')];
  });
  const drop = dropped.length > 0 ? ['-delete', dropped.join(',')] : [];
  return [...copies, '-delete', `0-${frames.length - 1}`, '-coalesce', ...drop];
}

/** PNG's gamma chunk would shift the colours; the fourth byte of a BMP may be no transparency. */
export function repairColours({ image, rasterized }: PlanContext): string[] {
  const gamma = image.type === 'png' || rasterized ? ['-set', 'colorspace', 'sRGB'] : [];
  if (image.premultiplied) return [...gamma, ...DIVIDE_BY_ALPHA];
  if (gamma.length > 0) return gamma;
  return image.opaque ? ['-alpha', 'off'] : [];
}

/** EXIF's orientations, 1 to 8, as ImageMagick calls them. */
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
 * The tag is read here and told, since 6 passes over EXIF in a PNG, and 7 believes XMP, which no viewer does.
 * What was told would be written, too, where metadata is kept: so it is told that all is upright then.
 */
function autoOrient(orientation: Orientation = UPRIGHT): string[] {
  const rotate = orientation === UPRIGHT ? [] : ['-orient', ORIENTATIONS[orientation], '-auto-orient'];
  return [...rotate, '-orient', ORIENTATIONS[UPRIGHT]];
}

/** `+repage` because a rotated picture would keep the canvas it had before. */
export function orient(job: PlanContext): string[] {
  const { image, rasterized } = job;
  if (keepsAllFrames(job)) return [];
  if (selectedPages(job).length > 0) return ['+repage']; // turned while they were read
  if (rasterized) return [...autoOrient(), '+repage']; // the decoder has turned it
  if (!INPUTS[image.type].exifOrientation) return ['-auto-orient', '+repage'];
  return [...autoOrient(image.orientation), '+repage'];
}
