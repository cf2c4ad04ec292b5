/**
 * @module Rewrites the text of an SVG so that librsvg renders it like browsers. Resolves `var()` and new colour functions,
 * replaces `feDropShadow` before version 2.55 (Filter Effects 1, section 9.12) by other filters, and `transform-origin` by
 * translations (CSS Transforms 1, section 4), and writes `WIDTH` and `HEIGHT` of the root element in lower case.
 */
import type { Size } from '../image-info.ts';
import {
  COLOUR_FUNCTIONS,
  type CssBudget,
  createCssBudget,
  createResolver,
  type Declaration,
  parseDeclarations,
  parseRules,
  type Rule,
  type Variables,
} from './css.ts';
import {
  type Attribute,
  applyEdits,
  type Edit,
  type Markup,
  parseViewBox,
  type Range,
  scanMarkup,
  type Tag,
} from './markup.ts';

/** Functions that {@link resolveCss} can resolve. */
const RESOLVED_FUNCTIONS = ['var', ...COLOUR_FUNCTIONS].map((name) => `${name}(`);

/** Maximum growth of the text in characters. */
const MAX_GROWTH = 256 * 1024;
/** Selectors of the root element, from which all elements inherit. */
const ROOT_SELECTORS = [':root', 'svg', '*'];

/**
 * Replaces the functions in attributes and style sheets by their values. Resolves only custom properties that are set
 * once, on the root element. References to other properties are not changed.
 */
