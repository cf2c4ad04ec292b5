/**
 * @module Results of conversions between all formats, and of the options that no other file is
 * about.
 */
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { opened } from '../../scripts/fixtures/edge-case.ts';
import { frame, open, scene, square } from '../../scripts/fixtures/scene.ts';
import { tiff, withChunk } from '../../scripts/fixtures/writers.ts';
import { PNG_SIGNATURE, pngChunk } from '../../src/images/png/png-writer.ts';
import {
  INPUT_TYPES,
  type InputType,
  OUTPUT_TYPES,
  OUTPUTS,
  type OutputType,
} from '../../src/tables/formats.ts';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { readTags } from '../helpers/exif.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { decode, difference, onGrey, type Pixels, pixelAt, sizeOf, toPixels } from '../helpers/pixels.ts';
import { pipe } from '../helpers/process.ts';
import { useService } from '../helpers/service.ts';

/** How far a lossy result may be below sharp's encoder, in dB: encoders and defaults differ. */
const LESS_THAN_SHARP = 1;
/**
 * The same for PDF, in dB: the JPEG is the same, but poppler upsamples chroma without smoothing.
 */
const LESS_IN_PDF = 3.5;
/** Minimum PSNR of lossless formats, in dB: the colour transform may round the last bit. */
const LAST_BIT = 48;
/** Minimum PSNR of 256 dithered colours for a smooth sky, in dB. */
const PALETTE = 33;

const TRANSPARENT: readonly InputType[] = ['png', 'webp', 'tiff', 'avif', 'gif'];
/** The source pixels of fixtures that sharp cannot decode. */
const MADE_FROM: Partial<Record<InputType, () => Pixels>> = { bmp: () => scene(), ico: () => square(64) };

