/**
 * @module Rewrites the text of an SVG so that librsvg renders it like browsers. Writes out style
 * sheets, resolves `var()`, `light-dark()` and new colour functions, replaces `feDropShadow` before
 * version 2.55 (Filter Effects 1, section 9.12) by other filters, writes texts in the letters of
 * `text-transform`, enlarges tiny units, hides warnings of draw.io, and writes `WIDTH` and `HEIGHT`
 * of the root element in lower case.
 */
import { isDeepStrictEqual } from 'node:util';
import { escapeXml } from '../../base/text.ts';
import type { Size } from '../image-info.ts';
import { matchesMedia } from './conditions.ts';
import {
  type CssBudget,
  createCssBudget,
  createResolver,
  type Declaration,
  parseDeclarations,
  parseRules,
  tokensOf,
  type Variables,
} from './css.ts';
import { type RewriterName, rewrittenBy } from './features.ts';
import { writeOutSheets } from './sheets.ts';
import { sizeOf } from './svg-info.ts';
import {
  type Attribute,
  applyEdits,
  decodeEntities,
  type Edit,
  type Markup,
  type Range,
  scanMarkup,
  type Tag,
} from './svg-markup.ts';
import { transformTexts } from './text-transform.ts';

const RESOLVED_FUNCTIONS = rewrittenBy('functions');

/** Maximum growth of the text in characters. */
const MAX_GROWTH = 256 * 1024;
/**
 * Selectors of the root element, from which all elements inherit, with what {@link writeOutSheets}
 * adds for their precedence.
 */
