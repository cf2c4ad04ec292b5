/** @module Repeats the steps of a conversion with sharp, to verify its result. */
import { iconSizes } from '../../conversion/plan/encode.ts';
import { shownArea } from '../../conversion/plan/size.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { INPUTS, type InputType, OUTPUTS } from '../../formats.ts';
import type { Size } from '../../images/image-info.ts';
import { type OpenImage, openImage, openRaster, toImage } from './codec.ts';
import { FILTERS, resizeExactly } from './enlarge.ts';
import {
  compositeOver,
  type DecodedImage,
  decodeBmp,
  iconOf,
  joinPages,
  type Raster,
  roundAlpha,
} from './image.ts';

const TRANSPARENT = { r: 0, g: 0, b: 0, alpha: 0 };
const WHITE = '#ffffff';

/** What a result should show. */
export interface Expected {
  readonly image: DecodedImage;
  /** An icon whose borders are rounded up: ImageMagick 6 does so, and 7 rounds down. */
  readonly alternative?: DecodedImage;
  /**
   * Repeats the steps again, without decoding a JPEG or WebP at a smaller size, which blurs fine details, and without enlarging by
   * libvips: a photo with a width of 300 pixels has an SSIM of 0.997 instead of 0.974 to that of ImageMagick then, and a block of a
   * drawing that is enlarged five times differs by 0.9 instead of 10.1 of 255. Takes twice the time.
   */
  readonly repeatExactly: (() => Promise<DecodedImage>) | undefined;
  /** Whether sharp has converted the colours, so that rounding differs. */
  readonly convertsColours: boolean;
  /** Whether transparency was replaced by the background colour, so that rounding differs. */
  readonly isComposited: boolean;
  /** Frames or pages of the source. */
  readonly count: number;
  /** Colour resolution of a JPEG, such as 4:2:0, which its PDF can keep. */
  readonly sampling: string | undefined;
}

/** Which frames or pages are read, and for a drawing the pixels per inch. */
interface Selection {
  readonly page?: number;
  readonly animated?: boolean;
  readonly density?: number;
}
type Read = (selection: Selection) => OpenImage;

/** How to read a source, what its header states about the first image, and its conversion. */
interface Context {
  readonly read: Read;
  readonly metadata: Awaited<ReturnType<OpenImage['metadata']>>;
  readonly type: InputType;
  readonly options: ConvertOptions;
  /** Size of the result. */
  readonly size: Size;
}

/**
 * Repeats the steps of a conversion with sharp, whose fitting and positions imagemill has.
 *
 * @param source a file that sharp reads, or a BMP
 * @param size size of the result, for a drawing
 * @throws {Error} if sharp cannot read the source
 */
export async function prepareExpected(
  source: Buffer,
  type: InputType,
  options: ConvertOptions,
  size: Size,
): Promise<Expected> {
  const { format } = options;
  const output = OUTPUTS[format];
  const read: Read = (more) => {
    if (type !== 'bmp') return openImage(source, { failOn: 'error', ...more });
    return openRaster(decodeBmp(source));
  };
  const metadata = await read({}).metadata();
  const context = { read, metadata, type, options, size };
  if (metadata.space === 'cmyk' && !metadata.icc)
    throw new Error('its CMYK colours are not defined by a profile');
  const { pages = 1, icc, space } = metadata;
  const all = INPUTS[type].pages
    ? output.pages && options.pages !== 'first'
    : output.animation && options.frames !== 'first' && type !== 'avif';
  const repeat = async (isExact: boolean): Promise<DecodedImage> => {
    const image = await (all && INPUTS[type].pages
      ? joinPages(pages, (at) => repeatSteps(context, at, isExact))
      : repeatSteps(context, { animated: all && pages > 1 }, isExact));
    if (output.alpha === 'binary') for (const { data } of image.frames) roundAlpha(data);
    return image;
  };
  const shown = await repeat(false);
  const isComposited = output.alpha === 'none' && shown.facts.alpha;
  const sizes = format === 'ico' ? iconSizes(options) : [];
  const fitAll = async (round: (pixels: number) => number) =>
    iconOf(await Promise.all(sizes.map((side) => fitInSquare(shown.frames[0] as Raster, side, round))));
  const composite = async (image: DecodedImage): Promise<DecodedImage> =>
    isComposited ? compositeAll(image, options) : image;
  const isResized = type !== 'svg' && (options.width ?? options.height) !== undefined;
  return {
    image: sizes.length > 0 ? await fitAll(Math.floor) : await composite(shown),
    ...(sizes.length > 0 && { alternative: await fitAll(Math.ceil) }),
    repeatExactly: isResized && sizes.length === 0 ? async () => composite(await repeat(true)) : undefined,
    count: pages,
    convertsColours: icc !== undefined || !['srgb', 'b-w', 'rgb16', 'grey16'].includes(space),
    isComposited,
    sampling: type === 'jpg' ? metadata.chromaSubsampling : undefined,
  };
}

