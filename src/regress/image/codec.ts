/** @module Decodes results independently of the tested tools, and encodes images for reports. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { PDFiumLibrary } from '@hyzyla/pdfium';
import sharp, { type Metadata, type Sharp, type SharpOptions } from 'sharp';
import { numericQuality } from '../../conversion/plan/external-encoders.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { findInPackage } from '../../folders.ts';
import type { Size } from '../../images/image-info.ts';
import type { InputType, OutputType } from '../../tables/formats.ts';
import {
  clearHidden,
  type DecodedImage,
  decodeBmp,
  joinImages,
  type Raster,
  readIcon,
  withoutMetadata,
} from './image.ts';

/** Opens an image of any size. */
export const openImage = (file: Uint8Array, options: SharpOptions = {}): Sharp =>
  sharp(file, { limitInputPixels: false, ...options });

/** Opens pixels. */
export const openRaster = ({ width, height, data }: Raster): Sharp =>
  openImage(data, { raw: { width, height, channels: 4 } });

const DECODERS: Readonly<Record<OutputType, (file: Buffer) => Promise<DecodedImage>>> = {
  webp: decodeWithSharp,
  png: decodeWithSharp,
  jpg: decodeWithSharp,
  gif: decodeWithSharp,
  bmp: async (file) => withoutMetadata([decodeBmp(file)]),
  avif: decodeWithSharp,
  tiff: decodeTiff,
  jxl: decodeJxlFrames,
  ico: decodeIcon,
  pdf: async (file) => withoutMetadata(await renderPages(file)),
};

/** @throws {Error} with the decoder's message if the file cannot be decoded */
export const decode = (file: Buffer, type: OutputType): Promise<DecodedImage> => DECODERS[type](file);

/** Decodes all images of an icon. The service writes the largest one first. */
async function decodeIcon(file: Buffer): Promise<DecodedImage> {
  const images = readIcon(file).map(async (image) =>
    'png' in image ? ((await decodeWithSharp(image.png)).frames[0] as Raster) : image.raster,
  );
  const { frames, facts } = withoutMetadata(await Promise.all(images));
  return { frames, facts: { ...facts, alpha: frames.map(({ data }) => clearHidden(data)).includes(true) } };
}

/** Libraries of WebAssembly, each loaded for the first file, and then reused. */
let jxlOxide: Promise<typeof import('jxl-oxide-wasm')> | undefined;
let pdfium: Promise<PDFiumLibrary> | undefined;

async function loadJxlOxide() {
  const library = await import('jxl-oxide-wasm');
  library.initSync({ module: readFileSync(findInPackage('jxl-oxide-wasm/module.wasm')) });
  return library;
}

/**
 * Decodes all frames of a JPEG XL with jxl-oxide, which shares no code with libjxl, to PNG files,
 * which are upright and have its depth and its colour profile. Delays are in ms.
 *
 * @throws {Error} if the file is damaged or truncated
 */
async function decodeJxl(file: Buffer) {
  jxlOxide ??= loadJxlOxide();
  const { JxlImage } = await jxlOxide;
  const image = new JxlImage();
  try {
    image.feedBytes(file);
    if (!image.tryInit() || !image.loaded) throw new Error('the JPEG XL is truncated');
    const frames = Array.from({ length: image.numLoadedKeyframes }, (_, at) => {
      const frame = image.render(at);
      return { delay: frame.duration, png: Buffer.from(frame.encodeToPng()) };
    });
    return { frames, plays: image.numLoops ?? 0 };
  } finally {
    image.free();
  }
}

/**
 * Renders all pages of a PDF with PDFium at one pixel per point, on white.
 *
 * @throws {Error} if PDFium cannot read the file or it has no pages
 */
async function renderPages(file: Uint8Array): Promise<Raster[]> {
  pdfium ??= import('@hyzyla/pdfium').then(({ PDFiumLibrary }) => PDFiumLibrary.init());
  const document = await (await pdfium).loadDocument(file);
  try {
    const pages: Raster[] = [];
    for (const page of document.pages()) {
      const { width, height, data } = await page.render({ scale: 1, render: 'bitmap' });
      pages.push({ width, height, data });
    }
    if (pages.length === 0) throw new Error('the PDF has no pages');
    return pages;
  } finally {
    document.destroy();
  }
}

async function decodeJxlFrames(file: Buffer): Promise<DecodedImage> {
  const { frames, plays } = await decodeJxl(file);
  const joined = joinImages(await Promise.all(frames.map(({ png }) => decodeWithSharp(png))));
  if (frames.length === 1) return joined;
  return { ...joined, facts: { ...joined.facts, delays: frames.map(({ delay }) => delay), plays } };
}

/** How many times smaller the sides of a reduced image are, and its minimum number of pixels. */
export const REDUCTION = { factor: 4, minPixels: 4_000_000 };

/**
 * Decodes a large JPEG at a quarter of its sides, which takes half of the time.
 *
 * @param isSource whether to turn the image by its EXIF orientation. A result must be upright
 *   without it.
 * @returns the image and its whole size; undefined for a small image, and for CMYK
 */
export async function decodeReduced(
  file: Buffer,
  isSource: boolean,
): Promise<{ readonly raster: Raster; readonly whole: Size } | undefined> {
  const image = openImage(file, { failOn: isSource ? 'error' : 'warning', autoOrient: isSource });
  const metadata = await image.metadata();
  const { width, height } = isSource ? metadata.autoOrient : metadata;
  if (metadata.space === 'cmyk' || width * height < REDUCTION.minPixels) return undefined;
  const [across, down] = [width, height].map((side) => Math.floor(side / REDUCTION.factor));
  const { frames } = await toImage(image.resize(across, down, { fit: 'fill' }), metadata, 1);
  return { raster: frames[0] as Raster, whole: { width, height } };
}

