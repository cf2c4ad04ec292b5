/** @module Template tags that escape values, since names and output of tools can have markup. */

/** Text that is valid markup and is not escaped again. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type MarkupValue = string | number | Markup | undefined | false | readonly Markup[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/**
 * Creates a tag that escapes values except {@link Markup}, and omits `undefined` and `false`.
 *
 * @param unsafe characters that become entities, or � if there is none
 */
function createTag(unsafe: RegExp) {
  const render = (part: MarkupValue): string => {
    if (part === undefined || part === false) return '';
    if (part instanceof Markup) return part.text;
    if (typeof part === 'object') return part.map(({ text }) => text).join('');
    return String(part).replace(unsafe, (character) => ENTITIES[character] ?? '�');
  };
  return (texts: TemplateStringsArray, ...parts: readonly MarkupValue[]): Markup =>
    new Markup(texts.map((text, at) => text + render(parts[at])).join(''));
}

export const html = createTag(/[&<>"']/g);

/** XML excludes some characters even when escaped, such as lone surrogates (XML 1.0, 2.2). */
export const xml = createTag(/[&<>"'\t\n\r]|[^\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu);
