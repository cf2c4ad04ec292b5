import type { ConvertOptions, Fit, Position, Size } from './types.ts';

/**
 * How an image is put into the box of width and height, with the meaning and the rounding of sharp: ResolveShrink,
 * CalculateCrop and CalculateEmbedPosition in its sources (sharp 0.35, src/common.cc). Pure.
 */

/** The options that say how large a result is. */
export type Box = Pick<ConvertOptions, 'width' | 'height' | 'fit' | 'enlarge' | 'position'>;

export interface Fitting {
  /** The size that the picture is resized to, before anything is cut off or added. */
  readonly resized: Size;
  /** The size of the result: smaller than `resized` where `cover` cuts, larger where `contain` adds. */
  readonly result: Size;
  /** From the picture to `resized`; the larger of both where the sides differ. */
  readonly scale: number;
}

/** In pixels, from the top left corner. */
export interface Offset {
  readonly x: number;
  readonly y: number;
}

interface FitRule {
  /** Which scale a side gets. The arguments are the scale that fits this side and the one that fits the other. */
  readonly scale: (own: number, other: number) => number;
  /** The character that has the same meaning in a geometry of ImageMagick. */
  readonly flag: '' | '^' | '!';
  /** What becomes of a side of the resized picture that differs from the box. */
  readonly side: (resized: number, box: number) => number;
}

const keep = (resized: number): number => resized;

const FIT_RULES: Readonly<Record<Fit, FitRule>> = {
  inside: { scale: Math.min, flag: '', side: keep },
  cover: { scale: Math.max, flag: '^', side: Math.min },
  contain: { scale: Math.min, flag: '', side: Math.max },
  fill: { scale: (own) => own, flag: '!', side: keep },
};

/** The share of the superfluous pixels that is left of the picture, and the share that is above it. */
const ANCHORS: Readonly<Record<Position, Offset>> = {
  center: { x: 0.5, y: 0.5 },
  top: { x: 0.5, y: 0 },
  'right top': { x: 1, y: 0 },
  right: { x: 1, y: 0.5 },
  'right bottom': { x: 1, y: 1 },
  bottom: { x: 0.5, y: 1 },
  'left bottom': { x: 0, y: 1 },
  left: { x: 0, y: 0.5 },
  'left top': { x: 0, y: 0 },
};

/** Returns the sizes that an image of this size gets on its way. Without `enlarge`, no side grows. */
export function fitInto({ width, height }: Size, box: Box): Fitting {
  const { scale, side } = FIT_RULES[box.fit ?? 'inside'];
  const [x, y] = sideScales({ width, height }, box);
  const most = box.enlarge ? Number.POSITIVE_INFINITY : 1;
  const [across, down] = [Math.min(most, scale(x, y)), Math.min(most, scale(y, x))];
  const resized = { width: scaleSide(width, across), height: scaleSide(height, down) };
  const result = {
    width: side(resized.width, box.width ?? resized.width),
    height: side(resized.height, box.height ?? resized.height),
  };
  return { resized, result, scale: Math.max(across, down) };
}

/** The scales that make each side as long as the box. With one side given, both scales are the same. */
function sideScales({ width, height }: Size, box: Box): [x: number, y: number] {
  const x = box.width ? box.width / width : undefined;
  const y = box.height ? box.height / height : undefined;
  return [x ?? y ?? 1, y ?? x ?? 1];
}

/** A half is rounded up, as ImageMagick does it (ParseMetaGeometry) and sharp. At least one pixel is left. */
function scaleSide(side: number, scale: number): number {
  return Math.max(1, Math.floor(side * scale + 0.5));
}

/** The box as a geometry of ImageMagick, for images whose size is not known. */
export function boxGeometry({ width, height, fit = 'inside', enlarge }: Box): string {
  return `${width ?? ''}x${height ?? ''}${FIT_RULES[fit].flag}${enlarge ? '' : '>'}`;
}

/** Where `cover` cuts: the corner of the result in the resized picture. Half a pixel counts as one. */
export function cropOffset({ resized, result }: Fitting, { position = 'center' }: Box): Offset {
  const { x, y } = ANCHORS[position];
  return {
    x: Math.ceil((resized.width - result.width) * x),
    y: Math.ceil((resized.height - result.height) * y),
  };
}

/** Where `contain` places: the corner of the resized picture in the result. Half a pixel counts as none. */
export function padOffset({ resized, result }: Fitting, { position = 'center' }: Box): Offset {
  const { x, y } = ANCHORS[position];
  return {
    x: Math.floor((result.width - resized.width) * x),
    y: Math.floor((result.height - resized.height) * y),
  };
}

/** ImageMagick's name for a position. */
export function gravityName({ position = 'center' }: Box): string {
  const { x, y } = ANCHORS[position];
  const name = `${['North', '', 'South'][y * 2]}${['West', '', 'East'][x * 2]}`;
  return name || 'Center';
}
