import { INPUTS, OUTPUTS } from '../../formats.ts';
import { type Area, type FrameTraits, INPUT_FILE, type Job, type Page } from './types.ts';
import { ABILITIES } from './versions.ts';

/** How a file is read so that it is what viewers show: which pictures of it, and what its reader gets wrong. Pure. */

/** The coder is always named, so that ImageMagick never guesses a type. */
export function read(job: Job): string[] {
  const { picture, drawn } = job;
  if (drawn) return [`PNG:${drawn}`];
  const pages = wantedPages(job);
  if (pages.length > 0) return readPages(pages);
  return [`${INPUTS[picture.type].coder}:${INPUT_FILE}${allFrames(job) ? '' : '[0]'}`];
}

/** All frames of an animation are wanted: by default where they can move, as pages only when asked for. */
export function allFrames({ picture, options: { format, frames } }: Job): boolean {
  if (!picture.animation || frames === 'first') return false;
  return OUTPUTS[format].animation || (OUTPUTS[format].pages && frames === 'all');
}

/** The pages of a TIFF that the output is to have. */
export function wantedPages({ picture: { pages = [] }, options }: Job): readonly Page[] {
  return OUTPUTS[options.format].pages && options.pages !== 'first' ? pages : pages.slice(0, 1);
}

/** Neighbours with the same troubles are read in one go, and mended before they meet the others. */
function readPages(pages: readonly Page[]): string[] {
  const groups: { numbers: number[]; repairs: readonly string[] }[] = [];
  for (const page of pages) {
    const repairs = repairPage(page);
    const last = groups.at(-1);
    if (last && last.repairs.join(' ') === repairs.join(' ')) last.numbers.push(page.at);
    else groups.push({ numbers: [page.at], repairs });
  }
  const written = groups.map(({ numbers, repairs }) => [
    `${INPUTS.tiff.coder}:${INPUT_FILE}[${numbers}]`,
    ...repairs,
  ]);
  return written.length === 1 ? (written[0] as string[]) : written.flatMap((group) => ['(', ...group, ')']);
}

/** Palettes need a touch to become true; few greys may come inverted, JPEG half turned. */
function repairPage({ inverted, mirroredFor = 1 }: Page): string[] {
  return ['-evaluate', 'add', '0', ...(inverted ? ['-negate'] : []), ...(UNDO[mirroredFor] ?? [])];
}

/** What undoes the half of an orientation that a reader has applied: as TIFFReadRGBAImageOriented of libtiff does. */
const UNDO: Readonly<Record<number, readonly string[]>> = {
  2: ['-flop'],
  3: ['-rotate', '180'],
  4: ['-flip'],
  6: ['-flop'],
  7: ['-rotate', '180'],
  8: ['-flip'],
};

/** A GIF that stays a GIF of the same size needs no new pixels. */
export function passesThrough(job: Job): boolean {
  const { picture, options } = job;
  const asItIs = !options.width && !options.height && options.format === 'gif';
  return asItIs && picture.type === 'gif' && allFrames(job);
}

/**
 * Stored frames may hold only what changed; and a first frame may be smaller than the canvas,
 * whose rest is transparent only in a picture that has transparency.
 */
export function completeFrames(job: Job): string[] {
  const { picture, machine } = job;
  if (!INPUTS[picture.type].animation || passesThrough(job)) return [];
  const { frames, firstFrame } = picture.animation ?? {};
  const toldHow = allFrames(job) && !ABILITIES[machine.magick].webpBlending;
  const lay = toldHow && frames ? layFrames(frames) : ['-alpha', 'set', '-coalesce'];
  return [...(firstFrame ? cutFirstFrame(firstFrame) : []), ...lay, ...uncover(job)];
}

/**
 * A frame that replaces others may be transparent where they were not, which a GIF shows only if they are gone
 * by then. Going back to what was before, which is nothing, is the one way that all viewers agree on.
 */
function uncover({ picture: { animation }, options }: Job): string[] {
  const uncovers = animation?.transparent && animation.frames?.some(({ replaces }) => replaces);
  return uncovers && options.format === 'gif' ? ['-set', 'dispose', 'Previous'] : [];
}

/** The first frame of a WebP is read with an opaque canvas around it: it is cut out again. */
function cutFirstFrame({ x, y, width, height }: Area): string[] {
  const cut = ['-crop', `${width}x${height}+${x}+${y}`];
  return ['(', '-clone', '0', ...cut, '-alpha', 'set', ')', '-swap', '0,-1', '+delete'];
}

/**
 * Tells how the frames of a WebP meet each other. A frame that replaces what is under it
 * comes twice, first to clear its area; the first of the two is dropped.
 */
function layFrames(frames: readonly FrameTraits[]): string[] {
  const dropped: number[] = [];
  const copies = frames.flatMap(({ clears, replaces }, at) => {
    const copy = (dispose: string) => `( -clone ${at} -alpha set -set dispose ${dispose} )`.split(' ');
    const helper = replaces && at > 0;
    if (helper) dropped.push(at + dropped.length);
    return [...(helper ? copy('Background') : []), ...copy(clears ? 'Background' : 'None')];
  });
  const drop = dropped.length > 0 ? ['-delete', dropped.join(',')] : [];
  return [...copies, '-delete', `0-${frames.length - 1}`, '-coalesce', ...drop];
}

/** PNG's gamma chunk would shift the colours; the fourth byte of a BMP may be no transparency. */
export function repairColours({ picture, drawn }: Job): string[] {
  if (picture.type === 'png' || drawn) return ['-set', 'colorspace', 'sRGB'];
  return picture.opaque ? ['-alpha', 'off'] : [];
}

/** EXIF's orientations, 1 to 8, as ImageMagick calls them. */
const UPRIGHT = 'TopLeft';
const ORIENTATIONS = [
  ...[UPRIGHT, UPRIGHT, 'TopRight', 'BottomRight', 'BottomLeft'],
  ...['LeftTop', 'RightTop', 'RightBottom', 'LeftBottom'],
];

/**
 * EXIF is read here and told, since 6 passes it over in a PNG, and 7 believes XMP, which no viewer does.
 * What was told would be written, too, where metadata is kept: so it is told that all is upright then.
 * `+repage` because a rotated picture would keep the canvas it had before.
 */
export function orient(job: Job): string[] {
  if (allFrames(job)) return [];
  const { picture, drawn } = job;
  if (!INPUTS[picture.type].turnedByExif || drawn) return ['-auto-orient', '+repage'];
  const stored = ORIENTATIONS[picture.orientation ?? 1] as string;
  const turn = stored === UPRIGHT ? [] : ['-orient', stored, '-auto-orient'];
  return [...turn, '-orient', UPRIGHT, '+repage'];
}
