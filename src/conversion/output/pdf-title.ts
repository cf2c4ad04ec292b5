/** @module Corrects the title of a PDF. */

import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { OUTPUT_STEM } from '../plan/types.ts';

const utf16 = (text: string): string => Buffer.from(text, 'utf16le').swap16().toString('hex').toUpperCase();

/** Title that ImageMagick 6 writes: UTF-16 without a byte order mark, and with a NUL. Viewers show "\0i\0m…". */
const GARBLED = `<${utf16(`${OUTPUT_STEM}\0`)}>`;
/** Correct title (ISO 32000-1, section 7.9.2.2). It has the same length, so all offsets stay valid. */
const CORRECT = `<${utf16(`\uFEFF${OUTPUT_STEM}`)}>`;
/** Bytes at the end of a PDF that contain the title. Only the object table, 20 bytes per object, follows it. */
const END_BYTES = 256 * 1024;

/** Corrects the title of the PDF at `path` in place. */
export function correctPdfTitle(path: string): void {
  const file = openSync(path, 'r+');
  try {
    const { size } = fstatSync(file);
    const start = Math.max(0, size - END_BYTES);
    const end = Buffer.alloc(size - start);
    readSync(file, end, 0, end.length, start);
    const at = end.lastIndexOf(`/Title ${GARBLED}`);
    if (at >= 0) writeSync(file, `/Title ${CORRECT}`, start + at);
  } finally {
    closeSync(file);
  }
}
