/** @module Draws images for the screenshots: hills under a sky, in a few colours. */
import sharp from 'sharp';

/** An image file. */
export interface Picture {
  readonly name: string;
  readonly content: Buffer;
}

const SIZES = { width: 1800, height: 1200 };

/** Scenes by file name: colours of the sky from top to bottom, those of the hills from the back, and the place of the sun. */
type Scene = readonly [sky: string, hills: string, sun: number];
const SCENES: Readonly<Record<string, Scene>> = {
  'first-light.jpg': ['#2b3a67 #f2a65a', '#59516f #3c3a5b #22233f', 0.3],
  'mill-pond.png': ['#b8e0d2 #f5f3d7', '#6aa58d #3d7a66 #1d4d43', 0.72],
  'harvest.tiff': ['#7fb7d9 #fbe8b7', '#e0b04a #c08a2d #7d5a1e', 0.5],
  'north-ridge.jpg': ['#8aa4c0 #e8eef4', '#9fb3c6 #5f7d98 #2e4a63', 0.18],
  'evening.webp': ['#41295a #ee7752', '#7d3c63 #51264d #2a1533', 0.62],
  'orchard.jpg': ['#cfe8ff #fff6e5', '#a8c686 #6d9f58 #3c6b3a', 0.84],
};

/** Returns one file per scene, in the format of its file name. */
export const landscapes = (): Promise<Picture[]> =>
  Promise.all(
    Object.entries(SCENES).map(async ([name, scene]) => {
      const type = name.replace(/^.*\./, '').replace('jpg', 'jpeg') as 'jpeg' | 'png' | 'tiff' | 'webp';
      const image = sharp(Buffer.from(draw(scene))).toFormat(type, { quality: 95 });
      return { name, content: await image.toBuffer() };
    }),
  );

/** Returns one of the scenes as SVG. */
export const drawing = (): Picture => ({
  name: 'emblem.svg',
  content: Buffer.from(draw(SCENES['mill-pond.png'] as Scene)),
});

function draw([sky, hills, sun]: Scene): string {
  const [top, bottom] = sky.split(' ');
  const { width, height } = SIZES;
  const layers = hills.split(' ').map((colour, at) => {
    const base = height * (0.52 + at * 0.15);
    const points = Array.from({ length: 61 }, (_, step) => {
      const x = (step / 60) * width;
      const y = base - 90 * Math.sin(x / (310 - at * 60) + at * 2.1 + sun * 5) - 40 * Math.sin(x / 97 + at);
      return `${x.toFixed(0)},${y.toFixed(0)}`;
    });
    return `<polygon fill="${colour}" points="0,${height} ${points.join(' ')} ${width},${height}"/>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
    <linearGradient id="sky" x2="0" y2="1"><stop stop-color="${top}"/><stop offset=".7" stop-color="${bottom}"/></linearGradient>
    <rect width="100%" height="100%" fill="url(#sky)"/>
    <circle cx="${sun * width}" cy="${height * 0.36}" r="110" fill="#fff6d6" fill-opacity=".9"/>${layers.join('')}</svg>`;
}