describe('the result of a conversion', () => {
  const service = useService();

  const convertFixture = async (name: string, fields: Fields) =>
    converted(service.base, await fixture(name), fields, name);
  const pixelsOf = async (name: string, fields: Fields & { format: OutputType }) =>
    decode((await convertFixture(name, fields)).body, fields.format);
  const expectNear = (actual: readonly number[], expected: readonly number[], what: string): void => {
    for (const [channel, value] of expected.entries())
      expect(actual[channel], `${what}: ${actual}`).to.be.closeTo(value, 6);
  };

  for (const input of INPUT_TYPES) {
    for (const output of OUTPUT_TYPES) {
      const [name, what] = TRANSPARENT.includes(input)
        ? ['window', 'pixels and transparency']
        : ['scene', 'pixels'];
      it(`from ${input} to ${output} keeps the ${what}`, async () => {
        const source = await fixture(`${name}.${input}`);
        const answer = await converted(service.base, source, { format: output });
        expect(answer.headers.get('content-type')).to.equal(OUTPUTS[output].mediaType);
        const shown = MADE_FROM[input]?.() ?? (await decode(source));
        const expected = OUTPUTS[output].alpha === 'none' ? onGrey(shown, 255) : shown;
        const { psnr } = difference(await decode(answer.body, output), expected);
        expect(psnr, 'PSNR in dB').to.be.at.least(await minPsnr(expected, output));
      });
    }
  }

  for (const [at, format] of (['png', 'gif', 'webp', 'png', 'gif', 'webp', 'png', 'gif'] as const).entries())
    it(`in ${format} has EXIF orientation ${at + 1} applied`, async () => {
      const shown = await pixelsOf(`orientation-${at + 1}.jpg`, { format });
      expect(difference(shown, scene()).psnr).to.be.at.least(26); // mirrored or rotated: below 14 dB
    });

  /** Files whose orientation a decoder applies partly or ignores. */
  const ORIENTED: Readonly<Record<string, (image: Sharp) => Sharp>> = {
    'a PNG': (image) => image.png(),
    'a WebP': (image) => image.webp({ lossless: true }),
    'an LZW TIFF': (image) => image.tiff({ compression: 'lzw' }),
    'a JPEG TIFF': (image) => image.tiff({ compression: 'jpeg', quality: 95 }),
    'a YCbCr JPEG TIFF': (image) => image.tiff({ compression: 'jpeg', quality: 80 }),
    'a grey JPEG TIFF': (image) => image.greyscale().tiff({ compression: 'jpeg', quality: 80 }),
    'an AVIF': (image) => image.avif({ quality: 90, chromaSubsampling: '4:4:4' }),
  };
  for (const [at, [what, write]] of Object.entries(ORIENTED).entries()) {
    const orientations = [0, 2, 4].map((more) => 2 + ((at + more) % 7));
    it(`from ${what} has the orientations ${orientations} applied as viewers do`, async () => {
      for (const orientation of orientations) {
        const file = await write(opened().withMetadata({ orientation })).toBuffer();
        const { body } = await converted(service.base, file, { format: 'png' });
        const { psnr } = difference(await decode(body), await toPixels(sharp(file).autoOrient()));
        expect(psnr, `${orientation}`).to.be.at.least(25); // rotated or mirrored: below 17 dB
      }
    });
  }

  it('from a TIFF has the orientation of its tag, and not that of its XMP', async () => {
    const xmp =
      '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>';
    const { body } = await converted(service.base, await opened().withXmp(xmp).tiff().toBuffer(), {
      format: 'png',
    });
    expect(sizeOf(await decode(body))).to.deep.equal([120, 80]);
  });

  for (const input of ['gif', 'webp'] as const) {
    for (const format of ['gif', 'webp'] as const)
      it(`keeps frames, delays and loop count of an animation from ${input} to ${format}`, async () => {
        const { body } = await convertFixture(`moving.${input}`, { format });
        const { pages, delay, loop } = await sharp(body, { animated: true }).metadata();
        expect({ pages, delay, loop }).to.deep.equal({ pages: 3, delay: [100, 250, 40], loop: 3 });
        const data = Buffer.concat([0, 1, 2].map((at) => frame(at).data));
        const { psnr } = difference(await decode(body), { width: 48, height: 96, data });
        expect(psnr).to.be.at.least(28); // bar in the wrong place: below 20 dB
      });

    it(`shows only the first frame of a ${input} in a format without animation`, async () => {
      for (const format of ['png', 'jpg', 'bmp', 'pdf'] as const) {
        const { psnr } = difference(await pixelsOf(`moving.${input}`, { format }), frame(0));
        expect(psnr, format).to.be.at.least(26); // second frame: below 12 dB
      }
    });
  }

  for (const [frames, pages, notes] of [
    ['all', 3, null],
    ['', 3, null],
    ['FIRST', 1, 'first-frame-only'],
  ] as const)
    it(`has ${pages} frames of an animation with frames=${frames}, and the note ${notes}`, async () => {
      for (const format of ['gif', 'webp']) {
        const answer = await convertFixture('moving.gif', { format, frames });
        expect((await sharp(answer.body, { animated: true }).metadata()).pages ?? 1, format).to.equal(pages);
        expect(answer.notes, format).to.equal(notes);
      }
    });

  it('has the resolution of the file in each format with a place for it, whatever the metadata', async () => {
    const scanned = await opened().withMetadata({ density: 300 }).jpeg().toBuffer();
    for (const format of ['jpg', 'png'])
      for (const metadata of ['none', 'copyright', 'all']) {
        const { body } = await converted(service.base, scanned, { format, metadata });
        expect((await sharp(body).metadata()).density, `${format} ${metadata}`).to.be.closeTo(300, 0.1);
      }
    const none = await converted(service.base, await opened().webp().toBuffer(), { format: 'png' });
    expect(none.body.includes('pHYs')).to.equal(false);
  });

  it('has no label of a PNG, and no name of a page of a TIFF', async () => {
    const label = 'Sekret';
    const named = withChunk(await opened().png().toBuffer(), 'tEXt', Buffer.from(`label\0${label}`));
    const size = { 256: 1, 257: 1, 258: [8, 8, 8], 262: 2, 277: 3, 278: 1 };
    const scanned = tiff([{ tags: { ...size, 285: label }, strip: Buffer.from([1, 2, 3]) }]);
    for (const file of [named, scanned]) {
      const { body } = await converted(service.base, file, { format: 'pdf', metadata: 'copyright' });
      // ImageMagick writes it as text of the page.
      expect(await pipe('pdftotext', ['-', '-'], body).then(String)).to.not.include(label);
      expect(body.includes(label)).to.equal(false);
    }
  });

  it('has the metadata on request, and a note if the format cannot hold it', async () => {
    const everything = await edgeCase('everything.jpg');
    const keep = async (format: OutputType) => {
      const { notes, body } = await convert(service.base, everything, { format, metadata: 'all' });
      const [tags = {}] = await readTags([await writeTempFile(`kept.${format}`, body)]);
      return { notes, tags: Object.keys(tags) };
    };
    const jpg = await keep('jpg');
    expect(jpg.notes).to.equal(null);
    const kept = ['IFD0:Artist', 'GPS:GPSLatitude', 'IPTC:By-line', 'XMP-dc:Creator'];
    expect(jpg.tags).to.include.members(kept);
    const webp = await keep('webp');
    expect(webp.notes).to.equal('metadata-partly-kept'); // IPTC, and on 6 XMP
    expect(webp.tags).to.include('IFD0:Artist');
    for (const format of ['gif', 'bmp', 'pdf'] as const)
      expect((await keep(format)).notes, format).to.equal('metadata-partly-kept');
    const png = await keep('png');
    expect(png.notes).to.equal(null);
    expect(png.tags).to.include('IFD0:Artist');
    // Of the temporary file.
    expect(png.tags.filter((tag) => /^PNG:Date(create|modify|timestamp)/i.test(tag))).to.deep.equal([]);
  });

  describe('of a quality', () => {
    const bodyOf = async (fields: Fields) => (await convertFixture('scene.png', fields)).body;

    for (const format of ['webp', 'jpg', 'pdf'] as const)
      it(`is larger in ${format} if it is better, and has quality 80 by default`, async () => {
        const qualities = [{ quality: '30' }, { quality: '80' }, {}, { quality: '95' }];
        const sizes = await Promise.all(qualities.map((fields) => bodyOf({ format, ...fields })));
        const [low = 0, eighty = 0, none = 0, high = 0] = sizes.map(({ length }) => length);
        expect(none).to.equal(eighty);
        expect(eighty).to.be.within(low + 1, high - 1);
      });

    for (const format of ['png', 'gif', 'bmp'] as const)
      it(`is the same in ${format}, which has none`, async () => {
        expect((await bodyOf({ format, quality: '1' })).equals(await bodyOf({ format }))).to.equal(true);
      });

    it('has the quantization tables of that quality in a JPEG, and the size that libwebp gives in a WebP', async () => {
      const jpg = await bodyOf({ format: 'jpg', quality: '80' });
      // ITU-T T.81, K.1 starts with 16; libjpeg scales it by (200 - 2 * quality) percent: 16 * 0.4
      // = 6.
      expect(jpg[jpg.indexOf(Buffer.from([0xff, 0xdb])) + 5]).to.equal(6);
      const webp = await bodyOf({ format: 'webp', quality: '80' });
      const { length } = await opened().webp({ quality: 80 }).toBuffer();
      expect(webp.length / length).to.be.within(0.9, 1.1);
    });

    it('has colours in full resolution in a JPEG from 90 on', async () => {
      for (const [quality, chromaSubsampling] of [
        ['89', '4:2:0'],
        ['90', '4:4:4'],
      ] as const)
        expect(await sharp(await bodyOf({ format: 'jpg', quality })).metadata()).to.include({
          chromaSubsampling,
        });
    });
  });

  it('is a compressed PNG of 8 bits per channel', async () => {
    const { body } = await convertFixture('scene.jpg', { format: 'png' });
    expect(await sharp(body).metadata()).to.include({ depth: 'uchar', channels: 3 });
    const { length } = await sharp(await fixture('scene.jpg'))
      .png()
      .toBuffer();
    expect(body.length / length).to.be.below(1.2);
  });

  for (const [background, format, colour] of [
    ['#0080ff', 'jpg', [0, 128, 255]],
    ['#0F8', 'bmp', [0, 255, 136]],
    ['c0ffee', 'pdf', [192, 255, 238]],
    ['RebeccaPurple', 'jpg', [102, 51, 153]],
    ['', 'bmp', [255, 255, 255]],
  ] as const)
    it(`has background="${background}" in transparent areas of a ${format}`, async () => {
      const answer = await convertFixture('window.png', { format, background, quality: '100' });
      expectNear(pixelAt(await decode(answer.body, format), 60, 20), colour, format);
      expect(answer.notes).to.equal('alpha-flattened');
    });

  it('has a background with a colour in transparent areas of a greyscale TIFF', async () => {
    for (const format of ['jpg', 'bmp', 'pdf'] as const) {
      const fields = { format, background: '#3080c0', quality: '100' };
      const { body } = await converted(service.base, await edgeCase('grey-alpha.tiff'), fields);
      const shown = await decode(body, format);
      expectNear(pixelAt(shown, 8, 8), [100, 100, 100], format);
      expectNear(pixelAt(shown, 24, 8), [48, 128, 192], format);
    }
  });

  it('keeps transparency in formats with alpha, whatever the background', async () => {
    for (const format of ['webp', 'png', 'gif'] as const) {
      const { body, notes } = await convertFixture('window.png', { format, background: '#f00' });
      expect(pixelAt(await decode(body), 60, 20)[3], format).to.equal(0);
      expect(notes, format).to.equal(null);
    }
  });

  it('has no note for an alpha channel that is opaque', async () => {
    const opaque = await opened().ensureAlpha().png().toBuffer();
    expect((await converted(service.base, opaque, { format: 'jpg' })).notes).to.equal(null);
  });

  for (const name of ['scene.jpg', 'window.png', 'moving.gif'])
    it(`is a WebP with every visible pixel of ${name} if lossless=true, regardless of the quality`, async () => {
      const { body } = await convertFixture(name, { format: 'webp', lossless: 'true', quality: '10' });
      expect(difference(await decode(body), await decode(await fixture(name))).max).to.equal(0);
    });

  for (const isGrey of [false, true])
    it(`is a WebP with every invisible pixel of ${isGrey ? 'greys' : 'colours'}, and the profile, if lossless=true`, async () => {
      const [width, height] = [64, 64];
      const pixels = Array.from({ length: width * height }, (_, at) => {
        const [x, y] = [at % width, Math.floor(at / width)];
        return [x * 4, isGrey ? x * 4 : y * 4, isGrey ? x * 4 : 99, x < 40 ? 0 : 4 * y];
      });
      const data = Buffer.from(pixels.flat());
      const image = open({ width, height, data });
      for (const metadata of ['none', 'all']) {
        const source = await (metadata === 'all' ? image.clone().withIccProfile('p3') : image)
          .png()
          .toBuffer();
        const { body } = await converted(service.base, source, {
          format: 'webp',
          lossless: 'true',
          metadata,
        });
        const raw = await sharp(body).raw().toBuffer();
        expect(raw.equals(await sharp(source).raw().toBuffer()), metadata).to.equal(true);
        expect((await sharp(body).metadata()).hasProfile ?? false).to.equal(metadata === 'all');
      }
    });

  it('has at most as many colours as `colors` permits, with its transparency, in a PNG and a GIF', async () => {
    for (const name of ['scene.jpg', 'window.png', 'scene.svg'])
      for (const format of ['png', 'gif'] as const)
        for (const colors of [2, 16, 200])
          for (const dither of ['true', 'false']) {
            const fields = { format, colors: String(colors), dither };
            const [shown, whole] = [await pixelsOf(name, fields), await pixelsOf(name, { format: 'png' })];
            const what = `${name} ${format} ${colors} ${dither}`;
            expect(countColours(shown), what).to.be.at.most(colors);
            const corner = pixelAt(whole, 60, 20)[3] === 0 ? 0 : 255;
            if (colors > 2) expect(pixelAt(shown, 60, 20)[3], what).to.equal(corner);
            if (colors === 200)
              expect(difference(onGrey(shown, 128), onGrey(whole, 128)).psnr, what).to.be.above(28);
          }
  });

  it('of few colours is at most 1.1 times as large as that of sharp, and looks as good', async () => {
    for (const [name, colors] of [
      ['scene.jpg', 16],
      ['scene.jpg', 256],
      ['window.png', 16],
    ] as const) {
      const source = await fixture(name);
      const { body } = await convertFixture(name, { format: 'png', colors: String(colors) });
      const other = await sharp(source)
        .png({ palette: true, colours: colors, compressionLevel: 9 })
        .toBuffer();
      expect(body.length / other.length, name).to.be.below(1.1);
      const [whole, ours, theirs] = await Promise.all([source, body, other].map((file) => decode(file)));
      const psnrOf = (shown: Pixels) => difference(onGrey(shown, 128), onGrey(whole as Pixels, 128)).psnr;
      expect(psnrOf(ours as Pixels), name).to.be.above(psnrOf(theirs as Pixels) - 1);
    }
  });

  it('keeps the few colours of its source, with any alpha, if `colors` permits as many', async () => {
    const [width, height, channels] = [64, 64, 4] as const;
    const data = Buffer.from(
      Array.from({ length: width * height }, (_, at) => (at * at) % 60).flatMap((colour) => [
        colour * 4,
        (colour * 77) % 256,
        (colour * 31) % 256,
        16 + colour * 4,
      ]),
    );
    const source = await sharp(data, { raw: { width, height, channels } }).png().toBuffer();
    for (const dither of ['true', 'false']) {
      const { body } = await converted(service.base, source, { format: 'png', colors: '60', dither });
      expect(body[25]).to.equal(3);
      expect((await sharp(body).ensureAlpha().raw().toBuffer()).equals(data), dither).to.equal(true);
    }
  });

  it('of few colours has the profile, the metadata and the resolution of its source', async () => {
    const source = await opened()
      .withIccProfile('p3')
      .withExif({ IFD0: { Artist: 'Ada' } })
      .withMetadata({ density: 300, icc: 'p3' })
      .jpeg()
      .toBuffer();
    for (const metadata of ['none', 'copyright', 'all']) {
      const { body } = await converted(service.base, source, { format: 'png', colors: '16', metadata });
      const { icc, density } = await sharp(body).metadata();
      const [tags = {}] = await readTags([await writeTempFile('few.png', body)]);
      const isKept = metadata !== 'none';
      expect([icc !== undefined, tags['IFD0:Artist'] === 'Ada'], metadata).to.deep.equal([isKept, isKept]);
      expect([density, body[24]], metadata).to.deep.equal([300, 4]);
    }
  });

  it('is dithered by default if it has few colours', async () => {
    const fields = { format: 'png', colors: '4' } as const;
    const [dithered, plain] = [
      await pixelsOf('scene.jpg', fields),
      await pixelsOf('scene.jpg', { ...fields, dither: 'no' }),
    ];
    expect(countChanges(dithered)).to.be.above(2 * countChanges(plain));
  });

  it('keeps the bits of an indexed PNG of few colours, also if they are greys with transparency', async () => {
    for (const bits of [1, 2, 4])
      for (const [kind, opacity] of [
        ['colours', 1],
        ['greys', 1],
        ['greys', 0],
      ] as const) {
        const source = indexed(bits, kind === 'greys', opacity === 0);
        for (const metadata of ['none', 'all']) {
          const { body } = await converted(service.base, source, { format: 'png', metadata });
          expect([body[24], body[25]], `${bits} ${kind} ${opacity} ${metadata}`).to.deep.equal([bits, 3]);
          const [shown, expected] = [await decode(body), await decode(source)];
          for (const grey of [0, 255])
            expect(difference(onGrey(shown, grey), onGrey(expected, grey)).max).to.equal(0);
        }
      }
  });
});

