/** @module Converts TIFFs with several images, of which only some are pages: microscopy, layers, pyramids and masks. */
import { expect } from 'chai';
import sharp from 'sharp';
import { littleUint16, littleUint32 } from '../../scripts/fixtures/boxes.ts';
import { type TiffPage, tiff } from '../../scripts/fixtures/writers.ts';
import { convert, converted } from '../helpers/client.ts';
import { countPages } from '../helpers/pdf.ts';
import { decode, pixelAt, sizeOf } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const [WIDTH, HEIGHT] = [32, 16];
const TAG = {
  subfileType: 254,
  description: 270,
  pageName: 285,
  subDirectories: 330,
  photoshopLayers: 37724,
};
const REDUCED = 1;
const MASK = 4;
const [FIRST, SECOND, THIRD] = [
  [200, 40, 40],
  [40, 90, 160],
  [30, 160, 60],
] as const;

/** Builds a page of one colour. Greys have one sample of 16 bits. */
function page(colour: readonly number[], tags: TiffPage['tags'] = {}, scale = 1): TiffPage {
  const [width, height] = [WIDTH / scale, HEIGHT / scale];
  const deep = colour.length === 1;
  const strip = Buffer.alloc(
    width * height * (deep ? 2 : 3),
    Buffer.from(deep ? [...colour, ...colour] : colour),
  );
  const bits = deep ? 16 : [8, 8, 8];
  const layout = { 256: width, 257: height, 258: bits, 262: deep ? 1 : 2, 277: colour.length, 278: height };
  return { tags: { ...layout, ...tags }, strip };
}

/** A mask of 1 bit per pixel, all set. */
const mask = (): TiffPage => ({
  tags: { 254: MASK, 256: WIDTH, 257: HEIGHT, 258: 1, 262: 4, 277: 1, 278: HEIGHT },
  strip: Buffer.alloc((WIDTH / 8) * HEIGHT, 0xff),
});

/** Metadata of an OME-TIFF with one plane per directory. */
const ome = (type: string): string =>
  `<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="${type}" SizeX="${WIDTH}" SizeY="${HEIGHT}" SizeZ="3" SizeC="1" SizeT="1"><TiffData/></Pixels></Image></OME>`;

/** Takes the second directory out of the chain: the first one refers to it as reduced (SubIFDs). */
function withSubDirectory(full: TiffPage, reduced: TiffPage): Buffer {
  const file = tiff([{ ...full, tags: { ...full.tags, [TAG.subDirectories]: 0 } }, reduced]);
  const entries = file.readUInt16LE(8);
  const nextAt = 10 + entries * 12;
  for (let at = 10; at < nextAt; at += 12) {
    if (file.readUInt16LE(at) === TAG.subDirectories) file.writeUInt32LE(file.readUInt32LE(nextAt), at + 8);
  }
  file.writeUInt32LE(0, nextAt);
  return file;
}

/** Layers of Photoshop in a little-endian TIFF: two of one colour, which cover the image. */
function photoshopLayers(): Buffer {
  const plane = WIDTH * HEIGHT + 2; // compression 0, and the samples
  const channels = [0, 1, 2].flatMap((channel) => [littleUint16(channel), littleUint32(plane)]);
  const head = Buffer.concat([
    ...[
      littleUint32(0, 0, HEIGHT, WIDTH),
      littleUint16(3),
      ...channels,
      Buffer.from('MIB8mron\xff\0\0\0', 'latin1'),
    ],
    ...[littleUint32(12, 0, 0), Buffer.from('\x01L\0\0', 'latin1')],
  ]);
  const planes = (colour: readonly number[]): Buffer =>
    Buffer.concat(colour.map((value) => Buffer.concat([Buffer.alloc(2), Buffer.alloc(plane - 2, value)])));
  const layers = Buffer.concat([littleUint16(2), head, head, planes(SECOND), planes(THIRD)]);
  const title = Buffer.from('Adobe Photoshop Document Data Block\0MIB8ryaL', 'latin1');
  return Buffer.concat([title, littleUint32(layers.length), layers]);
}

const KINDS: Readonly<
  Record<string, { readonly file: Buffer; readonly pages: number; readonly shows?: readonly number[] }>
> = {
  'an OME-TIFF with a z-series in colour': {
    file: tiff([page(FIRST, { [TAG.description]: ome('uint8') }), page(SECOND), page(THIRD)]),
    pages: 3,
  },
  'an OME-TIFF with a z-series of 16-bit greys': {
    file: tiff([page([180], { [TAG.description]: ome('uint16') }), page([90]), page([30])]),
    pages: 3,
    shows: [180, 180, 180],
  },
  'an OME-TIFF with a pyramid of subdirectories': {
    file: withSubDirectory(
      page(FIRST, { [TAG.description]: ome('uint8') }),
      page(SECOND, { [TAG.subfileType]: REDUCED }, 2),
    ),
    pages: 1,
  },
  'layers that are pages with names': {
    file: tiff([page(FIRST, { [TAG.pageName]: 'Background' }), page(SECOND, { [TAG.pageName]: 'Layer 1' })]),
    pages: 2,
  },
  'layers of Photoshop behind the merged image': {
    file: tiff([page(FIRST, { [TAG.photoshopLayers]: photoshopLayers() })]),
    pages: 1,
  },
  'two reduced versions behind the image': {
    file: tiff([
      page(FIRST),
      page(SECOND, { [TAG.subfileType]: REDUCED }, 2),
      page(THIRD, { [TAG.subfileType]: REDUCED }, 4),
    ]),
    pages: 1,
  },
  'a mask behind the image, and the mask of its reduced version': {
    file: tiff([page(FIRST), mask(), page(SECOND, { [TAG.subfileType]: REDUCED }, 2), mask()]),
    pages: 1,
  },
  'a mask in front of the image': { file: tiff([mask(), page(FIRST)]), pages: 1 },
};

describe('a TIFF with several images', () => {
  const service = useService();

  for (const [what, { file, pages, shows = FIRST }] of Object.entries(KINDS)) {
    it(`shows the first page of ${what}, in the whole size`, async () => {
      for (const format of ['png', 'webp'] as const) {
        const { body } = await converted(service.base, file, { format, lossless: 'true' });
        const image = await decode(body);
        expect(sizeOf(image)).to.deep.equal([WIDTH, HEIGHT]);
        expect(pixelAt(image, 20, 10)).to.deep.equal([...shows, 255]);
      }
    });

    it(`makes a PDF of ${pages} ${pages === 1 ? 'page' : 'pages'} from ${what}`, async () => {
      const { body } = await converted(service.base, file, { format: 'pdf' });
      expect(await countPages(body)).to.equal(pages);
    });
  }

  it('shows the whole image of a tiled pyramid that libvips writes', async () => {
    const [red, green, blue] = FIRST;
    const image = sharp({
      create: { width: 600, height: 400, channels: 3, background: { r: red, g: green, b: blue } },
    });
    const file = await image.tiff({ tile: true, pyramid: true, compression: 'lzw' }).toBuffer();
    expect((await sharp(file).metadata()).pages).to.be.above(1);
    const { status, body } = await convert(service.base, file, { format: 'png' });
    expect(status).to.equal(200);
    const shown = await decode(body);
    expect([shown.width, shown.height, ...pixelAt(shown, 300, 200)]).to.deep.equal([600, 400, ...FIRST, 255]);
  });
});
