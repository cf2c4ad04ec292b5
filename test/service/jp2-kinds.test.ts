// @full: the kinds of public test suites
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/** @module JPEG 2000 files whose headers ImageMagick misreads. */
import { expect } from 'chai';
import {
  codestreamOf,
  colourBox,
  JP2_COLOURS,
  subsampleAll,
  withColour,
} from '../../scripts/fixtures/jp2.ts';
import { open, scene } from '../../scripts/fixtures/scene.ts';
import { withoutPrimaries } from '../../scripts/fixtures/writers.ts';
import { declaredProfile } from '../../src/images/colour/declared-colour.ts';
import { convert, converted } from '../helpers/client.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { byPillow, decodeByPillow } from '../helpers/pillow.ts';
import { decode, difference, type Pixels, pixelAt, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';

/** Primaries and curve (L* of CIELab) of eciRGB v2, a colour space of archives. */
const ECI_RGB = declaredProfile({
  primaries: { red: [0.67, 0.33], green: [0.21, 0.71], blue: [0.14, 0.08], white: [0.3457, 0.3585] },
  transfer: { curve: [3, 100 / 116, 16 / 116, 2700 / 24_389, 0.08] },
});

/** The scene with its transparency, in greys. */
const greyWindow = (): Promise<Buffer> =>
  open(scene({ transparent: true }))
    .greyscale()
    .toColourspace('b-w')
    .png()
    .toBuffer();
/** Returns the offset of the end of the marker that starts the codestream. */
const codestreamStart = (file: Buffer): number => file.indexOf('\xff\x4f\xff\x51', 'latin1') + 4;
const greyAlpha = async (): Promise<Buffer> =>
  byPillow(await greyWindow(), "image.convert('LA').save(file, 'JPEG2000')");

describe('a JPEG 2000', () => {
  const own = useServiceWith(ALL_EXTRAS);

  async function expectShown(file: Buffer, wanted: Pixels, minPsnr = 48): Promise<void> {
    const { body } = await converted(own.base, file, { format: 'png' });
    const shown = await decode(body);
    expect(sizeOf(shown)).to.deep.equal(sizeOf(wanted));
    expect(difference(shown, wanted).psnr, 'PSNR in dB').to.be.at.least(minPsnr);
  }

  it('whose components are all subsampled is shown whole, at the size of its components', async () => {
    for (const name of ['scene.jp2', 'scene.j2k'])
      await expectShown(subsampleAll(await extra(name)), scene());
    await expectShown(subsampleAll(await extra('window.jp2')), scene({ transparent: true }));
    const tiles = byPillow(
      await open(scene()).removeAlpha().png().toBuffer(),
      "image.save(file, 'JPEG2000', tile_size=(64, 48), offset=(6, 4))",
    );
    await expectShown(subsampleAll(tiles), scene());
  });

  it('that does not start at the origin of its grid is shown whole', async () => {
    const png = await open(scene()).removeAlpha().png().toBuffer();
    for (const options of [
      'offset=(8, 5), tile_size=(160, 160)',
      'offset=(40, 3), tile_size=(64, 64), tile_offset=(24, 0)',
    ])
      await expectShown(byPillow(png, `image.save(file, 'JPEG2000', ${options})`), scene());
  });

  it('whose colours alone are subsampled is sYCC, also if its header states another colour space', async () => {
    const file = await extra('subsampled.jp2');
    await expectShown(codestreamOf(file), scene(), 27);
    await expectShown(withColour(file, colourBox(JP2_COLOURS.srgb)), scene(), 27);
    await expectShown(await extra('subsampled-422.j2k'), scene(), 27);
  });

  it('in sYCC has the right colours in every format, and beside and behind a background', async () => {
    const file = await extra('subsampled.jp2');
    const background = '#e04020';
    for (const format of ['png', 'gif', 'jpg'] as const) {
      for (const options of [{}, { background }] as const) {
        const { body } = await converted(own.base, file, { format, ...options });
        const least = format === 'gif' ? 25 : 27;
        const what = `${format} ${JSON.stringify(options)}`;
        expect(difference(await decode(body, format), scene()).psnr, what).to.be.at.least(least);
      }
      const box = { width: '120', height: '100', fit: 'contain', background };
      const shown = await decode((await converted(own.base, file, { format, ...box })).body, format);
      const inside = await toPixels(open(shown).extract({ left: 0, top: 10, width: 120, height: 80 }));
      const border = pixelAt(shown, 60, 3);
      for (const [channel, value] of [0xe0, 0x40, 0x20].entries())
        expect(border[channel], `border in ${format}`).to.be.closeTo(value, 8);
      expect(difference(inside, scene()).psnr, `inside of ${format}`).to.be.at.least(25);
    }
  });

  it('whose channels are subsampled unevenly is not sYCC', async () => {
    const { width, height, data } = scene();
    const factors = [
      [1, 1],
      [2, 1],
      [1, 2],
      [2, 2],
    ] as const;
    const repeated = Buffer.from(
      data.map((_, at) => {
        const [x, y] = factors[at % 4] as readonly [number, number];
        const pixel = Math.floor(at / 4);
        const [column, row] = [pixel % width, Math.floor(pixel / width)];
        return data[((row - (row % y)) * width + column - (column % x)) * 4 + (at % 4)] as number;
      }),
    );
    await expectShown(await extra('uneven.j2k'), { width, height, data: repeated });
  });

  it('with a colour specification of a vendor has the default colours, and keeps its transparency', async () => {
    const vendor = { name: 'colr', body: Buffer.from(`\x04\0\0${'vendor'.padEnd(16)}`, 'latin1') };
    await expectShown(withColour(await greyAlpha(), vendor), await decode(await greyWindow()));
    await expectShown(withColour(await extra('scene.jp2'), vendor), scene());
    const colours = withColour(await extra('scene.jp2'), colourBox(JP2_COLOURS.grey));
    await expectShown(colours, scene());
  });

  it('with a profile by the method of JP2 or of JPX is converted as a PNG with it is', async () => {
    const profile = await ECI_RGB;
    const tagged = `image.save(file, 'PNG', icc_profile=bytes.fromhex('${profile.toString('hex')}'))`;
    const wanted = await decodeByPillow(byPillow(await open(scene()).removeAlpha().png().toBuffer(), tagged));
    expect(difference(wanted, scene()).mae, 'effect of the profile').to.be.above(4);
    for (const method of [2, 3] as const)
      await expectShown(withColour(await extra('scene.jp2'), colourBox({ method, profile })), wanted, 44);
  });

  it('whose profile has primaries of zero is shown without it', async () => {
    const profile = withoutPrimaries(await ECI_RGB);
    await expectShown(withColour(await extra('scene.jp2'), colourBox({ method: 2, profile })), scene());
  });

  for (const [name, file] of [
    ['CMYK', async () => withColour(await extra('window.jp2'), colourBox(JP2_COLOURS.cmyk), false)],
    ['CMYK and alpha', async () => withColour(await extra('window.jp2'), colourBox(JP2_COLOURS.cmyk), true)],
    ['CIELab', async () => withColour(await extra('scene.jp2'), colourBox(JP2_COLOURS.lab))],
    ['e-sYCC', async () => withColour(await extra('subsampled.jp2'), colourBox(JP2_COLOURS.esycc))],
    [
      'a profile of CMYK',
      async () => {
        const profile = Buffer.from(await ECI_RGB);
        profile.write('CMYK', 16, 'latin1');
        return withColour(await extra('window.jp2'), colourBox({ method: 2, profile }));
      },
    ],
  ] as const) {
    it(`with ${name} is rejected with 400 and the reason`, async () => {
      expect((await convert(own.base, await file(), { format: 'png' })).outcome).to.match(
        /^400 .*JPEG 2000 with other colours than/,
      );
    });
  }

  it('that states smaller tiles than it has, so that some have no data, is rejected with 400', async () => {
    for (const name of ['scene.jp2', 'scene.j2k', 'window.jp2']) {
      for (const [width, height] of [
        [64, 80],
        [120, 40],
        [119, 80],
        [1, 1],
      ] as const) {
        const file = Buffer.from(await extra(name));
        file.writeUInt32BE(width, codestreamStart(file) + 20);
        file.writeUInt32BE(height, codestreamStart(file) + 24);
        const { outcome } = await convert(own.base, file, { format: 'png' });
        expect(outcome, `${name} in tiles of ${width} × ${height}`).to.equal(
          '400 The file is damaged or not a valid JPEG 2000 image.',
        );
      }
    }
  });

  it('that is truncated anywhere is rejected with 400, also between its tiles', async () => {
    const tiled = byPillow(
      await open(scene()).removeAlpha().png().toBuffer(),
      "image.save(file, 'JPEG2000', tile_size=(32, 32))",
    );
    const names = ['scene.jp2', 'scene.j2k', 'grey.jp2', 'window.jp2', 'palette.jp2', 'subsampled.jp2'];
    const files = await Promise.all(names.map(extra));
    for (const [at, file] of [tiled, ...files].entries()) {
      const start = codestreamStart(file);
      const parts = [0.2, 0.5, 0.8, 0.95, 0.99].map(
        (part) => start + Math.floor((file.length - start) * part),
      );
      const tiles = Array.from({ length: 3 }, (_, tile) =>
        file.indexOf(`\xff\x90\0\x0a\0${String.fromCharCode(tile + 1)}`, 'latin1'),
      );
      for (const length of [...parts, ...tiles.filter((end) => end > 0), file.length - 2]) {
        const { outcome } = await convert(own.base, file.subarray(0, length), { format: 'png' });
        expect(outcome, `${['tiles', ...names][at]}, ${length} of ${file.length} bytes`).to.equal(
          '400 The file is damaged or not a valid JPEG 2000 image.',
        );
      }
    }
  });
});
