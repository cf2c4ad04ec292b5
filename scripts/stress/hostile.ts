/** @module Small files crafted to cause harm. SECURITY.md describes the defences. */
import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { gif } from '../fixtures/gif-writer.ts';
import { tagsOf } from '../fixtures/tiff-samples.ts';
import { tiff, withChunk } from '../fixtures/writers.ts';

/** A hostile file. */
export interface Hostile {
  readonly what: string;
  readonly file: () => Buffer;
  readonly format?: string;
  /** True if the conversion runs until the timeout. */
  readonly slow?: boolean;
  /** Acceptable statuses; 413 also stands for exceeding a time limit. */
  readonly expected: readonly number[];
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

/** Hostile files and acceptable statuses. */
export const HOSTILE: readonly Hostile[] = [
  { what: 'a PNG of 60000 by 60000', file: () => withDeclaredSize(60_000, 60_000), expected: [413] },
  { what: 'a PNG of 0 by 0', file: () => withDeclaredSize(0, 0), expected: [400] },
  {
    what: 'a PNG with 20 MB of text in it',
    file: () =>
      withChunk(png(), 'zTXt', Buffer.concat([Buffer.from('a\0\0'), deflateSync(Buffer.alloc(20e6))])),
    expected: [200, 400],
  },
  { what: 'a GIF of 10000 frames', file: () => longGif(10_000, 1), expected: [413] },
  {
    what: 'a GIF of 400 frames on 2000 by 2000',
    file: () => longGif(400, 2000),
    format: 'webp',
    expected: [413],
  },
  { what: 'a GIF of 499 tiny frames', file: () => longGif(499, 30), format: 'webp', expected: [200, 400] },
  { what: 'a WebP of 16383 by 16383 in 32 bytes', file: emptyWebp, expected: [413] },
  {
    what: 'a TIFF of 60000 by 60000',
    file: () => tiff([{ tags: tagsOf(60_000, 60_000, 8, 1), strip: Buffer.alloc(100) }]),
    expected: [413],
  },
  {
    what: 'a TIFF of 3000 pages',
    file: () => tiff(Array(3000).fill({ tags: tagsOf(1, 1, 8, 1), strip: Buffer.alloc(1) })),
    format: 'pdf',
    expected: [413],
  },
  { what: 'a TIFF with a circular list of pages', file: circularTiff, format: 'pdf', expected: [200, 400] },
  {
    what: 'an icon of 65535 images',
    file: () => Buffer.concat([Buffer.from([0, 0, 1, 0, 255, 255]), Buffer.alloc(16 * 65_535, 1)]),
    expected: [400, 413],
  },
  { what: 'an SVG of 20000 by 20000', file: () => svg('', 'width="20000" height="20000"'), expected: [413] },
  {
    what: 'an SVG with exponential entities',
    file: () => svg('<text>&m;</text>', '', billionLaughs),
    expected: [400, 413],
  },
  {
    what: 'an SVG that includes a file',
    file: () =>
      svg(
        '<image xlink:href="file:///etc/passwd" width="9" height="9"/><xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="in" parse="text"/>',
      ),
    expected: [200, 400],
  },
  {
    what: 'an SVG that links to another machine',
    file: () => svg('<image xlink:href="http://127.0.0.1:9/x.png" width="9" height="9"/>'),
    expected: [200],
  },
  {
    what: 'an SVG with 300 nested elements',
    file: () => svg('<g>'.repeat(300) + '</g>'.repeat(300)),
    expected: [200, 400],
  },
  {
    what: 'an SVG of 100000 rectangles',
    slow: true,
    file: () => svg('<rect width="9" height="9"/>'.repeat(100_000)),
    expected: [200, 400, 413],
  },
  {
    what: 'an SVG of 60 blurs',
    slow: true,
    file: () =>
      svg(
        `<filter id="f">${'<feGaussianBlur stdDeviation="50"/>'.repeat(60)}</filter><rect width="2000" height="2000" filter="url(#f)"/>`,
        'width="2000" height="2000"',
      ),
    expected: [200, 400, 413],
  },
  {
    what: 'an MVG script named as PNG',
    file: () => Buffer.from('push graphic-context\nimage over 0,0 0,0 "/etc/passwd"\n'),
    expected: [415],
  },
  { what: 'PostScript', file: () => Buffer.from('%!PS\n(/etc/passwd) (r) file\n'), expected: [415] },
];

/** Builds a TIFF whose second directory links back to the first. */
function circularTiff(): Buffer {
  const page = { tags: tagsOf(4, 4, 8, 1), strip: Buffer.alloc(16, 200) };
  const file = tiff([page, page]);
  const second = file.readUInt32LE(8 + 2 + file.readUInt16LE(8) * 12);
  file.writeUInt32LE(8, second + 2 + file.readUInt16LE(second) * 12);
  return file;
}
