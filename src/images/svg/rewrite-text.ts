/**
 * @module Rewrites the text of an SVG so that librsvg renders it like browsers. Resolves `var()` and new colour functions,
 * replaces `feDropShadow` before version 2.55 (Filter Effects 1, section 9.12) by other filters, and writes `WIDTH` and `HEIGHT` of
 * the root element in lower case.
 */
import {
  COLOUR_FUNCTIONS,
  type CssBudget,
  createCssBudget,
  createResolver,
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

/** The name of a size with a capital letter. A colon or a comment can follow. */
const CAPITALIZED_SIZE = /\b(?!width|height)(?:[Ww][Ii][Dd][Tt][Hh]|[Hh][Ee][Ii][Gg][Hh][Tt])\b/;

/** Rewriters in order of execution, and whether each can change a text. */
const REWRITERS: readonly {
  readonly applies: (text: string) => boolean;
  readonly rewrite: (text: string, markup: Markup, budget: CssBudget) => string;
}[] = [
  { applies: (text) => CAPITALIZED_SIZE.test(text), rewrite: lowerRootProperties },
  { applies: (text) => RESOLVED_FUNCTIONS.some((name) => text.includes(name)), rewrite: resolveCss },
  { applies: (text) => text.includes('feDropShadow'), rewrite: expandDropShadows },
];

/** Returns whether {@link rewriteText} can change a text. Takes up to 1 ms. */
export const canRewrite = (text: string): boolean => REWRITERS.some(({ applies }) => applies(text));

/** Rewrites the text of an SVG. Takes up to 5 ms per 1000 characters, and at most about 0.3 s. */
export function rewriteText(original: string): string {
  const budget = createCssBudget(original.length);
  let text = original;
  let markup = scanMarkup(text);
  for (const { applies, rewrite } of REWRITERS) {
    if (!applies(original)) continue;
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
 * Values that are used: one number, or two of `stdDeviation`. Browsers and librsvg use 2 instead of any other value, such as a
 * percentage. A character reference can stand for anything.
 */
const NUMBER = '[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:e[+-]?\\d+)?';
const ONE = new RegExp(`&|^\\s*${NUMBER}\\s*$`, 'i');
const ONE_OR_TWO = new RegExp(`&|^\\s*${NUMBER}(?:(?:\\s*,\\s*|\\s+)${NUMBER})?\\s*$`, 'i');

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
