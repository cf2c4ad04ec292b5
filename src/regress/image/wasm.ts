/**
 * @module Decodes JPEG XL with jxl-oxide, which shares no code with libjxl, and PDF with PDFium.
 * Each library is loaded for the first file, and then reused.
 */
import { readFileSync } from 'node:fs';
import type { PDFiumLibrary } from '@hyzyla/pdfium';
import { findInPackage } from '../../folders.ts';
import type { Raster } from './image.ts';

let jxlOxide: Promise<typeof import('jxl-oxide-wasm')> | undefined;
let pdfium: Promise<PDFiumLibrary> | undefined;

async function loadJxlOxide() {
  const library = await import('jxl-oxide-wasm');
  library.initSync({ module: readFileSync(findInPackage('jxl-oxide-wasm/module.wasm')) });
  return library;
}

/**
 * Decodes all frames of a JPEG XL to PNG files, which are upright and have its depth and its colour
 * profile. Delays are in ms.
 *
 * @throws {Error} if the file is damaged or truncated
 */
export async function decodeJxl(file: Buffer) {
  jxlOxide ??= loadJxlOxide();
  const { JxlImage } = await jxlOxide;
  const image = new JxlImage();
  try {
    image.feedBytes(file);
    if (!image.tryInit() || !image.loaded) throw new Error('the JPEG XL is truncated');
    const frames = Array.from({ length: image.numLoadedKeyframes }, (_, at) => {
      const frame = image.render(at);
      return { delay: frame.duration, png: Buffer.from(frame.encodeToPng()) };
    });
    return { frames, plays: image.numLoops ?? 0 };
  } finally {
    image.free();
  }
}

/**
 * Renders all pages of a PDF at one pixel per point, on white.
 *
 * @throws {Error} if PDFium cannot read the file or it has no pages
 */
export async function renderPages(file: Uint8Array): Promise<Raster[]> {
  pdfium ??= import('@hyzyla/pdfium').then(({ PDFiumLibrary }) => PDFiumLibrary.init());
  const document = await (await pdfium).loadDocument(file);
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
