/** @module Counts the pages of a file that the server has made. */
import { OUTPUTS } from '../../tables/formats.ts';

/** Counts the pages of a PDF or TIFF. */
export const countPages = (file: Blob): Promise<number> =>
  file.type === OUTPUTS.pdf.mediaType ? countPdfPages(file) : countTiffPages(file);

/** The entry that each page of a PDF has. */
const PAGE = /\/Type\s*\/Page(?![A-Za-z])/g;
/** Maximum length of {@link PAGE}, in bytes. */
const PAGE_BYTES = 32;

/**
 * Counts the pages of a PDF whose objects are not compressed. Reads it in pieces, since it can have
 * hundreds of megabytes.
 */
async function countPdfPages(file: Blob): Promise<number> {
  const reader = file.stream().pipeThrough(new TextDecoderStream('latin1')).getReader();
  let [count, rest] = [0, ''];
  for (;;) {
    const { done, value = '' } = await reader.read();
    const text = rest + value;
    // What starts in the last bytes may be incomplete. It is searched with the next piece.
    const end = done ? text.length : Math.max(0, text.length - PAGE_BYTES);
    count += [...text.matchAll(PAGE)].filter(({ index }) => index < end).length;
    if (done) return count;
    rest = text.slice(end);
  }
}

/** Length of an entry of an image file directory (IFD) in bytes. */
const ENTRY_BYTES = 12;

/** Counts the IFDs of a TIFF. */
async function countTiffPages(file: Blob): Promise<number> {
  const read = async (from: number, bytes: number) =>
    new DataView(await file.slice(from, from + bytes).arrayBuffer());
  const header = await read(0, 8);
  const littleEndian = header.getUint16(0) === 0x4949;
  let count = 0;
  for (let at = header.getUint32(4, littleEndian); at !== 0; count += 1) {
    const entries = (await read(at, 2)).getUint16(0, littleEndian);
    at = (await read(at + 2 + entries * ENTRY_BYTES, 4)).getUint32(0, littleEndian);
  }
  return count;
}
