import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { opened } from '../../scripts/fixtures/edge-case.ts';
import { convert, converted } from '../helpers/client.ts';
import { decode, difference, plain, sizeOf, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** Bugs and gaps of the tools with still images, each with a generated file that triggers it. */
describe('tool edge cases', () => {
  const service = useService();

  const toPng = async (file: Buffer) => decode((await converted(service.base, file, { format: 'png' })).body);

  describe('orientation that a decoder applies partly or ignores', () => {
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
          const file = await make(opened().withMetadata({ orientation })).toBuffer();
          const { psnr } = difference(await toPng(file), await toPixels(sharp(file).autoOrient()));
          expect(psnr).to.be.at.least(27); // rotated or mirrored: below 17 dB
        });
      }
    }
  });

  it('applies the orientation tag of a TIFF and ignores XMP orientation', async () => {
    const xmp =
      '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>';
    const source = await opened().withXmp(xmp).tiff().toBuffer();
    expect(sizeOf(await toPng(source))).to.deep.equal([120, 80]);
  });

  describe('an image above the size limit, whatever the tools report', () => {
    for (const type of ['png', 'gif', 'jpeg', 'tiff'] as const) {
      it(`returns 413 for a ${type.toUpperCase()} of 17000 pixels`, async () => {
        const file = await plain(17_000, 20).toFormat(type).toBuffer();
        expect((await convert(service.base, file)).status).to.equal(413);
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
  });
});
