// @full
// @slow
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import sharp from 'sharp';
import { useBrowserDecoder } from '../helpers/chromium.ts';
import { type ClientResponse, convert, converted, type Fields, fixture } from '../helpers/client.ts';
import {
  conditionCells,
  DELICATE,
  MEDIA_QUERIES,
  RESOLVED,
  SHEETS,
  SUPPORTED,
  styled,
  svg,
  UNRESOLVED,
  UNRESOLVED_BEFORE_2_60,
} from '../helpers/drawings.ts';
import { decode, difference, onGrey, type Pixels } from '../helpers/pixels.ts';
import { pipe } from '../helpers/process.ts';
import { startService, useService } from '../helpers/service.ts';

/** Maximum mean absolute error of a channel (0 to 255): edges are smoothed differently. */
const MAX_MEAN_ERROR = 1.5;
/** Maximum mean absolute error to add to that of librsvg: colours are rounded differently. */
const MAX_ADDED_ERROR = 0.1;

const DIAGRAM_FOLDER = new URL('../diagrams/', import.meta.url).pathname;
/**
 * Drawings as tools write them. Those of badge services, bytefield, ECharts, Graphviz, Matplotlib,
 * Mermaid, nomnoml, Satori and Vega are their output. Those of draw.io, Excalidraw, Figma, GitHub
 * cards, Illustrator, Inkscape and R were written by hand after it.
 */
const DIAGRAMS = (await readdir(DIAGRAM_FOLDER)).sort();
/**
 * Percent of the pixels of diagrams whose edges move by less than a pixel. Their sizes are no whole
 * numbers of pixels, which librsvg rounds up and scales to, and Chromium cuts.
 */
const MOVED_EDGES: Readonly<Record<string, number>> = {
  'graphviz-cluster.svg': 2,
  'graphviz-plain.svg': 2,
};

const teal = sharp({ create: { width: 8, height: 8, channels: 3, background: 'teal' } });
/** Pictures of one colour. */
const PICTURES = { png: await teal.png().toBuffer(), jpeg: await teal.jpeg().toBuffer() };

const SCENE = (await fixture('scene.svg')).toString();

/**
 * Whether the service has the fonts and the librsvg of this machine. Without them, texts are not
 * compared with those of its browser.
 */
const SHARES_FONTS = process.env.BASE_URL === undefined;

