import { expect } from 'chai';
import { convert } from '../helpers/client.ts';
import { HARDENED, useContainers } from '../helpers/docker.ts';
import { decode, type Pixels } from '../helpers/pixels.ts';

/**
 * Samples of each script. None of the glyphs is a rectangle, which is the placeholder for a missing
 * glyph.
 */
const LETTERS = {
  Latin: 'Aßğệ',
  Cyrillic: 'ЖщҐђ',
  Greek: 'Ωλάἄ',
  Chinese: '你骨臺灣',
  Japanese: 'あカ直曜',
  Korean: '안녕하요',
  emoji: '😀🎉🚀🐍❤🍕',
};
/** Private-use code point that no font has. */
const NONE = '\u{10fffd}';
const SIDE = 300;
/** Minimum share of dark pixels on a side of the bounding box that counts as a line. */
const MIN_LINE_COVERAGE = 0.95;

describe('the fonts of the image', () => {
  const start = useContainers();
  let base = '';
  before(async () => {
    base = (await start(HARDENED, { SANDBOX: 'on' })).base;
  });

  /** Renders a text and returns the dark pixels as rows, cropped to their bounding box. */
  async function render(letter: string, family = 'sans-serif'): Promise<boolean[][]> {
    const text = `<text x="30" y="110" font-size="80" font-family="${family}">${letter}</text>`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${SIDE}" height="${SIDE}"><rect width="100%" height="100%" fill="#fff"/>${text}</svg>`;
    const { status, body, message } = await convert(base, Buffer.from(svg), { format: 'png' }, 'letter.svg');
    expect(status, message).to.equal(200);
    return crop(darkPixels(await decode(body, 'png')));
  }

  it('render differently from the placeholder for a missing glyph', async () => {
    expect(isBox(await render(NONE))).to.equal(true);
    expect(isBox(await render('Ж'))).to.equal(false);
  });

  for (const [script, letters] of Object.entries(LETTERS)) {
    it(`have distinct glyphs for ${script}`, async () => {
      const seen = new Set<string>();
      for (const letter of letters) {
        const image = await render(letter);
        expect(image.flat().filter(Boolean).length, `ink of ${letter}`).to.be.above(200);
        expect(isBox(image), `a box for ${letter}`).to.equal(false);
        seen.add(JSON.stringify(image));
      }
      expect(seen.size, 'pictures').to.equal([...letters].length);
    });
  }

  it('match the widths of Arial, Times New Roman and Courier New', async () => {
    // Width of W in thousandths of the font size (80 px), from the metrics of the original fonts.
    for (const [family, wide] of [
      ['Arial', 944],
      ['Times New Roman', 944],
      ['Courier New', 600],
    ] as const) {
      const two = await render('HWH', family);
      const one = await render('HH', family);
      const width = (image: boolean[][]) => image[0]?.length ?? 0;
      expect(width(two) - width(one), family).to.be.closeTo((wide * 80) / 1000, 2);
    }
  });
});

const darkPixels = ({ width, height, data }: Pixels): boolean[][] =>
  Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => (data[(y * width + x) * 4] ?? 255) < 128),
  );

/** Removes empty rows and columns at the edges. */
function crop(rows: boolean[][]): boolean[][] {
  const trimmed = (lines: boolean[][]) =>
    lines.slice(
      lines.findIndex((line) => line.some(Boolean)),
      lines.findLastIndex((line) => line.some(Boolean)) + 1,
    );
  return transpose(trimmed(transpose(trimmed(rows))));
}

const transpose = (rows: boolean[][]): boolean[][] =>
  (rows[0] ?? []).map((_, x) => rows.map((row) => row[x] ?? false));

/** Returns true if all four sides are lines, as in the placeholder for a missing glyph. */
function isBox(rows: boolean[][]): boolean {
  const columns = transpose(rows);
  const sides = [rows[0], rows.at(-1), columns[0], columns.at(-1)];
  return sides.every((side = []) => side.filter(Boolean).length >= MIN_LINE_COVERAGE * side.length);
}
