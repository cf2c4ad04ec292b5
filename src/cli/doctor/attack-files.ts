/** @module Hostile files for `doctor --attack` and for tests. None contains an exploit. */
import { crc32, deflateRawSync, deflateSync } from 'node:zlib';
import { PNG_HEADER_BYTES, PNG_SIGNATURE, pngChunk } from '../../images/png/png-writer.ts';
import { ONE_PIXEL } from '../../process/policy.ts';

/** Returns this many copies of a piece. */
export const repeat = (piece: Buffer, count: number): Buffer => Buffer.alloc(piece.length * count, piece);

/** Builds a PNG of one pixel with chunks in front of its pixel. */
export function pngWith(chunks: readonly Buffer[]): Buffer {
  const [head, pixel] = [ONE_PIXEL.subarray(0, PNG_HEADER_BYTES), ONE_PIXEL.subarray(PNG_HEADER_BYTES)];
  return Buffer.concat([head, ...chunks, pixel]);
}

/** Builds a PNG of one pixel with this number of zeros as text, a thousandth of it in the file. */
export const pngWithText = (keyword: string, bytes: number): Buffer =>
  pngWith([
    pngChunk('zTXt', Buffer.concat([Buffer.from(`${keyword}\0\0`), deflateSync(Buffer.alloc(bytes))])),
  ]);

/** Builds a PNG of one pixel whose header declares another size. */
export function withDeclaredSize(width: number, height: number): Buffer {
  const header = Buffer.from(ONE_PIXEL.subarray(PNG_SIGNATURE.length + 8, PNG_HEADER_BYTES - 4));
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  return Buffer.concat([PNG_SIGNATURE, pngChunk('IHDR', header), ONE_PIXEL.subarray(PNG_HEADER_BYTES)]);
}

/** Start of a GIF of one pixel, and a frame of one pixel with colours of its own. */
export const GIF_SCREEN = Buffer.from('GIF89a\x01\0\x01\0\0\0\0', 'latin1');
export const GIF_FRAME = Buffer.from(',\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0', 'latin1');

/** Builds a GIF with `frames` frames of one pixel on a canvas of `side` × `side` px. */
export function longGif(frames: number, side: number): Buffer {
  const screen = Buffer.from(GIF_SCREEN);
  screen.writeUInt16LE(side, 6);
  screen.writeUInt16LE(side, 8);
  return Buffer.concat([screen, repeat(GIF_FRAME, frames), Buffer.from(';')]);
}

/** Builds a TIFF of one grey pixel, whose directory states itself as the next one. */
export function circularTiff(): Buffer {
  const tags = [256, 1, 257, 1, 258, 8, 262, 1, 273, 8, 279, 1];
  const entries = [0, 2, 4, 6, 8, 10].flatMap((at) => [tags[at] ?? 0, 4, 1, 0, tags[at + 1] ?? 0, 0]);
  const words = [0x4949, 42, 8, 0, entries.length / 6, ...entries, 8, 0];
  return Buffer.from(words.flatMap((word) => [word & 255, word >> 8]));
}

/** Builds an SVG. `before` precedes its root element. */
export const svg = (body: string, attributes = 'width="100" height="100"', before = ''): Buffer =>
  Buffer.from(
    `${before}<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" ${attributes}>${body}</svg>`,
  );

/** Returns elements of an SVG that refer to an image, and to a text. */
export const imageAt = (url: string): string => `<image xlink:href="${url}" width="90" height="90"/>`;
export const textAt = (path: string): string =>
  `<text y="50"><xi:include xmlns:xi="http://www.w3.org/2001/XInclude" parse="text" href="${path}"/></text>`;

/** Doctype with nested entities that expand exponentially (billion laughs). */
export const billionLaughs = `<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa">${[...'bcdefghijklm']
  .map((name, at) => `<!ENTITY ${name} "${`&${'abcdefghijkl'[at]};`.repeat(10)}">`)
  .join('')}]>`;

/** SVG of seven levels of ten references to the level below: ten million large rectangles. */
export const nestedUses = svg(
  `<defs><rect id="u0" width="2000" height="2000" opacity=".9"/>${[1, 2, 3, 4, 5, 6, 7]
    .map((level) => `<g id="u${level}">${`<use xlink:href="#u${level - 1}"/>`.repeat(10)}</g>`)
    .join('')}</defs><use xlink:href="#u7"/>`,
  'width="2000" height="2000"',
);

/** Builds a PDF of this many pages, without a table of its objects, which poppler then makes. */
export function pdfOf(pages: number, catalog = ''): Buffer {
  const kids = Array.from({ length: pages }, (_, at) => `${at + 3} 0 R`);
  const objects = [
    `<</Type/Catalog/Pages 2 0 R${catalog}>>`,
    `<</Type/Pages/Kids[${kids.join(' ')}]/Count ${pages}>>`,
    ...kids.map(() => '<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/CropBox[0 0 9 9]/TrimBox[0 0 9 9]>>'),
  ];
  const body = objects.map((object, at) => `${at + 1} 0 obj${object}endobj\n`).join('');
  return Buffer.from(`%PDF-1.4\n${body}trailer<</Root 1 0 R>>\n`);
}

