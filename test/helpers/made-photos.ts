/** @module Synthetic images with the statistics of photos, for tests of encoders. */
import sharp from 'sharp';
import { seeded } from '../../scripts/stress/random.ts';
import type { Pixels } from './pixels.ts';

/** Components of an image. */
interface Recipe {
  readonly seed: number;
  /**
   * Standard deviation of each octave of noise, from the coarsest (cells of 64 pixels) to single
   * pixels.
   */
  readonly octaves: readonly number[];
  /** Number of objects with hard edges. */
  readonly objects: number;
}

/** Images from a blurred background to fine foliage. */
const RECIPES: readonly Recipe[] = [
  { seed: 1, octaves: [40, 25, 12, 7, 3.5, 1.6, 0.5], objects: 8 },
  { seed: 1, octaves: [40, 25, 12, 6, 3, 1.6, 0.7], objects: 24 },
  { seed: 2, octaves: [35, 24, 14, 9, 5.5, 2.4, 1], objects: 12 },
  { seed: 3, octaves: [30, 24, 16, 11, 7.5, 4, 1.4], objects: 16 },
  { seed: 5, octaves: [45, 20, 12, 7, 4.5, 3, 1.7], objects: 20 },
];

/** Creates at most five images, the same ones each time. */
export async function madePhotos(width: number, height: number, count = RECIPES.length): Promise<Pixels[]> {
  return Promise.all(RECIPES.slice(0, count).map((recipe) => madePhoto(recipe, width, height)));
}

/**
 * Light and objects, overlaid with noise whose amplitude falls with its frequency, as in natural
 * images.
 */
async function madePhoto({ seed, octaves, objects }: Recipe, width: number, height: number): Promise<Pixels> {
  const { next: random } = seeded(seed);
  const image = await sharp(drawing(random, objects, width, height))
    .removeAlpha()
    .raw()
    .toBuffer();
  const light = new Float32Array(width * height);
  const tint = new Float32Array(width * height);
  for (const [octave, deviation] of octaves.entries()) {
    const cell = 64 >> octave || 1;
    await addNoise(light, random, { width, height, cell, deviation });
    if (cell > 2) await addNoise(tint, random, { width, height, cell, deviation: deviation / 4 });
  }
  const data = Buffer.alloc(width * height * 4, 255);
  for (let at = 0; at < width * height; at += 1) {
    const [grey = 0, colour = 0] = [light[at], tint[at]];
    const channels = [grey + colour, grey, grey - colour];
    for (const [channel, change] of channels.entries())
      data[at * 4 + channel] = Math.max(0, Math.min(255, (image[at * 3 + channel] as number) + change));
  }
  return { width, height, data };
}

/** Draws a gradient with circles and bars. */
function drawing(random: () => number, objects: number, width: number, height: number): Buffer {
  const any = (least: number, most: number): number => Math.round(least + random() * (most - least));
  const colour = (): string => `rgb(${any(30, 220)},${any(30, 220)},${any(30, 220)})`;
  const shapes = Array.from({ length: objects }, (_, at) =>
    at % 2
      ? `<circle cx="${any(0, width)}" cy="${any(0, height)}" r="${any(5, 50)}" fill="${colour()}"/>`
      : `<rect x="${any(0, width)}" y="${any(0, height)}" width="${any(3, 90)}" height="${any(3, 90)}" fill="${colour()}" transform="rotate(${any(0, 90)})"/>`,
  );
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><linearGradient id="g" y2="1"><stop stop-color="${colour()}"/><stop offset="1" stop-color="${colour()}"/></linearGradient><rect width="100%" height="100%" fill="url(#g)"/>${shapes.join('')}</svg>`,
  );
}

/** Adds noise with smooth transitions between cells. */
async function addNoise(
  target: Float32Array,
  random: () => number,
  {
    width,
    height,
    cell,
    deviation,
  }: { readonly width: number; readonly height: number; readonly cell: number; readonly deviation: number },
): Promise<void> {
  const [columns, rows] = [Math.ceil(width / cell) + 1, Math.ceil(height / cell) + 1];
  // The sum of four uniform numbers is nearly Gaussian, with a variance of a third.
  const cells = Buffer.from(
    Array.from({ length: columns * rows }, () => 64 * (random() + random() + random() + random())),
  );
  const grown = await sharp(cells, { raw: { width: columns, height: rows, channels: 1 } })
    .resize(columns * cell, rows * cell, { kernel: 'cubic', fit: 'fill' })
    .extract({ left: 0, top: 0, width, height })
    .extractChannel(0)
    .raw()
    .toBuffer();
  for (const [at, value] of grown.entries())
    target[at] = (target[at] as number) + ((value - 128) / 37) * deviation;
}
