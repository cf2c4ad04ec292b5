/** @module Files of at most 10 MiB whose headers or names take as long as possible to parse. */
import { randomBytes } from 'node:crypto';
import { constants, deflateRawSync, deflateSync } from 'node:zlib';
import { bmp } from '../../scripts/fixtures/bmp-writer.ts';
import { box, littleUint32, uint16 } from '../../scripts/fixtures/boxes.ts';
import { gif } from '../../scripts/fixtures/gif-writer.ts';
import { pdf } from '../../scripts/fixtures/pdf.ts';
import { psd } from '../../scripts/fixtures/psd.ts';
import { square } from '../../scripts/fixtures/scene.ts';
import { PHOTOMETRIC, tagsOf } from '../../scripts/fixtures/tiff-samples.ts';
import { ico, iconBitmap, tiff } from '../../scripts/fixtures/writers.ts';
import { GIF_FRAME, GIF_SCREEN, makeZip, pngWith, repeat } from '../../src/cli/doctor/attack-files.ts';
import { pngChunk } from '../../src/images/png/png-writer.ts';
import { ONE_PIXEL } from '../../src/process/policy.ts';

const MIB = 1024 ** 2;

/** 32,000 combining marks in the wrong order. Normalizing them takes a second. */
export const MARKS = `${'\u0300'.repeat(16_000)}${'\u0323'.repeat(16_000)}`;

function runLengthBmp(side: number, pixels: Buffer): Buffer {
  const palette = [[255, 0, 0]];
  return bmp({ width: side, height: side, bits: 8, compression: 1, palette, pixels });
}

/** Builds a PNG with 9990 iCCP chunks that each inflate to `bytes` bytes. */
function iccBomb(bytes: number): Buffer {
  const profile = Buffer.concat([
    Buffer.from('x\0\0', 'latin1'),
    deflateSync(Buffer.alloc(bytes, 'RGB XYZ ')),
  ]);
  return pngWith([repeat(pngChunk('iCCP', profile), 9_990)]);
}

/** Builds a PNG of profiles that compress badly, which take longest to inflate. */
function noisyIccBomb(): Buffer {
  const noise = Buffer.from(Array.from({ length: 65_536 }, (_, at) => ((at * at * 7919) >> 7) & 3));
  const chunk = pngChunk('iCCP', Buffer.concat([Buffer.from('x\0\0', 'latin1'), deflateSync(noise)]));
  return pngWith([repeat(chunk, Math.floor((9 * MIB) / chunk.length))]);
}

function webpOf(name: string, data: Buffer, count: number): Buffer {
  const chunk = Buffer.concat([Buffer.from(name, 'latin1'), littleUint32(data.length), data]);
  const chunks = repeat(chunk, count);
  const length = littleUint32(chunks.length + 4);
  return Buffer.concat([Buffer.from('RIFF'), length, Buffer.from('WEBP'), chunks]);
}

/** Builds a TIFF with a chain of directories. */
function tiffOf(directories: number, entries: number): Buffer {
  const size = 2 + entries * 12 + 4;
  const file = Buffer.alloc(8 + directories * size);
  file.write('II*\0\x08\0\0\0', 'latin1');
  for (let at = 0; at < directories; at += 1) {
    const start = 8 + at * size;
    file.writeUInt16LE(entries, start);
    for (let entry = 0; entry < entries; entry += 1) {
      const place = start + 2 + entry * 12;
      // An ICC profile at an arbitrary offset.
      file.writeUInt16LE(entry === 0 ? 34_675 : 256 + entry, place);
      file.writeUInt16LE(4, place + 2);
      file.writeUInt32LE(entry === 0 ? 60_000 : 1, place + 4);
      file.writeUInt32LE((at * 65_537) % file.length, place + 8);
    }
    file.writeUInt32LE(at + 1 < directories ? start + size : 0, start + size - 4);
  }
  return file;
}

