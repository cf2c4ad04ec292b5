/** @module Rewrites the text of an SVG so that librsvg renders it like browsers. Resolves `var()` and new colour functions. */
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
import { applyEdits, type Edit, type Markup, type Range, scanMarkup } from './markup.ts';
import { applyTransformOrigins, expandDropShadows } from './unsupported.ts';

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

/** Rewriters in order of execution. Each applies to texts that contain one of its markers. */
const REWRITERS: readonly {
  readonly markers: readonly string[];
  readonly rewrite: (text: string, markup: Markup, budget: CssBudget) => string;
}[] = [
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
