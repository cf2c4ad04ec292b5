// @full
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import sharp from 'sharp';
import { profileSegment, withSegment } from '../../scripts/fixtures/writers.ts';
import type { ImageDescription } from '../../src/conversion/identify.ts';
import {
  convert,
  edgeCase,
  expectSuccess,
  type Fields,
  type FormFile,
  fixture,
  fixturePath,
  formOf,
  jsonOf,
  postForm,
  postImage,
} from '../helpers/client.ts';
import { runCliInProcess } from '../helpers/command-line.ts';
import { extra } from '../helpers/extra.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { plain } from '../helpers/pixels.ts';
import { useOwnServices, useService } from '../helpers/service.ts';

describe('POST /identify', () => {
  const { startShared, current } = useOwnServices();
  const identify = async (file: Uint8Array, query = '', base = current().base): Promise<ImageDescription> =>
    jsonOf(await expectSuccess(postImage(`${base}/identify${query}`, file)));

  it('states the bits of the indices of a palette', async () => {
    await startShared({});
    for (const bits of [1, 2, 4, 8]) {
      const file = await sharp(await fixture('scene.png'))
        .png({ palette: true, colours: 2 ** bits })
        .toBuffer();
      expect((await sharp(file).metadata()).bitsPerSample).to.equal(bits);
      expect((await identify(file)).bits).to.equal(bits);
    }
  });

  it('describes what the conversion would result in, with any option', async () => {
    await startShared({ EXTRA_INPUTS: 'heic', EXTRA_OUTPUTS: 'ico' });
    const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="33.5" height="77.25"/>');
    const heic = await extra('turned.heic');
    for (const [file, query, size] of [
      ['scene.jpg', 'width=50'],
      ['orientation-6.jpg', 'format=jpg&width=30&height=30&fit=cover'],
      ['moving.gif', 'format=png'],
      ['moving.gif', 'format=webp&width=40'],
      ['p3.jpg', 'format=png&strip_metadata=true'],
      ['pages.tiff', 'format=jpg'],
      ['scene.bmp', 'format=gif&enlarge=true&height=200'],
      [drawing, 'format=png', [34, 78]],
      [drawing, 'format=png&width=50', [50, 116]],
      [drawing, 'format=png&width=90&height=31&fit=inside', [14, 31]],
      [drawing, 'format=png&crop=0,0,50%25,50%25', [17, 39]],
      [drawing, 'format=png&width=90&height=31&fit=contain', [90, 31]],
      [drawing, 'format=ico', [256, 256]],
      ['scene.jpg', 'format=ico&width=60', [48, 48]],
      [heic, 'format=png&width=60', [60, 40]],
      [heic, 'format=jpg&crop=0,0,100,50', [100, 50]],
      ['orientation-6.jpg', 'format=png&rotate=90'],
      ['window.png', 'format=png&rotate=270&width=30'],
      ['moving.gif', 'format=png&rotate=90&flip=vertical&height=31&crop=10%25,20%25,30%25,70%25'],
      ['scene.svg', 'format=png&rotate=90&width=50&height=30&fit=cover'],
      ['pages.tiff', 'format=png&rotate=180&width=50&height=30&fit=contain'],
      ['scene.avif', 'format=png&rotate=270&width=50&height=30&fit=fill&enlarge=yes'],
      ['orientation-6.jpg', 'format=png&rotate=90&scale=37.5'],
      ['scene.avif', 'format=png&scale=150&enlarge=yes&crop=1,1,31,25'],
      ['window.png', 'format=png&scale=150'],
      ['scene.svg', 'format=png&scale=150'],
    ] as readonly (readonly [string | Buffer, string, (readonly number[])?])[]) {
      const bytes = typeof file === 'string' ? await fixture(file) : file;
      const { quality: _, ...conversion } = (await identify(bytes, `?${query}`)).conversion ?? {};
      const { headers, notes } = await expectSuccess(
        convert(current().base, bytes, Object.fromEntries(new URLSearchParams(query))),
      );
      const stated = ['width', 'height'].map((side) => Number(headers.get(`x-image-${side}`)));
      const type = headers
        .get('content-type')
        ?.slice(6)
        .replace('jpeg', 'jpg')
        .replace('vnd.microsoft.icon', 'ico');
      const [width, height] = stated;
      expect(conversion, query).to.deep.equal({ type, width, height, notes: notes?.split(', ') ?? [] });
      if (size) expect(stated, query).to.deep.equal(size);
    }
  });

  it('explains a part of a combined file with combine=true', async () => {
    await startShared({});
    const file = await fixture('scene.jpg');
    const { explanation } = await identify(file, '?combine=true&plan=true&format=pdf');
    expect(explanation?.sentences).to.include('its pages become pages of one PDF');
    const { conversion } = await identify(file, '?combine=true&format=gif&width=50&height=50');
    expect(conversion).to.include({ width: 50, height: 50 });
  });

  it('states the quality, unless there is none or only results show it', async () => {
    await startShared({});
    const file = await fixture('scene.jpg');
    for (const [query, quality] of [
      ['format=webp', 80],
      ['format=jpg&quality=55', 55],
      ['format=webp&quality=auto', null],
      ['format=webp&max_bytes=1000', null],
      ['format=webp&lossless=yes', null],
      ['format=png&quality=auto', null],
    ] as const)
      expect((await identify(file, `?${query}`)).conversion?.quality, query).to.equal(quality);
  });

  it('states no size with trim, which only decoding shows', async () => {
    await startShared({});
    const fields = { format: 'png', trim: '7.5', width: '50', plan: 'true' };
    const file = await fixture('scene.jpg');
    const { conversion, explanation } = await identify(file, `?${new URLSearchParams(fields)}`);
    expect(conversion).to.deep.equal({ type: 'png', width: null, height: null, quality: null, notes: [] });
    expect(explanation?.sentences).to.include(
      'a border of the colour of the top left corner is cut off, with a tolerance of 7.5%: the commands keep it',
    );
    const { plan: _, ...options } = fields;
    const { headers } = await convert(current().base, file, options);
    expect(headers.get('x-conversion-key')).to.equal(explanation?.key);
  });

  it('explains the conversion with plan=true as imagemill explain does, with the key of the result', async () => {
    const settings = { MAX_PIXELS: '20000', MAX_FRAMES: '9' };
    await startShared(settings);
    for (const [name, query] of [
      ['orientation-6.jpg', 'width=60'],
      ['p3.jpg', 'format=gif'],
      ['scene.svg', 'format=png&height=40'],
      ['scene.svg', 'format=png&height=40&rotate=90&flip=both'],
      ['../traps/declared-p3.png', 'format=jpg'],
      ['moving.gif', ''],
    ] as const) {
      const path = fixturePath(name);
      const options = [...new URLSearchParams(query)].flatMap(([option, value]) => [`--${option}`, value]);
      const { stdout } = await runCliInProcess(['explain', path, '--json', ...options], settings);
      const { input, ...explained } = JSON.parse(stdout);
      const file = readFileSync(path);
      const { explanation, conversion } = await identify(file, `?plan=true&${query}`);
      expect(explanation?.sentences, name).to.not.have.length(0);
      expect(explanation?.limits, name).to.include({ MAX_PIXELS: 20_000, MAX_FRAMES: 9 });
      const { limits } = explained; // the command line gives conversions more time
      expect({ ...explanation, limits }, name).to.deep.equal(explained);
      expect(conversion?.notes, name).to.deep.equal(explanation?.notes);
      const { headers } = await convert(current().base, file, Object.fromEntries(new URLSearchParams(query)));
      expect(explanation?.key, name).to.equal(headers.get('x-conversion-key'));
      expect(await identify(file, `?${query}`), name).to.not.have.property('explanation');
    }
  });

  it('has no conversion without options, and none if the image cannot be converted with them', async () => {
    await startShared({});
    expect(await identify(await fixture('scene.jpg'))).to.not.have.property('conversion');
    const wide = await plain(16_384, 2).png().toBuffer();
    expect(await identify(wide)).to.deep.include({ convertible: true, problem: null });
    const refused = await identify(wide, '?format=webp');
    expect([refused.convertible, refused.problem?.reason]).to.deep.equal([
      false,
      'output_dimension_too_large',
    ]);
    expect(refused).to.not.have.property('conversion');
  });

  it('rejects variants and on_error in the query, as it describes one conversion', async () => {
    await startShared({});
    for (const query of ['variants=[{"name":"a","width":9}]', 'on_error=skip']) {
      const answer = await postImage(`${current().base}/identify?${query}`, await fixture('scene.jpg'));
      const { reason, field } = jsonOf(answer).error;
      expect([reason, field]).to.deep.equal(['unknown_parameter', query.split('=')[0]]);
    }
  });

  it('describes images that the service cannot convert, with the problem', async () => {
    await startShared({ MAX_PIXELS: '1000' });
    const large = await identify(await fixture('scene.png'));
    expect(large).to.deep.include({ type: 'png', width: 120, height: 80, convertible: false });
    expect(large.problem).to.deep.include({
      code: 413,
      reason: 'too_many_pixels',
      limit: 1000,
      actual: 9600,
    });
    const heic = await identify(await extra('p3.heic'));
    expect(heic).to.deep.include({ type: 'heic', profile: 'sP3C', convertible: false });
    expect(heic.problem).to.deep.include({ code: 415, reason: 'unsupported_type', setting: 'EXTRA_INPUTS' });
    await startShared({});
    const misread = await identify(await edgeCase('float-lab.tiff'));
    expect(misread.problem?.reason).to.equal('unsupported_encoding');
  });

  it('describes a JPEG whose colour profile ends within its name by the characters that are there', async () => {
    const profile = Buffer.alloc(144 + 28 + 5);
    profile.writeUInt32BE(1, 128); // tags
    profile.write('desc', 132, 'latin1');
    profile.writeUInt32BE(144, 136);
    profile.writeUInt32BE(100, 140);
    profile.write('mluc', 144, 'latin1');
    profile.writeUInt32BE(50, 164); // bytes of the name
    profile.writeUInt32BE(28, 168);
    profile.write('\0P\x003\0', 172, 'latin1');
    await startShared({});
    const image = await identify(withSegment(await fixture('scene.jpg'), 0xe2, profileSegment(profile)));
    expect(image).to.deep.include({ type: 'jpg', profile: 'P3' });
  });

  it('states the transfer function of a high dynamic range, and the duration of an animation', async () => {
    await startShared({});
    expect((await identify(await edgeCase('declared-pq.avif'))).hdr).to.equal('pq');
    expect((await identify(await edgeCase('declared-hlg.png'))).hdr).to.equal('hlg');
    const { delay = [] } = await sharp(await fixture('moving.gif'), { animated: true }).metadata();
    expect(await identify(await fixture('moving.gif'))).to.deep.include({
      frames: 3,
      duration_ms: delay.reduce((sum, ms) => sum + ms, 0),
    });
  });

  it('starts no tool', async () => {
    await startShared({ MAGICK_BIN: await fakeMagick('exit 1'), RSVG_BIN: '', EXTRA_INPUTS: '' });
    const killed = current().logged.length;
    for (const name of ['scene.jpg', 'scene.avif', 'moving.webp', 'scene.ico', 'pages.tiff'])
      expect((await identify(await fixture(name), '?width=20')).width, name).to.be.above(0);
    expect(
      current()
        .logged.slice(killed)
        .some(({ msg }) => msg === 'a tool failed'),
    ).to.equal(false);
  });
});

