import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { useBrowserDecoder } from '../helpers/browser-decoder.ts';
import { type ClientResponse, convert, fixture } from '../helpers/client.ts';
import { decode, difference, onGrey } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const svg = (content: string, root = ''): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80" viewBox="0 0 120 80" ${root}>${content}</svg>`;

/** Maximum mean absolute error of a channel (0 to 255): edges are smoothed differently. */
const MAX_MEAN_ERROR = 1.5;

/** SVGs that librsvg would render differently from browsers without rewriting. */
const RESOLVED = {
  'custom properties of the root element': svg(
    '<style>:root { --main: #d33; --ring: var(--main) } .a { fill: var(--main) }</style>' +
      '<rect class="a" width="60" height="80"/><circle cx="90" cy="40" r="20" fill="none" stroke="var(--ring)" stroke-width="8"/>',
  ),
  'a custom property in the style of the root element': svg(
    '<rect width="120" height="80" style="fill: var(--x)"/>',
    'style="--x: teal"',
  ),
  'a dark theme that does not apply': svg(
    '<style>svg { --c: orange } @media (prefers-color-scheme: dark) { svg { --c: black } }</style>' +
      '<rect width="120" height="80" fill="var(--c)"/>',
  ),
  'the fallback of an unknown custom property': svg(
    '<rect width="120" height="80" fill="var(--unknown, rgb(20, 120, 220))"/>',
  ),
  'colours in oklch, lab, hwb and color()': svg(
    '<rect width="30" height="80" fill="oklch(70% 0.15 140)"/><rect x="30" width="30" height="80" fill="lab(50 40 -60)"/>' +
      '<rect x="60" width="30" height="80" style="fill: hwb(200 10% 20%)"/>' +
      '<rect x="90" width="30" height="80" fill="color(display-p3 0.2 0.8 0.4)"/>',
  ),
  'a custom property beside one of 65,000 words': svg(
    `<style>:root { --long: ${'1 '.repeat(65_000)} }</style><style>:root { --c: teal } rect { fill: var(--c) }</style>` +
      '<rect width="120" height="80"/>',
  ),
  'a custom property beside an embedded font of 512 KiB': svg(
    `<style>@font-face { font-family: x; src: url("data:font/woff2;base64,${'QUJD'.repeat(2 ** 17)}") }` +
      ':root { --c: teal } rect { fill: var(--c) }</style><rect width="120" height="80"/>',
  ),
  'mixed colours in a CDATA section': svg(
    '<style><![CDATA[ rect { fill: color-mix(in srgb, red, blue 30%) } ]]></style><rect width="120" height="80"/>',
  ),
  'an origin of a transform in attributes': svg(
    '<rect x="30" y="20" width="60" height="40" fill="teal" transform="rotate(30)" transform-origin="60 40"/>',
  ),
  'an origin of a transform in attributes with blanks around the equals sign': svg(
    '<rect x="30" y="20" width="60" height="40" fill="teal" transform = "rotate(30)" transform-origin = "60 40"/>',
  ),
  'an origin of a transform in a style sheet': svg(
    '<style>rect { transform-origin: center; transform: rotate(30deg) }</style>' +
      '<rect x="30" y="20" width="60" height="40" fill="teal"/>',
  ),
  'an origin of a transform in a style attribute': svg(
    '<rect x="30" y="20" width="60" height="40" fill="teal" style="transform-origin: 30px 100%; transform: scale(0.5)"/>',
  ),
  'a drop shadow': svg(
    '<filter id="f" x="-0.5" y="-0.5" width="2" height="2"><feDropShadow dx="6" dy="4" stdDeviation="2" flood-color="navy" flood-opacity="0.6"/></filter>' +
      '<rect x="30" y="20" width="50" height="30" fill="gold" filter="url(#f)"/>',
  ),
  'a drop shadow with a result, and children': svg(
    '<filter id="f" x="-0.5" y="-0.5" width="2" height="2"><feDropShadow in="SourceGraphic" dx="6" dy="4" stdDeviation="1" result="a"><!-- --></feDropShadow>' +
      '<feMerge><feMergeNode in="a"/></feMerge></filter><rect x="30" y="20" width="50" height="30" fill="gold" filter="url(#f)"/>',
  ),
  'a background of the root element': svg(
    '<rect width="60" height="40" fill="teal"/>',
    'style="max-width: 120px; background-color: rgb(255, 220, 180)"',
  ),
  'a background of the root element that a later one replaces': svg(
    '<rect width="60" height="40" fill="teal"/>',
    'style="background-color: red; background: gold; background-color: light-dark(gold, black)"',
  ),
  'a translucent background of the root element': svg(
    '<rect width="60" height="40" fill="teal"/>',
    'style="background: hsla(200, 80%, 50%, 0.5) !important"',
  ),
  'an important background of the root element': svg(
    '<rect width="60" height="40" fill="teal"/>',
    'style="background: gold ! important; background: NONE; background-color: red"',
  ),
  'a background of the root element that an image replaces': svg(
    '<rect width="60" height="40" fill="teal"/>',
    'style="background-color: red; background: url(#none)"',
  ),
  'a transparent background of the root element': svg(
    '<rect width="60" height="40" fill="teal"/>',
    'style="background: red; background-color: transparent"',
  ),
} as const;

