import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConversionEngine } from '../../conversion/engine.ts';
import { INPUT_FILE } from '../../conversion/plan/types.ts';

/**
 * Which letters drawings can have: found out by drawing them as every drawing is drawn, and comparing each with the
 * box that stands for a letter nobody has.
 */

export interface Script {
  readonly name: string;
  readonly letter: string;
  readonly debianPackage: string;
}

export const SCRIPTS: readonly Script[] = [
  { name: 'Latin', letter: 'g', debianPackage: 'fonts-dejavu-core' },
  { name: 'Cyrillic', letter: 'Ж', debianPackage: 'fonts-dejavu-core' },
  { name: 'Greek', letter: 'Ω', debianPackage: 'fonts-dejavu-core' },
  { name: 'Chinese', letter: '永', debianPackage: 'fonts-noto-cjk' },
  { name: 'emoji', letter: '😀', debianPackage: 'fonts-noto-color-emoji' },
];
/** Not assigned, so that no font has them: what is drawn has four digits in it, or six. */
const UNASSIGNED_CODEPOINTS = ['\u0378', '\u{10fffd}'];

/** Pixels a side, for one letter. */
const CELL = 64;

/** @returns the scripts whose letters are boxes, or nothing at all */
export async function missingScripts({ workspaces, convert }: ConversionEngine): Promise<Script[]> {
  const workspace = await workspaces.open();
  try {
    const folder = await workspace.folder('letters');
    await writeFile(
      join(folder, INPUT_FILE),
      drawingOf([...SCRIPTS.map(({ letter }) => letter), ...UNASSIGNED_CODEPOINTS]),
    );
    const options = { format: 'bmp', quality: 80, stripMetadata: true } as const;
    const source = { folder, type: 'svg', label: 'The drawing' } as const;
    const picture = await readFile((await convert(source, options, new AbortController().signal)).path);
    const boxes = UNASSIGNED_CODEPOINTS.map((_, at) => outlineOf(picture, SCRIPTS.length + at));
    return SCRIPTS.filter((_, at) => ['', ...boxes].includes(outlineOf(picture, at)));
  } finally {
    await workspace.remove();
  }
}

function drawingOf(letters: readonly string[]): string {
  const texts = letters.map((letter, at) => `<text x="${at * CELL + 8}" y="48">${letter}</text>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${letters.length * CELL}" height="${CELL}" font-size="40"
    font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>${texts.join('')}</svg>`;
}

/** Bytes of a pixel, and where a 24-bit BMP says where its pixels begin and how wide it is. */
const PIXEL = 3;
const [PIXELS_AT, WIDTH_AT] = [10, 18];

/** The outermost pixels of what is drawn in a cell, as text: the digits in a box do not count. Empty when there is nothing. */
function outlineOf(bmp: Buffer, cell: number): string {
  const stride = (bmp.readInt32LE(WIDTH_AT) * PIXEL + 3) & ~3;
  const inkAt = (x: number, y: number): number =>
    255 - (bmp[bmp.readUInt32LE(PIXELS_AT) + y * stride + (cell * CELL + x) * PIXEL] as number);
  const all = Array.from({ length: CELL }, (_, at) => at);
  const rows = all.filter((y) => all.some((x) => inkAt(x, y) > 0));
  const columns = all.filter((x) => all.some((y) => inkAt(x, y) > 0));
  const [top, bottom, left, right] = [rows[0], rows.at(-1), columns[0], columns.at(-1)];
  if (top === undefined || bottom === undefined || left === undefined || right === undefined) return '';
  const level = columns.flatMap((x) => [inkAt(x, top), inkAt(x, bottom)]);
  const upright = rows.flatMap((y) => [inkAt(left, y), inkAt(right, y)]);
  const edge = [...level, ...upright];
  // Frames are all alike, though one may lie between pixels.
  return edge.every((ink) => ink > 0) ? 'frame' : edge.join();
}
