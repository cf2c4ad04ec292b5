import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from './hooks.ts';
import { execute } from './process.ts';

/** Properties of a PDF. */
export interface PdfFacts {
  readonly pages: number;
  /** Title as viewers show it. */
  readonly title: string | undefined;
  /** Width and height of each page in points. */
  readonly points: readonly (readonly number[])[];
  /**
   * Compression of each embedded image, as poppler names it: `jpeg`, `ccitt`, or `image` for
   * lossless.
   */
  readonly images: readonly string[];
  /** Fonts and whether they are embedded. */
  readonly fonts: readonly { readonly name: string; readonly embedded: boolean }[];
}

/**
 * Reads the properties of a PDF with poppler.
 *
 * @throws {Error} if `qpdf --check` finds a problem
 */
export async function pdfFacts(file: Uint8Array): Promise<PdfFacts> {
  const path = await checked(file);
  const [info, images, fonts] = await Promise.all(
    [
      ['pdfinfo', '-f', '1', '-l', '10000', path],
      ['pdfimages', '-list', path],
      ['pdffonts', path],
    ].map(async ([program = '', ...args]) => (await execute(program, args)).stdout),
  );
  return {
    pages: pagesIn(info),
    title: /^Title: +(.*)$/m.exec(info ?? '')?.[1],
    points: [...(info ?? '').matchAll(/^Page\s+\d+ size:\s+([\d.]+) x ([\d.]+) pts/gm)].map(
      ([, width, height]) => [Number(width), Number(height)],
    ),
    images: rows(images).map((row) => row[8] ?? ''),
    fonts: rows(fonts).map((row) => ({ name: row[0] ?? '', embedded: row.at(-5) === 'yes' })),
  };
}

/**
 * Counts the pages of a PDF, with fewer programs than {@link pdfFacts}.
 *
 * @throws {Error} if `qpdf --check` finds a problem
 */
export async function countPages(file: Uint8Array): Promise<number> {
  return pagesIn((await execute('pdfinfo', [await checked(file)])).stdout);
}

/** Checks a PDF with qpdf, and returns the path of a copy of it. */
async function checked(file: Uint8Array): Promise<string> {
  const path = join(await makeTempDir('pdf'), 'file.pdf');
  await writeFile(path, file);
  await execute('qpdf', ['--check', path]);
  return path;
}

const pagesIn = (info = ''): number => Number(/^Pages:\s+(\d+)/m.exec(info)?.[1]);

/** Returns the columns in which pdfimages describes each embedded image. */
export async function imageRows(file: Uint8Array): Promise<string[][]> {
  const path = join(await makeTempDir('pdf'), 'file.pdf');
  await writeFile(path, file);
  return rows((await execute('pdfimages', ['-list', path])).stdout);
}

/** Returns the width and height in pixels of each embedded image. */
export const imageSizes = async (file: Uint8Array): Promise<number[][]> =>
  (await imageRows(file)).map((row) => [Number(row[3]), Number(row[4])]);

/** Returns the only JPEG in a PDF, as poppler extracts it. */
export async function jpegIn(file: Uint8Array): Promise<Buffer> {
  const folder = await makeTempDir('pdf');
  await writeFile(join(folder, 'file.pdf'), file);
  await execute('pdfimages', ['-j', join(folder, 'file.pdf'), join(folder, 'image')]);
  return readFile(join(folder, 'image-000.jpg'));
}

/** Returns the entropy-coded data of the scans of a JPEG, up to the first end of image. */
export function entropyCoded(file: Buffer): Buffer {
  const scans: Buffer[] = [];
  for (let at = 2; at + 4 <= file.length && file[at + 1] !== 0xd9; ) {
    const isScan = file[at + 1] === 0xda;
    at += 2 + file.readUInt16BE(at + 2);
    if (!isScan) continue;
    const start = at;
    while (
      at < file.length &&
      !(file[at] === 0xff && ![0, 0xff].includes(file[at + 1] ?? 0) && ((file[at + 1] ?? 0) & 0xf8) !== 0xd0)
    )
      at += 1;
    scans.push(file.subarray(start, at));
  }
  return Buffer.concat(scans);
}

/**
 * Encrypts a PDF with qpdf.
 *
 * @param user password to open it; empty for a PDF that only needs one to be changed
 */
export async function encryptPdf(file: Uint8Array, user: string, bits: '40' | '256'): Promise<Buffer> {
  const folder = await makeTempDir('pdf');
  const [from, to] = [join(folder, 'from.pdf'), join(folder, 'to.pdf')];
  await writeFile(from, file);
  await execute('qpdf', ['--allow-weak-crypto', '--encrypt', user, 'owner', bits, '--', from, to]);
  return readFile(to);
}

/** Splits the lines below the two header lines into columns. */
function rows(table = ''): string[][] {
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) => line.trim().split(/\s+/));
}

/** The dates of a PDF: `/CreationDate`, `/ModDate`, and those of its XMP. */
const DATE = /\(D:\d{14}[^)]*\)|<\/?xmp:\w+>[^<]*/g;

/** Removes the dates of a PDF. Returns other files unchanged, as Latin-1. */
export function withoutDates(file: Buffer): string {
  const text = file.toString('latin1');
  return text.startsWith('%PDF') ? text.replace(DATE, '') : text;
}
