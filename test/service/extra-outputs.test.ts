// @full: a third of the pairs of inputs and outputs of which one is optional
// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { brotliDecompressSync } from 'node:zlib';
import { expect } from 'chai';
import sharp from 'sharp';
import { box, boxesOf } from '../../scripts/fixtures/boxes.ts';
import { open, scene, square } from '../../scripts/fixtures/scene.ts';
import { median } from '../../scripts/statistics.ts';
import { measureDifference } from '../../src/regress/image/difference.ts';
import {
  ALL_INPUT_TYPES,
  ALL_OUTPUT_TYPES,
  EXTRA_INPUT_TYPES,
  EXTRA_OUTPUT_TYPES,
  type InputType,
  OUTPUTS,
  type OutputType,
} from '../../src/tables/formats.ts';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { ALL_EXTRAS, decodeAny, extra, runDjxl } from '../helpers/extra.ts';
import { decodeByPillow } from '../helpers/pillow.ts';
import { decode, difference, onGrey, type Pixels, pixelAt, toPixels } from '../helpers/pixels.ts';
import { pipe } from '../helpers/process.ts';
import { useServiceWith } from '../helpers/service.ts';
import { type VariedImage, variedImages } from '../helpers/varied-images.ts';
import { readZip } from '../helpers/zip.ts';

/**
 * Minimum PSNR in dB compared with the input, by output format. GIF and ICO are less exact by
 * nature.
 */
const LEAST: Readonly<Record<OutputType, number>> = {
  png: 38,
  bmp: 38,
  tiff: 38,
  gif: 30,
  webp: 26,
  jpg: 26,
  pdf: 23,
  avif: 28,
  jxl: 26,
  ico: 20,
};

const isExtra = (type: InputType): boolean => EXTRA_INPUT_TYPES.some((one) => one === type);
/** Fixtures with a transparent area, by their types. */
const TRANSPARENT: readonly InputType[] = ['png', 'webp', 'tiff', 'avif', 'gif', 'heic', 'jxl', 'jp2'];

/** The picture of a fixture. */
const pictureOf = (type: InputType): Pixels =>
  type === 'ico' || type === 'cur'
    ? square(64)
    : scene({ flat: ['svg', 'gif', 'pdf'].includes(type), transparent: TRANSPARENT.includes(type) });

/** A third of the pairs of types of which one is optional. Each type is in several of them. */
const PAIRS = ALL_INPUT_TYPES.flatMap((input) => ALL_OUTPUT_TYPES.map((output) => ({ input, output })))
  .filter(({ input, output }) => isExtra(input) || EXTRA_OUTPUT_TYPES.some((type) => type === output))
  .filter(({ input, output }) => input !== 'pdf' || output !== 'pdf') // is rejected
  .filter((_, at) => at % 3 === 0);

/** Returns the image in a square with transparent borders, as in an icon. */
const squared = (image: Pixels, side: number): Promise<Pixels> =>
  toPixels(open(image).resize(side, side, { fit: 'contain', background: '#0000' }));

