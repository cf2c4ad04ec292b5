/** @module Renders PDFs with PDFium. */
import type { PDFiumLibrary } from '@hyzyla/pdfium';
import type { Raster } from './image.ts';

/** PDFium, loaded for the first PDF and then reused. */
let library: Promise<PDFiumLibrary> | undefined;

/**
 * Renders all pages of a PDF at one pixel per point, on white.
 *
 * @throws {Error} if PDFium cannot read the file or it has no pages
 */
export async function renderPages(file: Uint8Array): Promise<Raster[]> {
  library ??= import('@hyzyla/pdfium').then((pdfium) => pdfium.PDFiumLibrary.init());
  const document = await (await library).loadDocument(file);
  try {
    const pages: Raster[] = [];
    for (const page of document.pages()) {
      const { width, height, data } = await page.render({ scale: 1, render: 'bitmap' });
      pages.push({ width, height, data });
    }
    if (pages.length === 0) throw new Error('the PDF has no pages');
    return pages;
  } finally {
    document.destroy();
  }
}
