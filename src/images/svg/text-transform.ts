/** @module Writes texts as `text-transform` (CSS Text 3, 2.1) shows them, for librsvg. */
import { escapeXml } from '../../base/text.ts';
import { applyEdits, decodeEntities, type Edit, type Markup, type Tag } from './svg-markup.ts';

/** A letter that begins a word, as in Chromium also after a full stop and a colon. */
const WORD_START = /(?<![\p{L}\p{M}\p{N}_]|[\p{L}\p{M}\p{N}_]['’·])\p{L}/gu;
/** Number of characters before a letter that decide whether it begins a word. */
const CONTEXT_LENGTH = 2;

/** What each value does to a text after `before`. */
const VALUES: Readonly<Record<string, (text: string, before: string) => string>> = {
  none: (text) => text,
  uppercase: (text) => text.toUpperCase(),
  lowercase: (text) => text.toLowerCase(),
  capitalize: (text, before) =>
    (before + text)
      .replace(WORD_START, (letter, at) => (at < before.length ? letter : letter.toUpperCase()))
      .slice(before.length),
};

const DECLARATION = /(?:^|;)\s*text-transform\s*:\s*([a-z]+)\s*(?:!\s*important\s*)?(?=;|$)/g;
/** Elements whose text is drawn, with an ancestor `text`. */
const DRAWN = ['text', 'tspan', 'a', 'textPath'];
/** Languages with letters of their own (Unicode SpecialCasing, and `IJ`). */
const OTHER_LETTERS = /\blang\s*=\s*["'](?:az|el|lt|nl|tr)\b/i;

interface Element {
  readonly value: string;
  readonly isDrawn: boolean;
}

/**
 * Applies the values of `style` attributes to the texts, and removes them. If a style sheet or
 * another value decides, or a copy by `use` inherits from another place, all texts stay as they
 * are.
 */
export function transformTexts(text: string, { tags }: Markup): string {
  if (OTHER_LETTERS.test(text) || tags.some(({ name }) => name === 'use')) return text;
  const edits: Edit[] = [];
  const open: Element[] = [{ value: 'none', isDrawn: false }];
  let before = '';
  for (const [at, tag] of tags.entries()) {
    const parent = open.at(-1) as Element;
    if (tag.kind === 'close') open.pop();
    else {
      const { value, edit } = readStyle(tag);
      if (edit) edits.push(edit);
      if (tag.name === 'text') before = '';
      const isDrawn = DRAWN.includes(tag.name) && (parent.isDrawn || tag.name === 'text');
      if (tag.kind === 'open') open.push({ value: value ?? parent.value, isDrawn });
    }
    const { value, isDrawn } = open.at(-1) ?? parent;
    const [start, end] = [tag.end, tags[at + 1]?.start ?? text.length];
    const content = text.slice(start, end);
    if (!isDrawn || content === '') continue;
    const transform = VALUES[value];
    if (!transform || content.includes('<')) return text; // a comment or CDATA
    const characters = decodeEntities(content);
    const shown = transform(characters, before);
    if (shown !== characters) edits.push({ start, end, text: escapeXml(shown) });
    before = (before + characters).slice(-CONTEXT_LENGTH);
  }
  const rewritten = applyEdits(text, edits);
  return rewritten.includes('text-transform') ? text : rewritten;
}

/** Returns the value in a `style`, unless it is inherited, and the edit that removes it. */
function readStyle({ attributes }: Tag): { readonly value?: string | undefined; readonly edit?: Edit } {
  const style = attributes.find(({ name }) => name === 'style');
  const declared = [...(style?.value.matchAll(DECLARATION) ?? [])].map((found) => found[1]);
  if (!style || declared.length !== 1) return {};
  const [value] = declared;
  const edit = { ...style, text: style.value.replace(DECLARATION, '') };
  return value === 'inherit' ? { edit } : { value, edit };
}
