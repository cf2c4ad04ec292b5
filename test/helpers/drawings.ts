/** @module SVGs with features that librsvg lacks, and their constant size. */

export const svg = (content: string, root = ''): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80" viewBox="0 0 120 80" ${root}>${content}</svg>`;

/** SVGs that librsvg would render differently from browsers without rewriting. */
export const RESOLVED = {
  'units of a ten-thousandth': `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80" viewBox="-.00001 0 .0003 2e-4"><g opacity=".5"><circle cx=".0001" cy=".0001" r=".00008" fill="teal" stroke="red" stroke-width="1e-5"/></g></svg>`,
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
  'values for a light and a dark screen, as draw.io writes them': svg(
    '<rect width="120" height="80" fill="#ffe6cc" style="fill: light-dark(#0050ef, var(--ge-dark-color, #121212)); ' +
      'stroke: light-dark(rgb(0, 29, 188), rgb(85, 110, 255))" stroke-width="9"/>' +
      '<circle cx="60" cy="40" r="20" fill="light-dark(#ffffff, #121212)"/>',
    'style="background: #ffffff; background-color: light-dark(#ffffff, var(--ge-dark-color, #121212)); color-scheme: light dark"',
  ),
  'lengths in font sizes of the root element': svg(
    '<style>:root { font-size: 20px } rect { stroke-width: .5rem }</style><rect width="4rem" height="2rem" fill="gold" stroke="teal"/>',
  ),
  'texts and lengths in the initial font size': svg(
    '<style>text { font-family: sans-serif }</style><text y="1.5em">text</text><text y="60" font-size="1.5em">a</text><rect x="60" width="2em" height="1em"/>',
  ),
  'texts in a font size of the root element': svg(
    '<text y="30">text</text>',
    'style="font-size: 20px" font-family="sans-serif"',
  ),
  'texts in a font size of the root element, as an attribute': svg(
    '<text y="30">text</text>',
    'aria-label="a > b" font-size="20" font-family="sans-serif"',
  ),
  'texts in a font size of a style sheet': svg(
    '<style>svg { font: 20px sans-serif }</style><text y="30">text</text>',
  ),
  'text in capital letters': svg(
    '<text y="30" style="text-transform: uppercase">i&amp;<tspan style="text-transform: none">l</tspan></text>',
    'font-family="sans-serif" font-size="30"',
  ),
  'text in small letters, and words with a capital letter, by inheritance': svg(
    '<g style="fill: teal; text-transform: lowercase"><text y="30">LI</text></g>' +
      '<g style="text-transform: capitalize !important"><text y="60">i<tspan fill="red">i</tspan>-<a>l</a></text></g>',
    'font-family="sans-serif" font-size="30"',
  ),
  'a font that no text uses': svg(
    '<style>@font-face { font-family: a; src: url(a.woff2) }</style><rect width="120" height="80" fill="teal"/>',
  ),
  'links, and a paint of the file': svg(
    '<linearGradient id="a"><stop stop-color="teal"/></linearGradient><a href="https://example.com/"><rect width="120" height="80" style="fill: url(\'#a\')"/></a>',
  ),
  'a sheet for print': svg(
    '<style media="print">rect { fill: red }</style><rect width="120" height="80" fill="teal"/>',
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

/** SVGs that librsvg 2.54 renders differently from browsers, and 2.60 like them. */
export const UNRESOLVED_BEFORE_2_60 = {
  'a stroke that is not scaled': svg(
    '<g transform="scale(10)"><rect x="2" y="2" width="8" height="4" fill="none" stroke="teal" vector-effect="non-scaling-stroke"/></g>',
  ),
  'a baseline': svg('<text y="20" dominant-baseline="hanging">abc</text>'),
  'text from right to left': svg('<text x="100" y="20" direction="rtl"><tspan>\u05d0\u05d1</tspan> a</text>'),
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
  'a custom property that a list of selectors replaces': svg(
    '<style>:root, g { --c: red } rect { fill: var(--c) }</style><g style="--c: teal"><rect width="120" height="80"/></g>',
  ),
  'an invalid colour': svg('<rect width="120" height="80" fill="oklch(1 2)" stroke="lab(red)"/>'),
} as const;

/** SVGs that are rendered differently from browsers, with a note. */
export const UNRESOLVED = {
  'a linked picture': svg('<image href="photo.png" width="9" height="9"/>'),
  'a linked shape': svg('<use xlink:href="other.svg#a"/>', 'xmlns:xlink="http://www.w3.org/1999/xlink"'),
  'a linked paint': svg('<rect width="9" height="9" style="fill: url(&quot;other.svg#a&quot;)"/>'),
  'a font of the file': svg(
    '<style>@font-face { font-family: a; src: url(data:font/woff2;base64,AAAA) }</style><text y="20">a</text>',
  ),
  'text in capital letters by a style sheet': svg(
    '<style>text { text-transform: uppercase }</style><text y="20">abc</text>',
  ),
  'white space of a text': svg('<text y="20" style="white-space: pre">a   b</text>'),
  'white space of a style sheet': svg('<style>text { white-space: pre }</style><text y="20">a   b</text>'),
  'white space of a style sheet at the end': svg(
    '<text y="20">a<tspan>b  c</tspan></text><style>text{white-space:break-spaces}</style>',
  ),
  'white space before a text': svg('<style>text { white-space: pre-wrap }</style><text y="20"> a</text>'),
  'an animation': svg(
    '<circle r="9" opacity="0"><animate attributeName="opacity" values="1;1" dur="1s"/></circle>',
  ),
  'an animation of CSS': svg(
    '<style>@keyframes a { from { fill: teal } to { fill: red } } circle { animation: a 1s paused }</style><circle r="9"/>',
  ),
  'a path of CSS': svg('<path style="d: path(&quot;M0 0H9V9Z&quot;)"/>'),
  'a transform in percent': svg('<rect width="9" height="9" style="transform: translate(50%, 10%)"/>'),
  'a text below its line': svg('<text y="20" baseline-shift="sub">a</text>'),
  'a point of a symbol': svg(
    '<symbol id="a" viewBox="0 0 9 9" refX="5"><rect width="9" height="9"/></symbol><use href="#a" width="9"/>',
  ),
  'a list of selectors with an ancestor in the middle': svg(
    '<style>g :is(g rect) { fill: teal }</style><g><g><rect width="120" height="80"/></g></g>',
  ),
  'a condition that only browsers meet': svg(
    '<style>@supports (width: calc(1px)) { rect { fill: teal } }</style><rect width="120" height="80"/>',
  ),
  'a selector that only browsers know': svg(
    '<style>g:has(rect) { fill: teal }</style><g><rect width="120" height="80"/></g>',
  ),
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

/** Media queries, of which each is true or false for a light screen of 120 × 80 pixels. */
export const MEDIA_QUERIES = [
  'all',
  'screen',
  'print',
  'not print',
  'not screen',
  'only screen',
  'speech',
  'screen, print',
  'print, speech',
  'tv',
  'not tv',
  '(prefers-color-scheme: light)',
  '(prefers-color-scheme: dark)',
  'not (prefers-color-scheme: dark)',
  'not all and (prefers-color-scheme: dark)',
  '(prefers-color-scheme)',
  '(prefers-color-scheme: no-preference)',
  '(min-width: 10px)',
  '(min-width: 121px)',
  '(max-width: 120px)',
  '(max-width: 7.4em)',
  '(width: 120px)',
  '(width >= 120px)',
  '(100px < width <= 120px)',
  '(120px < width)',
  '(200px > width > 100px)',
  '(width < 50px) or (height < 100px)',
  '(min-width: 10px) and (max-height: 80px)',
  'screen and (min-width: 10px) and (orientation: landscape)',
  '(orientation: portrait)',
  '(orientation)',
  '(aspect-ratio: 3/2)',
  '(min-aspect-ratio: 2/1)',
  '(min-resolution: 2dppx)',
  '(min-resolution: 96dpi)',
  '(-webkit-min-device-pixel-ratio: 1)',
  '(-webkit-min-device-pixel-ratio: 2)',
  '(resolution)',
  '(color)',
  '(monochrome)',
  '(min-color: 8)',
  '(color-index)',
  '(grid)',
  '(hover)',
  '(hover: hover)',
  '(pointer: coarse)',
  '(any-pointer: fine)',
  '(prefers-reduced-motion: reduce)',
  '(prefers-reduced-motion: no-preference)',
  '(prefers-reduced-motion)',
  '(prefers-contrast: more)',
  '(forced-colors: active)',
  '(forced-colors: none)',
  '(inverted-colors)',
  '(color-gamut: srgb)',
  '(scripting)',
  '(scripting: none)',
  '(update: fast)',
  '(foo)',
  'not (foo)',
  '(foo) or (color)',
  '(foo) and (color)',
  'not ((foo) or (monochrome))',
  'screen and (foo)',
  'not screen and (foo)',
  'print and (foo)',
  'not print and (foo)',
  '((color))',
  '(not (monochrome))',
  '(color) and (not (grid))',
  '(color) and (grid) or (hover)',
  '(min-width:10px),print',
  '(max-width: 2in)',
  '(device-width > 10px)',
  '(MIN-WIDTH: 10PX)',
  'SCREEN AND (COLOR)',
  '(min-width: -1px)',
  '(min-width: 0)',
  '(dynamic-range: standard)',
  '(display-mode: browser)',
  '(video-dynamic-range: standard)',
  '(width = 120px)',
  'screen or (color)',
  'only (color)',
  '(prefers-color-scheme: light) and (prefers-reduced-motion: no-preference)',
  '(overflow-block)',
  '(min-height: 80.5px)',
];

/** Conditions of `@supports` on which librsvg and browsers agree. */
export const SUPPORTED = [
  '(fill: red)',
  '(fill:oklch(50% 0.1 20))',
  'not (fill: red)',
  '(--a: b)',
  'selector(:is(a))',
  'selector(a > b)',
  '(fill: red) and (stroke: red)',
  '(fill: red) or (foo: bar)',
  '(fill: red) and (not (-ms-ime-align: auto))',
  '(-moz-appearance: none)',
  'not (-ms-high-contrast: none)',
  '((fill: red))',
  '(fill: light-dark(red, blue))',
];

/**
 * Style sheets for {@link styled} that librsvg would read differently from browsers without
 * rewriting.
 */
export const SHEETS: Readonly<Record<string, string>> = {
  'nested rules': '.a{fill:red; .b{fill:teal} .d &amp;{fill:red}}',
  'nested rules with &': '.b{&amp;.c{fill:teal} &amp; + .d{fill:gold} fill:pink}',
  'parents of a nested rule': '.b{.a &amp;{fill:teal} g &amp;{stroke:red;stroke-width:9}}',
  'conditions of a nested rule': 'rect{&amp;.c{fill:teal} &amp;:not(.c){fill:gold}}',
  'a rule nested in a list': '.a, .zz{ .b, .d{fill:teal} }',
  'the precedence of a list with an ID': '#i, .zz{ .b{fill:teal} } .a .b.c{fill:red}',
  'nested media queries': '.b{fill:red; @media screen{fill:teal; .c&amp;{}} @media print{fill:gold}}',
  'nested conditions': '@media screen{ .b{ @supports (fill:red){ &amp;.c{fill:teal} } } }',
  'children in nested rules': '.a{> .b{fill:teal} > .d > .b{fill:gold}}',
  'declarations after a nested rule': '.b{fill:red; &amp;{fill:gold} fill:teal}',
  'rules nested three times': '.a{.d{.b{fill:teal; &amp;:hover{fill:red}}}}',
  ':is()': ':is(.c, .zz){fill:teal}',
  'the precedence of :is()': ':is(.c, #zz){fill:teal} .b.c{fill:red}',
  ':is() after a type': 'rect:is(.c, .zz .d){fill:teal}',
  ':is() with ancestors': ':is(.a .d, .zz) .b{fill:teal}',
  ':is() in :is()': ':is(:is(.c), :where(.d .b)){fill:teal}',
  'the precedence of :where()': ':where(#r){fill:teal} rect{fill:gold}',
  ':where() beside *': ':where(.b){fill:teal} *{stroke:red;fill:gold}',
  'the precedence of :where() after a class':
    '.b:where(#r){fill:teal} .b{fill:gold} rect.b:where(#r){fill:pink}',
  ':is() in :not()': 'rect:not(:is(.c, .zz)){fill:teal}',
  'a list with :hover': '.b, .b:hover{fill:teal}',
  'rules for :hover and :focus': '.b{fill:teal} .b:hover, .b:focus{fill:red}',
  'a list with a pseudo-element': '.b::after, .b{fill:teal}',
  'a layer below other rules': '@layer x{#r{fill:red}} rect{fill:teal}',
  'layers in their order': '@layer p, q; @layer q{.b{fill:teal}} @layer p{#r.b{fill:red}}',
  'layers in layers': '@layer p{#r{fill:red} @layer q{#r.b.c{fill:gold}} } @layer p.q{#i #r{fill:pink}}',
  'layers without names': '@layer{#r{fill:red}} @layer{.b{fill:teal}}',
  'a namespace': '@namespace svg "http://www.w3.org/2000/svg"; svg|rect{fill:teal}',
  'names of properties in capital letters': '.b{FILL:red} @media screen{.b{FILL:Teal;Stroke:RED}}',
  'nested rules in a CDATA section': '<![CDATA[.a{& > .b{fill:teal}} .d > .b{fill:gold}]]>',
  'nested rules with character references': '.a{&amp; &gt; .b{fill:teal}}',
  'an important declaration for a screen': '@media screen{.b{fill:teal !important}} #r{fill:red}',
  'a custom property for a light screen':
    ':root{--c:red} @media (prefers-color-scheme:light){:root{--c:teal}} .b{fill:var(--c)}',
  'a custom property for a dark screen':
    'svg{--c:teal} @media (prefers-color-scheme:dark){svg{--c:red}} .b{fill:var(--c)} ',
  'light-dark() in a custom property': ':root{--c:light-dark(teal, red)} .b{fill:var(--c)}',
  'light-dark() in a style sheet':
    '.b{fill:light-dark(rgb(1, 200, 3), var(--zz, #121212)); stroke: LIGHT-DARK( red , blue )}',
  'key frames': '@keyframes x{from{fill:red}to{fill:blue}} @media screen{.b{fill:teal}}',
  comments: '/* a */ @media /* b */ screen /* c */ { .b /* d */ { fill: /* e */ teal } }',
  'a rule without an end': '@media screen{.b{fill:teal',
  attributes: '@media screen{rect[class="b c"]{fill:teal} [id|="r"]{stroke:red}}',
  'invalid declarations': '@media screen{.b{fill:teal;;junk;fill:;x}} } .c{fill:gold}',
  'a list of selectors': '@media screen{.a .b, .zz > .b, .d .b + .b{fill:teal}}',
  'a dark mode': '.b{fill:#000}@media (prefers-color-scheme:dark){.b{fill:#fff}}',
  'the colour of the root element':
    ':root{color:teal} .b{fill:currentColor} @media screen{:root{color:gold}}',
  'a starting style': '.b{fill:teal; @starting-style{fill:red}}',
  'a block in a custom property': '.b{--x:{a:b};fill:teal; &amp;.c{fill:gold}}',
  escapes: '@media screen{.\\62{fill:teal} .\\63 {fill:gold}}',
  'numbers of children': '@media screen{.b:nth-child(2n+1){fill:teal} rect:first-of-type{stroke:red}}',
  'media queries in media queries': '@media screen{@media (min-width:1px){@media not print{.b{fill:teal}}}}',
};

/** Two rectangles, with classes and an ID, below a group and a deeper one. */
export const styled = (sheet: string): string =>
  svg(
    `<style>${sheet}</style><g class="a" id="i"><rect class="b c" id="r" width="60" height="80" fill="blue"/>` +
      '<g class="d"><rect class="b" x="60" width="60" height="80"/></g></g>',
  );

/** Cells of 8 pixels, 15 in a row, each of which is red if its condition is true. */
export const conditionCells = (rule: string, conditions: readonly string[]): string => {
  const sheet = conditions.map((one, at) => `${rule} ${one} { .c${at} { fill: red } }`).join('\n');
  const cells = conditions.map(
    (_, at) =>
      `<rect class="c${at}" x="${(at % 15) * 8}" y="${Math.floor(at / 15) * 8}" width="8" height="8"/>`,
  );
  return svg(`<style><![CDATA[${sheet}]]></style>${cells.join('')}`);
};