/** Decodes the pages one by one, because they can have different sizes and orientations. */
async function decodeTiff(file: Buffer): Promise<DecodedImage> {
  const { pages = 1 } = await openImage(file).metadata();
  const images: DecodedImage[] = [];
  for (let page = 0; page < pages; page += 1) {
    const image = openImage(file, { page });
    images.push(await toImage(image, { ...(await image.metadata()), pages: 1 }, 1));
  }
  return joinImages(images);
}

async function decodeWithSharp(file: Buffer): Promise<DecodedImage> {
  const image = openImage(file, { animated: true });
  const metadata = await image.metadata();
  return toImage(image, metadata, metadata.pages ?? 1);
}

/**
 * For images of 16 bits: the colour space of 8 bits in which sharp applies a profile. Otherwise it
 * would convert RGB to Display P3 and return these values as sRGB, and would ignore a profile of
 * greys.
 */
const DEEP_SPACES: Readonly<Record<string, string>> = { rgb16: 'srgb', grey16: 'b-w' };

/** Decodes an image to sRGB, and divides it into its frames. */
export async function toImage(image: Sharp, metadata: Metadata, count: number): Promise<DecodedImage> {
  const samples = metadata.icc && DEEP_SPACES[metadata.space];
  if (samples) image.pipelineColourspace(samples);
  const { data, info } = await image
    .toColourspace('srgb')
    .ensureAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  const alpha = metadata.hasAlpha && clearHidden(data);
  const height = info.height / count;
  const size = info.width * height * 4;
  const frames = Array.from({ length: count }, (_, at) => ({
    width: info.width,
    height,
    data: data.subarray(at * size, (at + 1) * size),
  }));
  return { frames, facts: { width: info.width, height, frames: count, alpha, ...toMetadata(metadata) } };
}

/** Types that sharp does not read as it is published: it would report a wrong header for HEIC. */
const UNSUPPORTED: readonly string[] = ['heic', 'jp2', 'psd', 'ico', 'cur', 'pdf'];

/**
 * Returns a file that sharp reads: for a JPEG XL, a PNG.
 *
 * @throws {Error} if a JPEG XL is damaged or animated, or sharp reads no files of the type
 */
export async function toReadable(file: Buffer, type: InputType | OutputType): Promise<Buffer> {
  if (UNSUPPORTED.includes(type)) throw new Error('libvips has no decoder for it');
  if (type !== 'jxl') return file;
  const [first, ...others] = (await decodeJxl(file)).frames;
  if (!first || others.length > 0) throw new Error('it is animated');
  return first.png;
}

/** Reads the samples of 16 bits of the first image, upright. */
export async function readSamples(file: Buffer): Promise<Uint16Array> {
  const image = openImage(file, { autoOrient: true });
  const data = await image.toColourspace('rgb16').ensureAlpha().raw({ depth: 'ushort' }).toBuffer();
  return new Uint16Array(data.buffer, data.byteOffset, data.length / 2);
}

/** Encoders of sharp with the quality and the colour resolution that imagemill selects. */
const ENCODERS: Partial<Record<OutputType, (image: Sharp, quality: number) => Sharp>> = {
  webp: (image, quality) => image.webp({ quality }),
  avif: (image, quality) => image.avif({ quality, effort: 0, chromaSubsampling: '4:4:4' }),
  jpg: (image, quality) => image.jpeg({ quality, chromaSubsampling: quality < 90 ? '4:2:0' : '4:4:4' }),
};

/** Encodes an image as another encoder would, and decodes it; undefined without loss. */
export async function encodeAlike(
  { frames, facts }: DecodedImage,
  options: ConvertOptions,
): Promise<DecodedImage | undefined> {
  const { format, lossless } = options;
  const encoder = lossless ? undefined : ENCODERS[format];
  if (!encoder) return undefined;
  const encoded = frames.map(async (frame) => {
    const image = openRaster(frame);
    const file = encoder(format === 'jpg' ? image.removeAlpha() : image, numericQuality(options));
    return decode(await file.toBuffer(), format);
  });
  const images = await Promise.all(encoded);
  return { frames: images.map((image) => image.frames[0] as Raster), facts };
}

/** Converts sharp's metadata; absent properties stay undefined. */
function toMetadata({ pages = 1, delay = [], loop = 0, depth, icc, exif, iptc, xmp }: Metadata) {
  const metadata = Object.entries({ exif, iptc, xmp }).flatMap(([kind, bytes]) => (bytes ? [kind] : []));
  return {
    delays: pages > 1 ? delay : undefined,
    plays: pages > 1 ? loop : undefined,
    depth: depth === 'ushort' ? 16 : undefined,
    profile: icc && hash('sha256', icc).slice(0, 8),
    metadata: metadata.length > 0 ? metadata : undefined,
  };
}

/**
 * Encodes a raster as WebP for display, and returns its size in pixels, too: lossless up to 200 ×
 * 200 pixels, lossy with quality 82 above.
 *
 * @param maxSide maximum width and height in pixels, if not enlarged
 * @param enlarge integer factor of nearest-neighbour scaling; 1 does not enlarge
 */
export async function encode(raster: Raster, maxSide: number, enlarge = 1) {
  const { width, height } = raster;
  const side = (pixels: number) => (enlarge > 1 ? pixels * enlarge : Math.min(pixels, maxSide));
  const kernel = enlarge > 1 ? 'nearest' : 'lanczos3';
  const { data: bytes, info } = await openRaster(raster)
    .resize(side(width), side(height), { fit: 'inside', kernel })
    .webp(width * height <= 200 * 200 ? { lossless: true } : { quality: 82 })
    .toBuffer({ resolveWithObject: true });
  return { bytes, width: info.width, height: info.height };
}
