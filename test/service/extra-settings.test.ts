// @full
import { expect } from 'chai';
import { OUTPUT_TYPES } from '../../src/tables/formats.ts';
import { convert, fixture, jsonOf, sendForm } from '../helpers/client.ts';
import { extra } from '../helpers/extra.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { pathWithout, startProcess } from '../helpers/process.ts';
import { useOwnServices } from '../helpers/service.ts';

/** Files, and the labels of their formats in messages. */
const FILES = [
  ['scene.heic', 'HEIC'],
  ['scene.jxl', 'JPEG XL'],
  ['scene.jp2', 'JPEG 2000'],
  ['scene.j2k', 'JPEG 2000'],
  ['scene.psd', 'PSD'],
  ['scene.cur', 'CUR'],
  ['scene.pdf', 'PDF'],
] as const;

describe('EXTRA_INPUTS and EXTRA_OUTPUTS', () => {
  const services = useOwnServices();
  const formats = async () => jsonOf(await sendForm(`${services.current().base}/formats`));

  it('enable no formats by default, so that these are rejected with 415 or 400, which name the setting', async () => {
    await services.start({});
    const { base } = services.current();
    for (const [name, label] of FILES) {
      expect((await convert(base, await extra(name), { format: 'png' })).outcome).to.equal(
        `415 The file is not an image of a supported format (PNG, JPEG, GIF, BMP, TIFF, SVG, AVIF, ICO, WebP): EXTRA_INPUTS does not enable ${label}.`,
      );
    }
    for (const format of ['avif', 'jxl', 'tiff', 'ico']) {
      expect((await convert(base, await fixture('scene.png'), { format })).outcome)
        .to.match(/^400 /)
        .and.include('expected one of webp, png, jpg, gif, bmp, pdf');
    }
  });

  it('enable only the listed formats, in /formats, in the reference and in error messages', async () => {
    await services.start({ EXTRA_INPUTS: 'psd, cur', EXTRA_OUTPUTS: 'tiff' });
    const { base } = services.current();
    const { input, output } = await formats();
    expect(input.slice(-2)).to.deep.equal(['psd', 'cur']);
    expect(output).to.deep.equal([...OUTPUT_TYPES, 'tiff']);
    const reference = (await sendForm(`${base}/openapi.json`)).body.toString();
    expect(reference).to.include('image/tiff').and.include('WebP, PSD, CUR').and.not.include('image/jxl');
    expect((await convert(base, await extra('scene.psd'), { format: 'tiff' })).status).to.equal(200);
    const jxl = await convert(base, await extra('scene.jxl'), { format: 'png' });
    expect(jxl.status).to.equal(415);
    expect(jxl.message).to.include('WebP, PSD, CUR): EXTRA_INPUTS does not enable JPEG XL.');
    const ico = await convert(base, await fixture('scene.png'), { format: 'ico' });
    expect(ico.message).to.include('bmp, pdf, tiff');
  });

  it('do not change the limits: a JPEG XL with more frames than MAX_FRAMES is rejected with 413', async () => {
    await services.start({ EXTRA_INPUTS: 'jxl', MAX_FRAMES: '2' });
    const { status, message } = await convert(services.current().base, await extra('moving.jxl'), {
      format: 'webp',
    });
    expect(status, message).to.equal(413);
    expect(message).to.include('3 frames').and.include('MAX_FRAMES');
  });

  it('make the service exit with 2 for a format that does not work on this machine, and name its package', async () => {
    // ImageMagick and librsvg are found by their settings, and the tools of libjxl and libavif are
    // not found.
    const started = startProcess({
      TEMP_DIR: await makeTempDir('extras'),
      LOG_LEVEL: 'fatal',
      EXTRA_INPUTS: 'jxl,pdf',
      EXTRA_OUTPUTS: 'avif',
      PATH: await pathWithout(['djxl', 'cjxl', 'avifenc', 'pdftocairo']),
    });
    const [status, output] = [await started.ended(), started.output()];
    expect(status, output).to.equal(2);
    expect(output).to.include('EXTRA_INPUTS: jxl does not work here: djxl not found');
    expect(output).to.include('apt install libjxl-tools');
    expect(output).to.include('EXTRA_INPUTS: pdf does not work here: pdftocairo not found');
    expect(output).to.include('apt install poppler-utils');
    expect(output).to.include('EXTRA_OUTPUTS: avif does not work here: avifenc not found');
    expect(output).to.include('apt install libavif-bin');
  });
});
