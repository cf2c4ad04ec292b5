// @full: the kinds of public test suites
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/** @module Converts the kinds of files in BMP Suite, and checks the colours. */
import { expect } from 'chai';
import { CHECKED_ROW, GOOD, QUESTIONABLE } from '../helpers/bmp-kinds.ts';
import { convert, fixture } from '../helpers/client.ts';
import { decode, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

describe('a BMP of a kind in BMP Suite', () => {
  const service = useService();

  for (const { names, make, shows } of [...GOOD, ...QUESTIONABLE]) {
    it(`${names}: ${shows ? 'the colours are right' : 'is rejected with 400'}`, async () => {
      const { status, message, body } = await convert(service.base, await make(), { format: 'png' });
      expect(status, message).to.equal(shows ? 200 : 400);
      if (!shows) return;
      const image = await decode(body);
      for (const [x, wanted] of [
        [6, shows[0]],
        [18, shows[1]],
      ] as const) {
        const [red = 0, green = 0, blue = 0, alpha = 255] = wanted;
        const actual = pixelAt(image, x, CHECKED_ROW);
        expect(actual[3]).to.equal(alpha);
        if (alpha > 0)
          for (const [at, value] of [red, green, blue].entries()) expect(actual[at]).to.be.closeTo(value, 1);
      }
    });
  }

  it('without the offset of the pixels: they follow the palette, as in browsers', async () => {
    const [BITS_AT, OFFSET_AT] = [28, 10];
    for (const file of ['scene.bmp', '../traps/rle8.bmp', '../traps/palette-1.bmp']) {
      const bytes = await fixture(file);
      const without = Buffer.from(bytes);
      without.writeUInt32LE(0, OFFSET_AT);
      const [wanted, { status, body }] = (await Promise.all(
        [bytes, without].map((source) => convert(service.base, source, { format: 'png' })),
      )) as [Awaited<ReturnType<typeof convert>>, Awaited<ReturnType<typeof convert>>];
      const name = `${file}, ${bytes.readUInt16LE(BITS_AT)} bits`;
      expect(status, name).to.equal(200);
      expect((await decode(body)).data.equals((await decode(wanted.body)).data), name).to.equal(true);
    }
  });
});
