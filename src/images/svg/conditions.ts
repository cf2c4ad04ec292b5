/**
 * @module Evaluates media queries (Media Queries 4) and conditions of `@supports` (CSS Conditional
 * Rules 3) for a picture: a light screen of the size of the drawing, rendered by librsvg after the
 * rewriting.
 */
import type { Size } from '../image-info.ts';
import { type CSSToken, closingOf, splitAt, TokenType, textOf, withoutBlanks } from './css.ts';
import { COLOUR_FUNCTIONS } from './features.ts';
import { ABSOLUTE_UNITS } from './svg-size.ts';

/** Unknown is undefined, and makes a query false, but not its parts: `not` of it is unknown. */
type Truth = boolean | undefined;
/** Evaluates the content of parentheses, or of a function with a name. */
type Leaf = (content: readonly CSSToken[], name: string) => Truth;

const wordOf = (token: CSSToken | undefined): string =>
  token?.[0] === TokenType.Ident ? token[4].value.toLowerCase() : '';

/** Maximum depth of parentheses. */
const MAX_DEPTH = 16;

/** Evaluates `(a) and (b)`, `(a) or (b)`, `not (a)` and nested ones, without white space. */
function evaluate(tokens: readonly CSSToken[], leaf: Leaf, depth = 0): Truth {
  if (depth === MAX_DEPTH || tokens.length === 0) return undefined;
  if (wordOf(tokens[0]) === 'not') {
    const inner = evaluate(tokens.slice(1), leaf, depth + 1);
    return inner === undefined ? undefined : !inner;
  }
  const words = new Set<string>();
  const values: Truth[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] as CSSToken;
    if (token[0] === TokenType.OpenParen || token[0] === TokenType.Function) {
      const end = closingOf(tokens, at);
      const content = tokens.slice(at + 1, end);
      const name = token[0] === TokenType.Function ? token[4].value.toLowerCase() : '';
      const isNested = !name && (content[0]?.[0] === TokenType.OpenParen || wordOf(content[0]) === 'not');
      values.push(isNested ? evaluate(content, leaf, depth + 1) : leaf(content, name));
      at = end;
    } else words.add(wordOf(token));
  }
  const decisive = words.has('or');
  if (words.size > 1 || !['and', 'or', undefined].includes([...words][0])) return undefined;
  if (values.includes(decisive)) return decisive;
  return values.includes(undefined) ? undefined : !decisive;
}

/**
 * Media features with words, as Chromium reports them to an SVG that a page shows as a picture, if
 * its user has no preferences.
 */
const WORDS: Readonly<Record<string, string>> = {
  'prefers-color-scheme': 'light',
  'prefers-reduced-motion': 'no-preference',
  'prefers-reduced-transparency': 'no-preference',
  'prefers-reduced-data': 'no-preference',
  'prefers-contrast': 'no-preference',
  'forced-colors': 'none',
  'inverted-colors': 'none',
  'color-gamut': 'srgb',
  'dynamic-range': 'standard',
  'display-mode': 'browser',
  hover: 'none',
  'any-hover': 'none',
  pointer: 'none',
  'any-pointer': 'none',
  update: 'fast',
  scripting: 'none',
  'overflow-block': 'scroll',
  'overflow-inline': 'scroll',
};
/** Words that are false without a value. */
const OFF = ['none', 'no-preference'];

/** Pixels, or dots per pixel, of each unit. A `rem` has the initial font size. */
const UNITS: Readonly<Record<string, number>> = {
  ...ABSOLUTE_UNITS,
  q: 96 / 101.6,
  em: 16,
  rem: 16,
  ex: 8,
  ch: 8,
  dppx: 1,
  x: 1,
  dpi: 1 / 96,
  dpcm: 2.54 / 96,
};
const NUMBER = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([a-z]*)(?:\/(\d+\.?\d*))?$/;

/** Returns a length in pixels, a resolution in dots per pixel, or a ratio; or else NaN. */
function numberOf(text: string): number {
  const [, number, unit = '', divisor = '1'] = NUMBER.exec(text) ?? [];
  return (Number(number) * (UNITS[unit] ?? Number.NaN)) / Number(divisor);
}

const COMPARISONS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '=': (a, b) => a === b,
};
const MIRRORED: Readonly<Record<string, string>> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '=': '=' };
const BOUNDS: Readonly<Record<string, string>> = { min: '>=', max: '<=' };
/** `min-width:1px`, and `width>=1px` or `1px<width<2px`. */
const PLAIN = /^(-webkit-)?(?:(min|max)-)?([a-z-]+):(.+)$/;
const RANGE = /^([^<>=]+)([<>]=?|=)([^<>=]+)(?:([<>]=?|=)([^<>=]+))?$/;

