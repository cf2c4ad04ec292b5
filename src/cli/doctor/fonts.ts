/**
 * @module Tests which scripts can be rendered in SVG text. Renders a letter of each, and compares it with the box
 * that is rendered for a character without a glyph.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';

/** A script, with a letter that is rendered and the Debian package of a font that has it. */
export interface Script {
  readonly name: string;
  readonly letter: string;
  readonly debianPackage: string;
}

/** Scripts that are tested. */
export const SCRIPTS: readonly Script[] = [
  { name: 'Latin', letter: 'g', debianPackage: 'fonts-dejavu-core' },
  { name: 'Cyrillic', letter: 'Ж', debianPackage: 'fonts-dejavu-core' },
  { name: 'Greek', letter: 'Ω', debianPackage: 'fonts-dejavu-core' },
  { name: 'Chinese', letter: '永', debianPackage: 'fonts-noto-cjk' },
  { name: 'emoji', letter: '😀', debianPackage: 'fonts-noto-color-emoji' },
];
/** Unassigned, so no font has them. They are rendered as a box with four or six digits. */
const UNASSIGNED_CODEPOINTS = ['\u0378', '\u{10fffd}'];

/**
 * Size of the row of one letter, in pixels. Each letter has its own row, with empty space on both sides: without any font,
 * librsvg 2.60 moves boxes to the left or right at random.
 */
const ROW = { width: 256, height: 64 };
/** Position of a letter in its row. */
const [LETTER_X, BASELINE_Y] = [96, 48];

/** Returns the scripts whose letters are rendered as boxes or not at all. */
export async function missingScripts({ workspaces, convert }: ConversionEngine): Promise<Script[]> {
  const workspace = await workspaces.open();
  try {
    const folder = await workspace.folder('letters');
    await writeFile(
      join(folder, INPUT_FILE),
      createSvg([...SCRIPTS.map(({ letter }) => letter), ...UNASSIGNED_CODEPOINTS]),
    );
    const options = { format: 'bmp', quality: 80, stripMetadata: true } as const;
    const source = { folder, type: 'svg', label: 'The drawing' } as const;
    const bmpFile = await readFile((await convert(source, options, new AbortController().signal)).path);
    const boxes = UNASSIGNED_CODEPOINTS.map((_, at) => readOutline(bmpFile, SCRIPTS.length + at));
    return SCRIPTS.filter((_, at) => ['', FRAME, ...boxes].includes(readOutline(bmpFile, at)));
  } finally {
    await workspace.remove();
  }
}

function createSvg(letters: readonly string[]): string {
  const texts = letters.map(
    (letter, at) => `<text x="${LETTER_X}" y="${at * ROW.height + BASELINE_Y}">${letter}</text>`,
  );
  const height = letters.length * ROW.height;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${ROW.width}" height="${height}" font-size="40"
    font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>${texts.join('')}</svg>`;
}

/** Outline of every box that is a frame. Frames count as equal, even if their antialiasing differs. */
const FRAME = 'frame';

/** Bytes per pixel of a 24-bit BMP, and the offsets of its fields for the pixel data offset and the height. */
const BYTES_PER_PIXEL = 3;
const [PIXELS_AT, HEIGHT_AT] = [10, 22];
/** Bytes of a line of pixels: a multiple of four. */
const STRIDE = (ROW.width * BYTES_PER_PIXEL + 3) & ~3;

/**
 * Returns the outermost pixels of a letter as text. Returns an empty string if there are none, or if they touch the edge of
 * the image, which letters of a font never do. The digits in a box are inside it and have no effect.
 */
function readOutline(bmp: Buffer, letter: number): string {
  // The lines of a BMP are stored from the bottom to the top.
  const lastLine = bmp.readInt32LE(HEIGHT_AT) - 1 - letter * ROW.height;
  const inkAt = (x: number, y: number): number =>
    255 - (bmp[bmp.readUInt32LE(PIXELS_AT) + (lastLine - y) * STRIDE + x * BYTES_PER_PIXEL] as number);
  const [allColumns, allRows] = [[...Array(ROW.width).keys()], [...Array(ROW.height).keys()]];
  const rows = allRows.filter((y) => allColumns.some((x) => inkAt(x, y) > 0));
  const columns = allColumns.filter((x) => allRows.some((y) => inkAt(x, y) > 0));
  const [top, bottom, left, right] = [rows[0], rows.at(-1), columns[0], columns.at(-1)];
  if (top === undefined || bottom === undefined || left === undefined || right === undefined) return '';
  if (left === 0 || right === ROW.width - 1) return '';
  const level = columns.flatMap((x) => [inkAt(x, top), inkAt(x, bottom)]);
  const upright = rows.flatMap((y) => [inkAt(left, y), inkAt(right, y)]);
  const edge = [...level, ...upright];
  return edge.every((ink) => ink > 0) ? FRAME : edge.join();
}
