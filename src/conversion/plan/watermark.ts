/** @module The place and size of a watermark, and commands that put it on each frame or page. */
import type { Size } from '../../images/image-info.ts';
import { OPTIONS } from '../../tables/options.ts';
import { formatGeometry, formatOffset, type Offset, pointOf } from './position.ts';
import { pictureSize } from './resize.ts';
import { SUFFIX, words } from './step.ts';
import type { ConversionJob, ConvertOptions, Sentence, WatermarkPlace } from './types.ts';

/** Distance from the edges, and between repetitions, as a share of the picture's shorter side. */
const MARGIN = 0.03;
const marginOf = ({ width, height }: Size): number => Math.round(Math.min(width, height) * MARGIN);

/** Returns the name of a watermark at one of the sizes of {@link watermarkBoxes}. */
export const watermarkFile = (at: number): string => `watermark${SUFFIX}-${at}.png`;

/** Returns the sizes of the pictures to mark, before the borders of `contain`. */
function pictureSizes({ fittings, frameCount }: ConversionJob): Size[] {
  const sizes = fittings.map(pictureSize);
  return Array.from({ length: frameCount }, (_, at) => sizes[at] ?? sizes[0]).filter(
    (size) => size !== undefined,
  );
}

/** Returns the different sizes of the pictures, by a text for each, as they first occur. */
function distinctPictures(job: ConversionJob): ReadonlyMap<string, Size> {
  return new Map(pictureSizes(job).map((size) => [formatGeometry(size), size]));
}

/** The size that a watermark can have. */
export interface WatermarkBox {
  /** Maximum width in pixels. Default: unlimited. */
  readonly width?: number | undefined;
  /** Maximum height in pixels. Default: unlimited. */
  readonly height?: number | undefined;
  /** Whether a watermark that is smaller becomes larger. */
  readonly enlarge: boolean;
}

/** Returns a box for each size of picture: a share of its width, and its height. */
export function watermarkBoxes(job: ConversionJob): WatermarkBox[] {
  const { watermark, watermarkScale = OPTIONS.watermarkScale.default } = job.options;
  return [...distinctPictures(job).values()].map((picture) => {
    if (watermark?.place) return { width: inPixels(picture, watermark.place).maxWidth, enlarge: false };
    const width = Math.max(1, Math.round((picture.width * watermarkScale) / 100));
    return { width, height: picture.height, enlarge: true };
  });
}

/** A place in a picture, and the distance between repetitions from there on. */
interface Place extends Offset {
  readonly gap: number;
}

/** Returns a place in pixels, and the width that the watermark can have there. */
function inPixels({ width }: Size, place: WatermarkPlace): Place & { readonly maxWidth?: number } {
  if ('left' in place) return { x: place.left, y: place.top, gap: 0 };
  const { textWidth = Math.max(1, Math.round(width / 6)) } = place;
  const { margin = textWidth } = place;
  return { x: margin, y: margin, gap: margin, maxWidth: textWidth };
}

/** Returns the corner of a watermark in a picture. One too large reaches into the margins. */
function placeIn(picture: Size, size: Size, options: ConvertOptions): Place {
  if (options.watermark?.place) return inPixels(picture, options.watermark.place);
  const { x, y } = pointOf(options.watermarkPosition ?? OPTIONS.watermarkPosition.default);
  const margin = marginOf(picture);
  const place = (side: number, own: number, share: number): number => {
    const room = Math.max(0, side - own);
    const inset = Math.min(margin, Math.floor(room / 2));
    return inset + Math.round((room - 2 * inset) * share);
  };
  return { x: place(picture.width, size.width, x), y: place(picture.height, size.height, y), gap: margin };
}

interface Layout {
  readonly place: Offset;
  readonly repetition: readonly string[];
}

/**
 * Returns the place of a watermark in a picture. With `watermarkRepeat`, repetitions cover the
 * picture from this place on. The pattern has no row and no column that is not visible, so that it
 * takes little more memory than the picture.
 */
function layOut(picture: Size, size: Size, options: ConvertOptions): Layout {
  const place = placeIn(picture, size, options);
  if (!options.watermarkRepeat) return { place, repetition: [] };
  const { gap } = place;
  const tile = { width: size.width + gap, height: size.height + gap };
  /** Returns the place of the first repetition that is visible. */
  const first = (at: number, step: number): number => (at % step > gap ? (at % step) - step : at % step);
  const start = { x: first(place.x, tile.width), y: first(place.y, tile.height) };
  // One repetition can have a gap that is larger than the picture, and more would not fit.
  const extent = {
    width: size.width + Math.min(gap, picture.width),
    height: size.height + Math.min(gap, picture.height),
  };
  const repeat = (times: number, append: string): string[] =>
    times > 1 ? ['-duplicate', String(times - 1), append] : [];
  return {
    place: start,
    repetition: [
      ...words(`-background none -compose Copy -extent ${formatGeometry(extent)} +repage`),
      ...repeat(Math.ceil((picture.width - start.x) / tile.width), '+append'),
      ...repeat(Math.ceil((picture.height - start.y) / tile.height), '-append'),
    ],
  };
}

/**
 * Puts the watermark on each frame or page. Each is replaced by its result at the end of the list,
 * behind the watermarks. Greys are declared to be colours, because ImageMagick 6 brightens them
 * beside other colours.
 */
export function addWatermark(job: ConversionJob): string[] {
  const { options, frameCount } = job;
  const { watermark, watermarkOpacity = OPTIONS.watermarkOpacity.default } = options;
  const boxes = watermarkBoxes(job);
  if (!watermark || boxes.length === 0) return []; // without a size, another plan follows
  const pictures = distinctPictures(job);
  const layouts = [...pictures.values()].map((picture, at) => {
    const { width = 1, height = 1 } = job.measured.watermarks?.[at] ?? boxes[at] ?? {}; // the largest before it is measured
    return layOut(picture, { width, height }, options);
  });
  const fade =
    watermarkOpacity < 100
      ? ['-channel', 'A', '-evaluate', 'Multiply', String(watermarkOpacity / 100), '+channel']
      : [];
  const asColours = ['-set', 'colorspace', 'sRGB'];
  const marks = layouts.flatMap(({ repetition }, at) => {
    const read = ['(', `PNG:${watermarkFile(at)}`, ...asColours, '-alpha', 'set'];
    return [...read, ...fade, ...repetition, ')'];
  });
  const indexes = new Map([...pictures.keys()].map((key, at) => [key, at]));
  const frames = pictureSizes(job).flatMap((picture, at) => {
    const which = indexes.get(formatGeometry(picture)) ?? 0;
    const pair = ['-clone', '0', '-clone', String(frameCount - at + which)];
    const place = formatOffset((layouts[which] as Layout).place);
    return ['(', ...pair, '-geometry', place, '-compose', 'Over', '-composite', ')', '-delete', '0'];
  });
  return [...asColours, ...marks, ...frames, '-delete', `0-${boxes.length - 1}`];
}

export const explainWatermark: Sentence = ({ options }) => {
  const { watermark, watermarkPosition, watermarkScale, watermarkOpacity, watermarkRepeat } = options;
  if (!watermark) return undefined;
  const { watermarkPosition: position, watermarkScale: scale, watermarkOpacity: opacity } = OPTIONS;
  const shown = watermarkOpacity ?? opacity.default;
  return `a watermark ${watermarkRepeat ? 'repeated from' : 'at'} ${watermarkPosition ?? position.default}, with ${watermarkScale ?? scale.default}% of the width${shown < 100 ? ` and ${shown}% opacity` : ''}`;
};
