import { expect } from 'chai';
import sharp from 'sharp';
import { jpegOf, opened } from '../../scripts/fixtures/edge-case.ts';
import { frame, scene } from '../../scripts/fixtures/scene.ts';
import { OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/formats.ts';
import { convert, converted, edgeCase, type Fields, fixture } from '../helpers/client.ts';
import { readTags } from '../helpers/exif.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { decode, difference, pixelAt, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

describe('conversion output', () => {
  const service = useService();

  const convertFixture = async (name: string, fields: Fields) =>
    converted(service.base, await fixture(name), fields, name);
  const pixelsOf = async (name: string, fields: Fields & { format: OutputType }) =>
    decode((await convertFixture(name, fields)).body, fields.format);

  for (const [quality, chromaSubsampling] of [
    ['89', '4:2:0'],
    ['90', '4:4:4'],
    ['100', '4:4:4'],
  ] as const) {
    it(`has ${chromaSubsampling} colours in a JPEG of quality ${quality}`, async () => {
      const { body } = await convertFixture('scene.png', { format: 'jpg', quality });
      expect(await sharp(body).metadata()).to.include({ chromaSubsampling });
    });
  }

  describe('orientation', () => {
    for (const orientation of [1, 2, 3, 4, 5, 6, 7, 8]) {
      for (const format of ['png', 'gif', 'webp'] as const) {
        it(`applies EXIF orientation ${orientation} and removes the tag, to ${format}`, async () => {
          const shown = await pixelsOf(`orientation-${orientation}.jpg`, { format });
          expect(difference(shown, scene()).psnr).to.be.at.least(26); // mirrored or rotated: below 14 dB
        });
      }
    }

    it('resizes to the oriented dimensions, not to the stored ones', async () => {
      const shown = await pixelsOf('orientation-6.jpg', { format: 'png', width: '60' });
      expect(sizeOf(shown)).to.deep.equal([60, 40]);
    });

    it('resets the orientation tag when metadata is kept', async () => {
      const { body } = await convertFixture('orientation-6.jpg', { format: 'jpg', strip_metadata: 'false' });
      const { orientation, width, height } = await sharp(body).metadata();
      expect([orientation, width, height]).to.deep.equal([1, 120, 80]);
    });
  });

  describe('transparency', () => {
    for (const input of ['png', 'webp', 'tiff', 'avif', 'gif']) {
      for (const format of OUTPUT_TYPES) {
        const kept = OUTPUTS[format].alpha !== 'none';
        it(`of ${input} is ${kept ? 'kept in' : 'flattened onto white in'} ${format}`, async () => {
          const [red, green, blue, alpha] = pixelAt(await pixelsOf(`window.${input}`, { format }), 60, 20);
          if (kept) expect(alpha).to.equal(0);
          else for (const channel of [red, green, blue]) expect(channel).to.be.at.least(245); // JPEG is lossy
        });
      }
    }
  });

  describe('animation', () => {
    for (const input of ['gif', 'webp'] as const) {
      for (const format of ['gif', 'webp'] as const) {
        for (const fields of [{}, { width: '24' }]) {
          const size = 'width' in fields ? 'half its size' : 'its size';
          it(`keeps frames, delays and loop count from ${input} to ${format} at ${size}`, async () => {
            const { body } = await convertFixture(`moving.${input}`, { format, ...fields });
            const { pages, delay, loop } = await sharp(body, { animated: true }).metadata();
            expect({ pages, delay, loop }).to.deep.equal({ pages: 3, delay: [100, 250, 40], loop: 3 });
          });
        }

        it(`keeps the pixels of every frame from ${input} to ${format}`, async () => {
          const shown = await pixelsOf(`moving.${input}`, { format });
          const data = Buffer.concat([0, 1, 2].map((at) => frame(at).data));
          const { psnr } = difference(shown, { width: 48, height: 96, data });
          expect(psnr).to.be.at.least(28); // bar in the wrong place: below 20 dB
        });
      }

      for (const format of ['png', 'jpg', 'bmp', 'pdf'] as const) {
        it(`keeps only the first frame from ${input} to ${format}`, async () => {
          const { psnr } = difference(await pixelsOf(`moving.${input}`, { format }), frame(0));
          expect(psnr).to.be.at.least(26); // second frame: below 12 dB
        });
      }
    }
  });

  describe('icon', () => {
    it('converts the largest image of an icon, whatever its index', async () => {
      const shown = await pixelsOf('icons.ico', { format: 'png' });
      expect([shown.width, ...pixelAt(shown, 100, 100)]).to.deep.equal([256, 0, 160, 0, 255]);
    });
  });

  describe('colour', () => {
    for (const format of ['png', 'webp', 'jpg', 'bmp'] as const) {
      it(`of a Display P3 image is converted to sRGB in ${format} without its profile`, async () => {
        const { body } = await convertFixture('p3.png', { format });
        const { psnr } = difference(await decode(body, format), scene());
        expect(psnr).to.be.at.least(format === 'png' || format === 'bmp' ? 45 : 26); // unconverted: 24 dB
      });
    }

    it('profile is kept with strip_metadata=false', async () => {
      const { body } = await convertFixture('p3.jpg', { format: 'webp', strip_metadata: 'no' });
      const { icc } = await sharp(body).metadata();
      const source = await sharp(await fixture('p3.jpg')).metadata();
      expect(icc?.equals(source.icc as Buffer)).to.equal(true);
      expect(difference(await decode(body), scene()).psnr).to.be.at.least(26);
    });

    for (const keep of ['true', 'false']) {
      for (const format of ['png', 'webp', 'bmp'] as const) {
        it(`of a CMYK JPEG is converted to sRGB, to ${format} with strip_metadata=${keep}`, async () => {
          const image = opened().toColourspace('cmyk').withIccProfile('cmyk');
          const cmyk = await image.jpeg({ quality: 95 }).toBuffer();
          const { body } = await convert(service.base, cmyk, { format, strip_metadata: keep });
          if (format !== 'bmp') expect((await sharp(body).metadata()).space).to.equal('srgb');
          const { psnr } = difference(await decode(body, format), await decode(cmyk));
          expect(psnr).to.be.at.least(27); // CMYK read as RGB, or profile ignored: below 22 dB
        });
      }
    }

    it('of a greyscale JPEG does not change', async () => {
      const shown = await pixelsOf('grey.jpg', { format: 'png' });
      expect(difference(shown, await decode(await fixture('grey.jpg'))).psnr).to.be.at.least(45);
    });
  });

  describe('metadata', () => {
    for (const format of OUTPUT_TYPES) {
      it(`is removed from ${format} by default`, async () => {
        const { body } = await convertFixture('private.jpg', { format });
        for (const secret of ['Somebody Private', 'secret-', 'GPS', 'Exif', 'http://ns.adobe.com'])
          expect(body.includes(secret), secret).to.equal(false);
      });
    }

    for (const format of ['webp', 'png', 'jpg'] as const) {
      it(`is kept in ${format} with strip_metadata=false`, async () => {
        const { body } = await convertFixture('private.jpg', { format, strip_metadata: 'false' });
        // ImageMagick 6 writes a PNG's EXIF as compressed text under this name, 7 as an eXIf chunk.
        const inPng = body.includes('Raw profile type exif') || body.includes('eXIf');
        const { exif } = await sharp(body).metadata();
        expect(format === 'png' ? inPng : exif?.includes('Somebody Private')).to.equal(true);
      });
    }

    it('that the output format cannot hold is in X-Conversion-Notes, and the temporary file adds none', async () => {
      const everything = await edgeCase('everything.jpg');
      const keep = async (format: OutputType) => {
        const fields = { format, strip_metadata: 'false' };
        const { notes, body } = await convert(service.base, everything, fields);
        const [tags = {}] = await readTags([await writeTempFile(`kept.${format}`, body)]);
        return { notes, tags: Object.keys(tags) };
      };
      const jpg = await keep('jpg');
      expect(jpg.notes).to.equal(null);
      const kept = ['IFD0:Artist', 'GPS:GPSLatitude', 'IPTC:By-line', 'XMP-dc:Creator'];
      expect(jpg.tags).to.include.members(kept);
      expect((await keep('webp')).notes).to.equal('metadata-partly-kept'); // IPTC, and on 6 XMP
      for (const format of ['gif', 'bmp', 'pdf'] as const)
        expect((await keep(format)).notes, format).to.equal('metadata-partly-kept');
      const png = await keep('png');
      expect(png.notes).to.equal(null);
      expect(
        png.tags.filter((tag) => /date(create|modify|timestamp)/i.test(tag) && tag.startsWith('PNG:Date')),
      ).to.deep.equal([]);
    });

    it('of the temporary file is not in a PDF', async () => {
      for (const name of ['scene.jpg', 'scene.svg']) {
        const { body } = await convertFixture(name, { format: 'pdf' });
        for (const trace of ['/tmp', 'imagemill', 'request-', '(in)', '(out)'])
          expect(body.includes(trace)).to.equal(false);
      }
    });
  });

  describe('quality', () => {
    for (const format of ['webp', 'jpg', 'pdf'] as const) {
      it(`defaults to 80 in ${format} and changes the size of the file`, async () => {
        const [low, eighty, none, high] = await Promise.all(
          [{ quality: '30' }, { quality: '80' }, {}, { quality: '95' }].map(async (fields) => {
            const { body } = await convertFixture('scene.png', { format, ...fields });
            return body.length;
          }),
        );
        expect(none).to.equal(eighty);
        expect([low, eighty, high]).to.deep.equal([low, eighty, high].sort((a, b) => Number(a) - Number(b)));
        expect(low).to.be.below(Number(high));
      });
    }

    it('sets the quantization tables of a JPEG', async () => {
      const { body } = await convertFixture('scene.png', { format: 'jpg', quality: '80' });
      // ITU-T T.81, K.1 starts with 16; libjpeg scales it by (200 - 2 * quality) percent: 16 * 0.4 = 6.
      expect(body[body.indexOf(Buffer.from([0xff, 0xdb])) + 5]).to.equal(6);
    });

    it('gives WebP files of the size that libwebp gives', async () => {
      const { body } = await convertFixture('scene.png', { format: 'webp', quality: '80' });
      const reference = await sharp(await fixture('scene.png'))
        .webp({ quality: 80 })
        .toBuffer();
      expect(body.length / reference.length).to.be.within(0.9, 1.1);
    });

    for (const format of ['png', 'gif', 'bmp'] as const) {
      it(`changes nothing in ${format}`, async () => {
        const [low, high] = await Promise.all(
          ['1', '100'].map(async (quality) => (await convertFixture('scene.png', { format, quality })).body),
        );
        expect(low?.equals(high as Buffer)).to.equal(true);
      });
    }
  });

  describe('PNG', () => {
    it('is compressed and has 8 bits per channel', async () => {
      const { body } = await convertFixture('scene.jpg', { format: 'png' });
      const { depth, channels } = await sharp(body).metadata();
      expect([depth, channels]).to.deep.equal(['uchar', 3]);
      const reference = await sharp(await fixture('scene.jpg'))
        .png()
        .toBuffer();
      expect(body.length / reference.length).to.be.below(1.2);
    });
  });

  describe('width and height', () => {
    for (const [fields, size] of [
      [{ width: '60' }, [60, 40]],
      [{ height: '20' }, [30, 20]],
      [{ width: '60', height: '20' }, [30, 20]],
      [{ width: '500' }, [120, 80]],
      [{ width: '1' }, [1, 1]],
    ] as const) {
      it(`shrink to fit inside ${JSON.stringify(fields)} and never enlarge`, async () => {
        expect(sizeOf(await pixelsOf('scene.png', { format: 'png', ...fields }))).to.deep.equal(size);
      });
    }

    it('render an SVG at the requested size, even above its own', async () => {
      const shown = await pixelsOf('scene.svg', { format: 'png', width: '480' });
      expect(sizeOf(shown)).to.deep.equal([480, 320]);
      expect(pixelAt(shown, 79, 79)).to.deep.equal([220, 30, 30, 255]); // sharp corner: rendered, not enlarged
      expect(pixelAt(shown, 80, 80)).to.deep.equal([90, 150, 200, 255]);
    });

    it('shrink a JPEG on load as well as after a full decode', async () => {
      const big = await jpegOf(opened().resize({ width: 1200, kernel: 'cubic' }));
      const { body } = await convert(service.base, big, { format: 'png', width: '150' });
      const expected = await toPixels(sharp(big).resize({ width: 150, kernel: 'lanczos3' }));
      expect(difference(await decode(body), expected).psnr).to.be.at.least(35);
    });
  });
});