async function minPsnr(image: Pixels, output: OutputType): Promise<number> {
  if (output === 'png' || output === 'bmp') return LAST_BIT;
  if (output === 'gif') return PALETTE;
  const encoded = output === 'webp' ? open(image).webp({ quality: 80 }) : open(image).jpeg({ quality: 80 });
  return (
    difference(await decode(await encoded.toBuffer()), image).psnr -
    (output === 'pdf' ? LESS_IN_PDF : LESS_THAN_SHARP)
  );
}

/** Number of different colours, of which all invisible ones are one. */
function countColours({ data }: Pixels): number {
  const colours = new Set<number>();
  for (let at = 0; at < data.length; at += 4) colours.add(data[at + 3] === 0 ? 0 : data.readUInt32BE(at));
  return colours.size;
}

/** Number of pixels that differ from the one to their left. */
function countChanges({ data }: Pixels): number {
  let changes = 0;
  for (let at = 4; at < data.length; at += 4)
    if (data.readUInt32BE(at) !== data.readUInt32BE(at - 4)) changes += 1;
  return changes;
}

/**
 * Encodes a PNG of all colours of so many bits, as vertical bars. With `fades`, the first is
 * transparent, and the last opaque.
 */
function indexed(bits: number, isGrey: boolean, fades: boolean): Buffer {
  const [count, width, height] = [2 ** bits, 64, 16];
  const colours = Array.from({ length: count }, (_, at) =>
    isGrey ? [at * 3 + 9, at * 3 + 9, at * 3 + 9] : [at * 9, 200, 90],
  );
  const row = Buffer.alloc(1 + (width * bits) / 8);
  for (let x = 0; x < width; x += 1) {
    const index = Math.floor((x * count) / width);
    const at = 1 + Math.floor((x * bits) / 8);
    row[at] = (row[at] as number) | (index << (8 - bits - ((x * bits) % 8)));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([bits, 3], 8);
  return Buffer.concat([
    PNG_SIGNATURE,
    pngChunk('IHDR', header),
    pngChunk('PLTE', Buffer.from(colours.flat())),
    ...(fades ? [pngChunk('tRNS', Buffer.from(colours.map((_, at) => (at * 255) / (count - 1))))] : []),
    pngChunk('IDAT', deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}