/** JPEG XL of 512 × 512 pixels, four frames of no duration, encoded by cjxl 0.7 without loss. */
const FOUR_FRAMES = Buffer.from(
  [
    '/wr4H0EAFhSXBAgIgAAAVAAAAAAIgAAIgABLEqVCBVJgw8YYTNoYHHsAAAAmAAADNlcCoKuHF5T6mYORHGHihJ+1cNqdc0g6/mDk',
    '/DO8NAM2VwKgq4cXlPqZg5EcYeKEn7Vw2p1zSDr+YOT8M7w0AzZXAqCrhxeU+pmDkRxh4oSftXDanXNIOv5g5PwzvDQDNlcCoKuH',
    'F5T6mYORHGHihJ+1cNqdc0g6/mDk/DO8NAgIMhECAEgAAAAACIAACIAASxKlQgVSYMPGGMzdPQAAABMAA0RLApCCAiE9yZBjDtcq',
    'A8ybQzz50wdnHPtiaDLqBSsDREsCkIICIT3JkGMO1yoDzJtDPPnTB2cc+2JoMuoFKwNESwKQggIhPcmQYw7XKgPMm0M8+dMHZxz7',
    'Ymgy6gUrA0RLApCCAiE9yZBjDtcqA8ybQzz50wdnHPtiaDLqBSsICDIRAgBUAAAAAAiAAAiAAEsSpUIFUmDDxhhM2hgcewAAACYA',
    'AAM2VwKgq4cXlPqZg5EcYeKEn7Vw2p1zSDr+YOT8M7w0AzZXAqCrhxeU+pmDkRxh4oSftXDanXNIOv5g5PwzvDQDNlcCoKuHF5T6',
    'mYORHGHihJ+1cNqdc0g6/mDk/DO8NAM2VwKgq4cXlPqZg5EcYeKEn7Vw2p1zSDr+YOT8M7w0CAgyEQEASAAAAAAIgAAIgABLEqVC',
    'BVJgw8YYzN09AAAAEwADREsCkIICIT3JkGMO1yoDzJtDPPnTB2cc+2JoMuoFKwNESwKQggIhPcmQYw7XKgPMm0M8+dMHZxz7Ymgy',
    '6gUrA0RLApCCAiE9yZBjDtcqA8ybQzz50wdnHPtiaDLqBSsDREsCkIICIT3JkGMO1yoDzJtDPPnTB2cc+2JoMuoFKw==',
  ].join(''),
  'base64',
);
/** Offset and length of the second and third frame together. */
const MIDDLE_AT = 177;
const MIDDLE_BYTES = 329;

/**
 * Returns an animation whose frames have no duration. A decoder decodes all of them, and shows the
 * last one. 1000 frames have 165 KB, and take djxl 0.7 half a minute of processor time and 36 MB of
 * memory.
 *
 * @param frames an even number of at least four
 */
export function slowJxl(frames: number): Buffer {
  const middle = FOUR_FRAMES.subarray(MIDDLE_AT, MIDDLE_AT + MIDDLE_BYTES);
  const more = Array.from({ length: (frames - 4) / 2 }, () => middle);
  return Buffer.concat([FOUR_FRAMES.subarray(0, MIDDLE_AT), ...more, FOUR_FRAMES.subarray(MIDDLE_AT)]);
}

export interface MadeEntry {
  /** Name; a Buffer is written as is, without the UTF-8 flag. */
  readonly name: string | Buffer;
  readonly content: Buffer;
  readonly deflate?: boolean;
  /** Additional general-purpose flags; 1 is encryption. */
  readonly flags?: number;
  readonly mode?: number;
  /** Size in the headers, if it differs from the real one. */
  readonly declaredSize?: number;
  /** Upper byte of "version made by"; 3 (Unix) by default. */
  readonly madeBy?: number;
  readonly extraField?: Buffer;
}

/** Writes an archive by hand, which allows invalid headers. */
export function makeZip(entries: readonly MadeEntry[]): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const { name, content, deflate = false, flags = 0, mode = 0o100644, declaredSize } = entry;
    const { madeBy = 3, extraField = Buffer.alloc(0) } = entry;
    const data = deflate ? deflateRawSync(content, { level: 1 }) : content;
    const encoded = typeof name === 'string' ? Buffer.from(name) : name;
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE((typeof name === 'string' ? 0x800 : 0) | flags, 2);
    fields.writeUInt16LE(deflate ? 8 : 0, 4);
    fields.writeUInt16LE(0x21, 8); // 1980-01-01, the earliest possible date
    fields.writeUInt32LE(crc32(content), 10);
    fields.writeUInt32LE(data.length, 14);
    fields.writeUInt32LE(declaredSize ?? content.length, 18);
    fields.writeUInt16LE(encoded.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, encoded, data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE((mode << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    const start = Buffer.from(`PK\x01\x02\x14${String.fromCharCode(madeBy)}`, 'latin1');
    const centralFields = Buffer.from(fields);
    centralFields.writeUInt16LE(extraField.length, 24);
    central.push(Buffer.concat([start, centralFields, tail, encoded, extraField]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}
