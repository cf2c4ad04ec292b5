/** @module HTML in template strings with escaped values, and numbers in it. */

/** Text that is valid HTML and is not escaped again. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Markup | undefined | false | readonly Markup[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Template tag that escapes every value except {@link Markup}, since file names and tool output can contain HTML.
 * Renders `undefined` and `false` as nothing.
 */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(texts.map((text, at) => text + toHtml(parts[at])).join(''));
}

function toHtml(part: Part): string {
  if (part === undefined || part === false) return '';
  if (part instanceof Markup) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return String(part).replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** Formats a number with fixed decimals, or as ∞. */
export function formatNumber(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '∞';
}

/** Formats a relative change as a signed percentage; – if there was nothing before. */
export function formatChange(before: number, after: number): string {
  if (before === 0) return '–';
  const share = (after / before - 1) * 100;
  return `${share >= 0 ? '+' : '−'}${Math.abs(share).toFixed(1)}%`;
}
