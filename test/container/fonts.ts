import { expect } from 'chai';
import { convert } from '../helpers/client.ts';
import { HARDENED, useContainers } from '../helpers/docker.ts';
import { decode, type Pixels } from '../helpers/pixels.ts';

/** None of these is a rectangle, which is what stands for a letter that no font has. */
const LETTERS = {
  Latin: 'Aßğệ',
  Cyrillic: 'ЖщҐђ',
  Greek: 'Ωλάἄ',
  Chinese: '你骨臺灣',
  Japanese: 'あカ直曜',
  Korean: '안녕하요',
  emoji: '😀🎉🚀🐍❤🍕',
};
/** A private one: no font has it. */
const NONE = '\u{10fffd}';
const SIDE = 300;
/** Of a side of what is drawn, for that side to be a line. */
const NEARLY_ALL = 0.95;

describe('the fonts of the image', function () {
  this.timeout(120_000);
  const start = useContainers();
  let base = '';
  before(async () => {
    base = (await start(HARDENED, { SANDBOX: 'on' })).base;
  });

  /** Rows of dark pixels and no others, cut to what is drawn. */
  async function drawn(letter: string, family = 'sans-serif'): Promise<boolean[][]> {
    const text = `<text x="30" y="110" font-size="80" font-family="${family}">${letter}</text>`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${SIDE}" height="${SIDE}"><rect width="100%" height="100%" fill="#fff"/>${text}</svg>`;
    const { status, body, message } = await convert(base, Buffer.from(svg), { format: 'png' }, 'letter.svg');
    expect(status, message).to.equal(200);
    return cut(ink(await decode(body, 'png')));
  }

  it('are told apart from the box that stands for a letter that is missing', async () => {
    expect(isBox(await drawn(NONE))).to.equal(true);
    expect(isBox(await drawn('Ж'))).to.equal(false);
  });

  for (const [script, letters] of Object.entries(LETTERS)) {
    it(`have ${script}`, async () => {
      const seen = new Set<string>();
      for (const letter of letters) {
        const picture = await drawn(letter);
        expect(picture.flat().filter(Boolean).length, `ink of ${letter}`).to.be.above(200);
        expect(isBox(picture), `a box for ${letter}`).to.equal(false);
        seen.add(JSON.stringify(picture));
      }
      expect(seen.size, 'pictures').to.equal([...letters].length);
    });
  }

  it('have the widths of Arial, Times and Courier', async () => {
    // In thousandths of the size, of 80 pixels: what the makers of those fonts say of W.
    for (const [family, wide] of [
      ['Arial', 944],
      ['Times New Roman', 944],
      ['Courier New', 600],
    ] as const) {
      const two = await drawn('HWH', family);
      const one = await drawn('HH', family);
      const width = (picture: boolean[][]) => picture[0]?.length ?? 0;
      expect(width(two) - width(one), family).to.be.closeTo((wide * 80) / 1000, 2);
    }
  });
});

const ink = ({ width, height, data }: Pixels): boolean[][] =>
  Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => (data[(y * width + x) * 4] ?? 255) < 128),
  );

/** Without the rows and columns at the edges that are empty. */
function cut(rows: boolean[][]): boolean[][] {
  const trimmed = (lines: boolean[][]) =>
    lines.slice(
      lines.findIndex((line) => line.some(Boolean)),
      lines.findLastIndex((line) => line.some(Boolean)) + 1,
    );
  return turned(trimmed(turned(trimmed(rows))));
}

const turned = (rows: boolean[][]): boolean[][] =>
  (rows[0] ?? []).map((_, x) => rows.map((row) => row[x] ?? false));

/** Whether all four sides are lines. */
function isBox(rows: boolean[][]): boolean {
  const columns = turned(rows);
  const sides = [rows[0], rows.at(-1), columns[0], columns.at(-1)];
  return sides.every((side = []) => side.filter(Boolean).length >= NEARLY_ALL * side.length);
}
