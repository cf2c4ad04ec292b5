// @unit
import { expect } from 'chai';
import { choosePoint, REDUCED_BYTES } from '../../../src/conversion/measure/attention.ts';
import { cropOffset, type Offset } from '../../../src/conversion/plan/position.ts';

const SIDE = 32;
type Colour = readonly [red: number, green: number, blue: number];
type Paint = (x: number, y: number) => Colour;

/** Paints a bitmap as tools write it: a header, and rows from the bottom with blue, green, red. */
function paint(colourAt: Paint): Buffer {
  const bitmap = Buffer.alloc(REDUCED_BYTES);
  for (let y = 0; y < SIDE; y += 1)
    for (let x = 0; x < SIDE; x += 1) {
      const [red, green, blue] = colourAt(x, y);
      bitmap.set([blue, green, red], REDUCED_BYTES - SIDE * SIDE * 3 + ((SIDE - 1 - y) * SIDE + x) * 3);
    }
  return bitmap;
}

/** A landscape image of which a third is kept. */
const THIRD = { resized: { width: 300, height: 100 }, result: { width: 100, height: 100 } };
const BLACK: Colour = [0, 0, 0];

/** Returns the corner of the part that is kept. */
const cornerOf = (bitmap: Uint8Array, fitting: typeof THIRD): Offset =>
  cropOffset(fitting, choosePoint(bitmap, fitting));

/** Returns on which side the part is, of two squares on black. */
function preferred(left: Paint, right: Paint): 'left' | 'right' {
  const { x, y } = cornerOf(
    paint((x, y) => {
      const isInside = y > 11 && y < 20 && ((x > 3 && x < 12) || (x > 19 && x < 28));
      return isInside ? (x < 16 ? left : right)(x, y) : BLACK;
    }),
    THIRD,
  );
  expect(y).to.equal(0);
  return x < 100 ? 'left' : 'right';
}

const flat =
  (...colour: Colour): Paint =>
  () =>
    colour;

describe('the part that draws attention', () => {
  /** All squares of a pair have nearly the same luminance, except the stripes. */
  const stripes: Paint = (x) => (x % 2 ? [255, 255, 255] : BLACK);
  for (const [what, more, less] of [
    ['skin rather than lilac', flat(205, 176, 138), flat(188, 174, 226)],
    ['red rather than grey', flat(230, 20, 20), flat(118, 118, 118)],
    ['stripes rather than a plain square', stripes, flat(188, 188, 188)],
    ['a bright square rather than a dark one of a saturated colour', flat(90, 90, 90), flat(60, 0, 0)],
  ] as const)
    it(`has ${what}, on either side`, () => {
      expect(preferred(more, less)).to.equal('left');
      expect(preferred(less, more)).to.equal('right');
    });

  it('is the centre of an image of one colour', () => {
    for (const colour of [BLACK, [200, 30, 90]] as Colour[]) {
      const { x, y } = cornerOf(paint(flat(...colour)), THIRD);
      expect([Math.abs(x - 100) < 6, y]).to.deep.equal([true, 0]);
    }
  });

  it('ends at the edges of the image', () => {
    const at = (column: number, row: number, size: typeof THIRD) =>
      cornerOf(
        paint((x, y) => (x === column && y === row ? [255, 255, 255] : BLACK)),
        size,
      );
    expect(at(0, 16, THIRD)).to.deep.equal({ x: 0, y: 0 });
    expect(at(31, 16, THIRD)).to.deep.equal({ x: 200, y: 0 });
    const tall = { resized: { width: 100, height: 300 }, result: { width: 100, height: 100 } };
    expect(at(16, 0, tall)).to.deep.equal({ x: 0, y: 0 });
    expect(at(16, 31, tall)).to.deep.equal({ x: 0, y: 200 });
  });
});
