// @full
import { expect } from 'chai';
import sharp from 'sharp';
import { uint32 } from '../../scripts/fixtures/boxes.ts';
import { avif } from '../../scripts/fixtures/edge-case.ts';
import { withChromaticities, withChunk, withCodePoints } from '../../scripts/fixtures/writers.ts';
import { expectAsInBrowser, useBrowserDecoder } from '../helpers/chromium.ts';
import { convert, converted, edgeCase } from '../helpers/client.ts';
import { decode, difference, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const PATCHES = 12;
const SIDE = 4;

/** Shows patches of colours from the whole RGB cube. */
async function patches(): Promise<Buffer> {
  const perRow = (PATCHES ** 1.5) | 0;
  const rows = Math.ceil(PATCHES ** 3 / perRow);
  const data = Buffer.alloc(perRow * rows * 3);
  for (let at = 0; at < PATCHES ** 3; at += 1) {
    const steps = [Math.floor(at / PATCHES ** 2), Math.floor(at / PATCHES) % PATCHES, at % PATCHES];
    const colour = steps.map((step) => Math.round((step * 255) / (PATCHES - 1)));
    data.set(colour, at * 3);
  }
  return sharp(data, { raw: { width: perRow, height: rows, channels: 3 } })
    .resize(perRow * SIDE, rows * SIDE, { kernel: 'nearest' })
    .png()
    .toBuffer();
}

/** Code points of primaries and transfers (ITU-T H.273). */
const CODE_POINTS = {
  'Display P3': [12, 13],
  'BT.2020 with the curve of a camera': [9, 14],
  'BT.470 M with gamma 2.2': [4, 4],
  'BT.601 with gamma 2.8': [6, 5],
  'SMPTE 240M': [7, 7],
  'linear light': [1, 8],
  'CIE XYZ': [10, 13],
  'SMPTE ST 428': [11, 17],
  'EBU 3213': [22, 13],
  'BT.2100 PQ': [9, 16],
  'Display P3 PQ': [12, 16],
  'BT.2100 HLG': [9, 18],
} as const;
const ADOBE_RGB = [31_270, 32_900, 64_000, 33_000, 21_000, 71_000, 15_000, 6_000];

describe('colours declared by numbers', () => {
  const service = useService();
  const browser = useBrowserDecoder();

  const check = (...image: readonly [file: Buffer, mediaType: string]) =>
    expectAsInBrowser(service, browser, ...image);

  for (const [name, [primaries, transfer]] of Object.entries(CODE_POINTS)) {
    it(`converts a PNG declared as ${name} to what Chromium shows`, async () => {
      await check(withCodePoints(await patches(), primaries, transfer), 'image/png');
    });
  }

  for (const name of ['Display P3', 'BT.2100 PQ', 'BT.2100 HLG'] as const) {
    it(`converts an AVIF declared as ${name} to what Chromium shows`, async () => {
      const cicp = `${CODE_POINTS[name].join('/')}/1`;
      await check(avif([await patches()], ['-d', '10', '--cicp', cicp]), 'image/avif');
    });
  }

  it('converts a PNG with the primaries of Adobe RGB and a gamma to what Chromium shows', async () => {
    await check(withChromaticities(await patches(), ADOBE_RGB, 45_455), 'image/png');
  });

  for (const nits of [400, 4000]) {
    it(`maps PQ that states a peak of ${nits} cd/m² as Chromium does`, async () => {
      const file = withChunk(await patches(), 'cLLI', uint32(nits * 10_000, 0));
      await check(withCodePoints(file, ...CODE_POINTS['BT.2100 PQ']), 'image/png');
    });
  }

  it('ignores calibrated colours of a BMP as Chromium does, also in a PNG that keeps metadata', async () => {
    const bmp = await edgeCase('calibrated-v4.bmp');
    const { body } = await converted(service.base, bmp, { format: 'png', strip_metadata: 'false' });
    const [shown, wanted] = [await browser.show(body, 'image/png'), await browser.show(bmp, 'image/bmp')];
    expect(pixelAt(wanted, 6, 4)).to.deep.equal([200, 40, 40, 255]);
    expect(difference(shown, wanted).max).to.equal(0);
  });

  it('of a PNG that keeps metadata are those of the source, as Chromium shows them', async () => {
    const source = await patches();
    const { body } = await convert(service.base, source, { format: 'png', strip_metadata: 'false' });
    const [shown, wanted] = [await browser.show(body, 'image/png'), await browser.show(source, 'image/png')];
    expect(difference(shown, wanted).max).to.equal(0);
  });

  for (const [what, primaries, gamma] of [
    ['that are on one line', [31_270, 32_900, 64_000, 33_000, 32_000, 33_000, 15_000, 33_000], 45_455],
    ['that are no colours', [31_270, 32_900, 640_000, 33_000, 30_000, 60_000, 15_000, 6_000], 45_455],
    ['with a white that no profile can hold', [51_000, 47_750, ...ADOBE_RGB.slice(2)], 45_455],
    ['with a gamma of 0', ADOBE_RGB, 0],
  ] as const) {
    it(`ignores primaries in a PNG ${what}`, async () => {
      const file = withChromaticities(await patches(), primaries, gamma);
      const { notes, body } = await converted(service.base, file, { format: 'png' });
      expect(notes).to.equal(null);
      expect(difference(await decode(body), await decode(await patches())).max).to.equal(0);
    });
  }
});
