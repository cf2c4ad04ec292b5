import { INPUTS, OUTPUTS } from '../../formats.ts';
import { type Area, type FrameTraits, INPUT_FILE, type Job } from './types.ts';

/** How a file is read so that it is what viewers show: which pictures of it, and what its reader gets wrong. Pure. */

/** The coder is always named, so that ImageMagick never guesses a type. */
export function read(job: Job): string[] {
  const { picture, drawn } = job;
  return [drawn ? `PNG:${drawn}` : `${INPUTS[picture.type].coder}:${INPUT_FILE}${selection(job)}`];
}

/** Which of the file's pictures are wanted: all frames, all pages, or the one that stands for the file. */
function selection(job: Job): string {
  const { index, pages = [] } = job.picture;
  if (moves(job)) return '';
  if (OUTPUTS[job.options.format].pages && pages.length > 0) return `[${pages.join(',')}]`;
  return `[${index ?? pages[0] ?? 0}]`;
}

/** The whole animation is wanted, not one picture that stands for it. */
export function moves({ picture, options }: Job): boolean {
  return picture.animation !== undefined && OUTPUTS[options.format].animation;
}

/** A GIF that stays a GIF of the same size needs no new pixels. */
export function passesThrough(job: Job): boolean {
  const { picture, options } = job;
  return (
    moves(job) && picture.type === 'gif' && options.format === 'gif' && !options.width && !options.height
  );
}

/**
 * Stored frames may hold only what changed; and a first frame may be smaller than the canvas,
 * whose rest is transparent only in a picture that has transparency.
 */
export function completeFrames(job: Job): string[] {
  const { picture, machine } = job;
  if (!INPUTS[picture.type].animation || passesThrough(job)) return [];
  const { frames, firstFrame } = picture.animation ?? {};
  const lay =
    moves(job) && machine.magick === 6 && frames ? layFrames(frames) : ['-alpha', 'set', '-coalesce'];
  return [...(firstFrame ? cutFirstFrame(firstFrame) : []), ...lay];
}

/** The first frame of a WebP is read with an opaque canvas around it: it is cut out again. */
function cutFirstFrame({ x, y, width, height }: Area): string[] {
  const cut = ['-crop', `${width}x${height}+${x}+${y}`];
  return ['(', '-clone', '0', ...cut, '-alpha', 'set', ')', '-swap', '0,-1', '+delete'];
}

/**
 * Version 6 reads the frames of a WebP without how they meet each other: it is told. A frame that
 * replaces what is under it comes twice, first to clear its area; the first of the two is dropped.
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

/** Known misreadings: PNG's gamma chunk on 6; palettes and few greys in TIFF, and a byte of BMP, on both. */
export function repairColours({ picture, drawn }: Job): string[] {
  if (picture.type === 'png' || drawn) return ['-set', 'colorspace', 'sRGB'];
  if (picture.type === 'tiff') return ['-evaluate', 'add', '0', ...(picture.inverted ? ['-negate'] : [])];
  return picture.opaque ? ['-alpha', 'off'] : [];
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

export function repairMirroring({ picture }: Job): readonly string[] {
  return UNDO[picture.mirroredFor ?? 1] ?? [];
}

/** EXIF's orientations, 1 to 8, as ImageMagick calls them. */
const ORIENTATIONS = [
  ...[undefined, 'TopLeft', 'TopRight', 'BottomRight', 'BottomLeft'],
  ...['LeftTop', 'RightTop', 'RightBottom', 'LeftBottom'],
];

/**
 * `+repage` because a rotated picture would keep the canvas it had before. Version 6 has to
 * be told the orientation of a PNG.
 */
export function orient(job: Job): string[] {
  if (moves(job)) return [];
  const { picture, machine } = job;
  const told = machine.magick === 6 ? ORIENTATIONS[picture.orientation ?? 0] : undefined;
  return [...(told ? ['-orient', told] : []), '-auto-orient', '+repage'];
}
