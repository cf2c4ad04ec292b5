// @full: all kinds of files in all formats
// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import type { InputType, OutputType } from '../../src/tables/formats.ts';
import { edgeCase, fixture } from '../helpers/client.ts';
import { baseOptions, EDITS, findWrongEdits } from '../helpers/edits.ts';
import { convertWith, typeOf } from '../helpers/engine.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { decode, difference, type Pixels, pixelAt, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useEngine } from '../helpers/service.ts';

/** A file of every kind of input: each type, and kinds of pixels that take their own paths. */
const FILES = [
  'scene.jpg',
  'orientation-5.jpg',
  'orientation-8.jpg',
  'grey.jpg',
  'p3.jpg',
  'window.png',
  'p3.png',
  'scene.gif',
  'moving.gif',
  'scene.bmp',
  'window.tiff',
  'pages.tiff',
  'scene.svg',
  'window.avif',
  'icons.ico',
  'window.webp',
  'moving.webp',
].map((name) => [name, fixture] as const);
const TRAPS = ['deep.png', 'cmyk-bare.jpg', 'everything.gif', 'declared-pq.avif', 'no-size.svg'].map(
  (name) => [name, edgeCase] as const,
);
const EXTRA = [
  'turned.heic',
  'moving.jxl',
  'turned.jxl',
  'grey.jp2',
  'scene.psd',
  'scene.pdf',
  'scene.cur',
].map((name) => [name, extra] as const);

/** Results without the stages of ImageMagick, unless an edit needs them. */
const SHORT_PATHS: Readonly<Record<string, readonly OutputType[]>> = {
  'scene.svg': ['png', 'pdf'],
  'moving.gif': ['gif'],
};

describe('rotate, flip, scale, blur and greyscale', () => {
  const engine = useEngine(ALL_EXTRAS);

  for (const [place, [name, read]] of [...FILES, ...TRAPS, ...EXTRA].entries())
    it(`do to ${name} what sharp does, in every format`, async () => {
      const file = await read(name);
      const wrong: string[] = [];
      for (const [at, format] of engine.capabilities.outputs.entries()) {
        // Two edits for each file and format: over all, each pair of one of these and an edit.
        const [start, twice] = [2 * (place + at), [...EDITS, ...EDITS]];
        const pair = twice.slice(start % EDITS.length, (start % EDITS.length) + 2);
        const edits = SHORT_PATHS[name]?.includes(format) ? EDITS : pair;
        wrong.push(...(await findWrongEdits(engine, file, format, edits)));
      }
      expect(wrong).to.deep.equal([]);
    });

  /** Returns a result as PNG. */
  const pixelsOf = (bytes: Buffer, type: InputType, options: Partial<ConvertOptions>): Promise<Pixels> =>
    convertWith(engine, { type, bytes }, { ...baseOptions('png'), ...options }, async ({ path }) =>
      decode(await readFile(path)),
    );

  const drawing = (body: string, width: number, height: number): Buffer =>
    Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${body}</svg>`,
    );
  const SHAPES =
    '<path fill="#28c" d="M0 0h160v100H0z"/><circle cx="50" cy="30" r="25" fill="#fd4"/><path fill="#c32" d="M90 90l30-70 30 70z"/>';

  /** Each source, and the same picture rotated by 90 degrees and then flipped upside down. */
  const SOURCES: Readonly<Record<string, () => Promise<readonly [InputType, Buffer, InputType, Buffer]>>> = {
    'a large JPEG': async () => {
      const photo = sharp(drawing(SHAPES, 160, 100), { density: 600 }).flatten({ background: 'white' });
      const file = await photo.jpeg({ quality: 100, chromaSubsampling: '4:4:4' }).toBuffer();
      return ['jpg', file, 'png', await turnBySharp(file)];
    },
    'a PNG with transparency': async () => {
      const file = await fixture('window.png');
      return ['png', file, 'png', await turnBySharp(file)];
    },
    'an SVG': async () => {
      const turned = `<g transform="translate(0 160) scale(1 -1) translate(100 0) rotate(90)">${SHAPES}</g>`;
      return ['svg', drawing(SHAPES, 160, 100), 'svg', drawing(turned, 100, 160)];
    },
  };
  const turnBySharp = async (file: Buffer): Promise<Buffer> => {
    const rotated = await sharp(file).rotate(90).png().toBuffer();
    return sharp(rotated).flip().png().toBuffer();
  };

  for (const [what, source] of Object.entries(SOURCES))
    it(`apply to ${what} before crop and the fit, as if the picture were stored like this`, async () => {
      const [type, file, turnedType, turned] = await source();
      for (const options of [
        { width: 40 },
        { height: 33, crop: '10%,20%,50%,60%' },
        { width: 30, height: 60, fit: 'cover', position: 'left top' },
        { width: 70, height: 20, fit: 'cover', position: 'bottom', crop: '5%,5%,90%,80%' },
        { width: 70, height: 80, fit: 'contain', position: 'right' },
        { width: 31, height: 47, fit: 'fill' },
        // A JPEG is decoded at a smaller size first, which can change what draws attention.
        ...(type === 'jpg' ? [] : [{ width: 40, height: 20, fit: 'cover', position: 'attention' } as const]),
      ] as const) {
        const ours = await pixelsOf(file, type, { ...options, rotate: 90, flip: 'vertical' });
        const theirs = await pixelsOf(turned, turnedType, options);
        const title = JSON.stringify(options);
        expect(sizeOf(ours), title).to.deep.equal(sizeOf(theirs));
        expect(difference(ours, theirs).psnr, title).to.be.above(34);
      }
    });

  for (const name of ['scene.jpg', 'window.png', 'scene.gif', 'scene.svg', 'scene.tiff', 'scene.avif'])
    it(`scale resizes ${name} by a share, as sharp does, and enlarges a picture only with enlarge`, async () => {
      const file = await fixture(name);
      const type = (await typeOf(file)) ?? 'png';
      const whole = await pixelsOf(file, type, {});
      for (const [scale, enlarge] of [
        [50, false],
        [12.5, false],
        [137, true],
        [300, false],
      ] as const) {
        const isLimited = scale > 100 && !enlarge && type !== 'svg';
        const [width = 0, height = 0] = sizeOf(whole).map((side) =>
          Math.floor((side * (isLimited ? 100 : scale)) / 100 + 0.5),
        );
        const found = await pixelsOf(file, type, { scale, enlarge });
        expect(sizeOf(found), `${scale}`).to.deep.equal([width, height]);
        const expected = await toPixels(open(whole).resize(width, height, { fit: 'fill' }));
        // librsvg draws each size anew, and sharp enlarges with three lobes of Lanczos, not two.
        const least = type === 'svg' || scale > 100 ? 27 : 40;
        expect(difference(found, expected).psnr, `${scale}`).to.be.above(least);
      }
    });

  it('make greys before the borders of contain, whose colour stays', async () => {
    const options = {
      width: 40,
      height: 80,
      fit: 'contain',
      background: '#ff0000',
      greyscale: true,
    } as const;
    const found = await pixelsOf(await fixture('scene.png'), 'png', options);
    expect(pixelAt(found, 20, 2)).to.deep.equal([255, 0, 0, 255]);
    const [red, green, blue] = pixelAt(found, 20, 40);
    expect([green, blue]).to.deep.equal([red, red]);
  });
});
