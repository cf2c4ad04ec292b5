import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { scene } from '../../scripts/fixtures/scene.ts';
import { convert, fixture } from '../helpers/client.ts';
import { decode, difference } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** Bugs and gaps of the tools with still images, each with a generated file that triggers it. */
describe('tool edge cases', () => {
  const service = useService();

  const converted = async (file: Buffer, fields: Record<string, string>): Promise<Buffer> => {
    const { status, message, body } = await convert(service.base, file, fields);
    expect(status, message).to.equal(200);
    return body;
  };

  describe('orientation that a decoder applies partly or ignores', () => {
    const raw = (): Sharp => {
      const { width, height, data } = scene();
      return sharp(data, { raw: { width, height, channels: 4 } }).removeAlpha();
    };
    const makers: Record<string, (image: Sharp) => Sharp> = {
      'a PNG': (image) => image.png(),
      'a WebP': (image) => image.webp({ lossless: true }),
      'an LZW TIFF': (image) => image.tiff({ compression: 'lzw' }),
      'a JPEG TIFF': (image) => image.tiff({ compression: 'jpeg', quality: 95 }),
      'a YCbCr JPEG TIFF': (image) => image.tiff({ compression: 'jpeg', quality: 80 }),
      'a grey JPEG TIFF': (image) => image.greyscale().tiff({ compression: 'jpeg', quality: 80 }),
      'an AVIF': (image) => image.avif({ quality: 90, chromaSubsampling: '4:4:4' }),
    };
    for (const [what, make] of Object.entries(makers)) {
      for (const orientation of [2, 3, 4, 5, 6, 7, 8]) {
        it(`applies orientation ${orientation} of ${what} as viewers do`, async () => {
          const file = await make(raw().withMetadata({ orientation })).toBuffer();
          const expected = await decode(await sharp(file).autoOrient().png().toBuffer());
          const { psnr } = difference(await decode(await converted(file, { format: 'png' })), expected);
          expect(psnr).to.be.at.least(27); // rotated or mirrored: below 17 dB
        });
      }
    }
  });

  it('applies the orientation tag of a TIFF and ignores XMP orientation', async () => {
    const xmp =
      '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>';
    const source = await sharp(await fixture('scene.png'))
      .withXmp(xmp)
      .tiff()
      .toBuffer();
    const { width, height } = await decode(await converted(source, { format: 'png' }));
    expect([width, height]).to.deep.equal([120, 80]);
  });

  describe('an image above the size limit, whatever the tools report', () => {
    const big = (): Sharp =>
      sharp({ create: { width: 17_000, height: 20, channels: 3, background: 'teal' } });
    for (const [what, make] of [
      ['a PNG', () => big().png().toBuffer()],
      ['a GIF', () => big().gif().toBuffer()],
      ['a JPEG', () => big().jpeg().toBuffer()],
      ['a TIFF', () => big().tiff().toBuffer()],
    ] as const) {
      it(`returns 413 for ${what} of 17000 pixels`, async () => {
        expect((await convert(service.base, await make())).status).to.equal(413);
      });
    }

    for (const [what, attributes, fields, status] of [
      ['with pixel dimensions', 'width="20000" height="10"', {}, 413],
      ['with dimensions in inches', 'width="200in" height="1in"', {}, 413],
      ['with a view box only', 'viewBox="0 0 9000 9000"', {}, 413],
      ['with a view box of 100000', 'viewBox="0 0 100000 100000"', {}, 413],
      ['with dimensions in CSS', 'style="width:20000px;height:20000px"', {}, 413],
      ['enlarged by the request', 'width="10" height="10"', { width: '16384' }, 413],
      ['whose other side exceeds the limit', 'width="10" height="100"', { width: '2000' }, 413],
      ['shrunk by the request', 'viewBox="0 0 9000 9000"', { width: '100' }, 200],
      ['kept as vector', 'width="9000" height="9000"', { format: 'pdf' }, 200],
      ['with dimensions in em', 'width="2000em" height="1em"', {}, 413],
      ['with dimensions in viewport units', 'width="2vw" height="3vh"', {}, 200],
    ] as const) {
      it(`returns ${status} for an SVG ${what}: ${attributes} ${JSON.stringify(fields)}`, async () => {
        const svg = `<svg xmlns="http://www.w3.org/2000/svg" ${attributes}><rect width="5" height="5"/></svg>`;
        const answer = await convert(service.base, Buffer.from(svg), fields);
        expect(answer.status, answer.message).to.equal(status);
        const timing = /convert;dur/.test(answer.headers.get('server-timing') ?? '');
        expect(timing).to.equal(status === 200);
      });
    }

    it('returns 413 for a truncated PNG that declares 60000 by 60000 pixels', async () => {
      const small = await sharp({ create: { width: 1, height: 1, channels: 3, background: 'teal' } })
        .png()
        .toBuffer();
      small.writeUInt32BE(60_000, 16);
      small.writeUInt32BE(60_000, 20);
      expect((await convert(service.base, small)).status).to.equal(413);
    });

    it('returns 400 with the reason for an image too large for WebP', async () => {
      const wide = await sharp({ create: { width: 16_384, height: 4, channels: 3, background: 'teal' } })
        .png()
        .toBuffer();
      const { status, message } = await convert(service.base, wide, { format: 'webp' });
      expect(status).to.equal(400);
      expect(message).to.match(
        /^The file is too large for WebP, .* at most 16383 pixels per side: set a smaller/,
      );
      expect((await convert(service.base, wide, { format: 'png' })).status).to.equal(200);
    });
  });
});
