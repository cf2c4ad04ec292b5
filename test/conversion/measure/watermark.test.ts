// @full
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp from 'sharp';
import { open } from '../../../scripts/fixtures/scene.ts';
import type { ConvertOptions } from '../../../src/conversion/plan/types.ts';
import type { OutputType } from '../../../src/tables/formats.ts';
import { edgeCase, fixture } from '../../helpers/client.ts';
import { baseOptions, convertFrames } from '../../helpers/edits.ts';
import { ALL_EXTRAS, extra } from '../../helpers/extra.ts';
import { difference, type Pixels, pixelAt, sizeOf, toPixels } from '../../helpers/pixels.ts';
import { useEngine } from '../../helpers/service.ts';

/** A square drawing of a size. */
const badge = (width: number): Buffer =>
  Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${width}" viewBox="0 0 20 20"><rect width="20" height="20" rx="3" fill="#e21"/><circle cx="6" cy="8" r="4" fill="#fff" fill-opacity=".6"/></svg>`,
  );

/** Share of the free space to the left of and above the watermark. */
const PLACES = { 'left top': [0, 0], top: [0.5, 0], center: [0.5, 0.5], 'right bottom': [1, 1] } as const;

describe('a watermark', () => {
  const engine = useEngine(ALL_EXTRAS);

  /** Returns the frames of a result without loss. */
  const framesOf = (
    file: Buffer,
    options: Partial<ConvertOptions>,
    mark?: Buffer,
    format: OutputType = 'png',
  ): Promise<Pixels[]> => convertFrames(engine, file, { ...baseOptions(format), ...options }, mark);

  /** Puts a watermark on a picture with sharp. `draw` returns it at a width. */
  async function markBySharp(
    picture: Pixels,
    draw: (width: number) => Promise<Buffer> | Buffer,
    {
      watermarkPosition: position = 'right bottom',
      watermarkScale: scale = 20,
      watermarkOpacity: opacity = 100,
      watermarkRepeat: repeats = false,
    }: Partial<ConvertOptions>,
  ): Promise<Pixels> {
    const { width, height } = picture;
    const mark = await toPixels(sharp(await draw(Math.round((width * scale) / 100))));
    const margin = Math.round(Math.min(width, height) * 0.03);
    const [x, y] = PLACES[position as keyof typeof PLACES];
    const left = margin + Math.round((width - 2 * margin - mark.width) * x);
    const top = margin + Math.round((height - 2 * margin - mark.height) * y);
    const faded = mark.data.map((value, at) => (at % 4 === 3 ? Math.round((value * opacity) / 100) : value));
    const raw = { width: mark.width, height: mark.height, channels: 4 } as const;
    // Sharp cuts a layer at the edges only if it is not beyond the left and the top: the picture
    // gets a frame, which is removed.
    const frame = Math.max(width, height);
    const placesFrom = (start: number, step: number): number[] =>
      repeats
        ? Array.from({ length: 60 }, (_, at) => start + (at - 30) * step).filter(
            (place) => place > -frame && place < frame,
          )
        : [start];
    const layers = placesFrom(top, mark.height + margin).flatMap((y) =>
      placesFrom(left, mark.width + margin).map((x) => ({
        input: Buffer.from(faded),
        raw,
        left: x + frame,
        top: y + frame,
      })),
    );
    const framed = await open(picture)
      .extend({ top: frame, bottom: frame * 2, left: frame, right: frame * 2, background: '#0000' })
      .png()
      .toBuffer();
    const marked = await sharp(framed).composite(layers).png().toBuffer();
    return toPixels(sharp(marked).extract({ left: frame, top: frame, width, height }));
  }

  async function expectMark(
    file: Buffer,
    options: Partial<ConvertOptions>,
    format: OutputType = 'png',
  ): Promise<void> {
    const pictures = await framesOf(file, options, undefined, format);
    const found = await framesOf(file, options, badge(40), format);
    expect(found.length).to.equal(pictures.length);
    for (const [at, picture] of pictures.entries()) {
      const expected = await markBySharp(picture, badge, options);
      expect(difference(found[at] as Pixels, expected).psnr, `frame ${at}`).to.be.above(40);
      expect(difference(found[at] as Pixels, picture).psnr, 'without').to.be.below(40);
    }
  }

  const PICTURES = [
    ...['scene.png', 'window.png', 'grey.jpg', 'scene.gif', 'orientation-6.jpg', 'scene.svg', 'p3.png'].map(
      (name) => [name, fixture] as const,
    ),
    ...['deep.png', 'cmyk-bare.jpg', 'declared-pq.avif', 'no-size.svg'].map(
      (name) => [name, edgeCase] as const,
    ),
    ...['scene.pdf', 'turned.heic', 'turned.jxl'].map((name) => [name, extra] as const),
  ];
  /** Each picture has two of them. */
  const MARKS: readonly (readonly Partial<ConvertOptions>[])[] = [
    [{}, { watermarkRepeat: true, watermarkPosition: 'center', watermarkOpacity: 60 }],
    [
      { width: 50, height: 40, fit: 'cover', watermarkPosition: 'left top', watermarkScale: 50 },
      { watermarkPosition: 'center', watermarkOpacity: 40 },
    ],
    [
      { trim: 8, rotate: 90, watermarkPosition: 'left top' },
      { watermarkRepeat: true, watermarkScale: 7, width: 50, height: 40, fit: 'cover' },
    ],
  ];
  for (const [place, [name, read]] of PICTURES.entries())
    it(`is put on ${name} as sharp puts it`, async () => {
      for (const options of MARKS[place % MARKS.length] ?? []) await expectMark(await read(name), options);
    });

  for (const [name, format] of [
    ['moving.gif', 'webp'],
    ['moving.webp', 'webp'],
    ['pages.tiff', 'tiff'],
  ] as const)
    it(`is put on each frame of ${name}`, async () => {
      await expectMark(await fixture(name), { watermarkPosition: 'top' }, format);
      await expectMark(await fixture(name), { watermarkRepeat: true }, format);
    });

  it('can be a picture of any kind, which is resized', async () => {
    const picture = await fixture('scene.png');
    const [plain] = (await framesOf(picture, {})) as [Pixels];
    for (const name of ['window.png', 'window.tiff', 'window.avif', 'moving.gif', 'grey.jpg', 'icons.ico']) {
      const [found] = (await framesOf(picture, {}, await fixture(name))) as [Pixels];
      const [mark] = (await framesOf(await fixture(name), {})) as [Pixels];
      const draw = (width: number) => open(mark).resize({ width }).png().toBuffer();
      expect(difference(found, await markBySharp(plain, draw, {})).psnr, name).to.be.above(40);
    }
  });

  it('keeps its colour on greys, and is inside of the borders of contain', async () => {
    const options = {
      greyscale: true,
      width: 100,
      height: 200,
      fit: 'contain',
      background: '#0000ff',
    } as const;
    const [found] = (await framesOf(await fixture('scene.png'), options, badge(40))) as [Pixels];
    const [red, green, blue] = pixelAt(found, 94, 126);
    expect([red, green, blue]).to.deep.equal([0xee, 0x22, 0x11]);
    expect(pixelAt(found, 94, 150)).to.deep.equal([0, 0, 255, 255]);
  });

  it('that is higher than the picture is as high as it', async () => {
    const tall = await sharp({ create: { width: 20, height: 400, channels: 3, background: '#f00' } })
      .png()
      .toBuffer();
    const [found] = (await framesOf(await fixture('scene.png'), {}, tall)) as [Pixels];
    const [, height] = sizeOf(found);
    const column = Array.from({ length: height }, (_, y) => pixelAt(found, found.width - 4, y).join());
    expect(new Set(column)).to.deep.equal(new Set(['255,0,0,255']));
  });
});
