import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scratch } from './hooks.ts';

const run = promisify(execFile);

export interface PdfFacts {
  readonly pages: number;
  /** Width and height of the first page. */
  readonly points: readonly number[];
  readonly images: number;
}

/** What poppler says of a PDF. */
export async function pdfFacts(file: Uint8Array): Promise<PdfFacts> {
  const path = join(await scratch('pdf'), 'file.pdf');
  await writeFile(path, file);
  const { stdout: info } = await run('pdfinfo', [path]);
  const { stdout: images } = await run('pdfimages', ['-list', path]);
  const size = /^Page size:\s+([\d.]+) x ([\d.]+) pts/m.exec(info);
  return {
    pages: Number(/^Pages:\s+(\d+)/m.exec(info)?.[1]),
    points: [Number(size?.[1]), Number(size?.[2])],
    images: images.trim().split('\n').length - 2, // two lines of heading
  };
}