function jpegOf(marker: number, data: Buffer, count: number): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(data.length + 2, 2);
  const segment = Buffer.concat([head, data]);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), repeat(segment, count)]);
}

function boxes(name: string, count: number): Buffer {
  const box = Buffer.from(`\0\0\0\x08${name}`, 'latin1');
  return Buffer.concat([Buffer.from('\0\0\0\x18ftypavif\0\0\0\0avifmif1', 'latin1'), repeat(box, count)]);
}

function iconOf(entries: number): Buffer {
  const head = Buffer.from([0, 0, 1, 0, 0, 0]);
  head.writeUInt16LE(entries, 4);
  const directory = Buffer.alloc(entries * 16);
  for (let at = 0; at < entries; at += 1) directory.writeUInt32LE((at * 70_001) % (10 * MIB), at * 16 + 12);
  return Buffer.concat([head, directory, Buffer.alloc(9 * MIB)]);
}

/** EXIF with orientation 6. */
const ROTATED = Buffer.from('II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0', 'latin1');

/** Builds EXIF of 65,535 entries, followed by a link to the same entries. */
function longExif(): Buffer {
  const entries = Array.from({ length: 65_535 }, (_, tag) => [tag & 255, tag >> 8, ...Array(10).fill(8)]);
  const [head, link] = [Buffer.from('II*\0\x08\0\0\0\xff\xff', 'latin1'), Buffer.from([8, 0, 0, 0])];
  return Buffer.concat([head, Buffer.from(entries.flat()), link]);
}

const rotatedPng = (chunks: Buffer): Buffer => pngWith([pngChunk('eXIf', ROTATED), chunks]);

/** Builds a rotated JPEG of one pixel, with 1000 segments before many more. */
function rotatedJpeg(count: number): Buffer {
  const exif = jpegOf(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), ROTATED]), 1);
  const frame = jpegOf(0xc0, Buffer.from([8, 0, 1, 0, 1, 1, 1, 0x11, 0]), 1);
  return Buffer.concat([exif, frame.subarray(2), jpegOf(0xe1, Buffer.alloc(0), count).subarray(2)]);
}

/** Builds a rotated TIFF with this text behind its only directory. */
function rotatedTiff(text: string): Buffer {
  const directory = Buffer.concat([ROTATED.subarray(0, 8), Buffer.from([3, 0])]);
  const size = [0, 1].map((side) => Buffer.from([side, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0]));
  return Buffer.concat([directory, ...size, ROTATED.subarray(10), Buffer.alloc(9 * MIB, text)]);
}

/** Encodes a box of ISO/IEC 14496-12 from parts. */
export const isoBox = (name: string, ...content: readonly (Buffer | readonly number[])[]): Buffer =>
  box(name, Buffer.concat(content.map((part) => Buffer.from(part))));

/**
 * Builds an AVIF of 100 items that each refer 254 times to 1500 sequence parameter sets of HEVC.
 */
