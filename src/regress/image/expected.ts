/** @module Decodes and reduces the source of a result with sharp, to verify the result. Shares no code with the planner. */
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { INPUTS, type InputType, OUTPUTS } from '../../formats.ts';
import type { Size } from '../../images/image-info.ts';
import type { VerifyMode } from '../verifiable.ts';
import { openImage, openRaster, toImage } from './codec.ts';
import { compositeOver, type DecodedImage, decodeBmp, type Raster, roundAlpha } from './image.ts';

/** What a result should show. */
export interface Expected {
  readonly image: DecodedImage;
  /**
   * Reduces the source again, without decoding a JPEG or WebP at a smaller size, which blurs fine details. Takes twice the time.
   * Undefined for a result with the size of its source.
   */
  readonly repeatExactly: (() => Promise<DecodedImage>) | undefined;
  /** Whether sharp has converted the colours, so that rounding differs. */
  readonly convertsColours: boolean;
  /** Whether transparency was replaced by the background colour, so that rounding differs. */
  readonly isComposited: boolean;
}

/**
 * Decodes the first image of a source, and fits it inside the width and height of the options.
 *
 * @param source a file that sharp reads, or a BMP
 * @throws {Error} if sharp cannot read the source, or only one of its frames or pages would be compared
 */
export async function prepareExpected(
  source: Buffer,
  type: InputType,
  options: ConvertOptions,
  mode: VerifyMode,
): Promise<Expected> {
  if (type === 'svg') throw new Error('libvips draws it with librsvg, as the result was');
  const output = OUTPUTS[options.format];
  const open = () =>
    type === 'bmp' ? openRaster(decodeBmp(source)) : openImage(source, { failOn: 'error' });
  const metadata = await open().metadata();
  const { pages = 1, icc, space, autoOrient: upright } = metadata;
  const name = INPUTS[type].pages ? 'pages' : 'frames';
  const holdsAll = output.animation || output.pages || mode === 'pixels';
  if (pages > 1 && holdsAll && options[name] !== 'first')
    throw new Error(`only single images are verified, and it has ${pages} ${name}: use --${name} first`);
  if (space === 'cmyk' && !icc) throw new Error('its CMYK colours are not defined by a profile');
  const isReduced = (options.width ?? options.height) !== undefined;
  let isComposited = false;
  const make = async (fastShrinkOnLoad: boolean): Promise<DecodedImage> => {
    const whole = open().autoOrient();
    const resized = isReduced
      ? whole.resize({ ...reduceInside(upright, options), fit: 'fill', fastShrinkOnLoad })
      : whole;
    const image = await toImage(resized, { ...metadata, pages: 1 }, 1);
    if (output.alpha === 'binary') for (const { data } of image.frames) roundAlpha(data);
    isComposited = output.alpha === 'none' && image.facts.alpha;
    return isComposited ? compositeAll(image, options.background) : image;
  };
  return {
    image: await make(true),
    repeatExactly: isReduced ? () => make(false) : undefined,
    convertsColours: icc !== undefined || !['srgb', 'b-w', 'rgb16', 'grey16'].includes(space),
    isComposited,
  };
}

/** Composites an image over the background colour. sharp's own step rounds down. */
async function compositeAll({ frames, facts }: DecodedImage, background = '#ffffff'): Promise<DecodedImage> {
  const pixel = openRaster({ width: 1, height: 1, data: new Uint8Array(4) });
  const [red = 0, green, blue] = await pixel.flatten({ background }).raw().toBuffer();
  const composited = frames.map((frame: Raster) => compositeOver(frame, red, green, blue));
  return { frames: composited, facts: { ...facts, alpha: false } };
}

/** Returns the size inside a box. sharp would round it twice if it decodes at a smaller size. */
function reduceInside(own: Size, { width, height }: Pick<ConvertOptions, 'width' | 'height'>): Size {
  const scale = Math.min(1, (width ?? Infinity) / own.width, (height ?? Infinity) / own.height);
  const side = (length: number): number => Math.max(1, Math.round(length * scale));
  return { width: side(own.width), height: side(own.height) };
}
