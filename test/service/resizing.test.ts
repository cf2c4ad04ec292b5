// @full
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { convert } from '../helpers/client.ts';
import { madePhotos } from '../helpers/made-photos.ts';
import { byPillow, resizeByPillow } from '../helpers/pillow.ts';
import { decode, difference, onGrey, type Pixels, plain, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

type CornerType = 'jpeg' | 'png' | 'webp';

/** Pixels of a minimum coded unit of a JPEG, by the subsampling of colours. */
const CODED_UNITS = { '4:4:4': [8, 8], '4:2:0': [16, 16], '4:2:2': [16, 8] } as const;

/** Shrink-on-load must not show in the size, the edges or the pixels of the result. */
describe('shrinking to a much smaller size', () => {
  const service = useService();

  const drawn = new Map<string, Buffer>();
  /** Returns waves of increasing frequency with a partly transparent disc. Draws each size once. */
  function waves(width: number, height: number): Sharp {
    const key = `${width} × ${height}`;
    const data = drawn.get(key) ?? drawWaves(width, height);
    drawn.set(key, data);
    return sharp(data, { raw: { width, height, channels: 4 } });
  }

  function drawWaves(width: number, height: number): Buffer {
    const data = Buffer.alloc(width * height * 4);
    const columns = Float64Array.from({ length: width }, (_, x) => 120 * Math.sin((x * x) / 30_000));
    for (let y = 0; y < height; y += 1) {
      const row = Math.cos((y * y) / 30_000);
      for (let x = 0; x < width; x += 1) {
        const at = (y * width + x) * 4;
        const wave = 127 + (columns[x] as number) * row;
        data[at] = wave;
        data[at + 1] = 255 - wave;
        data[at + 2] = (x * 255) / width;
        data[at + 3] = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (height / 3) ** 2 ? 120 : 255;
      }
    }
    return data;
  }

  /**
   * Width, height, target side, and minimum PSNR of a JPEG in dB: odd sides, halving only, a
   * quarter, an eighth, three eighths; 2725 is from a real photo. If a part of a decoded pixel is
   * left out, these waves show it most; sharp has 22 to 41 dB there.
   */
  const SIZES = [
    [1999, 667, 99, 28],
    [2725, 1113, 300, 34],
    [1600, 1200, 94, 42],
    [1217, 911, 300, 40],
    [911, 1217, 150, 40],
    [1366, 1022, 150, 33],
    [1364, 1020, 150, 42],
    [1200, 904, 300, 42],
  ] as const;

  const KINDS: Readonly<Record<string, (image: Sharp) => Sharp>> = {
    jpg: (image) => image.flatten({ background: '#fff' }).jpeg({ quality: 100, chromaSubsampling: '4:4:4' }),
    png: (image) => image.png({ compressionLevel: 1 }),
    webp: (image) => image.webp({ lossless: true, effort: 0 }),
    'an opaque webp': (image) => image.flatten({ background: '#fff' }).webp({ lossless: true, effort: 0 }),
    tiff: (image) => image.tiff({ compression: 'lzw' }),
  };

  /** Minimum PSNR in dB, that of the filter (bench/README.md). */
  const MIN_PSNR = 42;

  it('of a PNG with an opaque alpha channel gives the pixels of a PNG without alpha', async () => {
    const opaque = waves(1217, 911).flatten({ background: '#fff' });
    const [without, withAlpha] = await Promise.all([
      opaque.clone().png().toBuffer(),
      opaque.clone().ensureAlpha().png().toBuffer(),
    ]);
    const fields = { format: 'png', width: '300' };
    const results = [
      await convert(service.base, without, fields),
      await convert(service.base, withAlpha, fields),
    ];
    const [one, other] = await Promise.all(results.map(({ body }) => decode(body)));
    expect(difference(one as Pixels, other as Pixels).psnr).to.be.greaterThan(60);
    expect(results.map(({ notes }) => notes)).to.deep.equal([null, null]);
  });

  it('of a TIFF with a profile of inks gives the pixels of its whole picture in sRGB, reduced by Lanczos', async () => {
    const inks = waves(1500, 1000).flatten().toColourspace('cmyk').withIccProfile('cmyk');
    for (const orientation of [1, 6]) {
      const file = await inks.clone().withMetadata({ orientation }).tiff({ compression: 'lzw' }).toBuffer();
      const whole = await decode((await convert(service.base, file, { format: 'png' })).body);
      for (const share of [0.06, 0.2, 0.3]) {
        const [width, height] = [whole.width * share, whole.height * share];
        const [expected] = (await resizeByPillow(whole, [{ width, height }])) as [Pixels];
        const { body } = await convert(service.base, file, { format: 'png', width: String(width) });
        expect(difference(await decode(body), expected).psnr, `${width} × ${height}`).to.be.greaterThan(
          MIN_PSNR,
        );
      }
    }
  });

  it('of a WebP with an orientation rotates it, and keeps the metadata only on request', async () => {
    const file = await waves(1400, 1000)
      .flatten()
      .withExif({ IFD0: { Copyright: 'me' } })
      .withMetadata({ orientation: 6 })
      .webp({ quality: 95 })
      .toBuffer();
    const whole = await toPixels(sharp(file).autoOrient());
    const [expected] = (await resizeByPillow(whole, [{ width: 200, height: 280 }])) as [Pixels];
    for (const strip_metadata of ['true', 'false']) {
      const fields = { format: 'webp', lossless: 'true', width: '200', strip_metadata };
      const { body } = await convert(service.base, file, fields);
      const { exif, orientation } = await sharp(body).metadata();
      expect([exif !== undefined, orientation ?? 1]).to.deep.equal([strip_metadata === 'false', 1]);
      expect(difference(await decode(body), expected).psnr).to.be.greaterThan(38);
    }
  });

  it('of a rotated photo that is decoded completely gives the pixels of the upright one', async () => {
    const scene = await sharp(await waves(640, 420).flatten().png().toBuffer())
      .extract({ left: 0, top: 0, width: 640, height: 419 })
      .png()
      .toBuffer();
    for (const [orientation, fields] of [
      ...[2, 3, 4, 5, 6, 7, 8].map((one) => [one, { fit: 'inside', width: '400' }] as const),
      [6, { fit: 'cover', width: '200', height: '300' }],
      [7, { fit: 'contain', width: '100', height: '30' }],
    ] as const) {
      const rotated = await sharp(scene).withMetadata({ orientation }).png().toBuffer();
      const upright = await sharp(rotated).autoOrient().png().toBuffer();
      const [result, expected] = await Promise.all(
        [rotated, upright].map(async (file) =>
          decode((await convert(service.base, file, { format: 'png', ...fields })).body),
        ),
      );
      const found = difference(result as Pixels, expected as Pixels);
      expect(found.psnr, `${fields.fit}, orientation ${orientation}`).to.be.greaterThan(60);
    }
  });

  it('of a damaged WebP gives the error of a conversion at full size', async () => {
    const file = await waves(1400, 1000).flatten().webp({ quality: 80 }).toBuffer();
    const damaged = [0.05, 0.5, 0.999].map((share) => file.subarray(0, Math.floor(file.length * share)));
    const wrongSize = Buffer.from(file);
    wrongSize.writeUInt16LE(9000, wrongSize.indexOf('VP8 ') + 14);
    for (const sent of [...damaged, wrongSize]) {
      const [small, full] = [
        await convert(service.base, sent, { format: 'jpg', width: '200' }),
        await convert(service.base, sent, { format: 'jpg' }),
      ];
      expect(small.status).to.be.oneOf([400, 413]);
      expect([small.status, small.body.toString()]).to.deep.equal([full.status, full.body.toString()]);
    }
  });

  /** Draws a dark image whose bottom right corner is bright, with this number of pixels a side. */
  async function corner(width: number, height: number, side: number, type: CornerType): Promise<Buffer> {
    const bright = await plain(side, side, '#c8c8c8').png().toBuffer();
    return plain(width, height, '#3c3c3c')
      .composite([{ input: bright, gravity: 'southeast' }])
      .toFormat(type, { quality: 100, chromaSubsampling: '4:4:4', lossless: true })
      .toBuffer();
  }

  /** Measures the bright corner in pixels, with fractions from the levels of its edges. */
  function brightCorner({ width, height, data }: Pixels): { width: number; height: number } {
    const levels = (count: number, pixel: (at: number) => number): number =>
      Array.from({ length: count }, (_, at) => ((data[pixel(at) * 4] as number) - 60) / 140).reduce(
        (a, b) => a + b,
      );
    return {
      width: levels(width, (x) => (height - 4) * width + x),
      height: levels(height, (y) => y * width + width - 4),
    };
  }

  /** Scale of the columns, from the scales that fit the columns and the rows, by the way to fit. */
  const SCALES: Readonly<Record<string, (own: number, other: number) => number>> = {
    inside: Math.min,
    contain: Math.min,
    cover: Math.max,
    fill: (own: number) => own,
  };

  /**
   * Maximum shift of the far edges, in pixels. A decoder at a smaller size leaves out a part of a
   * pixel.
   */
  const MAX_SHIFTS = { jpeg: 0.3, png: 0.08, webp: 0.08 };

  // The arithmetic for all sides is tested with the plan.
  for (const [type, fit, box] of [
    ['jpeg', 'inside', [300, 200]],
    ['jpeg', 'cover', [300, 200]],
    ['jpeg', 'contain', [300, 200]],
    ['jpeg', 'fill', [300, 200]],
    ['png', 'inside', [150, 200]],
    ['webp', 'inside', [150, 200]],
  ] as const)
    it(`by ${fit} moves the far edges of a ${type} by at most ${MAX_SHIFTS[type]} pixels, for sides beyond whole blocks`, async () => {
      const scaleOf = SCALES[fit] as (typeof SCALES)[string];
      for (const more of [1, 6, 13, 27, 40]) {
        const [width, height, side] = [1200 + more, 880 + more, 192];
        const [x, y] = [box[0] / width, box[1] / height];
        const resized = [Math.round(width * scaleOf(x, y)), Math.round(height * scaleOf(y, x))] as const;
        const { body } = await convert(service.base, await corner(width, height, side, type), {
          format: 'png',
          fit,
          position: 'right bottom',
          background: '#3c3c3c',
          width: `${box[0]}`,
          height: `${box[1]}`,
        });
        const result = await decode(body);
        expect(sizeOf(result)).to.deep.equal(fit === 'inside' ? resized : box);
        const bright = brightCorner(result);
        expect(Math.abs(bright.width - (side * resized[0]) / width), `${width} columns`).to.be.at.most(
          MAX_SHIFTS[type],
        );
        expect(Math.abs(bright.height - (side * resized[1]) / height), `${height} rows`).to.be.at.most(
          MAX_SHIFTS[type],
        );
      }
    });

  /**
   * Crops a photo without loss, as `jpegtran -crop` does: the last blocks of the JPEG still hold
   * what is cut off, here magenta, or, without a colour, copies of the edge, as encoders write
   * them.
   */
  async function cropped(
    photo: Pixels,
    [width, height]: readonly [number, number],
    sampling: keyof typeof CODED_UNITS,
    beyond?: string,
  ): Promise<Buffer> {
    const { data: kept } = await sharp(photo.data, { raw: { ...photo, channels: 4 } })
      .extract({ left: 0, top: 0, width, height })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const [right, bottom] = [width, height].map((side, at) => {
      const unit = CODED_UNITS[sampling][at] as number;
      return Math.ceil(side / unit) * unit - side;
    });
    const whole = sharp(kept, { raw: { width, height, channels: 4 } })
      .extend({ right, bottom, ...(beyond ? { background: beyond } : { extendWith: 'copy' }) })
      .removeAlpha();
    const file =
      sampling === '4:2:2'
        ? byPillow(await whole.png().toBuffer(), 'image.save(file, "JPEG", quality=97, subsampling="4:2:2")')
        : await whole.jpeg({ quality: 97, chromaSubsampling: sampling }).toBuffer();
    const frame = file.indexOf(Buffer.from([0xff, 0xc0])); // no table of the encoders contains these bytes
    file.writeUInt16BE(height, frame + 5);
    file.writeUInt16BE(width, frame + 7);
    return file;
  }

  /** Returns the last column and the last row of an image. */
  const farEdges = ({ width, height, data }: Pixels): Pixels[] =>
    [
      Array.from({ length: height }, (_, y) => (y + 1) * width - 1),
      Array.from({ length: width }, (_, x) => (height - 1) * width + x),
    ].map((pixels) => ({
      width: pixels.length,
      height: 1,
      data: Buffer.concat(pixels.map((at) => data.subarray(at * 4, at * 4 + 4))),
    }));

  /**
   * Compares the far edges of two images of the same size: PSNR of the last column and of the last
   * row.
   */
  const edgePsnrs = ([one, other]: readonly Pixels[]): number[] => {
    const edges = farEdges(other as Pixels);
    return farEdges(one as Pixels).map((edge, at) => difference(edge, edges[at] as Pixels).psnr);
  };

  /** Decodes all pixels of a JPEG, and resizes them. */
  async function resizeWhole(file: Buffer, { width, height }: Pixels): Promise<Pixels> {
    const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
    return toPixels(sharp(data, { raw: info }).resize(width, height, { fit: 'fill' }));
  }

  for (const sampling of Object.keys(CODED_UNITS) as (keyof typeof CODED_UNITS)[])
    it(`of a JPEG of ${sampling} shows nothing that a lossless crop has left beyond its edges, for all sides`, async () => {
      const [photo] = (await madePhotos(720, 560, 1)) as [Pixels];
      for (let more = 0; more < 16; more += 1) {
        const sides = [640 + more, 480 + ((5 * more) % 16)] as const;
        const files = [
          await cropped(photo, sides, sampling, '#f0f'),
          await cropped(photo, sides, sampling),
        ] as const;
        const width = [60, 100, 150][more % 3];
        const results: Pixels[] = [];
        for (const file of files)
          results.push(
            await decode((await convert(service.base, file, { format: 'png', width: `${width}` })).body),
          );
        // An odd side shows half of the next colour in every viewer, if colours have half the
        // resolution.
        const wholes = await Promise.all(files.map((file) => resizeWhole(file, results[0] as Pixels)));
        const shown = edgePsnrs(wholes);
        for (const [at, psnr] of edgePsnrs(results).entries())
          expect(psnr, `${sides.join(' × ')} to ${width}, ${at ? 'row' : 'column'}`).to.be.greaterThan(
            Math.min(40, shown[at] as number),
          );
      }
    });

  for (const [kind, write] of Object.entries(KINDS)) {
    it(`from ${kind} gives the exact size and the pixels of a full-resolution resize`, async () => {
      for (const [width, height, side, minimum] of kind === 'jpg' ? SIZES : SIZES.slice(0, 3)) {
        const file = await write(waves(width, height)).toBuffer();
        const { body } = await convert(service.base, file, {
          format: 'png',
          width: `${side}`,
          height: `${side}`,
        });
        const scale = side / Math.max(width, height);
        const expected = { width: Math.round(width * scale), height: Math.round(height * scale) };
        const actual = await decode(body);
        expect(sizeOf(actual), `${width} × ${height}`).to.deep.equal([expected.width, expected.height]);
        const [reference] = (await resizeByPillow(await decode(file), [expected])) as [Pixels];
        for (const grey of [0, 255])
          expect(
            difference(onGrey(actual, grey), onGrey(reference, grey)).psnr,
            `${width} × ${height}`,
          ).to.be.greaterThan(kind === 'jpg' ? minimum : MIN_PSNR);
      }
    });
  }
});
