/** @module Draws images for the screenshots: hills under a sky, in a few colours. */
import sharp from 'sharp';

/** An image file. */
export interface Picture {
  readonly name: string;
  readonly content: Buffer;
}

const SIZES = { width: 1800, height: 1200 };

/**
 * Scenes by file name: colours of the sky from top to bottom, those of the hills from the back, and
 * the place of the sun.
 */
type Scene = readonly [sky: string, hills: string, sun: number];
const SCENES: Readonly<Record<string, Scene>> = {
  'first-light.jpg': ['#2b3a67 #f2a65a', '#59516f #3c3a5b #22233f', 0.3],
  'mill-pond.png': ['#b8e0d2 #f5f3d7', '#6aa58d #3d7a66 #1d4d43', 0.72],
  'harvest.tiff': ['#7fb7d9 #fbe8b7', '#e0b04a #c08a2d #7d5a1e', 0.5],
  'north-ridge.jpg': ['#8aa4c0 #e8eef4', '#9fb3c6 #5f7d98 #2e4a63', 0.18],
  'evening.webp': ['#41295a #ee7752', '#7d3c63 #51264d #2a1533', 0.62],
  'orchard.jpg': ['#cfe8ff #fff6e5', '#a8c686 #6d9f58 #3c6b3a', 0.84],
  'blue-hour.jpg': ['#1b2a49 #8fa8c8', '#3d5275 #273a5a #15233c', 0.44],
  'clearing.jpg': ['#9ad1d4 #eef6e9', '#8fbf8f #5e946a #2f5d46', 0.28],
  'desert-road.jpg': ['#f2c58c #fdf0d5', '#d98e4f #b5652b #7a3e17', 0.77],
  'fog.jpg': ['#c9d0d6 #f1f3f4', '#b4bdc4 #8b979f #5f6c75', 0.55],
  'glacier.jpg': ['#6fa8dc #eaf4fb', '#c4dbe8 #8db3c9 #4f7f9b', 0.2],
  'heather.jpg': ['#d7c4e2 #fbeff6', '#a481b5 #7b5590 #4e3263', 0.66],
  'island.jpg': ['#4fb3bf #fdf6d8', '#6aa67a #3f7d63 #1f5549', 0.36],
  'last-snow.jpg': ['#a9bfd6 #fdfdfb', '#dfe8ef #a8bccb #647d90', 0.58],
  'meadow.jpg': ['#8ecae6 #f7fbe1', '#b7d36f #7fae3f #4c7a27', 0.8],
  'moonrise.jpg': ['#0f1b33 #52688f', '#30415f #1f2d47 #0f1a2e', 0.24],
  'pass.jpg': ['#7ea3b8 #f5efe3', '#9a8f7f #6f6455 #443c32', 0.48],
  'sunset-bay.jpg': ['#3a1c71 #ffaf7b', '#8a3b6b #5b2757 #311640', 0.7],
  'vineyard.jpg': ['#bcd9ea #fff4dc', '#b9b45a #8a8a35 #55611f', 0.32],
  'wadden.jpg': ['#aab8c2 #f6e7d3', '#bda88f #8f7d69 #5d5147', 0.6],
};

/** What the photos give away, so that the page shows what it removed. */
const EXIF = {
  IFD0: { Make: 'Mill', Model: 'One', Artist: 'Somebody' },
  IFD2: { DateTimeOriginal: '2026:05:01 06:12:00' },
  IFD3: {
    GPSLatitudeRef: 'N',
    GPSLatitude: '48/1 8/1 14/1',
    GPSLongitudeRef: 'E',
    GPSLongitude: '11/1 34/1 34/1',
  },
};

/** Returns twenty photos, one file per scene, in the format of its file name. */
export const landscapes = (): Promise<Picture[]> =>
  Promise.all(
    Object.entries(SCENES).map(async ([name, scene]) => {
      const type = name.replace(/^.*\./, '').replace('jpg', 'jpeg') as 'jpeg' | 'png' | 'tiff' | 'webp';
      const image = sharp(Buffer.from(draw(scene)))
        .withExif(EXIF)
        .toFormat(type, { quality: 95 });
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
