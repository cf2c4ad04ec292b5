// @unit
import { expect } from 'chai';
import { withReader } from '../../src/images/containers/file.ts';
import type { ImageFacts } from '../../src/images/image-info.ts';
import { canRewrite, hasUnresolved } from '../../src/images/svg/features.ts';
import { rewriteText } from '../../src/images/svg/rewrite-text.ts';
import { readSvg } from '../../src/images/svg/svg-info.ts';
import { svg } from '../helpers/drawings.ts';
import { writeTempFile } from '../helpers/hooks.ts';

describe('rewriting the text of an SVG', () => {
  it('removes the condition of an empty group, before which draw.io has a text for viewers without HTML', () => {
    const condition = 'requiredFeatures="http://www.w3.org/TR/SVG11/feature#Extensibility"';
    const others = `<switch><g ${condition}><rect/></g><foreignObject ${condition}/><text>a</text></switch>`;
    const text = svg(`<switch><g ${condition}/><text>b</text></switch>${others}`);
    expect(rewriteText(text)).to.equal(svg(`<switch><g /><text>b</text></switch>${others}`));
  });

  it('keeps texts whose text-transform a style sheet, a copy or another value can decide', () => {
    const text = '<text style="text-transform: uppercase">a</text>';
    for (const kept of [
      `<style>a { text-transform: lowercase }</style>${text}`,
      `<g id="g">${text}</g><use href="#g"/>`,
      text.replace('uppercase', 'full-width'),
      text.replace('uppercase', 'uppercase; text-transform: none'),
      text.replace('a<', '<![CDATA[a]]><'),
      text.replace('style', 'xml:lang="tr" style'),
    ]) {
      expect(rewriteText(svg(kept))).to.equal(svg(kept));
      expect(hasUnresolved(svg(kept))).to.equal(true);
    }
  });

  it('enlarges tiny units of the root element, unless this changes the size or percentages', () => {
    const tiny = (root: string, content: string): string =>
      `<svg ${root} viewBox="0 0 .002 .001">${content}</svg>`;
    const sized = 'width="20" height="10"';
    const rewritten = rewriteText(tiny(sized, '<path d="M0 0"/>'));
    expect(rewritten).to.equal(
      `<svg ${sized} viewBox="0 0 2 1"><g transform="scale(1000)"><path d="M0 0"/></g></svg>`,
    );
    expect(hasUnresolved(rewritten)).to.equal(false);
    for (const kept of [
      tiny('', '<path/>'),
      tiny(sized, '<rect width="50%"/>'),
      tiny(sized, '<text>a</text>'),
      tiny(sized, '<rect fill="url(#a)"/>'),
      tiny(sized, '<style>svg>a{b:c}</style>'),
    ]) {
      expect(rewriteText(kept)).to.equal(kept);
      expect(hasUnresolved(kept)).to.equal(true);
    }
  });

  it('keeps a style sheet that librsvg reads like browsers', async () => {
    const text = svg('<style>.a, .b > c:not(.d) { fill: red }</style>');
    expect(await canRewrite(text)).to.equal(false);
    expect(rewriteText(text)).to.equal(text);
  });

  it('finds no features in titles', () => {
    expect(hasUnresolved(svg('<title>Summer of Code</title>'))).to.equal(false);
    expect(hasUnresolved(svg('<style>a:nth-child(1 of b) { c: d }</style>'))).to.equal(true);
  });

  it('finds white space only if a text has blanks to keep, in any part of the file', async () => {
    const factsOf = async (content: string): Promise<ImageFacts> =>
      withReader(await writeTempFile('a.svg', svg(content)), readSvg);
    const sheet = '<style>.svglite text { white-space: pre; }</style>';
    const padding = `<desc>${'a  b '.repeat(20_000)}</desc>`;
    for (const text of ['a  b', ' a', 'a\nb', 'a<tspan>\tb</tspan>', '<tspan>a</tspan>  b']) {
      for (const content of [
        `${sheet}${padding}<text>${text}</text>`,
        `<text>${text}</text>${padding}${sheet}`,
      ])
        expect(await factsOf(content), content.slice(0, 80)).to.include({ hasUnsupportedFeatures: true });
    }
    for (const text of ['a b', 'a <tspan>b</tspan> c', '<tspan>a</tspan>\n  <tspan>b</tspan>\n'])
      expect(await factsOf(`${sheet}\n  ${padding}\n  <text>${text}</text>`), text).not.to.have.property(
        'hasUnsupportedFeatures',
      );
  });

  it('leaves what it cannot write out to be found, and writes out the rest', () => {
    const rewritten = rewriteText(svg('<style>a :is(b c) { d: e } @media screen { f { g: h } }</style>'));
    expect(rewritten).to.include('f{g: h;}');
    expect(hasUnresolved(rewritten)).to.equal(true);
  });
});
