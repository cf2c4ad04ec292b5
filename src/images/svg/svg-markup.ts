/** @module Finds the root element, the tags and the style sheets in the text of an SVG. */

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** An attribute. The range covers the value without its quotes. */
export interface Attribute extends Range {
  readonly name: string;
  readonly value: string;
}

/** A start tag, end tag or empty-element tag. */
export interface Tag extends Range {
  /** Namespace prefix; empty without one. */
  readonly prefix: string;
  /** Name without the prefix. */
  readonly name: string;
  readonly kind: 'open' | 'close' | 'empty';
  readonly attributes: readonly Attribute[];
}

/** The content of a `style` element. */
interface StyleSheet extends Range {
  readonly isCdata: boolean;
  readonly attributes: readonly Attribute[];
}

export interface Markup {
  readonly tags: readonly Tag[];
  readonly styleSheets: readonly StyleSheet[];
}

/** Parts that contain no tags, by their first and last characters. */
const OPAQUE = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
  ['<!', '>'],
] as const;
/** A tag. The lookahead keeps the name whole: linear time, also for an incomplete tag. */
const TAG = /<(\/?)(?:([\w.-]+):)?([\w.-]+)(?![\w.-])(?:[^<>"']|"[^"<]*"|'[^'<]*')*>/y;
const MAX_ATTRIBUTES = 1000;
const ATTRIBUTE = /\s([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;

/** Scans the text up to its end, or up to the first part that is not well formed. */
export function scanMarkup(text: string): Markup {
  const tags: Tag[] = [];
  const styleSheets: StyleSheet[] = [];
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
      const { attributes } = tag;
      styleSheets.push({ ...contentIn(text, { start: tag.end, end }), attributes });
    }
    at = text.indexOf('<', end);
  }
  return { tags, styleSheets };
}

function tagAt(text: string, start: number): Tag | undefined {
  TAG.lastIndex = start;
  const match = TAG.exec(text);
  if (!match) return undefined;
  const [whole, slash, prefix = '', name = ''] = match;
  const kind = slash ? 'close' : whole.endsWith('/>') ? 'empty' : 'open';
  const attributes: Attribute[] = [];
  for (const found of whole.matchAll(ATTRIBUTE)) {
    if (attributes.length === MAX_ATTRIBUTES) break;
    const value = found[2] ?? found[3] ?? '';
    const end = start + found.index + found[0].length - 1;
    attributes.push({ name: found[1] as string, value, start: end - value.length, end });
  }
  return { prefix, name, kind, attributes, start, end: start + whole.length };
}

const CDATA = { first: '<![CDATA[', last: ']]>' };

/** The content of a CDATA section, if the range is one. */
function contentIn(text: string, range: Range): Omit<StyleSheet, 'attributes'> {
  const content = text.slice(range.start, range.end);
  const first = content.indexOf(CDATA.first);
  const last = content.lastIndexOf(CDATA.last);
  if (first < 0 || last < first) return { ...range, isCdata: false };
  return { start: range.start + first + CDATA.first.length, end: range.start + last, isCdata: true };
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

/** Replaces the references to characters that XML predefines, or that state a number. */
export const decodeEntities = (text: string): string =>
  text.replace(/&(?:#(\d{1,7})|#x([\dA-Fa-f]{1,6})|(lt|gt|amp|quot|apos));/g, (_, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16);
    return name ? (ENTITIES[name] ?? '') : code <= 0x10ffff ? String.fromCodePoint(code) : '';
  });

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

/**
 * Matches one part of the preamble of an XML document. Inside a document type, every character has
 * one way to match, so that no input causes backtracking.
 */
const QUOTED = `"[^"]*"|'[^']*'`;
const COMMENT = '<!--(?:(?!-->)[^])*-->';
const SUBSET = `\\[(?:${COMMENT}|${QUOTED}|<(?!!--)|[^\\]"'<])*\\]`;
const DOCTYPE = `<!DOCTYPE(?:${QUOTED}|${SUBSET}|[^[\\]<>"'])*>`;
const PREAMBLE = new RegExp(`^(?:\\s+|<\\?[^]*?\\?>|${COMMENT}|${DOCTYPE})`);

/** Decodes XML from its root element, or from the first part that is not a preamble. */
export const skipXmlPreamble = (head: Uint8Array): string => skipPreamble(decode(head));

/** Returns XML from its root element, or from the first part that is not a preamble. */
export function skipPreamble(file: string): string {
  let text = file;
  for (let match = PREAMBLE.exec(text); match; match = PREAMBLE.exec(text))
    text = text.slice(match[0].length);
  return text;
}

/** Decodes XML as UTF-8, or as UTF-16 if it starts with a byte order mark. */
function decode(head: Uint8Array): string {
  const [first, second] = head;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(head);
}

/** Returns the value of an attribute in a start tag. */
export function attributeOf(tag: string, name: string): string | undefined {
  const match = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(tag);
  return match?.[1] ?? match?.[2];
}
