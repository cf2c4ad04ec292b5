/** @module Draws images for the screenshots: hills under a sky, in a few colours. */
import sharp from 'sharp';

/** An image file. */
export interface Picture {
  readonly name: string;
  readonly content: Buffer;
}

const SIZES = { width: 1800, height: 1200 };

const SCENES = [
  {
    name: 'first-light.jpg',
    sky: ['#2b3a67', '#f2a65a'],
    hills: ['#59516f', '#3c3a5b', '#22233f'],
    sun: 0.3,
  },
  { name: 'mill-pond.png', sky: ['#b8e0d2', '#f5f3d7'], hills: ['#6aa58d', '#3d7a66', '#1d4d43'], sun: 0.72 },
  { name: 'harvest.tiff', sky: ['#7fb7d9', '#fbe8b7'], hills: ['#e0b04a', '#c08a2d', '#7d5a1e'], sun: 0.5 },
  {
    name: 'north-ridge.jpg',
    sky: ['#8aa4c0', '#e8eef4'],
    hills: ['#9fb3c6', '#5f7d98', '#2e4a63'],
    sun: 0.18,
  },
  { name: 'evening.webp', sky: ['#41295a', '#ee7752'], hills: ['#7d3c63', '#51264d', '#2a1533'], sun: 0.62 },
  { name: 'orchard.jpg', sky: ['#cfe8ff', '#fff6e5'], hills: ['#a8c686', '#6d9f58', '#3c6b3a'], sun: 0.84 },
];

/** Returns one file per scene, in the format of its file name. */
export function landscapes(): Promise<Picture[]> {
  return Promise.all(
    SCENES.map(async ({ name, ...scene }) => {
      const type = name.replace(/^.*\./, '').replace('jpg', 'jpeg') as 'jpeg' | 'png' | 'tiff' | 'webp';
      return {
        name,
        content: await sharp(Buffer.from(draw(scene)))
          .toFormat(type, { quality: 95 })
          .toBuffer(),
      };
    }),
  );
}

/** Returns one of the scenes as SVG. */
export function drawing(): Picture {
  const { name: _, ...scene } = SCENES[1] as (typeof SCENES)[number];
  return { name: 'emblem.svg', content: Buffer.from(draw(scene)) };
}

function draw({ sky, hills, sun }: Omit<(typeof SCENES)[number], 'name'>): string {
  const { width, height } = SIZES;
  const layers = hills.map((colour, at) => {
    const base = height * (0.52 + at * 0.15);
    const points = Array.from({ length: 61 }, (_, step) => {
      const x = (step / 60) * width;
      const y = base - 90 * Math.sin(x / (310 - at * 60) + at * 2.1 + sun * 5) - 40 * Math.sin(x / 97 + at);
      return `${x.toFixed(0)},${y.toFixed(0)}`;
    });
    return `<polygon fill="${colour}" points="0,${height} ${points.join(' ')} ${width},${height}"/>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
    <linearGradient id="sky" x2="0" y2="1"><stop stop-color="${sky[0]}"/><stop offset=".7" stop-color="${sky[1]}"/></linearGradient>
    <rect width="100%" height="100%" fill="url(#sky)"/>
    <circle cx="${sun * width}" cy="${height * 0.36}" r="110" fill="#fff6d6" fill-opacity=".9"/>${layers.join('')}</svg>`;
}