/** Creates the function that evaluates a media feature on a light screen of this size. */
function createFeatures({ width, height }: Size): Leaf {
  const numbers = new Map(
    Object.entries({
      width,
      height,
      'aspect-ratio': width / height,
      color: 0,
      monochrome: 0,
      grid: 0,
      'color-index': 0,
      resolution: 1,
      '-webkit-device-pixel-ratio': 1,
    }),
  );
  const words = new Map([
    ...Object.entries(WORDS),
    ['orientation', width > height ? 'landscape' : 'portrait'],
  ]);
  const compare = (name: string, comparison: string | undefined, text: string): Truth => {
    const [actual, limit, isTrue] = [numbers.get(name), numberOf(text), COMPARISONS[comparison ?? '']];
    return actual === undefined || Number.isNaN(limit) ? undefined : isTrue?.(actual, limit);
  };
  return (content) => {
    const text = textOf(content).toLowerCase();
    const word = words.get(text);
    if (word !== undefined) return !OFF.includes(word);
    const number = numbers.get(text);
    if (number !== undefined) return number !== 0;
    const [, prefix = '', bound, name, value = ''] = PLAIN.exec(text) ?? [];
    if (name !== undefined && words.has(name)) return bound === undefined && words.get(name) === value;
    if (name !== undefined) return compare(prefix + name, bound ? BOUNDS[bound] : '=', value);
    const [, left = '', first = '', middle = '', second, right = ''] = RANGE.exec(text) ?? [];
    if (numbers.has(left)) return compare(left, first, middle);
    const isAbove = compare(middle, MIRRORED[first], left);
    return isAbove && second !== undefined ? compare(middle, second, right) : isAbove;
  };
}

/** Returns whether a list of media queries matches a light screen of this size. */
export function matchesMedia(queries: readonly CSSToken[], size: Size): boolean {
  const features = createFeatures(size);
  const matches = (query: readonly CSSToken[]): boolean => {
    const parts = withoutBlanks(query);
    const isNegated = wordOf(parts[0]) === 'not' && wordOf(parts[1]) !== '';
    const [type, and, ...conditions] = parts.slice(isNegated || wordOf(parts[0]) === 'only' ? 1 : 0);
    if (!type) return true;
    if (['', 'not'].includes(wordOf(type))) return evaluate(parts, features) === true;
    const isType = ['all', 'screen'].includes(wordOf(type));
    const isTrue = and === undefined || (wordOf(and) === 'and' ? evaluate(conditions, features) : undefined);
    if (isType && isTrue === undefined) return false;
    return (isType && isTrue === true) !== isNegated;
  };
  return splitAt(queries, TokenType.Comma).some(matches);
}

/** Properties that librsvg 2.54 reads. */
const PROPERTIES = new Set(
  `baseline-shift clip-path clip-rule color color-interpolation color-interpolation-filters cx cy direction display fill
  fill-opacity fill-rule filter flood-color flood-opacity font font-family font-size font-stretch font-style font-variant
  font-weight height image-rendering isolation letter-spacing lighting-color line-height marker marker-end marker-mid
  marker-start mask mask-type mix-blend-mode opacity overflow paint-order r rx ry shape-rendering stop-color stop-opacity
  stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width
  text-anchor text-decoration text-rendering transform unicode-bidi visibility width writing-mode x y`.split(
    /\s+/,
  ),
);
/** Functions in values that librsvg reads, or that are resolved before. */
const FUNCTIONS = new Set([
  ...COLOUR_FUNCTIONS,
  ...`var light-dark rgb rgba hsl hsla url matrix rotate scale skewx skewy translate translatex translatey scalex scaley skew
  blur brightness contrast drop-shadow grayscale hue-rotate invert opacity saturate sepia`.split(/\s+/),
]);
/** Prefixes of properties that neither Chromium nor librsvg knows. */
const FOREIGN = /^-(?:ms|moz|o|khtml)-/;

const supportsFeature: Leaf = (content, name) => {
  if (name === 'selector') return textOf(content).includes('has(') ? undefined : true;
  const property = wordOf(content[0]);
  if (FOREIGN.test(property)) return false;
  const isKnown = property.startsWith('--') || PROPERTIES.has(property);
  const isDrawn = content.every(
    (token) => token[0] !== TokenType.Function || FUNCTIONS.has(token[4].value.toLowerCase()),
  );
  return name === '' && content[1]?.[0] === TokenType.Colon && isKnown && isDrawn ? true : undefined;
};

/** Returns whether librsvg supports a condition of `@supports`; undefined if browsers may. */
export const isSupported = (condition: readonly CSSToken[]): boolean | undefined =>
  evaluate(withoutBlanks(condition), supportsFeature);
