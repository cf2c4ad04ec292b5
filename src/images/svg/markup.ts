/** @module Finds the tags and style sheets in the text of an SVG, with their positions. */

/** A part of a text. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** An attribute. The range covers the value without its quotes. */
export interface Attribute extends Range {
  readonly name: string;
  /** Offset of the name. Blanks can surround the `=` after it. */
  readonly nameAt: number;
  readonly value: string;
}

/** A start tag, end tag or empty-element tag. */
export interface Tag extends Range {
  /** Name without a namespace prefix. */
  readonly name: string;
  readonly kind: 'open' | 'close' | 'empty';
  readonly attributes: readonly Attribute[];
}

/** Tags and style sheets of an SVG. */
export interface Markup {
  readonly tags: readonly Tag[];
  /** Contents of the style elements. */
  readonly styleSheets: readonly Range[];
}

/** Parts that contain no tags, by their first and last characters. */
const OPAQUE = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
  ['<!', '>'],
] as const;
/** A tag. The lookahead keeps the name whole, so that the time is linear also for an incomplete tag. */
const TAG = /<(\/?)(?:[\w.-]+:)?([\w.-]+)(?![\w.-])(?:[^<>"']|"[^"<]*"|'[^'<]*')*>/y;
/** Maximum number of attributes of a tag to read. */
const MAX_ATTRIBUTES = 1000;
const ATTRIBUTE = /\s([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

/** Scans the text up to its end, or up to the first part that is not well formed. */
export function scanMarkup(text: string): Markup {
  const tags: Tag[] = [];
  const styleSheets: Range[] = [];
  let at = text.indexOf('<');
  while (at >= 0) {
    const opaque = OPAQUE.find(([first]) => text.startsWith(first, at));
    if (opaque) {
      const end = text.indexOf(opaque[1], at);
      if (end < 0) break;
      at = text.indexOf('<', end);
      continue;
    }
    const tag = tagAt(text, at);
    if (!tag) break;
    tags.push(tag);
    let { end } = tag;
    if (tag.name === 'style' && tag.kind === 'open') {
      end = text.indexOf('</', tag.end);
      if (end < 0) break;
      styleSheets.push(contentIn(text, { start: tag.end, end }));
    }
    at = text.indexOf('<', end);
  }
  return { tags, styleSheets };
}

function tagAt(text: string, start: number): Tag | undefined {
  TAG.lastIndex = start;
  const match = TAG.exec(text);
  if (!match) return undefined;
  const [whole, slash, name = ''] = match;
  const kind = slash ? 'close' : whole.endsWith('/>') ? 'empty' : 'open';
  const attributes: Attribute[] = [];
  for (const found of whole.matchAll(ATTRIBUTE)) {
    if (attributes.length === MAX_ATTRIBUTES) break;
    const value = found[2] ?? found[3] ?? '';
    const end = start + found.index + found[0].length - 1;
    const nameAt = start + found.index + 1; // after the blank
    attributes.push({ name: found[1] as string, nameAt, value, start: end - value.length, end });
  }
  return { name, kind, attributes, start, end: start + whole.length };
}

const CDATA = { first: '<![CDATA[', last: ']]>' };

/** The content of a CDATA section, if the range is one. */
function contentIn(text: string, range: Range): Range {
  const content = text.slice(range.start, range.end);
  const first = content.indexOf(CDATA.first);
  const last = content.lastIndexOf(CDATA.last);
  if (first < 0 || last < first) return range;
  return { start: range.start + first + CDATA.first.length, end: range.start + last };
}

/** A part of a text and what replaces it. */
export interface Edit extends Range {
  readonly text: string;
}

/** Applies edits that do not overlap. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  let at = 0;
  const parts: string[] = [];
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    parts.push(text.slice(at, edit.start), edit.text);
    at = edit.end;
  }
  return [...parts, text.slice(at)].join('');
}
