// @full: all files, truncated at many bytes
/** @module Truncated images: what is there is shown as browsers show it, with a note. */
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { gif } from '../../scripts/fixtures/gif-writer.ts';
import {
  type ClientResponse,
  convert,
  edgeCase,
  expectSuccess,
  type Fields,
  fixture,
} from '../helpers/client.ts';
import { decode, difference, type Pixels, pixelAt, sizeOf } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const [WIDTH, HEIGHT] = [61, 43];

/** Noise, which hardly compresses: a part of the file holds the same part of the rows. */
function noise(): Sharp {
  const options = { width: WIDTH, height: HEIGHT, channels: 3, background: 'teal' } as const;
  return sharp({ create: { ...options, noise: { type: 'gaussian', mean: 120, sigma: 60 } } });
}

/** Each kind of pixels that a PNG stores. */
const PNG_KINDS: Readonly<Record<string, () => Sharp>> = {
  '8-bit RGB': () => noise().png(),
  '8-bit RGB with alpha': () => noise().ensureAlpha(0.5).png(),
  '8-bit greyscale': () => noise().greyscale().png(),
  '16-bit RGB': () => noise().toColourspace('rgb16').png(),
  '16-bit greyscale': () => noise().toColourspace('grey16').png(),
  'a full palette': () => noise().png({ palette: true }),
  'four colours': () => noise().png({ palette: true, colours: 4 }),
  'two colours': () => noise().png({ palette: true, colours: 2 }),
};

const upTo = (file: Buffer, share: number): Buffer => file.subarray(0, Math.floor(file.length * share));

/** Expects the whole rows from the top, and nothing below. Returns the number of rows. */
function expectRows(shown: Pixels, whole: Pixels): number {
  expect(sizeOf(shown)).to.deep.equal(sizeOf(whole));
  const heights = Array.from({ length: shown.height }, (_, y) => y);
  const rows = heights.filter((y) => pixelAt(shown, 0, y)[3] !== 0).length;
  const expected = Buffer.from(whole.data).fill(0, rows * whole.width * 4);
  expect(difference(shown, { ...whole, data: expected }).max).to.be.at.most(1);
  return rows;
}

