/** @module Converts every kind of file in BMP Suite, and checks the colours. */
import { expect } from 'chai';
import { CHECKED_ROW, GOOD, QUESTIONABLE } from '../helpers/bmp-kinds.ts';
import { convert } from '../helpers/client.ts';
import { decode, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

describe('every kind of BMP in BMP Suite', () => {
  const service = useService();

  for (const { names, make, shows } of [...GOOD, ...QUESTIONABLE]) {
    it(`${names}: ${shows ? 'the colours are right' : 'is rejected with 400, as in browsers'}`, async () => {
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
        if (alpha > 0) expect(actual.slice(0, 3)).to.deep.equal([red, green, blue]);
      }
    });
  }
});
