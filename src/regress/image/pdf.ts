import { PDFiumLibrary } from '@hyzyla/pdfium';
import type { Raster } from './image.ts';

/** Draws the pages of a PDF by PDFium, the library of Chromium, one pixel a point, on white. */

/** It is loaded when the first PDF comes, and kept. */
let library: ReturnType<typeof PDFiumLibrary.init> | undefined;

/** @throws Error when PDFium cannot read it */
export async function drawPages(file: Uint8Array): Promise<Raster[]> {
  library ??= PDFiumLibrary.init();
  const document = await (await library).loadDocument(file);
  try {
    const pages: Raster[] = [];
    for (const page of document.pages()) {
      const { width, height, data } = await page.render({ scale: 1, render: 'bitmap' });
      pages.push({ width, height, data }); // on white, RGBA
    }
    if (pages.length === 0) throw new Error('a PDF without pages');
    return pages;
  } finally {
    document.destroy();
  }
}
