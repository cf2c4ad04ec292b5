// @full, @imagemagick-7: many formats
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { convertWith } from '../helpers/engine.ts';
import { ALL_EXTRAS, decodeAny } from '../helpers/extra.ts';
import { startEngine } from '../helpers/service.ts';

/**
 * Pictures with what was visibly worse at 200% while limits were weaker. A decoder that the service
 * does not use judges the parts.
 */
const [WIDTH, HEIGHT] = [640, 448] as const;

/** Part of a picture, in pixels. */
interface Crop {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** A picture of which a part was visibly worse than the rest, and how much that part may differ. */
interface Worst {
  readonly svg: string;
  readonly crop: Crop;
  /** Least PSNR of the luma in dB. */
  readonly psnr: number;
  /** Largest difference of the mean luma, Cb or Cr of a block of 8 by 8 pixels. */
  readonly step: number;
}

/** A background like that of a photo out of focus. */
const BLURRED = `<radialGradient id="b" cx="50%" cy="45%" r="75%"><stop offset="0" stop-color="#ffc2b0"/><stop offset="0.5" stop-color="#dcab98"/><stop offset="1" stop-color="#6b5148"/></radialGradient>`;
const SKY = `<linearGradient id="b" x2="0.3" y2="1"><stop offset="0" stop-color="#28507c"/><stop offset="1" stop-color="#cfe0ea"/></linearGradient>`;

const picture = (defs: string, content: string): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}"><defs>${defs}</defs><rect width="${WIDTH}" height="${HEIGHT}" fill="url(#b)"/>${content}</svg>`;

/** Draws something several times at distances of pixels. */
const repeat = (count: number, draw: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => draw(at)).join('');

const EYE = (x: number, y: number): string =>
  `<g transform="translate(${x} ${y})"><ellipse rx="15" ry="8" fill="#f4ece6"/><circle r="7" fill="#4c6b52"/><circle r="3" fill="#0c0a09"/><circle cx="-2" cy="-2" r="1.2" fill="#fff"/>${repeat(9, (at) => `<path d="M${-13 + at * 3.2} ${-7 - Math.sin(at / 2.6) * 3} l${(at - 4) * 0.7} -5" stroke="#2a1a12" stroke-width="0.9"/>`)}<path d="M-17 1 Q0 -16 17 1" fill="none" stroke="#5a3a2c" stroke-width="1.4"/></g>`;

const WORST: Readonly<Record<string, Worst>> = {
  'words in a smooth photo': {
    svg: picture(
      BLURRED,
      '<g font-family="DejaVu Sans, sans-serif" font-size="11" fill="#4a3029"><text x="268" y="210">Saint Helena Island</text><text x="268" y="225">population 4 439</text></g>',
    ),
    crop: { left: 264, top: 196, width: 128, height: 36 },
    psnr: 27.5,
    step: 4.5,
  },
  'eyes in a smooth face': {
    svg: picture(BLURRED, EYE(280, 190) + EYE(352, 190)),
    crop: { left: 256, top: 168, width: 120, height: 40 },
    psnr: 31,
    step: 3.5,
  },
  'a blurred background': {
    svg: picture(BLURRED, ''),
    crop: { left: 160, top: 96, width: 320, height: 240 },
    psnr: 48.5,
    step: 2.3,
  },
  'thin lines of colour': {
    svg: picture(
      SKY,
      repeat(12, (at) => {
        const colour = ['#e01010', '#1040e0', '#10a020'][at % 3];
        return `<path d="M${200 + at * 5} 120 l60 90" stroke="${colour}" stroke-width="1"/>`;
      }),
    ),
    crop: { left: 200, top: 120, width: 116, height: 90 },
    psnr: 32.5,
    step: 4.5,
  },
  'text on a gradient': {
    svg: picture(
      SKY,
      `<g font-family="DejaVu Sans, sans-serif" font-size="12" fill="#ffffff">${repeat(4, (at) => `<text x="60" y="${84 + at * 16}">The quick brown fox, line ${at}</text>`)}</g>`,
    ),
    crop: { left: 56, top: 70, width: 200, height: 68 },
    psnr: 33,
    step: 3.3,
  },
};

describe('the parts of a picture that are visibly worse first, with quality=auto', () => {
  let engine: ConversionEngine;
  before(async () => {
    engine = await startEngine(ALL_EXTRAS);
  });
  after(() => engine.close());

  for (const [what, { svg, crop, psnr, step }] of Object.entries(WORST)) {
    it(`are close to the image: ${what}`, async () => {
      const bytes = await sharp(Buffer.from(svg)).removeAlpha().png().toBuffer();
      const image = await sharp(bytes).raw().toBuffer();
      for (const format of ['webp', 'jpg', 'avif', 'jxl'] as const) {
        const options = { format, quality: 'auto', metadata: 'none' } as const;
        const decoded = await convertWith(
          engine,
          { type: 'png', bytes },
          options,
          async ({ path, quality }) => ({
            ...(await decodeAny(await readFile(path), format)),
            quality,
          }),
        );
        const found = differenceOf(image, decoded.data, crop);
        expect(found.psnr, `${format}, quality ${decoded.quality}`).to.be.at.least(psnr);
        expect(found.step, `${format}, quality ${decoded.quality}`).to.be.at.most(step);
      }
    });
  }
});

/** Compares a crop of an image in RGB with that of a result in RGBA. */
function differenceOf(image: Uint8Array, result: Uint8Array, { left, top, width, height }: Crop) {
  let squares = 0;
  let step = 0;
  for (let y = 0; y + 8 <= height; y += 8) {
    for (let x = 0; x + 8 <= width; x += 8) {
      const means = [0, 0, 0];
      for (let pixel = 0; pixel < 64; pixel += 1) {
        const at = (top + y + (pixel >> 3)) * WIDTH + left + x + (pixel & 7);
        const [a, b] = [image.subarray(at * 3), result.subarray(at * 4)].map(toYcc) as [number[], number[]];
        for (const [channel, value] of a.entries())
          means[channel] = (means[channel] as number) + (value - (b[channel] as number)) / 64;
        squares += ((a[0] as number) - (b[0] as number)) ** 2;
      }
      step = Math.max(step, ...means.map(Math.abs));
    }
  }
  const pixels = Math.floor(width / 8) * Math.floor(height / 8) * 64;
  return { psnr: 10 * Math.log10((255 ** 2 * pixels) / squares), step };
}

/** Returns luma, Cb and Cr (BT.601) of a pixel. */
function toYcc([red = 0, green = 0, blue = 0]: Uint8Array): number[] {
  const luma = 0.299 * red + 0.587 * green + 0.114 * blue;
  return [luma, 0.564 * (blue - luma), 0.713 * (red - luma)];
}
