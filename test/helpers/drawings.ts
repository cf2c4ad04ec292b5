/** @module SVGs with features that librsvg lacks, and their constant size. */

export const svg = (content: string, root = ''): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80" viewBox="0 0 120 80" ${root}>${content}</svg>`;

/** SVGs that librsvg would render differently from browsers without rewriting. */
export const RESOLVED = {
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
  'custom properties that refer to each other through twenty levels': svg(
    `<style>:root { --a0: teal; ${Array.from({ length: 20 }, (_, at) => `--a${at + 1}: var(--a${at})`).join(';')} }</style>` +
      '<rect fill="var(--a20)" width="120" height="80"/>',
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

/** Filters, custom properties and colours that a wrong rewriting would change. */
export const DELICATE = {
  ...Object.fromEntries(
    ['dx="10%"', 'dx="1 2 3"', 'dy="5px"', 'dy=""', 'stdDeviation="10%"', 'stdDeviation="none"'].map(
      (attribute) => [
        `a drop shadow with ${attribute}`,
        svg(
          `<filter id="f" x="-0.5" y="-0.5" width="2" height="2"><feDropShadow ${attribute} flood-color="navy"/></filter>` +
            '<rect x="30" y="20" width="50" height="30" fill="gold" filter="url(#f)"/>',
        ),
      ],
    ),
  ),
  'a drop shadow of two deviations': svg(
    '<filter id="f" x="-0.5" y="-0.5" width="2" height="2"><feDropShadow dx="+6" dy="1e1" stdDeviation=" 1, 4 "/></filter>' +
      '<rect x="30" y="20" width="50" height="30" fill="gold" filter="url(#f)"/>',
  ),
  'a custom property that another rule replaces': svg(
    '<style>:root { --c: red } svg { --c: teal } rect { fill: var(--c) }</style><rect width="120" height="80"/>',
  ),
  'a custom property of an element': svg(
    '<style>:root { --c: red } rect { fill: var(--c) }</style><rect width="60" height="80"/><g style="--c: blue"><rect x="60" width="60" height="80"/></g>',
  ),
  'an invalid colour': svg('<rect width="120" height="80" fill="oklch(1 2)" stroke="lab(red)"/>'),
} as const;

/** SVGs that are rendered differently from browsers, with a note. */
export const UNRESOLVED = {
  'HTML in a foreignObject': svg('<foreignObject width="50" height="50"><p>text</p></foreignObject>'),
  'a text of a given length': svg('<text y="20" textLength="100">abc</text>'),
  'a path whose length is a given number': svg(
    '<path d="M0 9H90" stroke="red" stroke-dasharray="1" pathLength="9"/>',
  ),
  'a custom property of one class': svg(
    '<style>.a { --c: red } .b { --c: blue }</style><rect class="a" fill="var(--c)" width="9" height="9"/>',
  ),
  'the origin of a transform in attributes': svg(
    '<rect x="30" y="20" width="60" height="40" fill="teal" transform="rotate(30)" transform-origin="60 40"/>',
  ),
  'the origin of a transform in a style sheet': svg(
    '<style>rect { transform-origin: center; transform: rotate(30deg) }</style>' +
      '<rect x="30" y="20" width="60" height="40" fill="teal"/>',
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
