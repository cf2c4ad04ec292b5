// @full
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { open } from '../../../scripts/fixtures/scene.ts';
import type { ConvertOptions } from '../../../src/conversion/plan/types.ts';
import { edgeCase, fixture } from '../../helpers/client.ts';
import { baseOptions } from '../../helpers/edits.ts';
import { convertWith, typeOf } from '../../helpers/engine.ts';
import { ALL_EXTRAS, extra } from '../../helpers/extra.ts';
import { decode, difference, drawPdf, type Pixels, sizeOf, toPixels } from '../../helpers/pixels.ts';
import { useEngine } from '../../helpers/service.ts';

type Box = Readonly<Record<'left' | 'top' | 'width' | 'height', number>>;

/** Returns the area of pixels that differ from the top left one by more than a tolerance in %. */
function boxOf({ width, height, data }: Pixels, tolerance: number): Box | undefined {
  const limit = (tolerance / 100) ** 2;
  const isContent = (at: number): boolean => {
    const [red = 0, green = 0, blue = 0, alpha = 0] = [0, 1, 2, 3].map(
      (channel) => ((data[at * 4 + channel] ?? 0) - (data[channel] ?? 0)) / 255,
    );
    const visible = ((data[at * 4 + 3] ?? 0) / 255) * ((data[3] ?? 0) / 255);
    const squares = alpha ** 2 + (visible * (red ** 2 + green ** 2 + blue ** 2)) / 3;
    return (visible === 0 ? alpha ** 2 : squares) > limit + 1e-9;
  };
  const found = Array.from({ length: width * height }, (_, at) => at).filter(isContent);
  if (found.length === 0) return undefined;
  const columns = found.map((at) => at % width);
  const rows = found.map((at) => Math.floor(at / width));
  const [left, top] = [Math.min(...columns), Math.min(...rows)];
  return { left, top, width: Math.max(...columns) - left + 1, height: Math.max(...rows) - top + 1 };
}

const cut = (image: Pixels, box: Box): Promise<Pixels> => toPixels(open(image).extract(box));

/** A soft blob on a light border that is not quite even, with other widths on each side. */
function blob(background: readonly number[], [x, y]: readonly [number, number] = [34, 17]): Sharp {
  const [width, height] = [61, 47];
  const data = Buffer.alloc(width * height * 4);
  for (let at = 0; at < width * height; at += 1) {
    const [column, row] = [at % width, Math.floor(at / width)];
    const share = Math.min(1, Math.max(0, 1.6 - Math.hypot((column - x) / 14, (row - y) / 9)));
    const noise = at % 3;
    const colour = [30, 90, 200, 255];
    for (let channel = 0; channel < 4; channel += 1) {
      const from = (background[channel] ?? 255) - (channel < 3 ? noise : 0);
      data[at * 4 + channel] = Math.max(0, Math.round(from + ((colour[channel] ?? 0) - from) * share));
    }
  }
  return open({ width, height, data });
}

const WHITE = [250, 250, 250, 255] as const;