describe('the outputs that EXTRA_OUTPUTS enables', () => {
  const own = useServiceWith(ALL_EXTRAS);

  const make = async (name: string, fields: Fields) => converted(own.base, await fixture(name), fields);

  for (const { input, output } of PAIRS) {
    it(`show the same image from ${input} to ${output}`, async () => {
      const name = `${TRANSPARENT.includes(input) ? 'window' : 'scene'}.${input}`;
      const file = await (isExtra(input) ? extra : fixture)(name);
      const answer = await converted(own.base, file, { format: output });
      expect(answer.headers.get('content-type')).to.equal(OUTPUTS[output].mediaType);
      const side = input === 'svg' ? 256 : 48;
      const fitted = output === 'ico' ? await squared(pictureOf(input), side) : pictureOf(input);
      // A viewer shows a PDF on white.
      const expected = output === 'pdf' || OUTPUTS[output].alpha === 'none' ? onGrey(fitted, 255) : fitted;
      const { psnr } = difference(await decodeAny(answer.body, output), expected);
      // The edges of rendered shapes are antialiased.
      const least = ['svg', 'pdf'].includes(input) ? Math.min(26, LEAST[output]) : LEAST[output];
      expect(psnr, 'PSNR in dB').to.be.at.least(least);
    });
  }

  for (const format of ['avif', 'jxl', 'tiff'] as const) {
    it(`keep metadata in ${format} on request, with a note if a part is lost`, async () => {
      const kept = await make('private.jpg', { format, strip_metadata: 'false' });
      const stripped = await make('private.jpg', { format });
      expect(stripped.body.toString('latin1')).to.not.include('Somebody').and.not.include('secret');
      const lost = kept.notes === 'metadata-partly-kept';
      const { exif, xmp } = format === 'jxl' ? metadataOfJxl(kept.body) : await sharp(kept.body).metadata();
      if (format !== 'tiff') expect(exif?.toString('latin1')).to.include('Somebody Private');
      if (format === 'jxl') expect(xmp?.toString()).to.include('secret-xmp');
      expect(lost).to.equal(!exif || !xmp);
    });
  }

  it('are upright in JPEG XL if metadata with an orientation is kept', async () => {
    const { body } = await make('orientation-6.jpg', {
      format: 'jxl',
      quality: '95',
      strip_metadata: 'false',
    });
    // djxl 0.7 would write the EXIF box into its PNG with four bytes too many.
    const boxes = boxesOf(body).filter(({ name }) => name !== 'Exif' && name !== 'brob');
    const image = Buffer.concat(boxes.map((one) => box(one.name, one.body)));
    expect(difference(await decodeAny(image, 'jxl'), scene()).psnr).to.be.at.least(30);
    const tiff = metadataOfJxl(body).exif?.subarray(4) as Buffer;
    const orientation = await pipe('exiftool', ['-s3', '-n', '-Orientation', '-'], tiff);
    expect(orientation.toString().trim()).to.equal('1');
  });

  it('keep EXIF from a JPEG to a JPEG XL and back', async () => {
    const keeping = { strip_metadata: 'false' };
    const { body } = await make('private.jpg', { format: 'jxl', ...keeping });
    const back = await convert(own.base, body, { format: 'jpg', ...keeping });
    const artist = await pipe('exiftool', ['-s3', '-Artist', '-'], back.body);
    expect(artist.toString().trim()).to.equal('Somebody Private');
  });

  for (const format of ['avif', 'jxl'] as const)
    it(`have quality 80 in ${format} by default, and more bytes with a better one`, async () => {
      const qualities = [{ quality: '70' }, { quality: '80' }, {}, { quality: '90' }];
      const results = await Promise.all(qualities.map((fields) => make('scene.png', { format, ...fields })));
      const [low = 0, eighty = 0, none = 0, high = 0] = results.map(({ body }) => body.length);
      expect(none).to.equal(eighty);
      expect(eighty).to.be.within(low + 1, high - 1);
    });

  it('are lossless JPEG XL at quality 100, also with 16 bits', async () => {
    const { body } = await make('window.png', { format: 'jxl', quality: '100' });
    expect(difference(await decodeAny(body, 'jxl'), scene({ transparent: true })).max).to.equal(0);
    const deep = await convert(own.base, await extra('deep.jxl'), { format: 'jxl', quality: '100' });
    expect(difference(await decodeAny(deep.body, 'jxl'), scene()).max).to.equal(0);
  });

  it('are JPEG XL from which djxl restores the same JPEG, with lossless and all metadata', async () => {
    const wanted = { format: 'jxl', lossless: 'true', strip_metadata: 'false' };
    const hasJpeg = (file: Buffer): boolean => boxesOf(file).some(({ name }) => name === 'jbrd');
    for (const name of ['scene.jpg', 'grey.jpg', 'p3.jpg', 'private.jpg']) {
      const { headers, body } = await make(name, wanted);
      expect((await runDjxl(body, 'jpg')).equals(await fixture(name)), name).to.equal(true);
      expect(headers.get('x-conversion-notes'), name).to.equal(null);
      expect([headers.get('x-image-width'), headers.get('x-image-height')], name).to.deep.equal([
        '120',
        '80',
      ]);
    }
    for (const [name, fields] of [
      ['scene.jpg', { strip_metadata: 'true' }],
      ['scene.jpg', { lossless: 'false' }],
      ['scene.jpg', { width: '60' }],
      ['scene.jpg', { crop: '0,0,50,50' }],
      ['orientation-6.jpg', {}],
      ['scene.png', {}],
    ] as const)
      expect(hasJpeg((await make(name, { ...wanted, ...fields })).body), name).to.equal(false);
    const variants = JSON.stringify([{ name: 'whole' }, { name: 'small', width: 60 }]);
    const { body: archive } = await make('private.jpg', { ...wanted, variants });
    const results = (await readZip(archive)).filter(({ name }) => name.endsWith('.jxl'));
    expect(results.map(({ content }) => hasJpeg(content))).to.deep.equal([true, false]);
    const cut = await convert(own.base, await edgeCase('cut-off.jpg'), wanted);
    expect([cut.notes, hasJpeg(cut.body)]).to.deep.equal(['truncated-input', false]);
  });

  it('are JPEG XL that the service reads again, also of 16 bits and transparency', async () => {
    const { width, height, data } = scene({ transparent: true });
    for (const space of ['rgb16', 'grey16'] as const) {
      const samples = Uint16Array.from(data, (value) => value * 257);
      const image = sharp(samples, { raw: { width, height, channels: 4 } }).toColourspace(space);
      const png = await image.png().toBuffer();
      expect(png[24], 'bits').to.equal(16);
      const { body } = await converted(own.base, png, { format: 'jxl', quality: '100' });
      const again = await converted(own.base, body, { format: 'png' });
      expect(difference(await decode(again.body), await decode(png)).max, space).to.be.at.most(2);
    }
  });

  it('keep one transparent grey in avif and jxl', async () => {
    for (const format of ['avif', 'jxl'] as const) {
      const { body } = await make('../traps/transparent-grey.png', { format });
      const shown = await decodeAny(body, format);
      expect(pixelAt(shown, 6, 4)[3], format).to.equal(0);
      expect(pixelAt(shown, 18, 4)[3], format).to.be.closeTo(255, 4); // libjxl 0.7 compresses alpha lossily
    }
  });

  it('show black and white of 16 bits per channel as JPEG XL', async () => {
    const bars = Buffer.alloc(64 * 48).map((_, at) => (at % 64 < 20 ? 255 : 0));
    const image = sharp(bars, { raw: { width: 64, height: 48, channels: 1 } });
    const png = await image.toColourspace('grey16').png().toBuffer();
    expect(png[24], 'bits').to.equal(16);
    const { body } = await converted(own.base, png, { format: 'jxl', quality: '100' });
    expect(difference(await decodeAny(body, 'jxl'), await decode(png)).max).to.equal(0);
  });

  for (const format of ['avif', 'jxl', 'tiff'] as const) {
    it(`show images of 2, 4 and 16 greys or colours in ${format}`, async () => {
      for (const [count, hasColour, quality] of [
        [2, false, '80'],
        [2, true, '100'],
        [4, false, '100'],
        [4, true, '80'],
        [16, false, '100'],
        [16, true, '80'],
      ] as const) {
        const pixels = stripes(count, hasColour);
        const png = await open(pixels).removeAlpha().png({ palette: hasColour, dither: 0 }).toBuffer();
        const { body } = await converted(own.base, png, { format, quality });
        const { psnr } = difference(await decodeAny(body, format), pixels);
        expect(psnr, `${count} ${hasColour ? 'colours' : 'greys'} at ${quality}`).to.be.at.least(30);
      }
    });
  }

  it('contain every frame of an animation and every page in a TIFF', async () => {
    for (const name of ['moving.gif', 'moving.webp', 'pages.tiff']) {
      const { body } = await make(name, { format: 'tiff' });
      expect((await sharp(body).metadata()).pages, name).to.equal(3);
      const expected = await decode(await fixture(name));
      expect(difference(await decode(body), expected).psnr, name).to.be.at.least(38);
    }
    const { body } = await make('moving.gif', { format: 'tiff', frames: 'first' });
    expect((await sharp(body).metadata()).pages ?? 1).to.equal(1);
  });

  it('keep 16 bits per channel in TIFF, with Deflate compression', async () => {
    for (const name of ['deep.jxl', 'deep.jp2', 'deep.heic']) {
      const { body } = await convert(own.base, await extra(name), { format: 'tiff' });
      expect((await sharp(body).metadata()).depth, name).to.equal('ushort');
      expect(await compressionOf(body), name).to.match(/Deflate/);
    }
    const { body } = await make('scene.png', { format: 'tiff' });
    expect((await sharp(body).metadata()).depth).to.equal('uchar');
  });

  it('are icons of 256, 48, 32 and 16 pixels per side, of which the largest is a PNG', async () => {
    const { body } = await make('window.png', { format: 'ico', width: '256', enlarge: 'true' });
    expect(sidesIn(body)).to.deep.equal([256, 48, 32, 16]);
    const first = body.subarray(body.readUInt32LE(6 + 12));
    expect(first.toString('latin1', 1, 4)).to.equal('PNG');
    const expected = await squared(scene({ transparent: true }), 256);
    expect(difference(await decodeByPillow(body), expected).psnr).to.be.at.least(23);
  });

  it('are icons of the sizes up to that of the image, unless it may be enlarged, and at least of 16', async () => {
    for (const [side, fields, expected] of [
      [300, {}, [256, 48, 32, 16]],
      [255, {}, [48, 32, 16]],
      [32, {}, [32, 16]],
      [32, { width: '256' }, [32, 16]],
      [32, { enlarge: 'true' }, [256, 48, 32, 16]],
      [32, { width: '48', enlarge: 'true' }, [48, 32, 16]],
      [32, { width: '48', height: '48', fit: 'contain' }, [48, 32, 16]],
      [300, { crop: '0,0,40,20' }, [32, 16]],
      [9, {}, [16]],
    ] as const) {
      const image = await open(square(side)).png().toBuffer();
      const { headers, body } = await converted(own.base, image, { format: 'ico', ...fields });
      expect(sidesIn(body), `${side} ${JSON.stringify(fields)}`).to.deep.equal(expected);
      expect(headers.get('x-image-width')).to.equal(String(expected[0]));
    }
  });

  it('omit the sizes of an icon that exceed the requested width or height, or the scaled image', async () => {
    for (const fields of [{ width: '40' }, { scale: '33.4' }]) {
      const { body } = await make('window.png', { format: 'ico', ...fields });
      expect(sidesIn(body), JSON.stringify(fields)).to.deep.equal([32, 16]);
    }
  });

  it('render an SVG for an icon of at most 256 pixels at its scale, and keep its shape', async () => {
    for (const [scale, side] of [
      [undefined, 256],
      ['40', 48],
      ['1000', 256],
    ] as const) {
      const { body } = await make('scene.svg', { format: 'ico', ...(scale && { scale }) });
      expect(sidesIn(body), scale).to.deep.equal([256, 48, 32, 16].filter((one) => one <= side));
      const drawn = sharp(await fixture('scene.svg'), { density: 72 * (side / 120) });
      expect(
        difference(await decodeByPillow(body), await squared(await toPixels(drawn), side)).psnr,
      ).to.be.at.least(24);
    }
  });

  it('look like WebP of the same quality in AVIF and JPEG XL: the median SSIM differs by at most 0.01', async () => {
    const images = await variedImages();
    const encoded = async (
      { pixels, png }: VariedImage,
      format: string,
      quality: string,
    ): Promise<number> => {
      const { body } = await converted(own.base, png, { format, quality });
      return measureDifference(pixels, await decodeAny(body, format), true).ssim ?? Number.NaN;
    };
    for (const quality of ['30', '75']) {
      const webp = await Promise.all(images.map((image) => encoded(image, 'webp', quality)));
      for (const format of ['avif', 'jxl']) {
        const others = await Promise.all(images.map((image) => encoded(image, format, quality)));
        const gaps = others.map((value, at) => value - (webp[at] as number));
        const named = images.map(({ name }, at) => `${name} ${gaps[at]?.toFixed(4)}`);
        expect(median(gaps), `${format} at ${quality}: ${named.join(', ')}`).to.be.closeTo(0, 0.01);
      }
    }
  });
});

