/** @module Replaces `transform-origin`, which librsvg ignores, by translations (CSS Transforms 1, section 4). */

import { type CssBudget, type Declaration, parseDeclarations, parseRules } from './css.ts';
import { applyEdits, type Edit, type Markup, type Range, type Tag } from './markup.ts';

/** An attribute or declaration: its whole range, and its text with another value. */
interface Property extends Range {
  readonly name: string;
  readonly value: string;
  readonly textFor: (value: string) => string;
  /** Unit of lengths, which attributes do not have. */
  readonly unit: '' | 'px';
}

type Sides = readonly [width: number, height: number];

/** Returns whether an element is a clip path in units of the element that it clips, to which its origin also refers. */
const isRelative = ({ name, attributes }: Tag): boolean =>
  name === 'clipPath' && attributes.some(({ value }) => value.trim() === 'objectBoundingBox');

/**
 * Rewrites the transforms of elements and rules that also have an origin. Does not rewrite origins that depend on the
 * bounding box of an element, or that another rule than the transform sets. Does not change an SVG with too much CSS.
 */
export function applyTransformOrigins(
  text: string,
  { tags, styleSheets }: Markup,
  budget: CssBudget,
): string {
  // Browsers do not transform the pattern of a context with the element that it fills.
  if (/context-(?:fill|stroke)/.test(text) && tags.some(({ name }) => name === 'pattern')) return text;
  const sides = viewBoxOf(tags);
  const sheets = styleSheets.map(({ start, end }) => ({ css: text.slice(start, end), start }));
  const isTransformed = sheets.some(({ css }) => css.includes('transform'));
  const rules = sheets.flatMap(({ css, start }) =>
    parseRules(css, budget).map(({ declarations }) => declarations.map((each) => propertyOf(each, start))),
  );
  const elements = tags.filter((tag) => !isRelative(tag)).map((tag) => propertiesOf(tag, text, budget));
  const edits = [
    ...(tags.some(isRelative) ? [] : rules).flatMap((properties) => editsFor(properties, sides, true)),
    ...elements.flatMap((properties) => editsFor(properties, sides, isTransformed)),
  ];
  return budget.tokens === 0 ? text : applyEdits(text, edits);
}

/** Returns the size that percentages refer to, if the document has a single `svg` element. */
function viewBoxOf(tags: readonly Tag[]): Sides | undefined {
  const [root, ...others] = tags.filter(({ name, kind }) => name === 'svg' && kind !== 'close');
  const box = others.length > 0 ? undefined : root?.attributes.find(({ name }) => name === 'viewBox')?.value;
  const [, , width, height] = (box?.trim().split(/[\s,]+/) ?? []).map(Number);
  return width && height ? [width, height] : undefined;
}

function propertyOf({ name, value, start, end }: Declaration, by: number): Property {
  return { name, value, start: start + by, end: end + by, textFor: (text) => `${name}: ${text}`, unit: 'px' };
}

/** Returns the attributes of an element, and the declarations of its style, which take precedence. */
function propertiesOf({ attributes }: Tag, text: string, budget: CssBudget): Property[] {
  const own = attributes.filter(({ name }) => name.startsWith('transform'));
  const origins = own.map(({ name, value, nameAt, start, end }): Property => {
    const [before, quote] = [text.slice(nameAt, start), text[end]];
    return { name, value, start: nameAt, end: end + 1, textFor: (other) => before + other + quote, unit: '' };
  });
  const style = attributes.findLast(({ name }) => name === 'style');
  const declarations = style?.value.includes('transform') ? parseDeclarations(style.value, budget) : [];
  return [...origins, ...declarations.map((each) => propertyOf(each, style?.start ?? 0))];
}

/** @param isTransformed whether a rule may set the transform, if none of the properties does */
function editsFor(properties: readonly Property[], sides: Sides | undefined, isTransformed: boolean): Edit[] {
  const find = (wanted: string) => properties.findLast(({ name }) => name === wanted);
  const [transform, origin] = [find('transform'), find('transform-origin')];
  const point = origin && !find('transform-box') && pointOf(origin.value, sides);
  if (!point || (!transform && isTransformed)) return [];
  const removed = properties.filter(({ name }) => name === 'transform-origin');
  const edits = removed.map(({ start, end }) => ({ start, end, text: '' }));
  if (!transform) return edits;
  const { start, end, value, textFor, unit } = transform;
  const by = (sign: number): string => `translate(${point.map((at) => `${sign * at}${unit}`).join(', ')})`;
  return [...edits, { start, end, text: textFor(`${by(1)} ${value} ${by(-1)}`) }];
}

/** Positions by keyword, in percent. */
const KEYWORDS: Readonly<Record<string, string>> = {
  ...{ left: '0%', top: '0%', center: '50%', right: '100%', bottom: '100%' },
};

/** Returns an origin in user units; undefined for relative values without a box, and for units other than px. */
function pointOf(value: string, sides: Sides | undefined): number[] | undefined {
  const words = value.replace('!important', '').trim().toLowerCase().split(/\s+/);
  const [first = 'center', second = 'center'] = words;
  const isSwapped = /^(?:top|bottom)$/.test(first) || /^(?:left|right)$/.test(second);
  const point = (isSwapped ? [second, first] : [first, second]).map((word, axis) => {
    const [, number, unit] = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(px|%)?$/.exec(KEYWORDS[word] ?? word) ?? [];
    const share = unit === '%' && Number(number) !== 0 ? (sides?.[axis] ?? Number.NaN) / 100 : 1;
    return Number(number) * share;
  });
  return point.some(Number.isNaN) ? undefined : point;
}
