/**
 * @module Photos that can be told apart by their colour, to check the order of pages and frames.
 */
import sharp from 'sharp';
import { countPages } from './pdf.ts';
import { drawPdf, plain } from './pixels.ts';

/**
 * Colours of the right halves of the photos, by their names in natural order. The left halves have
 * half of each value.
 */
export const COLOURS = {
  'IMG_1.jpg': [200, 40, 40],
  'IMG_2.jpg': [40, 160, 60],
  'IMG_10.jpg': [50, 70, 190],
  'IMG_20.jpg': [220, 190, 60],
  'IMG_100.jpg': [120, 120, 120],
} as const;
export type PhotoName = keyof typeof COLOURS;
export const PHOTO_NAMES = Object.keys(COLOURS) as readonly PhotoName[];
/** Width and height of each photo in pixels. */
export const [PHOTO_WIDTH, PHOTO_HEIGHT] = [120, 80];

export async function makePhoto(name: PhotoName): Promise<Buffer> {
  const toCss = (divisor: number) => `rgb(${COLOURS[name].map((value) => value / divisor).join()})`;
  const left = await plain(PHOTO_WIDTH / 2, PHOTO_HEIGHT, toCss(2))
    .png()
    .toBuffer();
  const photo = plain(PHOTO_WIDTH, PHOTO_HEIGHT, toCss(1)).composite([{ input: left, left: 0, top: 0 }]);
  return photo.jpeg({ quality: 95 }).toBuffer();
}

export async function meanColour(image: Buffer): Promise<number[]> {
  const { channels } = await sharp(image).stats();
  return channels.slice(0, 3).map(({ mean }) => mean);
}

/** Returns the photo whose right edge an image has. */
export async function photoIn(image: Buffer): Promise<PhotoName | undefined> {
  const { width, height } = await sharp(image).metadata();
  const edge = await sharp(image)
    .extract({ left: width - 20, top: 0, width: 20, height })
    .png()
    .toBuffer();
  const colour = await meanColour(edge);
  return PHOTO_NAMES.find((name) =>
    COLOURS[name].every((value, at) => Math.abs(value - (colour[at] ?? Number.NaN)) < 12),
  );
}

/** Draws the pages of a PDF with poppler, and returns the photo on each. */
export async function photosIn(pdf: Buffer): Promise<(PhotoName | undefined)[]> {
  const pages = Array.from({ length: await countPages(pdf) }, (_, at) => at + 1);
  return Promise.all(pages.map(async (page) => photoIn(await drawPdf(pdf, page))));
}
