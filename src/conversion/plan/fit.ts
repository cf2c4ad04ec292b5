/**
 * @module Fits an image into the box of width and height, with the rounding of sharp: ResolveShrink, CalculateCrop and
 * CalculateEmbedPosition (sharp 0.35, src/common.cc). Pure.
 */
import type { Size } from './image-info.ts';
import type { ConvertOptions, Fit, Position } from './types.ts';

/** Options that determine the size of a result. */
export type Box = Pick<ConvertOptions, 'width' | 'height' | 'fit' | 'enlarge' | 'position'>;

/** Sizes of an image during a conversion. */
export interface Fitting {
  /** Size to resize the image to, before it is cropped or padded. */
  readonly resized: Size;
  /** Size of the result: smaller than `resized` if `cover` crops, larger if `contain` pads. */
  readonly result: Size;
  /** Scale from the image to `resized`. If the sides differ, the larger scale. */
  readonly scale: number;
}

/** Distance in pixels from the top left corner. */
export interface Offset {
  readonly x: number;
  readonly y: number;
}

interface FitRule {
  /** Returns the scale of a side, from the scale that fits this side and the one that fits the other. */
  readonly scale: (own: number, other: number) => number;
  /** Flag of an ImageMagick geometry with the same meaning. */
  readonly flag: '' | '^' | '!';
  /** Returns the side of the result, from the side of the resized image and that of the box. */
  readonly side: (resized: number, box: number) => number;
}

const keep = (resized: number): number => resized;

const FIT_RULES: Readonly<Record<Fit, FitRule>> = {
  inside: { scale: Math.min, flag: '', side: keep },
  cover: { scale: Math.max, flag: '^', side: Math.min },
  contain: { scale: Math.min, flag: '', side: Math.max },
  fill: { scale: (own) => own, flag: '!', side: keep },
};

/** Share of the cropped or added pixels to the left of the image, and share above it. */
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

/** Fits an image of this size into a box. Without `enlarge`, no side grows. */
export function fitInto({ width, height }: Size, box: Box): Fitting {
  const { scale, side } = FIT_RULES[box.fit ?? 'inside'];
  const [x, y] = sideScales({ width, height }, box);
  const maxScale = box.enlarge ? Number.POSITIVE_INFINITY : 1;
  const [across, down] = [Math.min(maxScale, scale(x, y)), Math.min(maxScale, scale(y, x))];
  const resized = { width: scaleSide(width, across), height: scaleSide(height, down) };
  const result = {
    width: side(resized.width, box.width ?? resized.width),
    height: side(resized.height, box.height ?? resized.height),
  };
  return { resized, result, scale: Math.max(across, down) };
}

/** Returns the scales that make each side as long as the box. If only one side is given, both scales are equal. */
function sideScales({ width, height }: Size, box: Box): [x: number, y: number] {
  const x = box.width ? box.width / width : undefined;
  const y = box.height ? box.height / height : undefined;
  return [x ?? y ?? 1, y ?? x ?? 1];
}

/** Scales a side. Rounds a half up, like sharp and ImageMagick (ParseMetaGeometry), and leaves at least one pixel. */
function scaleSide(side: number, scale: number): number {
  return Math.max(1, Math.floor(side * scale + 0.5));
}

/** Formats the box as an ImageMagick geometry, for images whose size is not known. */
export function boxGeometry({ width, height, fit = 'inside', enlarge }: Box): string {
  return `${width ?? ''}x${height ?? ''}${FIT_RULES[fit].flag}${enlarge ? '' : '>'}`;
}

/** Returns the corner of the result in the resized image, for `cover`. Rounds up. */
export function cropOffset({ resized, result }: Fitting, { position = 'center' }: Box): Offset {
  const { x, y } = ANCHORS[position];
  return {
    x: Math.ceil((resized.width - result.width) * x),
    y: Math.ceil((resized.height - result.height) * y),
  };
}

/** Returns the corner of the resized image in the result, for `contain`. Rounds down. */
export function padOffset({ resized, result }: Fitting, { position = 'center' }: Box): Offset {
  const { x, y } = ANCHORS[position];
  return {
    x: Math.floor((result.width - resized.width) * x),
    y: Math.floor((result.height - resized.height) * y),
  };
}

/** Returns the ImageMagick gravity for a position. */
export function gravityName({ position = 'center' }: Box): string {
  const { x, y } = ANCHORS[position];
  const name = `${['North', '', 'South'][y * 2]}${['West', '', 'East'][x * 2]}`;
  return name || 'Center';
}
