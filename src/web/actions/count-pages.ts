/** @module Counts the pages of a file that the server has made. */
import { OUTPUTS } from '../../tables/formats.ts';
import { readIfds } from '../client/tiff-directories.ts';

/** Counts the pages of a PDF or TIFF. */
export const countPages = (file: Blob): Promise<number> =>
  file.type === OUTPUTS.pdf.mediaType ? countPdfPages(file) : countIfds(file);

async function countIfds(file: Blob): Promise<number> {
  let count = 0;
  for await (const _ of readIfds(file)) count += 1;
  return count;
}

/** The entry that each page of a PDF has. */
const PAGE = /\/Type\s*\/Page(?![A-Za-z])/g;
/** Maximum length of {@link PAGE}, in bytes. */
const PAGE_BYTES = 32;

/** Counts the pages of a PDF with uncompressed objects, in pieces: it can have hundreds of MB. */
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
