/** @module Photos, screenshots and drawings of this project, for tests of encoders. */
import sharp, { type Sharp } from 'sharp';
import { screen } from '../../scripts/bench/images.ts';
import { open } from '../../scripts/fixtures/scene.ts';
import { fixturePath } from './client.ts';
import { madePhotos } from './made-photos.ts';
import { decode, type Pixels } from './pixels.ts';

export interface VariedImage {
  readonly name: string;
  readonly png: Buffer;
  readonly pixels: Pixels;
}

const SIZE = { width: 320, height: 240 } as const;
const screenshotPath = (name: string): string =>
  new URL(`../../docs/screenshots/${name}.webp`, import.meta.url).pathname;

/**
 * Returns five photos, four screenshots, and four drawings of 320 × 240 pixels, some cut out and
 * some reduced.
 */
export async function variedImages(): Promise<VariedImage[]> {
  const photos = await madePhotos(SIZE.width, SIZE.height);
  const cut = (path: string | Buffer, left: number, top: number): Sharp =>
    sharp(path)
      .flatten()
      .extract({ left, top, ...SIZE });
  const reduced = (path: string): Sharp => sharp(path).flatten({ background: '#fff' }).resize(SIZE);
  const images: Readonly<Record<string, Sharp>> = {
    ...Object.fromEntries(photos.map((photo, at) => [`photo ${at}`, open(photo)])),
    'light screenshot': cut(screenshotPath('light'), 250, 200),
    'dark screenshot': cut(screenshotPath('dark'), 250, 200),
    'text on a screen': cut(screen(), 240, 40),
    'tiles on a screen': cut(screen(), 1180, 40),
    'reduced screenshot': reduced(screenshotPath('light')),
    'reduced report': reduced(screenshotPath('report')),
    drawing: reduced(fixturePath('scene.svg')),
    icon: reduced(new URL('../../src/web/icon.svg', import.meta.url).pathname),
  };
  return Promise.all(
    Object.entries(images).map(async ([name, image]) => {
      const png = await image.removeAlpha().png().toBuffer();
      return { name, png, pixels: await decode(png) };
    }),
  );
}
