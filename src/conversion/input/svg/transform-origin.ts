/** @module Replaces `transform-origin`, which librsvg ignores, by translations (CSS Transforms 1, section 4). */

import { isTurnOver, waitForTurn } from '../../turns.ts';
import { type CssBudget, createCssBudget, type Declaration, parseDeclarations, parseRules } from './css.ts';
import { type Attribute, applyEdits, type Edit, type Markup, type Tag } from './markup.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

/** An origin in user units. */
interface Origin {
  readonly x: number;
  readonly y: number;
}

/**
 * Rewrites the transforms of elements and rules that also have an origin. Does not rewrite origins that depend on the
 * bounding box of an element, or that another rule than the transform sets. Does not change an SVG with too much CSS.
 * Yields to the event loop.
 */
export async function applyTransformOrigins(text: string, { tags, styleSheets }: Markup): Promise<string> {
  const box = viewBoxOf(tags);
  const budget = createCssBudget();
  const sheetEdits: Edit[] = [];
  for (const { start, end } of styleSheets) {
    if (isTurnOver()) await waitForTurn();
    for (const { declarations } of parseRules(text.slice(start, end), budget))
      sheetEdits.push(...moveEdits(blockEdits(declarations, box), start));
  }
  const isTransformedBySheet = styleSheets.some(({ start, end }) =>
    text.slice(start, end).includes('transform'),
  );
  const tagEdits: Edit[] = [];
  for (const tag of tags) {
    if (isTurnOver()) await waitForTurn();
    tagEdits.push(...elementEdits(tag, box, isTransformedBySheet, budget));
  }
  return budget.tokens === 0 ? text : applyEdits(text, [...sheetEdits, ...tagEdits]);
}

/** Returns the size that percentages refer to, if the document has a single `svg` element. */
function viewBoxOf(tags: readonly Tag[]): Size | undefined {
  const roots = tags.filter(({ name, kind }) => name === 'svg' && kind !== 'close');
  const value =
    roots.length === 1 ? roots[0]?.attributes.find(({ name }) => name === 'viewBox')?.value : undefined;
  const [, , width, height] =
    value
      ?.trim()
      .split(/[\s,]+/)
      .map(Number) ?? [];
  return width && height ? { width, height } : undefined;
}

const moveEdits = (edits: readonly Edit[], by: number): Edit[] =>
  edits.map(({ start, end, text }) => ({ start: start + by, end: end + by, text }));

const find = <T extends { readonly name: string }>(items: readonly T[], name: string): T | undefined =>
  items.findLast((item) => item.name === name);

/** Edits a block of declarations that has both a transform and its origin. */
function blockEdits(declarations: readonly Declaration[], box: Size | undefined): Edit[] {
  const transform = find(declarations, 'transform');
  const origin = find(declarations, 'transform-origin');
  if (!transform || !origin || find(declarations, 'transform-box')) return [];
  const parsed = parseOrigin(origin.value, box);
  if (!parsed) return [];
  return [
    { ...rangeOf(transform), text: `transform: ${around(parsed, transform.value, 'px')}` },
    { ...rangeOf(origin), text: '' },
  ];
}

/** Edits an element whose origin is an attribute, or whose transform is one. */
function elementEdits(
  { attributes }: Tag,
  box: Size | undefined,
  isTransformedBySheet: boolean,
  budget: CssBudget,
): Edit[] {
  const style = find(attributes, 'style');
  const declarations = style ? parseDeclarations(style.value, budget) : [];
  const inStyle = find(declarations, 'transform-origin');
  const attribute = find(attributes, 'transform-origin');
  const value = inStyle?.value ?? attribute?.value;
  if (value === undefined || attributes.some(({ name }) => name === 'transform-box')) return [];
  if (find(declarations, 'transform-box')) return [];
  const origin = parseOrigin(value, box);
  const styleTransform = find(declarations, 'transform');
  const transform = find(attributes, 'transform');
  if (!origin || (!styleTransform && !transform && isTransformedBySheet)) return [];
  const removed: Edit[] = [
    ...(inStyle && style ? moveEdits([{ ...rangeOf(inStyle), text: '' }], style.start) : []),
    ...(attribute ? [{ ...removalOf(attribute), text: '' }] : []),
  ];
  if (styleTransform && style) {
    const text = `transform: ${around(origin, styleTransform.value, 'px')}`;
    return [...removed, ...moveEdits([{ ...rangeOf(styleTransform), text }], style.start)];
  }
  return transform
    ? [...removed, { ...rangeOf(transform), text: around(origin, transform.value, '') }]
    : removed;
}

const rangeOf = ({ start, end }: { start: number; end: number }) => ({ start, end });

/** The range of the whole attribute `transform-origin="…"`. */
const removalOf = ({ nameAt, end }: Attribute) => ({ start: nameAt, end: end + 1 });

function around({ x, y }: Origin, transform: string, unit: '' | 'px'): string {
  return `translate(${x}${unit}, ${y}${unit}) ${transform} translate(${-x}${unit}, ${-y}${unit})`;
}

/** Fractions of the box by keyword. */
const KEYWORDS: Readonly<Record<string, { readonly axis?: 'x' | 'y'; readonly part: number }>> = {
  left: { axis: 'x', part: 0 },
  right: { axis: 'x', part: 1 },
  top: { axis: 'y', part: 0 },
  bottom: { axis: 'y', part: 1 },
  center: { part: 0.5 },
};

/** Returns undefined for relative values without a box, and for units other than px. */
function parseOrigin(value: string, box: Size | undefined): Origin | undefined {
  const words = value.replace('!important', '').trim().toLowerCase().split(/\s+/);
  const isSwapped = KEYWORDS[words[0] ?? '']?.axis === 'y' || KEYWORDS[words[1] ?? '']?.axis === 'x';
  const [first = 'center', second = 'center'] = isSwapped ? [words[1], words[0]] : words;
  const x = lengthOf(first, box?.width);
  const y = lengthOf(second, box?.height);
  return x === undefined || y === undefined ? undefined : { x, y };
}

function lengthOf(word: string, side: number | undefined): number | undefined {
  const [, number, unit] = /^([+-]?(?:\d+\.?\d*|\.\d+))(px|%)?$/.exec(word) ?? [];
  if (number !== undefined && unit !== '%') return Number(number);
  const part = number === undefined ? KEYWORDS[word]?.part : Number(number) / 100;
  return part === undefined ? undefined : part === 0 ? 0 : side === undefined ? undefined : part * side;
}