describe('an SVG with features that librsvg lacks', () => {
  const service = useService();
  const browser = useBrowserDecoder();
  const drawn = (text: string | Buffer, fields: Fields = {}): Promise<ClientResponse> =>
    converted(service.base, Buffer.from(text), { format: 'png', ...fields }, 'a.svg');

  /**
   * Returns the mean absolute error of the pixels of a result, compared with what Chromium shows.
   */
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

  for (const [what, sheet] of Object.entries(SHEETS)) {
    it(`is rendered like in Chromium, with a style sheet with ${what}`, async () => {
      const { body, notes } = await drawn(styled(sheet));
      expect(notes).to.equal(null);
      expect(await errorOf(body, styled(sheet))).to.be.below(MAX_MEAN_ERROR);
    });
  }

  for (const [rule, conditions] of [
    ['@media', MEDIA_QUERIES],
    ['@supports', SUPPORTED],
  ] as const) {
    it(`has the rules whose conditions of ${rule} are true in Chromium`, async () => {
      const text = conditionCells(rule, conditions);
      const { body, notes } = await drawn(text);
      expect(notes).to.equal(null);
      const [ours, shown] = [await decode(body), await browser.show(Buffer.from(text), 'image/svg+xml')];
      const colourAt = ({ data, width }: Pixels, at: number): number =>
        data[((Math.floor(at / 15) * 8 + 4) * width + (at % 15) * 8 + 4) * 4] ?? 0;
      const different = conditions.filter((_, at) => colourAt(ours, at) !== colourAt(shown, at));
      expect(different).to.deep.equal([]);
    });
  }

  for (const [what, text] of Object.entries({ ...UNRESOLVED, ...DELICATE, 'the fixture': SCENE })) {
    const note = what in UNRESOLVED ? 'svg-features-ignored' : null;
    it(`is not farther from Chromium than what librsvg renders alone, with the note ${note}: ${what}`, async () => {
      const { body, notes } = await drawn(text);
      if (what in UNRESOLVED || what === 'the fixture') expect(notes).to.equal(note);
      if (!SHARES_FONTS) return;
      const sized = text.replace(/<svg(?![^>]*font-size)/, '$& font-size="16"');
      const alone = await pipe('rsvg-convert', [], Buffer.from(sized));
      expect(await errorOf(body, text)).to.be.at.most((await errorOf(alone, text)) + MAX_ADDED_ERROR);
    });
  }

  for (const [what, text] of Object.entries(UNRESOLVED_BEFORE_2_60)) {
    it(`has the note svg-features-ignored only if librsvg is older than 2.60: ${what}`, async () => {
      const { notes } = await drawn(text);
      // Debian 12 has ImageMagick 6 and librsvg 2.54, and Debian 13 has 7 and 2.60.
      expect(notes).to.equal(service.magick === 6 ? 'svg-features-ignored' : null);
    });
  }

  for (const type of ['image/png', 'image/jpeg', 'image/jpg', 'img/png', 'application/octet-stream']) {
    for (const [format, data] of Object.entries(PICTURES)) {
      it(`shows a ${format} in the file that is declared as ${type}, also behind 1 MB`, async () => {
        const text = svg(
          `<desc>${'a'.repeat(2 ** 20)}</desc><image href="data:${type};base64,${data.toString('base64')}" width="120" height="80" preserveAspectRatio="none"/>`,
        );
        const { body, notes } = await drawn(text);
        expect(notes).to.equal(null);
        const { data: pixels } = await decode(body);
        expect(Math.abs((pixels[1] ?? 0) - 128)).to.be.below(3);
      });
    }
  }

  for (const name of DIAGRAMS) {
    it(`shows the diagram ${name} as Chromium does, or has the note svg-features-ignored`, async () => {
      const text = await readFile(join(DIAGRAM_FOLDER, name));
      const { body, notes } = await drawn(text);
      if (notes !== null) return expect(notes).to.equal('svg-features-ignored');
      const ours = onGrey(await decode(body), 255);
      const shown = await browser.show(text, 'image/svg+xml');
      expect([ours.width, ours.height]).to.deep.equal([shown.width, shown.height]);
      if (!SHARES_FONTS) return;
      let different = 0;
      for (let at = 0; at < ours.data.length; at += 4) {
        const isDifferent = [0, 1, 2].some(
          (channel) => Math.abs((ours.data[at + channel] ?? 0) - (shown.data[at + channel] ?? 0)) > 64,
        );
        if (isDifferent) different += 1;
      }
      const percent = (400 * different) / ours.data.length;
      expect(percent).to.be.below(MOVED_EDGES[name] ?? 1);
    });
  }

  it('has the note svg-features-ignored for a JPEG with an orientation', async () => {
    const turned = await sharp(PICTURES.jpeg).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    const text = (data: Buffer): string =>
      svg(`<image href="data:image/jpeg;base64,${data.toString('base64')}" width="120" height="80"/>`);
    const upright = await sharp(PICTURES.jpeg).withMetadata({ orientation: 1 }).jpeg().toBuffer();
    expect((await drawn(text(turned))).notes).to.equal('svg-features-ignored');
    expect((await drawn(text(upright))).notes).to.equal(null);
  });

  it('shows an attribute of more than 10 MB, and refuses one with entities', async () => {
    await using own = await startService({ MAX_FILE_BYTES: '20000000' });
    const long = svg(`<desc a="${'a'.repeat(11_000_000)}"/><rect width="120" height="80" fill="teal"/>`);
    const large = await convert(own.base, Buffer.from(long), { format: 'png' }, 'a.svg');
    expect([large.status, (await decode(large.body)).data[1]]).to.deep.equal([200, 128]);
    const declared = Buffer.from(`<!DOCTYPE svg [<!ENTITY a "b">]>${long}`);
    expect((await convert(own.base, declared, { format: 'png' }, 'a.svg')).status).to.equal(400);
  });

  it('shows what systemLanguage has for a reader of English', async () => {
    const { body, notes } = await drawn(
      svg(
        '<switch><rect systemLanguage="de" width="120" height="80" fill="red"/>' +
          '<rect systemLanguage="fr, en" width="120" height="80" fill="#008080"/><rect width="60" height="80"/></switch>',
      ),
    );
    expect(notes).to.equal(null);
    const { channels } = await sharp(body).stats();
    expect(channels.map(({ mean }) => mean)).to.deep.equal([0, 128, 128]);
  });

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
