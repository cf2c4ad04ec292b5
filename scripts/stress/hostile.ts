/** @module Small files crafted to cause harm. SECURITY.md describes the defences. */
import {
  billionLaughs,
  circularTiff,
  imageAt,
  longGif,
  pngWithText,
  svg,
  textAt,
  withDeclaredSize,
} from '../../src/cli/doctor/attack-files.ts';
import { tagsOf } from '../fixtures/tiff-samples.ts';
import { tiff } from '../fixtures/writers.ts';

/**
 * Statuses that are acceptable (413 also stands for exceeding a time limit), a hostile file, and
 * how to convert it.
 */
type Row = readonly [expected: readonly number[], file: () => Buffer, options?: Options];
interface Options {
  readonly format?: string;
  /** True if the conversion runs until the timeout. */
  readonly slow?: boolean;
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

/** Builds a TIFF of grey pages. */
export const greyTiff = (count: number, side: number, bytes: number): Buffer =>
  tiff(Array(count).fill({ tags: tagsOf(side, side, 8, 1), strip: Buffer.alloc(bytes) }));

const BLURS = `<filter id="f">${'<feGaussianBlur stdDeviation="50"/>'.repeat(60)}</filter><rect width="2000" height="2000" filter="url(#f)"/>`;

/** Hostile files by description. */
export const HOSTILE: Readonly<Record<string, Row>> = {
  'a PNG of 60000 by 60000': [[413], () => withDeclaredSize(60_000, 60_000)],
  'a PNG of 0 by 0': [[400], () => withDeclaredSize(0, 0)],
  'a PNG with 20 MB of text in it': [[200, 400], () => pngWithText('a', 20e6)],
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
  'an SVG that includes a file': [[200, 400], () => svg(imageAt('file:///etc/passwd') + textAt('in'))],
  'an SVG that links to another machine': [[200], () => svg(imageAt('http://127.0.0.1:9/x.png'))],
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