const ROOT_SELECTOR = /^(\*|svg)?(:root)?((?::not\(#_\))*)$/;

/** Returns the precedence of a selector of the root element; undefined for others. */
function rootPrecedence(selector: string): number | undefined {
  const [whole, type, pseudo, added = ''] = ROOT_SELECTOR.exec(selector) ?? [];
  return whole ? added.length * 2 + (pseudo ? 2 : 0) + (type === 'svg' ? 1 : 0) : undefined;
}
/** Precedence of the root element's `style`. */
const STYLE_PRECEDENCE = Number.MAX_VALUE;
const IMPORTANT = /!\s*important$/i;

/**
 * Replaces the functions in attributes and style sheets by their values. Resolves only custom
 * properties that are set once, on the root element. References to other properties are not
 * changed.
 */
function resolveCss(text: string, markup: Markup, budget: CssBudget): string {
  const resolve = createResolver(collectVariables(text, markup, budget), budget);
  /** Resolved values, since many elements have the same colour. */
  const known = new Map<string, string>();
  let maxGrowth = MAX_GROWTH;
  const replace = ({ start, end }: Range, forbidden: RegExp): Edit[] => {
    const value = text.slice(start, end);
    if (!RESOLVED_FUNCTIONS.test(value)) return [];
    const resolved = known.get(value) ?? resolve(value);
    known.set(value, resolved);
    const growth = resolved.length - value.length;
    if (resolved === value || growth > maxGrowth || forbidden.test(resolved)) return [];
    maxGrowth -= growth;
    return [{ start, end, text: resolved }];
  };
  const attributes = markup.tags.flatMap((tag) => tag.attributes);
  return applyEdits(text, [
    ...attributes.flatMap((attribute) => replace(attribute, /[<&"']/)),
    ...markup.styleSheets.flatMap((sheet) => replace(sheet, /[<&]/)),
  ]);
}

function collectVariables(text: string, { tags, styleSheets }: Markup, budget: CssBudget): Variables {
  const variables = new Map<string, string | undefined>();
  const precedences = new Map<string, number>();
  /** @param precedence undefined if other elements than the root element have the values */
  const add = (declarations: readonly Declaration[], precedence: number | undefined): void => {
    for (const { name, value } of declarations) {
      if (!name.startsWith('--')) continue;
      const isUnknown = variables.has(name) && variables.get(name) === undefined;
      if (isUnknown || precedence === undefined || IMPORTANT.test(value)) variables.set(name, undefined);
      else if (precedence >= (precedences.get(name) ?? 0)) {
        variables.set(name, value);
        precedences.set(name, precedence);
      }
    }
  };
  for (const { start, end } of styleSheets) {
    for (const { selector, declarations } of parseRules(text.slice(start, end), budget))
      for (const one of selector.split(',')) add(declarations, rootPrecedence(one.trim()));
  }
  for (const [at, { attributes }] of tags.entries()) {
    for (const { name, value } of attributes) {
      if (name !== 'style' || !value.includes('--')) continue;
      add(parseDeclarations(value, budget), at === 0 ? STYLE_PRECEDENCE : undefined);
    }
  }
  return variables;
}

/** Writes properties of the root's `style` in lower case, as librsvg needs (CSS 2.2, 4.1.3). */
function lowerRootProperties(text: string, { tags: [root] }: Markup, budget: CssBudget): string {
  const { value = '', start = 0 } = root?.attributes.find(({ name }) => name === 'style') ?? {};
  const names = parseDeclarations(value, budget).filter(({ name }) => !name.startsWith('--'));
  const edits = names.map(({ name, start: at }) => {
    return { start: start + at, end: start + at + name.length, text: name.toLowerCase() };
  });
  return applyEdits(text, edits);
}

/** Size of a drawing whose size is unknown, in CSS pixels (CSS Images 3, section 4.3). */
const DEFAULT_SIZE: Size = { width: 300, height: 150 };

/** Writes out the style sheets, and empties those for other media. */
function rewriteSheets(text: string, { tags, styleSheets }: Markup, budget: CssBudget): string {
  const [root] = tags;
  const tag = text.slice(root?.start, root?.end);
  const size = sizeOf(tag, budget) ?? DEFAULT_SIZE;
  const sheets = styleSheets.map(({ start, end, isCdata, attributes }) => {
    const content = text.slice(start, end);
    const media = attributes.find(({ name }) => name === 'media');
    if (media && !matchesMedia(tokensOf(decodeEntities(media.value), budget).slice(0, -1), size)) return '';
    return isCdata ? content : decodeEntities(content);
  });
  const hasText = tags.some(({ name }) => name === 'text');
  const written = writeOutSheets(sheets, { size, hasText }, budget);
  const edits = styleSheets.flatMap(({ start, end, isCdata }, at): Edit[] => {
    const sheet = written[at] ?? '';
    if (sheet !== '' && sheet === sheets[at]) return [];
    return [{ start, end, text: isCdata ? sheet : escapeXml(sheet) }];
  });
  return applyEdits(text, edits);
}

const ROOT_LENGTH = /(?<![\w#.-])([+-]?(?:\d+\.?\d*|\.\d+))rem\b/g;
/** Attribute of SVG 1.1 with what a viewer must support to show an element. */
const REQUIRED = 'requiredFeatures';
/** Initial font size of browsers in pixels. */
const INITIAL_FONT_SIZE = 16;

/** Converts lengths in root font sizes to pixels, if that size is in pixels or font sizes. */
function resolveRootLengths(text: string, { tags, styleSheets }: Markup, budget: CssBudget): string {
  const [root] = tags;
  const sizes = styleSheets.flatMap(({ start, end }) =>
    parseRules(text.slice(start, end), budget)
      .filter(({ selector }) => selector === 'svg' || selector === ':root')
      .flatMap(({ declarations }) => declarations),
  );
  for (const { name, value } of root?.attributes ?? []) {
    if (name === 'font-size') sizes.unshift({ name, value, start: 0 });
    if (name === 'style') sizes.push(...parseDeclarations(value, budget));
  }
  const size = sizes.findLast(({ name }) => name === 'font-size')?.value ?? `${INITIAL_FONT_SIZE}px`;
  const [, number, unit] = /^([\d.]+)(px|rem|)$/.exec(size) ?? [];
  if (number === undefined) return text;
  const pixels = Number(number) * (unit === 'rem' ? INITIAL_FONT_SIZE : 1);
  const ranges: readonly Range[] = [...tags.flatMap(({ attributes }) => attributes), ...styleSheets];
  const edits = ranges.map(({ start, end }): Edit => {
    const resolved = (_: string, length: string): string =>
      `${Number((Number(length) * pixels).toFixed(4))}px`;
    return { start, end, text: text.slice(start, end).replace(ROOT_LENGTH, resolved) };
  });
  return applyEdits(text, edits);
}

/**
 * Multiplies a tiny view box of the root element and everything in it by a power of ten: librsvg
 * clips to a view box in multiples of 1/256, the numbers of cairo. Percentages, selectors of
 * children, and a size that depends on the view box would change. The bounding boxes of gradients,
 * masks and filters would stay 0, and fonts have a smallest size.
 */
function enlargeUnits(text: string, { tags, styleSheets }: Markup, budget: CssBudget): string {
  const [root, ...others] = tags;
  const box = root?.attributes.find(({ name }) => name === 'viewBox');
  const isBound = others.some(
    ({ name: element, attributes }) =>
      ['text', 'image'].includes(element) ||
      attributes.some(({ name, value }) => name !== 'offset' && /%|url\(/.test(value)),
  );
  const last = others.at(-1);
  if (!root || !box || last?.kind !== 'close' || isBound || styleSheets.length > 0) return text;
  const numbers = box.value
    .trim()
    .split(/[\s,]+/)
    .map(Number);
  const scale = 10 ** Math.ceil(-Math.log10(Math.min(...numbers.slice(2))));
  if (!(scale > 1 && scale < Number.POSITIVE_INFINITY)) return text;
  const sizes = [box.value, '0 0 1 1'].map((value) =>
    sizeOf(applyEdits(text.slice(0, root.end), [{ ...box, text: value }]).slice(root.start), budget),
  );
  if (!sizes[0] || !isDeepStrictEqual(sizes[0], sizes[1])) return text;
  const name = root.prefix ? `${root.prefix}:g` : 'g';
  return applyEdits(text, [
    { ...box, text: numbers.map((number) => number * scale).join(' ') },
    { start: root.end, end: root.end, text: `<${name} transform="scale(${scale})">` },
    { start: last.start, end: last.start, text: `</${name}>` },
  ]);
}

/**
 * Removes the condition of empty groups. draw.io puts one before a text that says that the drawing
 * cannot be shown. Browsers ignore the condition, which SVG 2 no longer has, so that the group
 * takes the place of the text.
 */
function hideWarnings(text: string, { tags }: Markup): string {
  const edits = tags.flatMap(({ name, kind, attributes }): Edit[] => {
    const condition = attributes.find((attribute) => attribute.name === REQUIRED);
    if (name !== 'g' || kind !== 'empty' || !condition) return [];
    return [{ start: text.lastIndexOf(REQUIRED, condition.start), end: condition.end + 1, text: '' }];
  });
  return applyEdits(text, edits);
}

/** Rewriters in order of execution, and the pattern of the text that each can change. */
const REWRITERS = Object.entries({
  root: lowerRootProperties,
  sheets: rewriteSheets,
  functions: resolveCss,
  lengths: resolveRootLengths,
  shadows: expandDropShadows,
  texts: transformTexts,
  units: enlargeUnits,
  warnings: hideWarnings,
} satisfies Record<RewriterName, (text: string, markup: Markup, budget: CssBudget) => string>).map(
  ([name, rewrite]) => ({ rewrite, applies: rewrittenBy(name as RewriterName) }),
);

/** Rewrites the text of an SVG. Takes up to 5 ms per 1000 characters, and at most about 0.5 s. */
export function rewriteText(original: string): string {
  const budget = createCssBudget(original.length);
  let text = original;
  let markup = scanMarkup(text);
  for (const { applies, rewrite } of REWRITERS) {
    if (!applies.test(original)) continue;
    const rewritten = rewrite(text, markup, budget);
    if (rewritten !== text) markup = scanMarkup(rewritten);
    text = rewritten;
  }
  return text;
}

/** Attributes of the filter region, which all replacement filters get. */
const REGION = ['x', 'y', 'width', 'height'];
/** Attributes that feFlood does not get. */
const NOT_FLOOD = [...REGION, 'in', 'dx', 'dy', 'stdDeviation', 'result', 'id'];

/** Maximum number of drop shadows to replace. The replacement is ten times as long. */
const MAX_SHADOWS = 500;
/** Maximum number of tags inside a drop shadow, such as animations. */
const MAX_CHILDREN = 20;

function expandDropShadows(text: string, { tags }: Markup): string {
  if (tags.filter(({ name }) => name === 'feDropShadow').length > MAX_SHADOWS) return text;
  const edits = tags.flatMap((tag, at): Edit[] => {
    if (tag.name !== 'feDropShadow' || tag.kind === 'close') return [];
    const closing =
      tag.kind === 'open'
        ? tags.slice(at, at + MAX_CHILDREN).find(({ name, kind }) => name === tag.name && kind === 'close')
        : tag;
    return closing ? [{ start: tag.start, end: closing.end, text: partsOf(text, tag, at) }] : [];
  });
  return applyEdits(text, edits);
}

/**
 * Values that are used: one number, or two of `stdDeviation`. Browsers and librsvg use 2 instead of
 * any other value, such as a percentage. A character reference can stand for anything.
 */
const NUMBER = '[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:e[+-]?\\d+)?';
const ONE = new RegExp(`&|^\\s*${NUMBER}\\s*$`, 'i');
const ONE_OR_TWO = new RegExp(`&|^\\s*${NUMBER}(?:(?:\\s*,\\s*|\\s+)${NUMBER})?\\s*$`, 'i');

/** Returns the filters that replace a drop shadow. `id` makes the names of results unique. */
function partsOf(text: string, { attributes, start, name }: Tag, id: number): string {
  const prefix = text.slice(start + 1, text.indexOf(name, start)); // namespace prefix
  const source = (attribute: Attribute | undefined, as = attribute?.name): string =>
    attribute ? ` ${as}=${text.slice(attribute.start - 1, attribute.end + 1)}` : '';
  const find = (key: string): Attribute | undefined => attributes.find((attribute) => attribute.name === key);
  const region = REGION.map((side) => source(find(side))).join('');
  const flood = attributes
    .filter((attribute) => !NOT_FLOOD.includes(attribute.name))
    .map((one) => source(one));
  const part = (kind: string, rest: string): string => `<${prefix}${kind}${region}${rest}/>`;
  const [input, shadow, result] = [`shadow-of-${id}`, `shadow-${id}`, source(find('result'))];
  const number = (key: string, valid = ONE): string =>
    valid.test(find(key)?.value ?? '') ? source(find(key)) : ` ${key}="2"`;
  return [
    part('feOffset', `${source(find('in'))} result="${input}"`), // gives the input a name, also if it has none
    part('feGaussianBlur', ` in="${input}"${number('stdDeviation', ONE_OR_TWO)}`),
    part('feOffset', `${number('dx')}${number('dy')} result="${shadow}"`),
    part('feFlood', flood.join('')),
    part('feComposite', ` operator="in" in2="${shadow}"`),
    `<${prefix}feMerge${region}${result}><${prefix}feMergeNode/><${prefix}feMergeNode in="${input}"/></${prefix}feMerge>`,
  ].join('');
}
