import { expect } from 'chai';
import sharp from 'sharp';
import { frame, scene } from '../../scripts/fixtures/scene.ts';
import { convert, edgeCase, fixture } from '../helpers/client.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { decode, difference, drawPdf, onGrey } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

describe('a PDF', () => {
  const service = useService();

  const made = async (file: Buffer, fields: Record<string, string> = {}) => {
    const { status, message, body, headers } = await convert(service.base, file, {
      format: 'pdf',
      ...fields,
    });
    expect(status, message).to.equal(200);
    return { body, notes: headers.get('x-conversion-notes') ?? '', facts: await pdfFacts(body) };
  };

  it('from a drawing is vector, without a picture, at 72 points an inch', async () => {
    const { facts } = await made(await fixture('scene.svg'));
    expect(facts).to.deep.equal({ images: [], pages: 1, points: [[120, 80]], fonts: [] });
  });

  it('from a drawing with words has their fonts inside', async () => {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="50"><text y="30">Grüße</text></svg>';
    const { facts } = await made(Buffer.from(svg));
    expect(facts.images).to.deep.equal([]);
    expect(facts.fonts.map(({ embedded }) => embedded)).to.deep.equal([true]);
  });

  it('from a drawing is on paper of the colour asked for', async () => {
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="5" height="5"/></svg>';
    const { body } = await made(Buffer.from(svg), { background: '#0080ff' });
    const { data } = await decode(await drawPdf(body));
    expect([...data.subarray(-4)]).to.deep.equal([0, 128, 255, 255]);
  });

  it('from a photo has it as JPEG of the quality asked for, one point a pixel whatever the file says of inches', async () => {
    const photo = await sharp(await fixture('scene.jpg'))
      .withMetadata({ density: 300 })
      .jpeg({ quality: 95 })
      .toBuffer();
    const { facts, body } = await made(photo);
    expect(facts).to.deep.include({ images: ['jpeg'], pages: 1, points: [[120, 80]] });
    const better = await made(photo, { quality: '98' });
    expect(better.body.length).to.be.above(body.length);
  });

  for (const [what, file, image] of [
    ['a table of colours', () => edgeCase('few-colours.png'), 'image'],
    ['an animation, of which the first frame is shown', () => fixture('moving.gif'), 'image'],
    ['black and white', () => edgeCase('white-is-zero-1.tiff'), 'ccitt'],
  ] as const) {
    it(`from ${what} has lost nothing`, async () => {
      const source = await file();
      const { facts, body } = await made(source);
      expect(facts.images).to.deep.equal([image]);
      const expected = onGrey(await decode(await sharp(source).png().toBuffer()), 255);
      expect(difference(await decode(body, 'pdf'), expected).max).to.be.at.most(1);
    });
  }

  it('from black and white that is made smaller has greys, and no JPEG', async () => {
    const { facts } = await made(await edgeCase('white-is-zero-1.tiff'), { width: '30' });
    expect(facts).to.deep.include({ images: ['image'], points: [[30, 15]] });
  });

  it('from a TIFF has all its pages, each as it needs to be treated, or the first when asked for', async () => {
    const mixed = await edgeCase('mixed.tiff');
    const { facts, body, notes } = await made(mixed);
    expect(facts).to.deep.include({
      pages: 4,
      points: [
        [64, 32],
        [48, 32],
        [64, 32],
        [32, 48],
      ],
    });
    expect(notes).to.equal('');
    const pages = await Promise.all([1, 2, 3, 4].map(async (page) => decode(await drawPdf(body, page))));
    const left = pages.map(({ width, data }) => [
      ...data.subarray((16 * width + 8) * 4, (16 * width + 8) * 4 + 3),
    ]);
    const [white, bar, sky] = [
      [255, 255, 255],
      [200, 40, 40],
      [40, 90, 160],
    ];
    expect(left).to.deep.equal([white, bar, white, sky]); // turned, the bar is higher up

    const first = await made(mixed, { pages: 'first' });
    expect([first.facts.pages, first.notes]).to.deep.equal([1, 'first-page-only']);
  });

  it('from an animation has a page a frame when asked for', async () => {
    for (const name of ['moving.gif', 'moving.webp']) {
      const { facts, body, notes } = await made(await fixture(name), { frames: 'all' });
      expect(facts.pages, name).to.equal(3);
      expect(notes).to.equal('');
      for (const page of [1, 2, 3]) {
        const { psnr } = difference(await decode(await drawPdf(body, page)), frame(page - 1));
        expect(psnr, `${name}, page ${page}`).to.be.at.least(26);
      }
    }
  });

  it('says nothing of who made it where', async () => {
    for (const name of ['scene.jpg', 'scene.svg']) {
      const { body } = await made(await fixture(name));
      for (const trace of ['/tmp', 'imagemill', 'request-', '(in)', '(out)']) {
        expect(body.includes(trace), trace).to.equal(false);
      }
    }
  });

  it('shows what was there', async () => {
    const { body } = await made(await fixture('scene.png'), { quality: '95' });
    expect(difference(await decode(body, 'pdf'), scene()).psnr).to.be.at.least(33);
  });
});