describe('a truncated image', () => {
  const service = useService();

  async function converted(file: Buffer, fields: Fields = {}): Promise<ClientResponse> {
    const response = await expectSuccess(convert(service.base, file, { format: 'png', ...fields }));
    expect(response.notes).to.include('truncated-input');
    return response;
  }

  const shownOf = async (file: Buffer): Promise<Pixels> => decode((await converted(file)).body);

  for (const [kind, make] of Object.entries(PNG_KINDS)) {
    it(`shows the whole rows of a PNG of ${kind}, and nothing below`, async () => {
      const file = await make().toBuffer();
      const rows = expectRows(await shownOf(upTo(file, 0.7)), await decode(file));
      expect(rows).to.be.within(HEIGHT * 0.5, HEIGHT * 0.8);
    });
  }

  it('shows all of a PNG that has no end', async () => {
    const whole = await noise().ensureAlpha(0.5).png().toBuffer();
    for (const missing of [1, 8, 12]) {
      const shown = await shownOf(whole.subarray(0, whole.length - missing));
      expect(difference(shown, await decode(whole)).max).to.equal(0);
    }
  });

  it('shows all of an interlaced PNG that lacks only its end, and returns 400 if it lacks pixels', async () => {
    const file = await noise().png({ progressive: true }).toBuffer();
    for (const missing of [1, 12]) {
      const shown = await shownOf(file.subarray(0, file.length - missing));
      expect(difference(shown, await decode(file)).max).to.equal(0);
    }
    for (const share of [0.5, 0.99])
      expect((await convert(service.base, upTo(file, share))).outcome).to.equal(
        '400 The file is damaged or not a valid PNG image.',
      );
  });

  it('keeps 16 bits, orientation, profile and transparency of a PNG', async () => {
    const deep = await converted(upTo(await noise().toColourspace('rgb16').png().toBuffer(), 0.7));
    expect((await sharp(deep.body).metadata()).depth).to.equal('ushort');
    const turned = await noise().withMetadata({ orientation: 6 }).withIccProfile('p3').png().toBuffer();
    const { body, notes } = await converted(upTo(turned, 0.8));
    expect(notes).to.include('colour-converted-to-srgb');
    const shown = await decode(body);
    expect(sizeOf(shown)).to.deep.equal([HEIGHT, WIDTH]);
    expect(pixelAt(shown, 0, 0)[3], 'the side that was the bottom').to.equal(0);
    expect(pixelAt(shown, HEIGHT - 1, 0)[3], 'the side that was the top').to.equal(255);
  });

  it('shows missing rows in the background colour where a format has no transparency', async () => {
    const file = upTo(await noise().png().toBuffer(), 0.5);
    const { body, notes } = await converted(file, { format: 'bmp', background: 'lime' });
    expect(notes).to.equal('truncated-input, alpha-flattened');
    expect(pixelAt(await decode(body, 'bmp'), 5, HEIGHT - 1)).to.deep.equal([0, 255, 0, 255]);
  });

  it('keeps the first image of an animated PNG that ends in another one', async () => {
    const file = await edgeCase('moving.png');
    const { notes } = await converted(file.subarray(0, file.length - 12));
    expect(notes).to.equal('first-frame-only, truncated-input');
  });

  it('returns 400 for a PNG without a whole row', async () => {
    const file = await noise().png().toBuffer();
    const pixels = file.indexOf('IDAT');
    for (const length of [20, pixels - 4, pixels + 4, pixels + 20]) {
      expect((await convert(service.base, file.subarray(0, length))).outcome).to.equal(
        '400 The file is damaged or not a valid PNG image.',
      );
    }
  });

  it('returns 400 for a truncated PNG with changed pixels', async () => {
    const file = upTo(await noise().png().toBuffer(), 0.99);
    const data = file.indexOf('IDAT');
    const ended = Buffer.from(file);
    ended.writeUInt32BE(2000, data - 4); // a chunk that ends where its checksum is not
    expect((await convert(service.base, ended)).status).to.equal(400);
    const invalid = Buffer.from(file);
    invalid.fill(0xff, data + 4, data + 20);
    expect((await convert(service.base, invalid)).status).to.equal(400);
  });

  it('returns 413 for a truncated PNG that unpacks to more pixels than are allowed', async () => {
    const file = upTo(await noise().png().toBuffer(), 0.9);
    file.writeUInt32BE(10_000, 16);
    file.writeUInt32BE(10_000, 20);
    expect((await convert(service.base, file)).status).to.equal(413);
  });

  it('shows all of a GIF that lacks only its trailer', async () => {
    for (const file of [await noise().gif({ progressive: true }).toBuffer(), await fixture('moving.gif')]) {
      const cut = file.subarray(0, -1);
      const { body } = await converted(cut, { format: 'gif' });
      expect(difference(await decode(body), await decode(file)).max).to.equal(0);
    }
  });

  it('has no note for a GIF with bytes behind its end', async () => {
    const palette = [0, 1, 2, 3].map((grey) => [grey, grey, grey]);
    const frames = [{ x: 0, y: 0, width: 4, height: 4, colour: 2 }];
    const file = Buffer.concat([gif({ width: 4, height: 4, palette, frames }), Buffer.from('!\xfe\x09')]);
    const { status, notes } = await convert(service.base, file, { format: 'png' });
    expect([status, notes]).to.deep.equal([200, null]);
  });

  for (const [label, name] of [
    ['GIF', 'moving.gif'],
    ['GIF', 'scene.gif'],
    ['WebP', 'moving.webp'],
    ['WebP', 'scene.webp'],
    ['TIFF', 'pages.tiff'],
    ['TIFF', 'scene.tiff'],
    ['AVIF', 'scene.avif'],
  ] as const) {
    it(`returns 400 for ${name} truncated anywhere`, async () => {
      const file = await fixture(name);
      for (const share of [0.1, 0.5, 0.7, 0.95]) {
        const { outcome } = await convert(service.base, upTo(file, share), { format: 'gif' });
        expect(outcome, `${share}`).to.equal(`400 The file is damaged or not a valid ${label} image.`);
      }
    });
  }
});
