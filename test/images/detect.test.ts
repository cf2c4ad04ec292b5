// @unit
import { expect } from 'chai';
import { DETECTION_BYTES, detectType } from '../../src/images/index.ts';
import { INPUT_TYPES } from '../../src/tables/formats.ts';
import { edgeCase, fixture } from '../helpers/client.ts';
import { plain } from '../helpers/pixels.ts';

const judge = (text: string, complete = true) => detectType(Buffer.from(text), complete);
const SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>';

describe('the type of a file', () => {
  for (const type of INPUT_TYPES) {
    it(`is ${type} by its first bytes`, async () => {
      const file = await fixture(`scene.${type}`);
      const head = file.subarray(0, DETECTION_BYTES);
      expect(await detectType(head, head.length === file.length)).to.equal(type);
    });
  }

  it('is png for an animated PNG', async () => {
    expect(await detectType(await edgeCase('moving.png'), true)).to.equal('png');
  });

  it('is tiff even if the directory is far behind the first bytes', async () => {
    const tiff = await plain(200, 200, 'red').tiff({ compression: 'none' }).toBuffer();
    expect(tiff.readUInt32LE(4)).to.be.above(DETECTION_BYTES);
    expect(await detectType(tiff.subarray(0, DETECTION_BYTES), false)).to.equal('tiff');
  });

  it('is avif if the major brand is a general HEIF brand and avif is a compatible brand', async () => {
    const head = (major: string, others: string) =>
      Buffer.concat([
        Buffer.from([0, 0, 0, 24]),
        Buffer.from(`ftyp${major}\0\0\0\0${others}`, 'latin1'),
        Buffer.alloc(64),
      ]);
    expect(await detectType(head('mif1', 'avifmiaf'), false)).to.equal('avif');
    expect(await detectType(head('mif1', 'heicmiaf'), false)).to.equal('heic');
    expect(await detectType(head('heic', 'avifmif1'), false)).to.equal('heic');
  });

  it('is unknown if a byte order mark or the tag of an MP3 precedes an image, which no decoder skips', async () => {
    for (const prefix of [Buffer.from('\ufeff'), Buffer.from('ID3\x03\0\0\0\0\0\0')]) {
      for (const type of INPUT_TYPES.filter((one) => one !== 'svg')) {
        const file = Buffer.concat([prefix, await fixture(`scene.${type}`)]);
        expect(await detectType(file, true)).to.equal('unknown');
      }
      expect(await detectType(Buffer.concat([prefix, Buffer.from('%PDF-1.4')]), true)).to.equal('pdf');
    }
  });

  describe('is svg', () => {
    const quotes = `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">`;
    const subset = `<!DOCTYPE svg [ <!ENTITY ns "http://x/]>"> <!-- don't ] --> ]>`;
    for (const [what, text] of [
      ['with nothing before it', SVG],
      ['after an XML declaration', `<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n${SVG}`],
      ['after a byte order mark', `\ufeff${SVG}`],
      ['after comments, even such as mention <html>', `<!-- <html> -->\n<!-- -- -->${SVG}`],
      ['after a document type', quotes + SVG],
      ['after a document type with its own entities', subset + SVG],
      ['with a namespace prefix', '<svg:svg xmlns:svg="http://www.w3.org/2000/svg"/>'],
      ['with attributes on other lines', '<svg\n  width="1"/>'],
    ] as const) {
      it(what, async () => {
        expect(await judge(text)).to.equal('svg');
      });
    }

    it('in UTF-16 of either byte order', async () => {
      const little = Buffer.from(`\ufeff${SVG}`, 'utf16le');
      expect(await detectType(little, true)).to.equal('svg');
      expect(await detectType(Buffer.from(little).swap16(), true)).to.equal('svg');
    });
  });

  describe('is not svg', () => {
    const html = '<html><svg/></html>';
    for (const text of [html, 'x<svg/>', '<svgx/>', '<feed><svg/></feed>', '<!-- <svg/> -->', '']) {
      it(`when the file is ${JSON.stringify(text)}`, async () => {
        expect(await judge(text)).to.equal('unknown');
      });
    }
  });

  it('is undecided during a preamble, up to a limit', async () => {
    expect(await judge(`<?xml version="1.0"?><!-- ${'x'.repeat(5000)}`, false)).to.equal('unsure');
    expect(await judge(`<?xml version="1.0"?><!-- ${'x'.repeat(70_000)}`, false)).to.equal('unknown');
    expect(await judge('plain text', false)).to.equal('unknown');
  });

  it('is detected in linear time, whatever the preamble contains', async () => {
    // Each of these took minutes with a pattern that can match a text in several ways.
    for (const piece of ['<!-- -->', '<?a?>', '"\'', '<!DOCTYPE [', "<!DOCTYPE [ <!-- ' -->", '[[[']) {
      const text = `<!DOCTYPE svg [${piece.repeat(60_000 / piece.length)}`;
      expect(await judge(text, true)).to.equal('unknown');
    }
  });
});
