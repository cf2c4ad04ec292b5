/** @module Small files crafted to cause harm. SECURITY.md describes the defences. */
import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { gif } from '../fixtures/gif-writer.ts';
import { tagsOf } from '../fixtures/tiff-samples.ts';
import { tiff, withChunk } from '../fixtures/writers.ts';

/** Statuses that are acceptable (413 also stands for exceeding a time limit), a hostile file, and how to convert it. */
type Row = readonly [expected: readonly number[], file: () => Buffer, options?: Options];
interface Options {
  readonly format?: string;
  /** True if the conversion runs until the timeout. */
  readonly slow?: boolean;
}

const png = (): Buffer => readFileSync(new URL('../../fixtures/images/scene.png', import.meta.url));
const svg = (body: string, attributes = 'width="100" height="100"', before = ''): Buffer =>
  Buffer.from(
    `${before}<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${attributes}>${body}</svg>`,
  );

/** Builds a PNG whose header declares the given size. */
function withDeclaredSize(width: number, height: number): Buffer {
  const file = Buffer.from(png());
  file.writeUInt32BE(width, 16);
  file.writeUInt32BE(height, 20);
  return file;
}

/** Builds a GIF with `frames` frames of one pixel on a canvas of `side` × `side` px. */
function longGif(frames: number, side: number): Buffer {
  const palette = Array(4).fill([0, 0, 0]);
  const frame = { x: 0, y: 0, width: 1, height: 1, colour: 0 };
  return gif({ width: side, height: side, palette, frames: Array(frames).fill(frame) });
}

/** Builds a header that declares a lossless WebP of 16383×16383 pixels, without image data. */
function emptyWebp(): Buffer {
  const file = Buffer.alloc(32);
  file.write('RIFF', 0);
  file.writeUInt32LE(24, 4);
  file.write('WEBPVP8L', 8);
  file.writeUInt32LE(12, 16);
  file[20] = 0x2f;
  file.writeUInt32LE(16_382 | (16_382 << 14), 21);
  return file;
}

/** Doctype with nested entities that expand exponentially (billion laughs). */
const billionLaughs = `<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa">${[...'bcdefghijklm']
  .map((name, at) => `<!ENTITY ${name} "${`&${'abcdefghijkl'[at]};`.repeat(10)}">`)
  .join('')}]>`;

/** Builds a TIFF of grey pages. */
const greyTiff = (count: number, side: number, bytes: number): Buffer =>
  tiff(Array(count).fill({ tags: tagsOf(side, side, 8, 1), strip: Buffer.alloc(bytes) }));

/** Builds a TIFF whose second directory links back to the first. */
function circularTiff(): Buffer {
  const file = greyTiff(2, 4, 16);
  const second = file.readUInt32LE(8 + 2 + file.readUInt16LE(8) * 12);
  file.writeUInt32LE(8, second + 2 + file.readUInt16LE(second) * 12);
  return file;
}

const ZIPPED_TEXT = deflateSync(Buffer.alloc(20e6));
const OWN_FILES =
  '<image xlink:href="file:///etc/passwd" width="9" height="9"/><xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="in" parse="text"/>';
const OTHER_MACHINE = '<image xlink:href="http://127.0.0.1:9/x.png" width="9" height="9"/>';
const BLURS = `<filter id="f">${'<feGaussianBlur stdDeviation="50"/>'.repeat(60)}</filter><rect width="2000" height="2000" filter="url(#f)"/>`;

/** Hostile files by description. */
export const HOSTILE: Readonly<Record<string, Row>> = {
  'a PNG of 60000 by 60000': [[413], () => withDeclaredSize(60_000, 60_000)],
  'a PNG of 0 by 0': [[400], () => withDeclaredSize(0, 0)],
  'a PNG with 20 MB of text in it': [
    [200, 400],
    () => withChunk(png(), 'zTXt', Buffer.concat([Buffer.from('a\0\0'), ZIPPED_TEXT])),
  ],
  'a GIF of 10000 frames': [[413], () => longGif(10_000, 1)],
  'a GIF of 400 frames on 2000 by 2000': [[413], () => longGif(400, 2000), { format: 'webp' }],
  'a GIF of 499 tiny frames': [[200, 400], () => longGif(499, 30), { format: 'webp' }],
  'a WebP of 16383 by 16383 in 32 bytes': [[413], emptyWebp],
  'a TIFF of 60000 by 60000': [[413], () => greyTiff(1, 60_000, 100)],
  'a TIFF of 3000 pages': [[413], () => greyTiff(3000, 1, 1), { format: 'pdf' }],
  'a TIFF with a circular list of pages': [[200, 400], circularTiff, { format: 'pdf' }],
  'an icon of 65535 images': [
    [400, 413],
    () => Buffer.concat([Buffer.from([0, 0, 1, 0, 255, 255]), Buffer.alloc(16 * 65_535, 1)]),
  ],
  'an SVG of 20000 by 20000': [[413], () => svg('', 'width="20000" height="20000"')],
  'an SVG with exponential entities': [[400, 413], () => svg('<text>&m;</text>', '', billionLaughs)],
  'an SVG that includes a file': [[200, 400], () => svg(OWN_FILES)],
  'an SVG that links to another machine': [[200], () => svg(OTHER_MACHINE)],
  'an SVG with 300 nested elements': [[200, 400], () => svg('<g>'.repeat(300) + '</g>'.repeat(300))],
  'an SVG of 100000 rectangles': [
    [200, 400, 413],
    () => svg('<rect width="9" height="9"/>'.repeat(100_000)),
    { slow: true },
  ],
  'an SVG of 60 blurs': [[200, 400, 413], () => svg(BLURS, 'width="2000" height="2000"'), { slow: true }],
  'an MVG script named as PNG': [
    [415],
    () => Buffer.from('push graphic-context\nimage over 0,0 0,0 "/etc/passwd"\n'),
  ],
  PostScript: [[415], () => Buffer.from('%!PS\n(/etc/passwd) (r) file\n')],
};