/**
 * Draws stripes of 8 pixels in evenly spaced shades, from black to white or from blue to yellow.
 */
function stripes(count: number, hasColour: boolean): Pixels {
  const [width, height] = [128, 32];
  const data = Buffer.alloc(width * height * 4, 255);
  for (let at = 0; at < width * height; at += 1) {
    const stripe = Math.floor((at % width) / 8) % count;
    const shade = Math.round((255 * stripe) / (count - 1));
    data.set([shade, shade, hasColour ? 255 - shade : shade], at * 4);
  }
  return { width, height, data };
}

/**
 * Returns the metadata boxes of a JPEG XL, which newer encoders compress (ISO/IEC 18181-2, annex
 * B).
 */
function metadataOfJxl(file: Buffer): { readonly exif?: Buffer; readonly xmp?: Buffer } {
  const boxes = boxesOf(file).map(({ name, body }) =>
    name === 'brob'
      ? { name: body.toString('latin1', 0, 4), body: brotliDecompressSync(body.subarray(4)) }
      : { name, body },
  );
  const bodyOf = (wanted: string) => boxes.find(({ name }) => name === wanted)?.body;
  const [exif, xmp] = [bodyOf('Exif'), bodyOf('xml ')];
  return { ...(exif && { exif }), ...(xmp && { xmp }) };
}

async function compressionOf(tiff: Buffer): Promise<string> {
  return (await pipe('exiftool', ['-s3', '-Compression', '-'], tiff)).toString();
}

function sidesIn(icon: Buffer): number[] {
  return Array.from({ length: icon.readUInt16LE(4) }, (_, at) => icon[6 + at * 16] || 256);
}