function resolveCss(text: string, markup: Markup, budget: CssBudget): string {
  const resolve = createResolver(collectVariables(text, markup, budget), budget);
  /** Resolved values, since many elements have the same colour. */
  const known = new Map<string, string>();
  let maxGrowth = MAX_GROWTH;
  const replace = ({ start, end }: Range, isAllowed: (value: string) => boolean): Edit[] => {
    const value = text.slice(start, end);
    if (!RESOLVED_FUNCTIONS.some((name) => value.includes(name))) return [];
    const resolved = known.get(value) ?? resolve(value);
    known.set(value, resolved);
    const growth = resolved.length - value.length;
    if (resolved === value || growth > maxGrowth || !isAllowed(resolved)) return [];
    maxGrowth -= growth;
    return [{ start, end, text: resolved }];
  };
  const edits: Edit[] = [];
  for (const { attributes } of markup.tags) {
    for (const attribute of attributes) edits.push(...replace(attribute, (value) => !/[<&"']/.test(value)));
  }
  for (const sheet of markup.styleSheets) {
    edits.push(...replace(sheet, (value) => !/[<&]/.test(value)));
  }
  return applyEdits(text, edits);
}

function collectVariables(text: string, { tags, styleSheets }: Markup, budget: CssBudget): Variables {
  const rules: Rule[] = [];
  for (const { start, end } of styleSheets) {
    for (const rule of parseRules(text.slice(start, end), budget)) rules.push(rule);
  }
  for (const [at, { attributes }] of tags.entries()) {
    for (const { name, value } of attributes) {
      if (name !== 'style' || !value.includes('--')) continue;
      rules.push({ selector: at === 0 ? ':root' : '', declarations: parseDeclarations(value, budget) });
    }
  }
  const variables = new Map<string, string | undefined>();
  for (const { selector, declarations } of rules) {
    const isRoot = ROOT_SELECTORS.includes(selector);
    for (const { name, value } of declarations) {
      if (!name.startsWith('--')) continue;
      const known = variables.has(name) && variables.get(name) !== value;
      variables.set(name, isRoot && !known ? value : undefined);
    }
  }
  return variables;
}

/** Writes the property names of the root element's `style` in lower case (CSS 2.2, section 4.1.3). librsvg finds no others. */
function lowerRootProperties(text: string, { tags: [root] }: Markup, budget: CssBudget): string {
  const { value = '', start = 0 } = root?.attributes.find(({ name }) => name === 'style') ?? {};
  const names = parseDeclarations(value, budget).filter(({ name }) => !name.startsWith('--'));
  const edits = names.map(({ name, start: at }) => {
    return { start: start + at, end: start + at + name.length, text: name.toLowerCase() };
  });
  return applyEdits(text, edits);
}

/** Rewriters in order of execution. Each applies to texts that contain one of its markers. */
const REWRITERS: readonly {
  readonly markers: readonly string[];
  readonly rewrite: (text: string, markup: Markup, budget: CssBudget) => string;
}[] = [
  { markers: ['WIDTH', 'HEIGHT', 'Width:', 'Height:'], rewrite: lowerRootProperties },
  { markers: RESOLVED_FUNCTIONS, rewrite: resolveCss },
  { markers: ['transform-origin'], rewrite: applyTransformOrigins },
  { markers: ['feDropShadow'], rewrite: expandDropShadows },
];

/** Parts of texts that {@link rewriteText} can change. */
export const MARKERS = REWRITERS.flatMap(({ markers }) => markers);

/** Rewrites the text of an SVG. Takes up to 5 ms per 1000 characters, and at most about 0.3 s. */
export function rewriteText(original: string): string {
  const budget = createCssBudget(original.length);
  let text = original;
  let markup = scanMarkup(text);
  for (const { markers, rewrite } of REWRITERS) {
    if (!markers.some((marker) => original.includes(marker))) continue;
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

/** Replaces the drop shadows, unless there are too many. */
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
 * A number, or two of `stdDeviation`. Browsers and librsvg use 2 instead of any other value, such as a percentage. A character
 * reference can stand for anything.
 */
const NUMBER = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i;
const isNumber = ({ name, value }: Attribute): boolean =>
  value.includes('&') ||
  (name === 'stdDeviation'
    ? value
        .trim()
        .split(/\s*,\s*|\s+/)
        .every((part, at) => at < 2 && NUMBER.test(part))
    : NUMBER.test(value));

/**
 * Returns the markup of the filters that replace a drop shadow.
 *
 * @param id makes the names of results unique
 */
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
  const number = (key: string): string => {
    const attribute = find(key);
    return attribute && isNumber(attribute) ? source(attribute) : ` ${key}="2"`;
  };
  return [
    part('feOffset', `${source(find('in'))} result="${input}"`), // gives the input a name, also if it has none
    part('feGaussianBlur', ` in="${input}"${number('stdDeviation')}`),
    part('feOffset', `${number('dx')}${number('dy')} result="${shadow}"`),
    part('feFlood', flood.join('')),
    part('feComposite', ` operator="in" in2="${shadow}"`),
    `<${prefix}feMerge${region}${result}><${prefix}feMergeNode/><${prefix}feMergeNode in="${input}"/></${prefix}feMerge>`,
  ].join('');
}

/** An attribute or declaration: its whole range, and the offset of its value. */
interface Property extends Range {
  readonly name: string;
  readonly value: string;
  readonly valueAt: number;
  /** Unit of lengths, which attributes do not have. */
  readonly unit: '' | 'px';
}

/** Returns whether an element is a clip path in units of the element that it clips, to which its origin also refers. */
const isRelative = ({ name, attributes }: Tag): boolean =>
  name === 'clipPath' && attributes.some(({ value }) => value.trim() === 'objectBoundingBox');

/**
 * Rewrites the transforms of elements and rules that also have an origin. Does not rewrite origins that depend on the
 * bounding box of an element, or that another rule than the transform sets. Does not change an SVG with too much CSS.
 */
function applyTransformOrigins(text: string, { tags, styleSheets }: Markup, budget: CssBudget): string {
  // Browsers do not transform the pattern of a context with the element that it fills.
  if (/context-(?:fill|stroke)/.test(text) && tags.some(({ name }) => name === 'pattern')) return text;
  // Percentages refer to the view box, if the document has a single `svg` element.
  const [root, ...others] = tags.filter(({ name, kind }) => name === 'svg' && kind !== 'close');
  const box = others.length > 0 ? undefined : root?.attributes.find(({ name }) => name === 'viewBox');
  const size = parseViewBox(box?.value);
  const isTransformed = styleSheets.some(({ start, end }) => text.slice(start, end).includes('transform'));
  const rules = styleSheets.flatMap(({ start, end }) =>
    parseRules(text.slice(start, end), budget).map((rule) => placed(rule.declarations, start)),
  );
  const elements = tags.filter((tag) => !isRelative(tag)).map((tag) => propertiesOf(tag, budget));
  const edits = [
    ...(tags.some(isRelative) ? [] : rules).flatMap((properties) => editsFor(properties, size, true)),
    ...elements.flatMap((properties) => editsFor(properties, size, isTransformed)),
  ];
  return budget.tokens === 0 ? text : applyEdits(text, edits);
}

function placed(declarations: readonly Declaration[], by: number): Property[] {
  return declarations.map(({ name, value, start, end }) => {
    return { name, value, start: start + by, end: end + by, valueAt: end + by - value.length, unit: 'px' };
  });
}

/** Returns the attributes of an element, and the declarations of its style, which take precedence. */
function propertiesOf({ attributes }: Tag, budget: CssBudget): Property[] {
  const own = attributes.filter(({ name }) => name.startsWith('transform'));
  const { value = '', start = 0 } = attributes.findLast(({ name }) => name === 'style') ?? {};
  return [
    ...own.map((one) => ({
      ...one,
      start: one.nameAt,
      end: one.end + 1,
      valueAt: one.start,
      unit: '' as const,
    })),
    ...placed(value.includes('transform') ? parseDeclarations(value, budget) : [], start),
  ];
}

/** @param isTransformed whether a rule may set the transform, if none of the properties does */
function editsFor(properties: readonly Property[], size: Size | undefined, isTransformed: boolean): Edit[] {
  const find = (wanted: string) => properties.findLast(({ name }) => name === wanted);
  const [transform, origin] = [find('transform'), find('transform-origin')];
  const point = origin && !find('transform-box') && pointOf(origin.value, size);
  if (!point || (!transform && isTransformed)) return [];
  const origins = properties.filter(({ name }) => name === 'transform-origin');
  const removals = origins.map(({ start, end }) => ({ start, end, text: '' }));
  if (!transform) return removals;
  const { value, valueAt, unit } = transform;
  const by = (sign: number): string => `translate(${point.map((at) => `${sign * at}${unit}`).join(', ')})`;
  return [...removals, { start: valueAt, end: valueAt + value.length, text: `${by(1)} ${value} ${by(-1)}` }];
}

const KEYWORDS: Readonly<Record<string, string>> = {
  ...{ left: '0%', top: '0%', center: '50%', right: '100%', bottom: '100%' },
};
const POSITION = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(px|%)?$/;

/** Returns an origin in user units; undefined for relative values without a box, and for units other than px. */
function pointOf(value: string, size: Size | undefined): number[] | undefined {
  const words = value.replace('!important', '').trim().toLowerCase().split(/\s+/);
  const [first = 'center', second = 'center'] = words;
  const isSwapped = /^(?:top|bottom)$/.test(first) || /^(?:left|right)$/.test(second);
  const point = (isSwapped ? [second, first] : [first, second]).map((word, axis) => {
    const [, number, unit] = POSITION.exec(KEYWORDS[word] ?? word) ?? [];
    const side = (axis === 0 ? size?.width : size?.height) ?? Number.NaN;
    return unit === '%' && Number(number) !== 0 ? (Number(number) * side) / 100 : Number(number);
  });
  return point.some(Number.isNaN) ? undefined : point;
}
