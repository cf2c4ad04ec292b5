/** @module Decodes results with libraries that are independent of the tools under test, and encodes images for the report. */
import { createHash } from 'node:crypto';
import sharp, { type Metadata, type Sharp, type SharpOptions } from 'sharp';
import { iconSizes } from '../../conversion/plan/encode.ts';
import { shownArea } from '../../conversion/plan/size.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { INPUTS, type InputType, OUTPUTS, type OutputType } from '../../formats.ts';
import type { Size } from '../../images/image-info.ts';
import {
  clearHidden,
  type DecodedImage,
  decodeBmp,
  type ImageMetadata,
  type Raster,
  readIcon,
} from './image.ts';
import { renderPages } from './pdf.ts';

const DECODERS: Readonly<Record<OutputType, (file: Buffer) => Promise<DecodedImage>>> = {
  webp: decodeWithSharp,
  png: decodeWithSharp,
  jpg: decodeWithSharp,
  gif: decodeWithSharp,
  bmp: async (file) => withoutMetadata([decodeBmp(file)]),
  avif: decodeWithSharp,
  tiff: decodeWithSharp,
  jxl: decodeJxlFrames,
  ico: decodeIcon,
  pdf: async (file) => withoutMetadata(await renderPages(file)),
};

/**
 * Decodes a converted file with all frames or pages.
 *
 * @throws {Error} with the decoder's message if the file cannot be decoded
 */
export const decode = (file: Buffer, type: OutputType): Promise<DecodedImage> => DECODERS[type](file);

/** Decodes all images of an icon. The service writes the largest one first. */
async function decodeIcon(file: Buffer): Promise<DecodedImage> {
  const images = readIcon(file).map(async (image) =>
    'png' in image ? ((await decodeWithSharp(image.png)).frames[0] as Raster) : image.raster,
  );
  return iconOf(await Promise.all(images));
}

function iconOf(frames: readonly Raster[]): DecodedImage {
  const [first] = frames;
  if (!first) throw new Error('icon without images');
  const alpha = frames.map(({ data }) => clearHidden(data)).includes(true);
  return { frames, facts: { width: first.width, height: first.height, frames: frames.length, alpha } };
}

async function decodeJxlFrames(file: Buffer): Promise<DecodedImage> {
  const { decodeJxl } = await import('./jxl.ts');
  const { frames, plays } = decodeJxl(file);
  const images = await Promise.all(frames.map(({ png }) => decodeWithSharp(png)));
  const [{ facts }] = images as [DecodedImage];
  const animation = frames.length > 1 && { delays: frames.map(({ delay }) => delay), plays };
  const alpha = images.some((image) => image.facts.alpha);
  return {
    frames: images.map((image) => image.frames[0] as Raster),
    facts: { ...facts, ...animation, alpha, frames: frames.length },
  };
}

/** How many times smaller the sides are of a reduced image, and the pixels from which on images are reduced. */
export const REDUCTION = { factor: 4, minPixels: 4_000_000 };

/**
 * Decodes a large JPEG at a quarter of its sides, which takes half of the time.
 *
 * @param isSource whether to turn the image by its EXIF orientation. A result must be upright without it.
 * @returns the image and its whole size; undefined for a small image, and for CMYK
 */
export async function decodeReduced(
  file: Buffer,
  isSource: boolean,
): Promise<{ readonly raster: Raster; readonly whole: Size } | undefined> {
  const strictness = { failOn: isSource ? 'error' : 'warning', limitInputPixels: false } as const;
  const image = sharp(file, { ...strictness, autoOrient: isSource });
  const metadata = await image.metadata();
  const { width, height } = isSource ? metadata.autoOrient : metadata;
  if (metadata.space === 'cmyk' || width * height < REDUCTION.minPixels) return undefined;
  const [across, down] = [width, height].map((side) => Math.floor(side / REDUCTION.factor));
  const { frames } = await toImage(image.resize(across, down, { fit: 'fill' }), metadata, 1);
  return { raster: frames[0] as Raster, whole: { width, height } };
}

async function decodeWithSharp(file: Buffer): Promise<DecodedImage> {
  const options = { animated: true, limitInputPixels: false };
  const metadata = await sharp(file, options).metadata();
  return toImage(sharp(file, options), metadata, metadata.pages ?? 1);
}

async function toImage(
  image: Sharp,
  metadata: Metadata,
  count: number,
  mayBeTransparent = metadata.hasAlpha,
): Promise<DecodedImage> {
  const { data, info } = await image
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  const alpha = mayBeTransparent && clearHidden(data);
  const height = info.height / count;
  const size = info.width * height * 4;
  const frames = Array.from({ length: count }, (_, at) => ({
    width: info.width,
    height,
    data: data.subarray(at * size, (at + 1) * size),
  }));
  return { frames, facts: { width: info.width, height, frames: count, alpha, ...toMetadata(metadata) } };
}

