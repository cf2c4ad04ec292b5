/** @module Previews: the size and a thumbnail of an image, decoded by the browser. */
import type { Signal } from '@preact/signals';
import { attributeOf, skipPreamble } from '../../images/svg/svg-markup.ts';
import { statedSize } from '../../images/svg/svg-size.ts';
import type { Size } from '../../tables/fitting.ts';
import { INPUTS } from '../../tables/formats.ts';
import { readIfds } from './tiff-directories.ts';

/** Size of an image in pixels, 0 × 0 for an SVG without a size of its own, and its thumbnail. */
export interface Preview extends Size {
  /** Size of an SVG in the calculation of the server, with fractions, if its root states it. */
  readonly stated?: Size | undefined;
  /** Object URL of the thumbnail; undefined if the browser cannot decode the image. */
  readonly thumbnail?: string;
}

/** Side of a thumbnail in pixels, for screens with two device pixels per CSS pixel. */
const THUMBNAIL_PX = 128;

let last: Promise<unknown> = Promise.resolve();

/** Preview of an image: undefined until created, null if it cannot be decoded or was revoked. */
export type PreviewSignal = Signal<Preview | null | undefined>;

/** Creates a preview and stores it in `preview`, unless {@link revokePreview} ran meanwhile. */
export async function loadPreview(preview: PreviewSignal, file: Blob): Promise<void> {
  const created = await createPreview(file);
  if (preview.peek() === undefined) preview.value = created;
  else revoke(created);
}

/** Creates a preview, or returns null. One at a time, since decoding can take 200 MB. */
function createPreview(file: Blob): Promise<Preview | null> {
  const preview = last.then(() => decodePreview(file)).catch(() => readTiffSize(file).catch(() => null));
  last = preview;
  return preview;
}

/** Revokes the thumbnail's object URL, now or as soon as it exists. */
export function revokePreview(preview: PreviewSignal): void {
  const created = preview.peek();
  preview.value = null;
  revoke(created);
}

function revoke(created: Preview | null | undefined): void {
  if (created?.thumbnail) URL.revokeObjectURL(created.thumbnail);
}

/**
 * Decodes an image and draws its thumbnail.
 *
 * @throws {DOMException} if the browser cannot decode the image
 */
async function decodePreview(file: Blob): Promise<Preview> {
  const url = URL.createObjectURL(file);
  const image = new Image();
  try {
    image.src = url;
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    const thumbnail = await createThumbnail(image, width, height);
    const drawing = file.type === INPUTS.svg.mediaType ? parseDrawing(await file.text()) : undefined;
    const size = drawing && !drawing.hasOwnSize ? { width: 0, height: 0 } : { width, height };
    return { ...size, stated: drawing?.stated, thumbnail };
  } finally {
    image.src = '';
    URL.revokeObjectURL(url);
  }
}

/** Initial font size of CSS, which the server writes into the root element. */
const FONT_SIZE = '16px';

/**
 * Reads the size of an SVG from its start tag. Without a size of its own, the natural size is a
 * default of the browser, such as 300 × 150. `DOMParser` would report each `style` as a violation
 * of the content security policy.
 */
function parseDrawing(text: string): { readonly hasOwnSize: boolean; readonly stated: Size | undefined } {
  const [tag = ''] = /^<[^>]*/.exec(skipPreamble(text)) ?? [];
  const style = (attributeOf(tag, 'style') ?? '').split(';').map((declaration) => declaration.split(':'));
  const valuesOf = (name: string) => {
    const declared = style.findLast(([property = '']) => property.trim() === name)?.[1];
    return [declared?.replace(/!\s*important/i, '') ?? '', attributeOf(tag, name) ?? ''].filter(Boolean);
  };
  const isAbsolute = ([length = '']: readonly string[]) => /^\s*[+.]?\d[^%]*$/.test(length);
  const [widths, heights] = [valuesOf('width'), valuesOf('height')];
  const [fontSize = FONT_SIZE] = valuesOf('font-size');
  return {
    hasOwnSize: isAbsolute(widths) && isAbsolute(heights),
    stated: statedSize({ widths, heights, fontSize, viewBox: attributeOf(tag, 'viewBox') }),
  };
}

/** Draws the central square of an image as WebP and returns an object URL. */
async function createThumbnail(image: HTMLImageElement, width: number, height: number): Promise<string> {
  const canvas = new OffscreenCanvas(THUMBNAIL_PX, THUMBNAIL_PX);
  const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D;
  context.imageSmoothingQuality = 'high';
  const scale = THUMBNAIL_PX / Math.min(width, height);
  const [wide, high] = [width * scale, height * scale];
  // The whole image is drawn: Chromium selects a wrong part of an SVG without a size of its own.
  context.drawImage(image, (THUMBNAIL_PX - wide) / 2, (THUMBNAIL_PX - high) / 2, wide, high);
  return URL.createObjectURL(await canvas.convertToBlob({ type: 'image/webp', quality: 0.8 }));
}

/** Tags of a TIFF. */
const [WIDTH, HEIGHT, ORIENTATION] = [256, 257, 274];
/** First orientation, 5 to 8, that swaps width and height. */
const FIRST_SWAPPED_ORIENTATION = 5;

/**
 * Reads the size of a TIFF in pixels, after orientation; null if the file is not a TIFF.
 *
 * @throws {RangeError} if the file is truncated
 */
async function readTiffSize(file: Blob): Promise<Size | null> {
  const { value: tags } = await readIfds(file).next();
  const [width, height] = [tags?.get(WIDTH), tags?.get(HEIGHT)];
  if (!width || !height) return null;
  return (tags.get(ORIENTATION) ?? 1) < FIRST_SWAPPED_ORIENTATION
    ? { width, height }
    : { width: height, height: width };
}