/** SVGs that are rendered differently from browsers, with a note. */
const UNRESOLVED = {
  'HTML in a foreignObject': svg('<foreignObject width="50" height="50"><p>text</p></foreignObject>'),
  'a text of a given length': svg('<text y="20" textLength="100">abc</text>'),
  'a path whose length is a given number': svg(
    '<path d="M0 9H90" stroke="red" stroke-dasharray="1" pathLength="9"/>',
  ),
  'a custom property of one class': svg(
    '<style>.a { --c: red } .b { --c: blue }</style><rect class="a" fill="var(--c)" width="9" height="9"/>',
  ),
  'an origin that depends on the size of the element': svg(
    '<rect width="9" height="9" style="transform-box: fill-box; transform-origin: center; transform: rotate(45deg)"/>',
  ),
  'a calculation behind 64 KiB': svg(
    `${'<g/>'.repeat(20_000)}<rect width="9" height="9" style="stroke-width: calc(1px + 2px)"/>`,
  ),
  'a colour in 600 parentheses': svg(
    `<rect width="9" height="9" fill="lab(${'('.repeat(600)}1${')'.repeat(600)} 1 1)"/>`,
  ),
  'a custom property in a style sheet of 300 KiB': svg(
    `<style>:root { --c: red } rect { fill: var(--c) } ${'a{b:c}'.repeat(50 * 1024)}</style><rect width="9" height="9"/>`,
  ),
  'custom properties that grow without bound': svg(
    `<style>:root { --a0: red; ${Array.from({ length: 30 }, (_, at) => `--a${at + 1}: var(--a${at}) var(--a${at})`).join(';')} }</style>` +
      '<rect fill="var(--a30)" width="9" height="9"/>',
  ),
  'custom properties that refer to each other': svg(
    '<style>:root { --a: var(--b); --b: var(--a) }</style><rect fill="var(--a)" width="9" height="9"/>',
  ),
} as const;

describe('an SVG with features that librsvg lacks', () => {
  const service = useService();
  const browser = useBrowserDecoder();
  const drawn = async (
    text: string | Buffer,
    fields: Record<string, string> = {},
  ): Promise<ClientResponse> => {
    const answer = await convert(service.base, Buffer.from(text), { format: 'png', ...fields }, 'a.svg');
    expect(answer.status, answer.message).to.equal(200);
    return answer;
  };

  for (const [what, text] of Object.entries(RESOLVED)) {
    it(`is rendered like in Chromium: ${what}`, async () => {
      const { body, headers } = await drawn(text);
      expect(headers.get('x-conversion-notes')).to.equal(null);
      const shown = await browser.show(Buffer.from(text), 'image/svg+xml');
      expect(difference(onGrey(await decode(body), 255), shown).mae).to.be.below(MAX_MEAN_ERROR);
    });
  }

  for (const [what, text] of Object.entries(UNRESOLVED)) {
    it(`has a note for a feature that is not rendered: ${what}`, async () => {
      expect((await drawn(text)).headers.get('x-conversion-notes')).to.equal('svg-features-ignored');
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
    expect([packed?.status, packed?.headers.get('x-conversion-notes')]).to.deep.equal([200, null]);
    expect(packed?.body.equals(same?.body as Buffer)).to.equal(true);
  });

  it('is rejected with 413 if it unpacks to more than MAX_FILE_BYTES', async () => {
    const bomb = gzipSync(svg(' '.repeat(11 * 1024 ** 2)));
    expect(bomb.length).to.be.below(100_000);
    const { status, message } = await convert(service.base, bomb, { format: 'png' }, 'bomb.svgz');
    expect([status, message]).to.deep.equal([
      413,
      'The file is too large: at most 10 MiB (10485760 bytes) allowed.',
    ]);
  });

  it('is rejected with 400 if it is truncated', async () => {
    const noise = svg(`<desc>${randomBytes(20_000).toString('hex')}</desc>`);
    const { status, message } = await convert(
      service.base,
      gzipSync(noise).subarray(0, 9000),
      {},
      'cut.svgz',
    );
    expect([status, message]).to.deep.equal([400, 'The file is damaged or not a valid SVG image.']);
  });

  it('is not confused with other files in gzip', async () => {
    expect((await convert(service.base, gzipSync('no image'), {}, 'a.svgz')).status).to.equal(415);
  });
});