/**
 * Returns a file that sharp reads: for a JPEG XL, a PNG.
 *
 * @throws {Error} if a JPEG XL is damaged or animated
 */
export async function toReadable(file: Buffer, type: InputType | OutputType): Promise<Buffer> {
  if (type !== 'jxl') return file;
  const { decodeJxl } = await import('./jxl.ts');
  const [first, ...others] = decodeJxl(file).frames;
  if (!first || others.length > 0) throw new Error('it is animated');
  return first.png;
}

/**
 * Returns whether two files have the same samples of 16 bits per channel, except under transparent pixels.
 *
 * @param all whether all frames or pages count
 */
export async function haveSameSamples(one: Buffer, other: Buffer, all: boolean): Promise<boolean> {
  const read = async (file: Buffer): Promise<Uint16Array> => {
    const image = sharp(file, { animated: all, autoOrient: !all, limitInputPixels: false });
    const data = await image.toColourspace('rgb16').ensureAlpha().raw({ depth: 'ushort' }).toBuffer();
    return new Uint16Array(data.buffer, data.byteOffset, data.length / 2);
  };
  const [a, b] = await Promise.all([read(one), read(other)]);
  const isHidden = (at: number): boolean => a[at | 3] === 0 && b[at | 3] === 0;
  return a.length === b.length && a.every((sample, at) => sample === b[at] || isHidden(at));
}

const TRANSPARENT = { r: 0, g: 0, b: 0, alpha: 0 };

/** What a result should show. */
export interface Expected {
  readonly image: DecodedImage;
  /** An icon whose borders are rounded up: ImageMagick 6 does so, and 7 rounds down. */
  readonly alternative?: DecodedImage;
  /** Whether sharp has converted the colours, so that rounding differs. */
  readonly convertsColours: boolean;
  /** Frames or pages of the source. */
  readonly count: number;
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
  const { format, crop, width, height, fit = 'inside', enlarge = false } = options;
  const colour = options.background ?? '#ffffff';
  const output = OUTPUTS[format];
  const read = (more: SharpOptions): Sharp => {
    if (type !== 'bmp') return sharp(source, { limitInputPixels: false, failOn: 'error', ...more });
    const { data, ...sides } = decodeBmp(source);
    return sharp(data, { raw: { ...sides, channels: 4 } });
  };
  const metadata = await read({ animated: true }).metadata();
  if (metadata.space === 'cmyk' && !metadata.icc)
    throw new Error('its CMYK colours are not defined by a profile');
  const frames = output.animation && options.frames !== 'first';
  const all = INPUTS[type].pages ? output.pages && options.pages !== 'first' : frames;
  const count = all ? (metadata.pages ?? 1) : 1;
  const isDrawing = type === 'svg';
  const density = isDrawing ? Math.max(1, (72 * size.width) / (metadata.width || size.width)) : undefined;
  let image = read({ animated: all, ...(density && { density }) });
  if (count === 1) image = image.autoOrient();
  const { width: stored, pageHeight, height: whole, autoOrient } = metadata;
  const upright = count === 1 && !pageHeight ? autoOrient : { width: stored, height: pageHeight ?? whole };
  const { x, y, ...shownSides } = shownArea(upright, options, false);
  if (crop !== undefined) image = image.extract({ left: x, top: y, ...shownSides });
  if (isDrawing) image = image.resize({ ...size, fit: format === 'ico' ? 'inside' : 'fill' });
  else if (width || height)
    image = image.resize({
      ...(fit === 'inside' && count === 1
        ? { ...sidesInside(shownSides, options), fit: 'fill' }
        : { width, height, fit, withoutEnlargement: !enlarge && fit !== 'contain' }),
      position: options.position ?? 'center',
      background: options.background ?? (output.alpha === 'none' ? colour : TRANSPARENT),
    });
  if (output.alpha === 'none') image = image.flatten({ background: colour });
  const shown = await toImage(image, metadata, count, metadata.hasAlpha || fit === 'contain');
  if (output.alpha === 'binary') for (const { data } of shown.frames) roundAlpha(data);
  const sizes = format === 'ico' ? iconSizes(options) : [];
  const fitAll = async (round: (pixels: number) => number) =>
    iconOf(await Promise.all(sizes.map((side) => fitInSquare(shown.frames[0] as Raster, side, round))));
  return {
    image: sizes.length > 0 ? await fitAll(Math.floor) : shown,
    ...(sizes.length > 0 && { alternative: await fitAll(Math.ceil) }),
    count: metadata.pages ?? 1,
    convertsColours:
      metadata.icc !== undefined || !['srgb', 'b-w', 'rgb16', 'grey16'].includes(metadata.space),
  };
}

