import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeTempDir } from './hooks.ts';

const run = promisify(execFile);

export interface PdfFacts {
  readonly pages: number;
  /** Width and height of each page. */
  readonly points: readonly (readonly number[])[];
  /** How each embedded picture is compressed, as poppler calls it: `jpeg`, `ccitt`, or `image` without loss. */
  readonly images: readonly string[];
  /** The fonts it uses, and whether each is embedded. */
  readonly fonts: readonly { readonly name: string; readonly embedded: boolean }[];
}

/** What poppler says of a PDF. @throws Error when qpdf finds anything wrong with it */
export async function pdfFacts(file: Uint8Array): Promise<PdfFacts> {
  const path = join(await makeTempDir('pdf'), 'file.pdf');
  await writeFile(path, file);
  await run('qpdf', ['--check', path]);
  const [info, images, fonts] = await Promise.all(
    [
      ['pdfinfo', '-f', '1', '-l', '10000', path],
      ['pdfimages', '-list', path],
      ['pdffonts', path],
    ].map(async ([program = '', ...args]) => (await run(program, args)).stdout),
  );
  return {
    pages: Number(/^Pages:\s+(\d+)/m.exec(info ?? '')?.[1]),
    points: [...(info ?? '').matchAll(/^Page\s+\d+ size:\s+([\d.]+) x ([\d.]+) pts/gm)].map(
      ([, width, height]) => [Number(width), Number(height)],
    ),
    images: rows(images).map((row) => row[8] ?? ''),
    fonts: rows(fonts).map((row) => ({ name: row[0] ?? '', embedded: row.at(-5) === 'yes' })),
  };
}

/** What stands below the two lines of heading, in words. */
function rows(table = ''): string[][] {
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) => line.trim().split(/\s+/));
}