describe('POST /identify with a form', () => {
  const service = useService();
  const NAME = 'a "b".png';
  const send = async (files: readonly Uint8Array[], fields: Fields = {}, part = 'files') => {
    const named = files.map((file): FormFile => [NAME, file]);
    const answer = await postForm(`${service.base}/identify`, formOf(fields, named, part));
    return { status: answer.status, json: jsonOf(answer) };
  };

  it('returns one description for the field file', async () => {
    const { json } = await send([await fixture('scene.png')], { width: '10' }, 'file');
    expect(json).to.deep.include({ name: NAME, type: 'png', width: 120 });
    expect(json.conversion).to.deep.equal({ type: 'webp', width: 10, height: 7, quality: 80, notes: [] });
  });

  it('returns a list for the field files, also with one file', async () => {
    const [jpg, png] = [await fixture('scene.jpg'), await fixture('scene.png')];
    for (const files of [[jpg], [jpg, png]]) {
      const { json } = await send(files);
      expect(json.images.map(({ type }: ImageDescription) => type)).to.deep.equal(
        ['jpg', 'png'].slice(0, files.length),
      );
    }
  });

  it('predicts the note of unknown fields for every image', async () => {
    const files = [await fixture('scene.jpg'), await fixture('moving.gif')];
    const { json } = await send(files, { format: 'png', colour: 'red' });
    expect(json.images.map(({ conversion }: ImageDescription) => conversion?.notes)).to.deep.equal([
      ['unknown-fields-ignored'],
      ['first-frame-only', 'unknown-fields-ignored'],
    ]);
    const { json: described } = await send(files.slice(0, 1), { colour: 'red' }, 'file');
    expect(described).to.not.have.property('conversion');
  });

  it('is 415 if a file is no image, and names the file', async () => {
    const text = Buffer.from('text');
    const { status, json } = await send([await fixture('scene.jpg'), text]);
    expect([status, json.error.file]).to.deep.equal([415, { index: 1, name: NAME }]);
    expect((await send([text], {}, 'file')).json.error).to.not.have.property('file');
  });

  it('is 400 for an invalid option', async () => {
    for (const fields of [{ quality: '0' }, { plan: 'all' }] as Fields[])
      expect((await send([await fixture('scene.jpg')], fields)).status, Object.keys(fields)[0]).to.equal(400);
  });

  it('explains the conversion of each file with the field plan, unless it cannot be converted', async () => {
    const files = [await fixture('scene.jpg'), await edgeCase('float-lab.tiff')];
    const { json } = await send(files, { plan: 'yes' });
    const [jpg, tiff] = json.images;
    expect(jpg.explanation.sentences.at(-1)).to.equal('WebP, quality 80');
    expect(tiff.problem.reason).to.equal('unsupported_encoding');
    expect(tiff).to.not.have.property('explanation');
  });
});