/** Returns the sides of an image in a box. sharp would round them twice if it decodes a JPEG or WebP at a smaller size. */
function sidesInside(own: Size, { width = Infinity, height = Infinity, enlarge }: ConvertOptions): Size {
  const scale = Math.min(width / own.width, height / own.height, enlarge ? Infinity : 1);
  const side = (length: number): number => Math.max(1, Math.round(length * scale));
  return { width: side(own.width), height: side(own.height) };
}

/** Fits an image into a transparent square. `round` rounds the borders at the left and at the top. */
async function fitInSquare(
  { width, height, data }: Raster,
  side: number,
  round: (pixels: number) => number,
): Promise<Raster> {
  const raw = (image: Sharp) => image.raw().toBuffer({ resolveWithObject: true });
  const fitted = await raw(
    sharp(data, { raw: { width, height, channels: 4 } }).resize(side, side, { fit: 'inside' }),
  );
  const left = round((side - fitted.info.width) / 2);
  const top = round((side - fitted.info.height) / 2);
  const square = sharp({ create: { width: side, height: side, channels: 4, background: TRANSPARENT } });
  const { data: pixels } = await raw(square.composite([{ input: fitted.data, raw: fitted.info, left, top }]));
  return { width: side, height: side, data: pixels };
}

/** Encoders of sharp with the quality and the colour resolution that imagemill selects. */
const ENCODERS: Partial<Record<OutputType, (image: Sharp, quality: number) => Sharp>> = {
  webp: (image, quality) => image.webp({ quality }),
  avif: (image, quality) => image.avif({ quality, effort: 0, chromaSubsampling: '4:4:4' }),
  jpg: (image, quality) => image.jpeg({ quality, chromaSubsampling: quality < 90 ? '4:2:0' : '4:4:4' }),
};

/** Encodes an image as another encoder would, and decodes it; undefined if the format is not lossy. */
export async function encodeAlike(
  { frames, facts }: DecodedImage,
  { format, quality, lossless }: ConvertOptions,
): Promise<DecodedImage | undefined> {
  const type = format === 'pdf' ? 'jpg' : format;
  const encoder = lossless ? undefined : ENCODERS[type];
  if (!encoder) return undefined;
  const encoded = frames.map(async ({ width, height, data }) => {
    const image = sharp(data, { raw: { width, height, channels: 4 } });
    return decode(await encoder(type === 'jpg' ? image.removeAlpha() : image, quality).toBuffer(), type);
  });
  const images = await Promise.all(encoded);
  return { frames: images.map((image) => image.frames[0] as Raster), facts };
}

/** Makes each pixel opaque or transparent. */
function roundAlpha(data: Uint8Array): void {
  for (let at = 3; at < data.length; at += 4) data[at] = (data[at] as number) < 128 ? 0 : 255;
  clearHidden(data);
}

/** Converts sharp's metadata; absent properties stay undefined. */
function toMetadata({
  pages = 1,
  delay = [],
  loop = 0,
  depth,
  icc,
  exif,
  iptc,
  xmp,
}: Metadata): Partial<ImageMetadata> {
  const metadata = Object.entries({ exif, iptc, xmp }).flatMap(([kind, bytes]) => (bytes ? [kind] : []));
  return {
    ...(pages > 1 && { delays: delay, plays: loop }),
    ...(depth === 'ushort' && { depth: 16 }),
    ...(icc && { profile: createHash('sha256').update(icc).digest('hex').slice(0, 8) }),
    ...(metadata.length > 0 && { metadata }),
  };
}

function withoutMetadata(frames: readonly Raster[]): DecodedImage {
  const [{ width, height }] = frames as [Raster];
  return { frames, facts: { width, height, frames: frames.length, alpha: false } };
}

/** A WebP file and its size in pixels. */
export interface EncodedImage {
  readonly bytes: Buffer;
  readonly width: number;
  readonly height: number;
}

/**
 * Encodes a raster as WebP for display: lossless up to 200 × 200 pixels, lossy with quality 82 above.
 *
 * @param maxSide maximum width and height in pixels, if not enlarged
 * @param enlarge integer factor of nearest-neighbour scaling; 1 does not enlarge
 */
export async function encode(raster: Raster, maxSide: number, enlarge = 1): Promise<EncodedImage> {
  const { width, height, data } = raster;
  const side = (pixels: number) => (enlarge > 1 ? pixels * enlarge : Math.min(pixels, maxSide));
  const kernel = enlarge > 1 ? 'nearest' : 'lanczos3';
  const { data: bytes, info } = await sharp(data, { raw: { width, height, channels: 4 } })
    .resize(side(width), side(height), { fit: 'inside', kernel })
    .webp(width * height <= 200 * 200 ? { lossless: true } : { quality: 82 })
    .toBuffer({ resolveWithObject: true });
  return { bytes, width: info.width, height: info.height };
}