function avifOfParameterSets(): Buffer {
  const set = Buffer.from('420101ffffffffffffffffffffffffa480', 'hex'); // 1 × 1 pixels
  const array = [Buffer.from([33, 0, 100]), repeat(Buffer.concat([Buffer.from([0, set.length]), set]), 100)];
  const size = isoBox('ispe', [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
  const sets = isoBox('hvcC', Buffer.alloc(22), [15], repeat(Buffer.concat(array), 15));
  const ids = Array.from({ length: 100 }, (_, at) => at);
  const items = ids.map((id) => isoBox('infe', [2, 0, 0, 0, 0, id, 0, 0], Buffer.from('av01\0')));
  const properties = ids.map((id) => Buffer.concat([Buffer.from([0, id, 255, 1]), Buffer.alloc(254, 2)]));
  return Buffer.concat([
    boxes('free', 0),
    isoBox(
      'meta',
      [0, 0, 0, 0],
      isoBox('iinf', [0, 0, 0, 0, 0, 100], ...items),
      isoBox('iprp', isoBox('ipco', size, sets), isoBox('ipma', [0, 0, 0, 0, 0, 0, 0, 100], ...properties)),
    ),
  ]);
}

const padded = (start: Buffer | string): Buffer =>
  Buffer.concat([Buffer.from(start as string, 'latin1'), Buffer.alloc(9 * MIB)]);

/** Creates an SVG with a mark of each construct that is rewritten. */
function markedSvg(content: string): Buffer {
  return Buffer.from(`<svg><!-- var( feDropShadow -->${content}</svg>`);
}

/** Creates an SVG whose custom properties double in length, through thirty levels. */
export function doublingSvg(): Buffer {
  const levels = Array.from({ length: 30 }, (_, at) => `--a${at}:var(--a${at + 1})var(--a${at + 1})`);
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><style>:root{${levels.join(';')};--a30:red}</style><rect fill="var(--a0)" width="9" height="9"/></svg>`,
  );
}

/**
 * Builds a PDF of 600 bytes whose page tree follows 2 GB of spaces in an object stream. pdfinfo
 * unpacks them before it knows the pages.
 */
export function slowPdf(): Buffer {
  const spaces = 2048;
  const flushed = { finishFlush: constants.Z_FULL_FLUSH };
  const unpacked = [
    Buffer.from([0x78, 0x9c]), // the header of zlib
    deflateRawSync('5 0 ', flushed),
    repeat(deflateRawSync(Buffer.alloc(MIB, ' '), flushed), spaces),
    deflateRawSync('<</Type/Pages/Kids[3 0 R]/Count 1>>'),
  ];
  const layers = deflateSync(deflateSync(Buffer.concat(unpacked)));
  let file = Buffer.from('%PDF-1.5\n');
  const offsets: number[] = [];
  const add = (dictionary: string, stream?: Buffer): void => {
    offsets.push(file.length);
    const body = stream ? [Buffer.from('stream\n'), stream, Buffer.from('\nendstream')] : [];
    file = Buffer.concat([file, Buffer.from(`${offsets.length} 0 obj\n${dictionary}`), ...body]);
    file = Buffer.concat([file, Buffer.from('\nendobj\n')]);
  };
  add('<</Type/Catalog/Pages 5 0 R>>');
  add(
    `<</Type/ObjStm/N 1/First ${4 + spaces * MIB}/Filter[/FlateDecode/FlateDecode/FlateDecode]/Length ${layers.length}>>`,
    layers,
  );
  add('<</Type/Page/Parent 5 0 R/MediaBox[0 0 100 60]>>');
  const entries = [0, ...offsets, file.length].map((offset, at) => [at === 0 ? 0 : 1, offset, 0]);
  const table = Buffer.concat(
    [...entries, [2, 2, 0]].map(([type = 0, value = 0, index = 0]) =>
      Buffer.from([type, 0, 0, value >> 8, value & 255, index]),
    ),
  );
  const start = file.length;
  add(`<</Type/XRef/Size 6/W[1 4 1]/Root 1 0 R/Length ${table.length}>>`, table);
  return Buffer.concat([file, Buffer.from(`startxref\n${start}\n%%EOF\n`)]);
}

export const HOSTILE_IMAGES: Readonly<Record<string, () => Buffer>> = {
  'a BMP of unusual bit masks': () =>
    bmp({
      width: 2260,
      height: 2260,
      bits: 16,
      compression: 3,
      masks: [0xf00, 0xf0, 0x0f],
      pixels: Buffer.alloc(2260 ** 2 * 2, 0x5a),
    }),
  'a run-length encoded BMP of 25 megapixels': () =>
    runLengthBmp(5000, repeat(Buffer.concat([repeat(Buffer.from([255, 0]), 20), Buffer.alloc(2)]), 5000)),
  'a run-length encoded BMP whose pixels are outside': () =>
    runLengthBmp(100, Buffer.alloc(9 * MIB, Buffer.from([255, 1]))),
  'a BMP with a profile of 4 MiB that compresses badly': () =>
    bmp({
      width: 1,
      height: 1,
      header: 124,
      bits: 32,
      compression: 3,
      pixels: Buffer.alloc(4, 1),
      masks: [0xff0000, 0xff00, 0xff, 0xff000000],
      profile: randomBytes(4 * MIB),
    }),
  'a PNG of 10000 profiles that inflate to 64 KiB': () => iccBomb(65_536),
  'a PNG of 10000 profiles that inflate to a byte more': () => iccBomb(65_537),
  'a PNG of profiles that are slow to inflate': noisyIccBomb,
  'a PNG of 10000 text chunks': () =>
    pngWith([repeat(pngChunk('tEXt', Buffer.from('Raw profile type xmp\0x')), 9_990)]),
  'a PNG of 10000 EXIF chunks': () =>
    pngWith([repeat(pngChunk('eXIf', Buffer.from('II*\0\x08\0\0\0\xff\xff', 'latin1')), 9_990)]),
  'a PNG of 800000 chunks': () => pngWith([repeat(pngChunk('aaAa', Buffer.alloc(0)), 800_000)]),
  'a rotated PNG of 800000 text chunks': () => rotatedPng(repeat(pngChunk('iTXt', Buffer.alloc(0)), 800_000)),
  'a rotated PNG of 12 EXIF chunks with 65535 entries': () =>
    rotatedPng(repeat(pngChunk('eXIf', longExif()), 12)),
  'a rotated WebP of XMP chunks': () => {
    const canvas = webpOf('VP8X', Buffer.alloc(10), 1);
    return Buffer.concat([
      canvas,
      webpOf('EXIF', ROTATED, 1).subarray(12),
      webpOf('XMP ', Buffer.alloc(0), 1_200_000).subarray(12),
    ]);
  },
  'a rotated JPEG of 2000000 empty segments': () => rotatedJpeg(2_000_000),
  'a rotated TIFF of orientations in XMP': () => rotatedTiff('tiff:Orientation>2'),
  'a rotated TIFF of an incomplete orientation and blanks': () =>
    rotatedTiff(`tiff:Orientation${' '.repeat(9 * MIB)}`),
  'a WebP of profiles': () => webpOf('ICCP', Buffer.alloc(500), 19_000),
  'a WebP of EXIF chunks': () =>
    webpOf('EXIF', Buffer.from('Exif\0\0II*\0\x08\0\0\0\xff\xff', 'latin1'), 19_000),
  'a WebP of frames': () => webpOf('ANMF', Buffer.alloc(24), 300_000),
  'a TIFF of 500000 directories': () => tiffOf(500_000, 1),
  'a TIFF of 4000 large directories with profiles': () => tiffOf(4_000, 200),
  'a GIF of 300000 frames': () => Buffer.concat([GIF_SCREEN, repeat(GIF_FRAME, 300_000)]),
  'a GIF of one frame in ten million bytes of sub-blocks': () =>
    Buffer.concat([GIF_SCREEN, GIF_FRAME.subarray(0, 11), Buffer.alloc(9 * MIB, '\x01x')]),
  'a JPEG of fill bytes': () => Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.alloc(9 * MIB, 0xff)]),
  'a JPEG of profiles': () =>
    jpegOf(0xe2, Buffer.concat([Buffer.from('ICC_PROFILE\0\x01\x01', 'latin1'), Buffer.alloc(9_000)]), 1_000),
  'a JPEG of Photoshop segments': () =>
    jpegOf(0xed, Buffer.concat([Buffer.from('Photoshop 3.0\0', 'latin1'), Buffer.alloc(9_000)]), 1_000),
  'an AVIF of empty boxes': () => boxes('free', 1_000_000),
  'an AVIF of parameter sets of HEVC': avifOfParameterSets,
  'an icon of 65535 images': () => iconOf(65_535),
  'an SVG with a preamble of comments': () => padded(`<!--${'-'.repeat(60_000)}`),
  'an SVG with a preamble of quotation marks': () => padded(`<!DOCTYPE svg [${'"\''.repeat(30_000)}`),
  'an SVG with a long root element': () =>
    Buffer.from(
      `<svg xmlns="http://www.w3.org/2000/svg" ${'width = '.repeat(4_000)} style="${'width:'.repeat(4_000)}" viewBox="${'1 '.repeat(8_000)}"/>`,
    ),
  'an SVG with a long name in an incomplete tag': () =>
    Buffer.from(`<svg><!-- var( --><${'a'.repeat(40_000)}<`),
  'an SVG with style elements that do not end': () =>
    Buffer.from(`<svg><!-- var( -->${'<style>'.repeat(10_000)}`),
  'an SVG of 250000 tags': () => markedSvg('<a/>'.repeat(250_000)),
  'an SVG of 170000 attributes': () => markedSvg(`<a${" b=''".repeat(170_000)}/>`),
  'an SVG of 30000 elements with custom properties': () =>
    markedSvg('<a style="--x:1;color:var(--x)"/>'.repeat(30_000)),
  'an SVG of custom properties that refer to each other through thirty levels': doublingSvg,
  'an SVG of 70000 rules with custom properties': () =>
    Buffer.from(`<svg><style>${'a{b:var(--c)}'.repeat(70_000)}</style></svg>`),
  'an SVG of a million characters that begin features': () =>
    Buffer.from(`<svg>${'viewBox=" 1 :1 '.repeat(60_000)}</svg>`),
  'an SVG of 450000 pictures with wrong types': () =>
    Buffer.from(`<svg>${'data:a/b;base64,/9j/'.repeat(450_000)}</svg>`),
  'an SVG of 350000 texts with white space to keep': () =>
    Buffer.from(`<svg style="white-space:pre">${'<text>\n  a b  <a>'.repeat(350_000)}</svg>`),
  'blanks in front of an SVG': () => Buffer.concat([Buffer.alloc(9 * MIB, ' '), Buffer.from('<svg/>')]),
};

/** The most pages or frames that are accepted by default. */
const MAX_FRAMES = 500;
const listAll = <T>(make: (at: number) => T): T[] => Array.from({ length: MAX_FRAMES }, (_, at) => make(at));

/**
 * Builds a TIFF of uncompressed pages, each with a row of pixels, as `sizeOf` and `inksOf` state.
 */
function tiffOfPages(sizeOf: (at: number) => readonly [number, number], inksOf = (_: number) => 3): Buffer {
  return tiff(
    listAll((at) => {
      const [[width, height], inks] = [sizeOf(at), inksOf(at)];
      const photometric = inks === 4 ? PHOTOMETRIC.cmyk : PHOTOMETRIC.rgb;
      const strip = Buffer.alloc(Math.min(100, height) * width * inks, at);
      return { tags: tagsOf(width, height, Array<number>(inks).fill(8), photometric), strip };
    }),
  );
}

/** Builds an animated WebP whose frames differ in their blending, their disposal and their time. */
function webpOfFrames(): Buffer {
  // 4 × 4 pixels without loss, by libwebp.
  const picture = Buffer.from('5650384c140000002f03c000100f10f3bfff0ffc0f076f7888e87f2c', 'hex');
  const frames = listAll((at) => {
    const place = Buffer.from([0, 0, 0, 0, 0, 0, 3, 0, 0, 3, 0, 0, 20 + (at % 3), 0, 0, at % 4]);
    return webpOf('ANMF', Buffer.concat([place, picture]), 1).subarray(12);
  });
  const canvas = Buffer.from([0x12, 0, 0, 0, 3, 0, 0, 3, 0, 0]);
  const chunks = [webpOf('VP8X', canvas, 1).subarray(12), webpOf('ANIM', Buffer.alloc(6), 1).subarray(12)];
  const all = Buffer.concat([Buffer.from('WEBP'), ...chunks, ...frames]);
  return Buffer.concat([Buffer.from('RIFF'), littleUint32(all.length), all]);
}

/** Builds an AVIF with as many items as a box can have. */
function avifOfItems(): Buffer {
  const items = Array.from({ length: 65_535 }, (_, id) =>
    isoBox('infe', [2, 0, 0, 0], uint16(id, 0), Buffer.from('av01\0')),
  );
  return Buffer.concat([
    boxes('free', 0),
    isoBox('meta', [0, 0, 0, 0], isoBox('iinf', [0, 0, 0, 0], uint16(items.length), ...items)),
  ]);
}

/**
 * Images of as many pages, frames, layers or items as are accepted, with few pixels: most
 * conversions reach every stage.
 */
export const LARGEST_IMAGES: Readonly<Record<string, () => Buffer>> = {
  'a TIFF of 500 equal pages': () => tiffOfPages(() => [4, 3]),
  'a TIFF of 500 pages of different sizes': () => tiffOfPages((at) => [2 + at, 3]),
  'a TIFF of 500 pages of alternating colour spaces': () =>
    tiffOfPages(
      () => [4, 3],
      (at) => 3 + (at % 2),
    ),
  'a TIFF of 500 pages without most of their pixels': () => tiffOfPages(() => [1, 8000]),
  'a GIF of 500 frames': () =>
    gif({
      width: 4,
      height: 3,
      palette: [0, 80, 160, 240].map((grey) => [grey, 0, 0]),
      frames: listAll((at) => ({
        x: at % 3,
        y: 0,
        width: 1 + (at % 2),
        height: 3,
        colour: at % 4,
        disposal: at % 4,
        delay: 2 + (at % 3),
      })),
    }),
  'an animated WebP of 500 frames': webpOfFrames,
  'a PDF of 500 equal pages': () => pdf(listAll(() => ({ width: 4, height: 3 }))),
  'a PDF of 500 pages of different sizes': () => pdf(listAll((at) => ({ width: 4 + at, height: 3 }))),
  'an AVIF of 65535 items': avifOfItems,
  'a PSD of 32767 layers': () => psd(square(4), { layers: 32_767 }),
  'an icon of 65535 small images': () => {
    const image = { side: 1, bytes: iconBitmap(square(1)) };
    return ico(Array<typeof image>(65_535).fill(image));
  },
};

/** Writes a ZIP of 20 files whose names start with this. */
const zipNamed = (start: string): Buffer =>
  makeZip(Array.from({ length: 20 }, (_, at) => ({ name: `${start}${at}.png`, content: ONE_PIXEL })));

export const HOSTILE_ARCHIVES: Readonly<Record<string, () => Buffer>> = {
  'a ZIP of 20 files with names of 32000 combining marks': () => zipNamed(MARKS.slice(0, 31_990)),
  'a ZIP of 20 files with names of 500 combining marks': () =>
    zipNamed('\u0300'.repeat(250) + '\u0323'.repeat(250)),
  'a ZIP of 1000 folders with long names': () =>
    makeZip(
      Array.from({ length: 1000 }, (_, at) => ({
        name: Buffer.concat([Buffer.alloc(1000, 0x82), Buffer.from(`${at}/`)]),
        madeBy: 0,
        content: Buffer.alloc(0),
      })),
    ),
  'a ZIP of 20 bombs': () =>
    makeZip(
      Array.from({ length: 20 }, (_, at) => ({
        name: `${at}.png`,
        content: Buffer.concat([ONE_PIXEL, Buffer.alloc(10 * MIB - 100 - at)]),
        deflate: true,
      })),
    ),
};