/** Repeats the steps of a conversion for a page, or for all frames, except compositing. */
async function repeatSteps(context: Context, selection: Selection, isExact: boolean): Promise<DecodedImage> {
  const { read, type, options, size } = context;
  const { format, crop, width, height, fit = 'inside', enlarge = false } = options;
  const { page, animated } = selection;
  const metadata = page || animated ? await read(selection).metadata() : context.metadata;
  const count = animated ? (metadata.pages ?? 1) : 1;
  const isDrawing = type === 'svg';
  const density = isDrawing ? Math.max(1, (72 * size.width) / (metadata.width || size.width)) : undefined;
  let image = read({ ...selection, ...(density && { density }) });
  if (count === 1) image = image.autoOrient();
  const { width: stored, pageHeight, height: whole, autoOrient } = metadata;
  const upright = count === 1 ? autoOrient : { width: stored, height: pageHeight ?? whole };
  const { x, y, ...shownSides } = shownArea(upright, options, false);
  if (crop !== undefined) image = image.extract({ left: x, top: y, ...shownSides });
  const own = count === 1 ? { ...metadata, pages: 1 } : metadata;
  const finish = (shown: OpenImage, frames: number): Promise<DecodedImage> =>
    toImage(shown, own, frames, metadata.hasAlpha || fit === 'contain');
  if (isDrawing) return finish(image.resize({ ...size, fit: format === 'ico' ? 'inside' : 'fill' }), count);
  if (!width && !height) return finish(image, count);
  const resized = resizedSize(shownSides, options);
  const resize = (whole: OpenImage): OpenImage =>
    whole.resize({
      ...(fit === 'inside' && count === 1
        ? { ...resized, fit: 'fill' }
        : { width, height, fit, withoutEnlargement: !enlarge }),
      fastShrinkOnLoad: !isExact,
      position: options.position ?? 'center',
      background: options.background ?? (OUTPUTS[format].alpha === 'none' ? WHITE : TRANSPARENT),
    });
  const isEnlarged = resized.width > shownSides.width || resized.height > shownSides.height;
  if (!isExact || !enlarge || !isEnlarged) return finish(resize(image), count);
  const { frames, facts } = await finish(image, count);
  const exact = frames.map((frame) =>
    finish(resize(openRaster(resizeExactly(frame, resized, FILTERS.resize))), 1),
  );
  return joinFrames(await Promise.all(exact), facts);
}

/** Returns an animation of single frames. */
const joinFrames = (images: readonly DecodedImage[], facts: DecodedImage['facts']): DecodedImage => ({
  frames: images.map((image) => image.frames[0] as Raster),
  facts: { ...facts, alpha: images.some((image) => image.facts.alpha) },
});

/** Composites all frames over the background colour. sharp's own step rounds down. */
async function compositeAll({ frames, facts }: DecodedImage, options: ConvertOptions): Promise<DecodedImage> {
  const pixel = openRaster({ width: 1, height: 1, data: new Uint8Array(4) });
  const [red = 0, green, blue] = await pixel
    .flatten({ background: options.background ?? WHITE })
    .raw()
    .toBuffer();
  const composited = frames.map((frame) => compositeOver(frame, red, green, blue));
  return { frames: composited, facts: { ...facts, alpha: false } };
}

/** Returns the size of an image before it is cut or gets borders. sharp would round it twice if it decodes at a smaller size. */
function resizedSize(
  own: Size,
  {
    width,
    height,
    fit = 'inside',
    enlarge = false,
  }: Pick<ConvertOptions, 'width' | 'height' | 'fit' | 'enlarge'>,
): Size {
  if (fit === 'fill') return { width: width ?? own.width, height: height ?? own.height };
  const scales = [...(width ? [width / own.width] : []), ...(height ? [height / own.height] : [])];
  const wanted = fit === 'cover' ? Math.max(...scales) : Math.min(...scales);
  const scale = enlarge ? wanted : Math.min(wanted, 1);
  const side = (length: number): number => Math.max(1, Math.round(length * scale));
  return { width: side(own.width), height: side(own.height) };
}

/** Fits an image into a transparent square. `round` rounds the borders at the left and at the top. */
async function fitInSquare(raster: Raster, side: number, round: (pixels: number) => number): Promise<Raster> {
  const size = resizedSize(raster, { width: side, height: side, enlarge: true });
  const { width, height } = size;
  const isLarger = width > raster.width || height > raster.height;
  const input = isLarger
    ? Buffer.from(resizeExactly(raster, size, FILTERS.icon).data)
    : await openRaster(raster).resize(width, height, { fit: 'fill' }).raw().toBuffer();
  const square = openRaster({ width: side, height: side, data: new Uint8Array(side * side * 4) });
  const tile = { input, raw: { width, height, channels: 4 } } as const;
  const [left, top] = [round((side - width) / 2), round((side - height) / 2)];
  return {
    width: side,
    height: side,
    data: await square
      .composite([{ ...tile, left, top }])
      .raw()
      .toBuffer(),
  };
}
