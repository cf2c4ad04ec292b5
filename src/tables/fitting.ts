/**
 * @module Areas and sizes of pictures in pixels, as the options `crop`, `width`, `height`, `scale`
 * and `fit` determine them. The rounding is that of sharp: ResolveShrink (sharp 0.35,
 * src/common.cc). The page computes with them, too.
 */
import type { Fit } from './options.ts';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Rectangle in pixels, from the top left corner. */
export interface Area extends Size {
  readonly x: number;
  readonly y: number;
}

/** Parses `left,top,width,height`, each in pixels or, with a `%`, in percent of the side. */
export function parseArea(crop: string, size: Size): Area {
  const [x = 0, y = 0, width = 0, height = 0] = crop.split(',').map((text, at) => {
    const side = at % 2 === 0 ? size.width : size.height;
    return text.endsWith('%') ? (side * Number.parseFloat(text)) / 100 : Number(text);
  });
  return { x, y, width, height };
}

/** Returns the whole pixels of an area of a picture, at least one. */
export function roundArea(area: Area, size: Size): Area {
  const x = Math.min(Math.round(area.x), size.width - 1);
  const y = Math.min(Math.round(area.y), size.height - 1);
  const width = Math.max(1, Math.round(area.x + area.width) - x);
  return { x, y, width, height: Math.max(1, Math.round(area.y + area.height) - y) };
}

/** Maximum rounding error in pixels of a calculated side. */
export const ROUNDING_ERROR = 1e-6;

/** Options that determine the size of a result. Without a side, any. */
export interface Box {
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly scale?: number | undefined;
  readonly fit?: Fit | undefined;
  readonly enlarge?: boolean | undefined;
}

interface FitRule {
  /** Returns the scale of a side, from the scales that fit this side and the other. */
  readonly scale: (own: number, other: number) => number;
  /** Returns the side of the result, from the side of the resized image and that of the box. */
  readonly side: (resized: number, box: number) => number;
}

const unchanged = (resized: number): number => resized;

const FIT_RULES: Readonly<Record<Fit, FitRule>> = {
  inside: { scale: Math.min, side: unchanged },
  cover: { scale: Math.max, side: Math.min },
  contain: { scale: Math.min, side: Math.max },
  fill: { scale: (own) => own, side: unchanged },
};

/** Rounds a half up, like sharp and ImageMagick (ParseMetaGeometry). */
const roundHalfUp = (side: number): number => Math.floor(side + 0.5);

/** Rounds up like librsvg. */
export const roundUp = (side: number): number => Math.ceil(side - ROUNDING_ERROR);

/** Returns how sides are rounded. librsvg chooses the size of a drawing that is shown whole. */
export const roundingOf = ({ scale, fit }: Box, isWholeDrawing: boolean): ((side: number) => number) =>
  isWholeDrawing && !scale && fit !== 'cover' ? roundUp : roundHalfUp;

/** Sizes of an image during a conversion. */
export interface Fitting {
  /** Size to resize the image to, before it is cropped or padded. */
  readonly resized: Size;
  /** Size of the result: smaller than `resized` if `cover` crops, larger if `contain` pads. */
  readonly result: Size;
}

/** Fits an image of this size into a box. Without `enlarge`, no side grows. */
export function fitInto({ width, height }: Size, box: Box, round = roundHalfUp): Fitting {
  const { scale, side } = FIT_RULES[box.fit ?? 'inside'];
  const [x, y] = sideScales({ width, height }, box);
  const maxScale = box.enlarge ? Number.POSITIVE_INFINITY : 1;
  const [across, down] = [Math.min(maxScale, scale(x, y)), Math.min(maxScale, scale(y, x))];
  const resized = { width: scaleSide(width, across, round), height: scaleSide(height, down, round) };
  const result = {
    width: side(resized.width, box.width ?? resized.width),
    height: side(resized.height, box.height ?? resized.height),
  };
  return { resized, result };
}

/** Returns the scales that fit each side, or that are requested. With one side, both are equal. */
function sideScales({ width, height }: Size, box: Box): [x: number, y: number] {
  if (box.scale) return [box.scale / 100, box.scale / 100];
  const x = box.width ? box.width / width : undefined;
  const y = box.height ? box.height / height : undefined;
  return [x ?? y ?? 1, y ?? x ?? 1];
}

/** Scales a side, and leaves at least one pixel. */
export function scaleSide(side: number, scale: number, round = roundHalfUp): number {
  return Math.max(1, round(side * scale));
}
