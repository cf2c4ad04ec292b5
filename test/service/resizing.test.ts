import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { convert } from '../helpers/client.ts';
import { decode, difference, onGrey } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** What is made much smaller is halved on the way: that must not be seen, neither in its size nor in its pixels. */
describe('a picture that becomes much smaller', () => {
  const service = useService();

  /** Waves that grow finer, under a veil that is partly transparent; odd sides, which no half divides. */
  function waves(width: number, height: number): Sharp {
    const data = Buffer.alloc(width * height * 4);
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const wave = 127 + 120 * Math.sin((x * x) / 30_000) * Math.cos((y * y) / 30_000);
        const veil = Math.hypot(x - width / 2, y - height / 2) < height / 3 ? 120 : 255;
        data.set([wave, 255 - wave, (x * 255) / width, veil], (y * width + x) * 4);
      }
    }
    return sharp(data, { raw: { width, height, channels: 4 } });
  }

  /** How each is written, and how near the result comes in dB: a decoder that halves is worse on such waves than averaging. */
  const KINDS: Readonly<Record<string, readonly [(picture: Sharp) => Sharp, number]>> = {
    jpg: [
      (picture) => picture.flatten({ background: '#fff' }).jpeg({ quality: 100, chromaSubsampling: '4:4:4' }),
      32,
    ],
    png: [(picture) => picture.png(), 43],
    webp: [(picture) => picture.webp({ lossless: true }), 43],
    tiff: [(picture) => picture.tiff({ compression: 'lzw' }), 43],
  };

  for (const [kind, [write, least]] of Object.entries(KINDS)) {
    it(`from ${kind} has the size that was asked for, to the pixel, and looks as if made by others`, async () => {
      for (const [width, height, side] of [
        [1217, 911, 300],
        [911, 1217, 301],
        [1217, 911, 150],
        [1999, 667, 99],
      ] as const) {
        const file = await write(waves(width, height)).toBuffer();
        const { body } = await convert(service.base, file, {
          format: 'png',
          width: `${side}`,
          height: `${side}`,
        });
        const whole = await sharp(file).png().toBuffer(); // or sharp would decode smaller, too
        const expected = await sharp(whole).resize(side, side, { fit: 'inside' }).png().toBuffer();
        const [ours, theirs] = await Promise.all([decode(body), decode(expected)]);
        expect([ours.width, ours.height], `${width} × ${height}`).to.deep.equal([
          theirs.width,
          theirs.height,
        ]);
        for (const grey of [0, 255])
          expect(difference(onGrey(ours, grey), onGrey(theirs, grey)).psnr).to.be.greaterThan(least);
      }
    });
  }
});
