import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { useBrowserDecoder } from '../helpers/chromium.ts';
import { type ClientResponse, convert, converted, type Fields, fixture } from '../helpers/client.ts';
import { DELICATE, RESOLVED, svg, UNRESOLVED } from '../helpers/drawings.ts';
import { decode, difference, onGrey } from '../helpers/pixels.ts';
import { pipe } from '../helpers/process.ts';
import { useService } from '../helpers/service.ts';

/** Maximum mean absolute error of a channel (0 to 255): edges are smoothed differently. */
const MAX_MEAN_ERROR = 1.5;
/** Maximum mean absolute error to add to that of librsvg: colours are rounded differently. */
const MAX_ADDED_ERROR = 0.1;

const SCENE = (await fixture('scene.svg')).toString();

describe('an SVG with features that librsvg lacks', () => {
  const service = useService();
  const browser = useBrowserDecoder();
  const drawn = (text: string | Buffer, fields: Fields = {}): Promise<ClientResponse> =>
    converted(service.base, Buffer.from(text), { format: 'png', ...fields }, 'a.svg');

  /** Returns the mean absolute error of the pixels of a result, compared with what Chromium shows. */
  const errorOf = async (file: Buffer, source: string): Promise<number> => {
    const shown = await browser.show(Buffer.from(source), 'image/svg+xml');
    return difference(onGrey(await decode(file), 255), shown).mae;
  };

  for (const [what, text] of Object.entries(RESOLVED)) {
    it(`is rendered like in Chromium: ${what}`, async () => {
      const { body, notes } = await drawn(text);
      expect(notes).to.equal(null);
      expect(await errorOf(body, text)).to.be.below(MAX_MEAN_ERROR);
    });
  }

  for (const [what, text] of Object.entries({ ...UNRESOLVED, ...DELICATE, 'the fixture': SCENE })) {
    const note = what in UNRESOLVED ? 'svg-features-ignored' : null;
    it(`is not farther from Chromium than what librsvg renders alone, with the note ${note}: ${what}`, async () => {
      const { body, notes } = await drawn(text);
      if (what in UNRESOLVED || what === 'the fixture') expect(notes).to.equal(note);
      const alone = await pipe('rsvg-convert', [], Buffer.from(text));
      expect(await errorOf(body, text)).to.be.at.most((await errorOf(alone, text)) + MAX_ADDED_ERROR);
    });
  }

  it('keeps text that only looks like CSS', async () => {
    const text = svg('<style>:root { --a: red }</style><desc>var(--a)</desc><text y="20">A</text>');
    const plain = text.replaceAll('var(--a)', '');
    const [one, other] = await Promise.all([drawn(text), drawn(plain)]);
    expect(difference(await decode(one.body), await decode(other.body)).max).to.equal(0);
  });
});

describe('an SVG compressed with gzip', () => {
  const service = useService();

  it('is converted like the SVG inside', async () => {
    const plain = await fixture('scene.svg');
    const [packed, same] = await Promise.all(
      [gzipSync(plain), plain].map((file) => convert(service.base, file, { format: 'png' }, 'scene.svgz')),
    );
    expect([packed?.status, packed?.notes]).to.deep.equal([200, null]);
    expect(packed?.body.equals(same?.body as Buffer)).to.equal(true);
  });

  it('is rejected with 413 and the limit if it unpacks to more than MAX_FILE_BYTES', async () => {
    const bomb = gzipSync(svg(' '.repeat(11 * 1024 ** 2)));
    expect(bomb.length).to.be.below(100_000);
    const { outcome } = await convert(service.base, bomb, { format: 'png' }, 'bomb.svgz');
    expect(outcome).to.equal(
      '413 The file is compressed with gzip, and unpacks to more than the limit of 10.5 MB (10485760 bytes).',
    );
  });

  it('is rejected with 400 if it is truncated', async () => {
    const noise = svg(`<desc>${randomBytes(20_000).toString('hex')}</desc>`);
    const { outcome } = await convert(service.base, gzipSync(noise).subarray(0, 9000), {}, 'cut.svgz');
    expect(outcome).to.equal('400 The file is damaged or not a valid SVG image.');
  });

  it('is not confused with other files in gzip', async () => {
    expect((await convert(service.base, gzipSync('no image'), {}, 'a.svgz')).status).to.equal(415);
  });
});