describe('trim', () => {
  const engine = useEngine(ALL_EXTRAS);

  const make = async (file: Buffer, options: Partial<ConvertOptions>) => {
    const given = { ...baseOptions(options.format ?? 'png'), ...options };
    const input = { type: (await typeOf(file)) ?? 'png', bytes: file } as const;
    return convertWith(engine, input, given, async ({ path, notes }) => ({
      file: await readFile(path),
      notes,
    }));
  };
  const pixelsOf = async (file: Buffer, options: Partial<ConvertOptions> = {}): Promise<Pixels> =>
    decode((await make(file, options)).file, options.format ?? 'png');

  /** Expects of each result what the judge cuts out of that without `trim`. Returns the areas. */
  const expectTrimmed = async (
    file: Buffer,
    tolerances: readonly number[],
    options: Partial<ConvertOptions> = {},
  ): Promise<Box[]> => {
    const whole = await pixelsOf(file, options);
    const boxes: Box[] = [];
    for (const tolerance of tolerances) {
      const box = boxOf(whole, tolerance) ?? { left: 0, top: 0, width: whole.width, height: whole.height };
      const found = await pixelsOf(file, { ...options, trim: tolerance });
      const title = `${tolerance}, ${JSON.stringify(options)}: ${JSON.stringify(box)}`;
      expect(sizeOf(found), title).to.deep.equal([box.width, box.height]);
      expect(difference(await cut(whole, box), found).max, title).to.equal(0);
      boxes.push(box);
    }
    return boxes;
  };

  const KINDS: Readonly<Record<string, (picture: Sharp) => Sharp>> = {
    'a JPEG': (picture) => picture.flatten().jpeg({ quality: 90 }),
    'a rotated JPEG': (picture) => picture.flatten().jpeg({ quality: 95 }).withMetadata({ orientation: 6 }),
    'a grey JPEG': (picture) => picture.flatten().greyscale().jpeg(),
    'a PNG': (picture) => picture.flatten().png(),
    'a PNG with alpha': (picture) => picture.png(),
    'a palette': (picture) => picture.png({ palette: true, colours: 64, dither: 0 }),
    'a grey PNG': (picture) => picture.flatten().toColourspace('b-w').png(),
    'a WebP': (picture) => picture.webp({ lossless: true, exact: true }),
    'a GIF': (picture) => picture.gif({ dither: 0 }),
    'a TIFF': (picture) => picture.tiff(),
    'an AVIF': (picture) => picture.flatten().avif({ quality: 90, effort: 0 }),
  };
  for (const [kind, write] of Object.entries(KINDS))
    it(`removes the border of ${kind} exactly, for each tolerance`, async () => {
      const file = await write(blob(WHITE)).toBuffer();
      const [{ width, height }] = (await expectTrimmed(file, [20, 0, 1.2, 4, 45.5])) as [Box];
      expect(width * height, 'pixels').to.be.below(61 * 47 * 0.7);
    });

  it('cuts what sharp cuts, and leaves a picture that it has trimmed', async () => {
    for (const background of [WHITE, [0, 0, 0, 255]] as const) {
      const file = await blob(background).flatten().png().toBuffer();
      const theirs = await toPixels(sharp(file).trim({ threshold: 12, lineArt: true }));
      const { file: trimmed } = await make(file, { trim: 4.8 });
      const ours = await decode(trimmed, 'png');
      // sharp compares the greatest difference of a channel, and imagemill the mean of the squares.
      for (const side of [0, 1])
        expect(Math.abs((sizeOf(ours)[side] ?? 0) - (sizeOf(theirs)[side] ?? 0))).to.be.at.most(2);
    }
  });

  it('counts transparency, but no colours below it', async () => {
    const file = await blob([0, 0, 0, 0]).png().toBuffer();
    await expectTrimmed(file, [0, 4, 30]);
    const data = Buffer.alloc(30 * 20 * 4);
    for (let at = 0; at < data.length; at += 4) data.set([at % 251, at % 83, at % 7, 0], at);
    for (let row = 5; row < 9; row += 1) data.fill(255, (row * 30 + 11) * 4, (row * 30 + 14) * 4);
    const hidden = await sharp(data, { raw: { width: 30, height: 20, channels: 4 } })
      .png()
      .toBuffer();
    expect(sizeOf(await pixelsOf(hidden, { trim: 4 }))).to.deep.equal([3, 4]);
  });

  /** White pixels with some that are red, as `x,y x,y`. */
  const dots = (width: number, height: number, red = ''): Promise<Buffer> => {
    const data = Buffer.alloc(width * height * 3, 255);
    for (const place of red.split(' ').filter(Boolean)) {
      const [x = 0, y = 0] = place.split(',').map(Number);
      data.set([200, 0, 0], (y * width + x) * 3);
    }
    return sharp(data, { raw: { width, height, channels: 3 } })
      .png()
      .toBuffer();
  };

  it('compares all sides with the top left corner, and keeps a single pixel at any edge', async () => {
    for (const [points, size] of [
      ['8,0', '1,1'],
      ['0,6', '1,1'],
      ['8,6', '1,1'],
      ['0,3', '1,1'],
      ['4,0', '1,1'],
      ['8,0 0,6', '9,7'],
      ['3,2 8,6', '6,5'],
      // The right column and the bottom row have another colour, which is not that of the corner.
      ['8,0 8,1 8,2 8,3 8,4 8,5 8,6 4,3', '5,7'],
    ] as const)
      expect(String(sizeOf(await pixelsOf(await dots(9, 7, points), { trim: 4 }))), points).to.equal(size);
  });

  it('compares the values of 16 bits that a file stores, of which several are one in 8 bits', async () => {
    const values = Uint16Array.from({ length: 20 * 20 * 3 }, (_, at) => 0x8000 + (Math.floor(at / 3) % 2));
    values.fill(0xffff, 3 * (20 * 10 + 8), 3 * (20 * 10 + 12));
    const raw = { width: 20, height: 20, channels: 3 } as const;
    const png = await sharp(values, { raw }).toColourspace('rgb16').png().toBuffer();
    expect(png[24], 'bits').to.equal(16);
    expect(sizeOf(await pixelsOf(png, { trim: 0, format: 'webp' }))).to.deep.equal([19, 20]);
    expect(sizeOf(await pixelsOf(png, { trim: 1, format: 'webp' }))).to.deep.equal([4, 1]);
  });

  it('keeps a picture of one colour, and says so', async () => {
    const white = await dots(9, 7);
    const others = [sharp(white).jpeg(), sharp(white).gif(), blob([0, 0, 0, 0], [900, 900]).png()];
    const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="7"/>');
    const files = await Promise.all(others.map((picture) => picture.toBuffer()));
    for (const file of [white, await dots(1, 1), drawing, ...files])
      for (const format of ['png', 'gif'] as const) {
        const made = await make(file, { trim: 4, format });
        expect(made.notes, format).to.include('not-trimmed');
        expect(sizeOf(await decode(made.file, format))).to.deep.equal(sizeOf(await pixelsOf(file)));
      }
    const whole = await make(await dots(9, 7, '0,6 8,0'), { trim: 4 });
    expect(whole.notes).to.deep.equal([]);
    const all = await make(await fixture('scene.png'), { trim: 100 });
    expect(all.notes).to.deep.equal(['not-trimmed']);
  });

  it('follows rotate, flip and crop, and comes before the fit', async () => {
    const file = await blob(WHITE).png().toBuffer();
    for (const options of [
      { rotate: 90 },
      { rotate: 270, flip: 'vertical' },
      { crop: '3,2,50,40' },
      { crop: '10%,0,90%,100%', rotate: 180 },
      { crop: '25,12,9,8' },
    ] as const)
      await expectTrimmed(file, [8], options);
    const part = await make(file, { trim: 8 });
    for (const options of [
      { width: 20 },
      { scale: 50 },
      { width: 200, height: 30, fit: 'contain', position: '20%,90%', enlarge: true },
      { width: 10, height: 20, fit: 'cover', position: '70%,10%' },
      { width: 10, height: 20, fit: 'cover', position: 'attention' },
      { width: 15, height: 25, fit: 'fill', greyscale: true, blur: 1 },
    ] as const) {
      const [ours, expected] = [
        await pixelsOf(file, { ...options, trim: 8 }),
        await pixelsOf(part.file, options),
      ];
      expect(sizeOf(ours), JSON.stringify(options)).to.deep.equal(sizeOf(expected));
      expect(difference(ours, expected).max, JSON.stringify(options)).to.be.at.most(1);
    }
  });

  /** Frames as a GIF, or pages as a TIFF. */
  const stack = async (pictures: readonly Buffer[]): Promise<Sharp> => {
    const frames = await Promise.all(pictures.map((picture) => toPixels(sharp(picture))));
    const [{ width, height }] = frames as [Pixels];
    const data = Buffer.concat(frames.map((frame) => frame.data));
    const raw = { width, height: height * frames.length, channels: 4 as const, pageHeight: height };
    return sharp(data, { raw }).removeAlpha();
  };
  const FRAMES = () => Promise.all([dots(20, 14, '5,6'), dots(20, 14), dots(20, 14, '9,3 10,4')]);

  it('cuts all frames of an animation to one area, which loses nothing of any', async () => {
    const frames = await stack(await FRAMES());
    const delay = [100, 200, 300];
    const animations = [frames.clone().gif({ delay }), frames.clone().webp({ lossless: true, delay })];
    for (const file of await Promise.all(animations.map((animation) => animation.toBuffer())))
      for (const format of ['gif', 'webp'] as const) {
        const { file: result, notes } = await make(file, { trim: 4, format });
        const found = await sharp(result, { animated: true }).metadata();
        expect(found).to.deep.include({ pages: 3, pageHeight: 4, width: 6, delay });
        expect(notes).to.deep.equal([]);
        const first = await toPixels(sharp(result, { page: 0 }));
        const last = await toPixels(sharp(result, { page: 2 }));
        expect(boxOf(last, 4)).to.deep.equal({ left: 4, top: 0, width: 2, height: 2 });
        expect([...first.data.subarray((3 * 6 + 0) * 4, (3 * 6 + 1) * 4)]).to.deep.equal([200, 0, 0, 255]);
      }
    const first = await frames.clone().gif().toBuffer();
    expect(sizeOf(await pixelsOf(first, { trim: 4 }))).to.deep.equal([1, 1]);
  });

  it('trims each page of a TIFF or PDF separately', async () => {
    const pictures = [await dots(40, 28, '5,6 30,20'), await dots(40, 28), await dots(40, 28, '9,3 10,4')];
    const animation = await (await stack(pictures)).webp({ lossless: true }).toBuffer();
    const pages = await make(animation, { format: 'tiff', frames: 'all' });
    const tiff = await make(pages.file, { trim: 4, format: 'tiff' });
    expect(tiff.notes).to.deep.equal(['not-trimmed']);
    const pdf = await make(pages.file, { trim: 4, format: 'pdf' });
    for (const [page, size] of ['26,15', '40,28', '2,2'].entries()) {
      expect(String(sizeOf(await toPixels(sharp(tiff.file, { page })))), `page ${page}`).to.equal(size);
      expect(String(sizeOf(await decode(await drawPdf(pdf.file, page + 1)))), `page ${page}`).to.equal(size);
    }
    const paper = await extra('scene.pdf');
    await expectTrimmed(paper, [4], { dpi: 100 });
    await expectTrimmed(await edgeCase('mixed.tiff'), [10]);
  });

  it('crops a drawing, which is drawn anew at its final size, and stays vector in a PDF', async () => {
    const shapes = '<path fill="#28c" d="M20 10h40v30h-40z"/><circle cx="45" cy="30" r="15" fill="#fd4"/>';
    const drawing = Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="80">${shapes}</svg>`,
    );
    await expectTrimmed(drawing, [4]);
    for (const [options, size] of [
      [{ width: 80 }, [80, 70]],
      [{ scale: 200 }, [80, 70]],
      [{ rotate: 90, height: 80 }, [70, 80]],
      [{ crop: '0,0,50%,50%', width: 60 }, [60, 60]],
    ] as const) {
      const found = await pixelsOf(drawing, { ...options, trim: 4 });
      expect(sizeOf(found), JSON.stringify(options)).to.deep.equal(size);
      const all = { left: 0, top: 0, width: found.width, height: found.height };
      const clear = { ...found, data: Buffer.concat([Buffer.alloc(4), found.data.subarray(4)]) };
      expect(boxOf(clear, 4), JSON.stringify(options)).to.deep.equal(all);
    }
    const { file } = await make(drawing, { trim: 4, format: 'pdf' });
    expect(sizeOf(await decode(await drawPdf(file)))).to.deep.equal([40, 35]);
    expect(file.includes('/Image')).to.equal(false);
  });

  it('is rejected if the result becomes too large, which only the measurement shows', async () => {
    const line = await dots(300, 300, Array.from({ length: 280 }, (_, x) => `${x + 10},9`).join(' '));
    const options = { trim: 4, height: 2000, enlarge: true } as const;
    const error = await make(line, options).catch((thrown: Error) => thrown);
    expect(String(error)).to.match(/560000 × 2000|560000/);
  });

  it('works on every kind of file of the fixtures as on its result without trim', async () => {
    for (const [read, names] of [
      [fixture, ['window.png', 'orientation-5.jpg', 'icons.ico', 'scene.bmp', 'window.avif']],
      [edgeCase, ['deep.png', 'no-size.svg']],
      [extra, ['turned.heic', 'turned.jxl', 'grey.jp2', 'scene.psd']],
    ] as const)
      for (const name of names)
        await expectTrimmed(await read(name), [15]).catch((error) => {
          throw new Error(`${name}: ${error.message}`);
        });
  });
});
