/**
 * @module Writes style sheets out in the CSS that librsvg supports: rules without media queries,
 * `@supports`, layers, nesting, `:is()` and `:where()`. What cannot be written out keeps its text,
 * which librsvg ignores.
 */
import type { Size } from '../image-info.ts';
import { isSupported, matchesMedia } from './conditions.ts';
import {
  CHARACTERS_PER_TOKEN,
  type CSSToken,
  type CssBudget,
  closingOf,
  OPENING,
  splitAt,
  TokenType,
  textOf,
  tokensOf,
  trim,
  withoutBlanks,
} from './css.ts';
import { rewrittenBy } from './features.ts';

/** Numbers of IDs, of classes, attributes and pseudo-classes, of types (Selectors 4, 15). */
type Specificity = readonly [number, number, number];
const NOTHING: Specificity = [0, 0, 0];

/** Simple selectors of one element, without white space. */
interface Compound {
  /** Combinator before it; empty for the first one. */
  readonly combinator: string;
  readonly type: string;
  readonly rest: string;
  /** Specificity of `rest`. */
  readonly restSpecificity: Specificity;
}
const ANY: Compound = { combinator: '', type: '', rest: '', restSpecificity: NOTHING };

/** A selector without nesting and lists. */
interface Selector {
  readonly compounds: readonly Compound[];
  /** That of the original, which has the highest one of a list, and none of `:where()`. */
  readonly specificity: Specificity;
}

/** Position in the order of layers, outermost first. What is in no deeper one comes last. */
type Layer = readonly number[];

interface Rule {
  readonly selectors: readonly Selector[];
  readonly layer: Layer;
  readonly declarations: string;
}
/** A part of a written sheet: a rule, or text that stays as it is. */
type Part = Rule | string;

interface Context {
  readonly size: Size;
  /** Without text, fonts make no difference. */
  readonly hasText: boolean;
  readonly budget: CssBudget;
  readonly layers: Layers;
  readonly layer: Layer;
  readonly parents?: readonly Selector[];
  readonly depth: number;
}

/** The selector, or the sheet, cannot be written out, or exceeds the budget. */
class UnwritableError extends Error {}

const WRITTEN_OUT = rewrittenBy('sheets');
const MAX_DEPTH = 32;

/** A rule that librsvg ignores, and that is found as a feature. */
const UNWRITTEN = '\n:is(&){}';

/** Pseudo-classes that no element of a still picture has. librsvg drops rules with them. */
const NEVER =
  /^(?:hover|active|focus|focus-visible|focus-within|target|visited|checked|indeterminate|disabled|enabled|required|optional|valid|invalid|read-write|placeholder-shown|fullscreen|modal|autofill|before|after|first-line|first-letter)$/;
const LISTS = /^(?:is|where|matches|-webkit-any|not)$/;

/** At-rules that librsvg ignores, but not browsers: they stay, to be found. Others are left out. */
const KEPT = ['import', 'font-face', 'container', 'scope', 'property'];

/** Layers by the names of their paths, in the order in which they occur. */
class Layers {
  readonly #children = new Map<string, Map<string, number>>();

  /** Returns the layer below another one. A layer without a name is a new one. */
  find(parent: Layer, name: string): Layer {
    const path = [...parent];
    for (const part of name.split('.')) {
      if (path.length > MAX_DEPTH) throw new UnwritableError();
      const siblings = this.#children.get(path.join('.')) ?? new Map<string, number>();
      this.#children.set(path.join('.'), siblings);
      const key = part || `#${siblings.size}`;
      if (!siblings.has(key)) siblings.set(key, siblings.size);
      path.push(siblings.get(key) as number);
    }
    return path;
  }
}

/**
 * Writes out the style sheets of an SVG. Those that need no change, cannot be written out, or
 * exceed the budget keep their texts.
 */
export function writeOutSheets(
  sheets: readonly string[],
  drawing: { readonly size: Size; readonly hasText: boolean },
  budget: CssBudget,
): readonly string[] {
  if (!sheets.some((sheet) => WRITTEN_OUT.test(sheet))) return sheets;
  const context = { ...drawing, budget, layers: new Layers(), layer: [], depth: 0 };
  try {
    const parts = sheets.map((sheet) => {
      const tokens = tokensOf(sheet, budget);
      if (tokens.length === 0) throw new UnwritableError();
      return partsIn(tokens, context);
    });
    const write = createWriter(parts.flat(), budget);
    return sheets.map((_, at) => parts[at]?.map(write).join('\n') ?? '');
  } catch (error) {
    if (error instanceof UnwritableError) return sheets.map((sheet) => `${sheet}${UNWRITTEN}`);
    throw error;
  }
}

/** Flattens rules, or the content of one. */
function partsIn(tokens: readonly CSSToken[], context: Context): Part[] {
  if (context.depth > MAX_DEPTH) throw new UnwritableError();
  const { parents, layer } = context;
  const parts: Part[] = [];
  let declarations: string[] = [];
  const flush = (): void => {
    if (parents?.length && declarations.length > 0)
      parts.push({ selectors: parents, layer, declarations: declarations.join('') });
    declarations = [];
  };
  for (let at = 0; at < tokens.length; at += 1) {
    const [type, text] = tokens[at] as CSSToken;
    if (SKIPPED.includes(type)) continue;
    const isCustom = parents !== undefined && type === TokenType.Ident && text.startsWith('--');
    const open = endOfPrelude(tokens, at, !isCustom);
    const prelude = tokens.slice(at, open);
    const isBlock = tokens[open]?.[0] === TokenType.OpenCurly;
    const end = isBlock ? closingOf(tokens, open) : open;
    spend(context.budget, end - at);
    const isClosed = tokens[end]?.[0] === TokenType.CloseCurly;
    const content = isBlock ? tokens.slice(open + 1, isClosed ? end : end + 1) : undefined;
    if (type === TokenType.AtKeyword) {
      flush();
      parts.push(...atRule(prelude, content, context));
    } else if (content) {
      flush();
      parts.push(...styleRule(prelude, content, context));
    } else if (parents) declarations.push(declaration(prelude));
    at = end;
  }
  flush();
  return parts;
}

const SKIPPED: readonly string[] = [
  TokenType.Whitespace,
  TokenType.Comment,
  TokenType.Semicolon,
  TokenType.CDO,
  TokenType.CDC,
  TokenType.EOF,
];

/** Takes steps of the work off the budget. */
function spend(budget: CssBudget, steps: number): void {
  budget.tokens = Math.max(0, budget.tokens - steps);
  if (budget.tokens === 0) throw new UnwritableError();
}

/** Returns the index of the semicolon or bracket after a declaration or before a block. */
function endOfPrelude(tokens: readonly CSSToken[], from: number, endsAtBlock: boolean): number {
  for (let at = from; at < tokens.length; at += 1) {
    const type = tokens[at]?.[0];
    if (type === TokenType.Semicolon || type === TokenType.EOF) return at;
    if (type === TokenType.OpenCurly && endsAtBlock) return at;
    if (OPENING.includes(type as string)) at = closingOf(tokens, at);
  }
  return tokens.length;
}

/** Writes a declaration. librsvg finds names of properties in lower case only. */
function declaration(tokens: readonly CSSToken[]): string {
  const [[, name], ...rest] = tokens as [CSSToken, ...CSSToken[]];
  const lower = name.startsWith('--') ? name : name.toLowerCase();
  return `${lower}${textOf(rest.filter(([type]) => type !== TokenType.Comment)).trimEnd()};`;
}

/** @param content tokens of the block; undefined for a statement */
function atRule(
  prelude: readonly CSSToken[],
  content: readonly CSSToken[] | undefined,
  context: Context,
): Part[] {
  const name = (prelude[0]?.[1] ?? '').slice(1).toLowerCase();
  const condition = prelude.slice(1);
  const kept = (): Part[] => [`${textOf(prelude)}${content ? `{${textOf(content)}}` : ';'}`];
  const inside = (changes: Partial<Context> = {}): Part[] =>
    content ? partsIn(content, { ...context, ...changes, depth: context.depth + 1 }) : [];
  if (name === 'media') return matchesMedia(condition, context.size) ? inside() : [];
  if (name === 'supports') {
    const isTrue = isSupported(condition);
    return isTrue === undefined ? kept() : isTrue ? inside() : [];
  }
  if (name === 'layer') {
    // `!important` reverses the order of layers.
    if (content?.some(([type, text]) => type === TokenType.Ident && /^important$/i.test(text))) return kept();
    const [layer = context.layer] = splitAt(condition, TokenType.Comma).map((tokens) =>
      context.layers.find(context.layer, textOf(withoutBlanks(tokens))),
    );
    return inside({ layer });
  }
  return KEPT.includes(name) && (context.hasText || name !== 'font-face') ? kept() : [];
}

function styleRule(prelude: readonly CSSToken[], content: readonly CSSToken[], context: Context): Part[] {
  const { parents, budget, depth } = context;
  // The parent precedes a nested selector that does not name it (CSS Nesting 1, section 3).
  const list = splitAt(prelude, TokenType.Comma).map((tokens) =>
    parents && !tokens.some(isAmpersand) ? [AMPERSAND, SPACE, ...tokens] : tokens,
  );
  try {
    const selectors = list.flatMap((tokens) => expand(tokens, parents ?? ROOT, budget));
    return partsIn(content, { ...context, parents: selectors, depth: depth + 1 });
  } catch (error) {
    if (!(error instanceof UnwritableError) || budget.tokens === 0 || depth >= MAX_DEPTH) throw error;
    return [`${list.map(textOf).join().replaceAll('&', ':is(&)')}{${textOf(content)}}`];
  }
}

const isAmpersand = ([type, text]: CSSToken): boolean => type === TokenType.Delim && text === '&';
const AMPERSAND: CSSToken = [TokenType.Delim, '&', 0, 0, { value: '&' }];
const SPACE: CSSToken = [TokenType.Whitespace, ' ', 0, 0, undefined];
/** What `&` means outside of a rule. */
const ROOT: readonly Selector[] = [
  { compounds: [{ ...ANY, rest: ':root', restSpecificity: [0, 1, 0] }], specificity: [0, 1, 0] },
];

const COMBINATORS = ['>', '+', '~'];

/** Writes a selector as the selectors without nesting and lists that match the same elements. */
function expand(tokens: readonly CSSToken[], parents: readonly Selector[], budget: CssBudget): Selector[] {
  let selectors: Selector[] = [{ compounds: [], specificity: NOTHING }];
  let combinator = '';
  const parts = trim(tokens);
  for (let at = 0; at < parts.length; ) {
    let end = at;
    const isCombinator = ([type, text]: CSSToken): boolean =>
      type === TokenType.Whitespace || (type === TokenType.Delim && COMBINATORS.includes(text));
    for (; end < parts.length && isCombinator(parts[end] as CSSToken); end += 1) {
      const text = (parts[end] as CSSToken)[1].trim();
      combinator = text || combinator || ' ';
    }
    const start = end;
    while (end < parts.length && !isCombinator(parts[end] as CSSToken)) end = closingOf(parts, end) + 1;
    const added = expandCompound(parts.slice(start, end), parents, budget);
    selectors = selectors.flatMap((selector) =>
      added.map(({ compounds: [first = ANY, ...others], specificity }) => {
        spend(budget, 1 + selector.compounds.length);
        if (selector.compounds.length > 0 && others.length > 0) throw new UnwritableError();
        return {
          compounds: [...selector.compounds, { ...first, combinator }, ...others],
          specificity: sum(selector.specificity, specificity),
        };
      }),
    );
    combinator = '';
    at = end;
  }
  return selectors;
}

function expandCompound(
  tokens: readonly CSSToken[],
  parents: readonly Selector[],
  budget: CssBudget,
): Selector[] {
  let selectors: Selector[] = [{ compounds: [ANY], specificity: NOTHING }];
  const add = (members: readonly Selector[], specificity: Specificity): void => {
    selectors = selectors.flatMap((one) =>
      members.flatMap((other) => {
        spend(budget, 1 + other.compounds.length);
        return merge(one, other, specificity);
      }),
    );
  };
  /** Adds a simple selector of no type, with its specificity, and that as it is written out. */
  const addRest = (rest: string, specificity: Specificity, restSpecificity = specificity): void =>
    add([{ compounds: [{ ...ANY, rest, restSpecificity }], specificity }], specificity);
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] as CSSToken;
    const end = closingOf(tokens, at);
    const text = textOf(tokens.slice(at, end + 1));
    if (isAmpersand(token)) add(parents, highest(parents.map(({ specificity }) => specificity)));
    else if (token[0] === TokenType.Ident || text === '*') {
      // A prefix is that of the namespace of SVG.
      if (tokens[at + 1]?.[1] === '|' && tokens[at + 2]) {
        at += 1;
        continue;
      }
      const specificity: Specificity = text === '*' ? NOTHING : [0, 0, 1];
      add([{ compounds: [{ ...ANY, type: text }], specificity }], specificity);
    } else if (token[0] === TokenType.Hash) addRest(text, [1, 0, 0]);
    else if (token[0] === TokenType.OpenSquare) addRest(text, [0, 1, 0]);
    else if (text === '.') {
      at += 1;
      addRest(`.${tokens[at]?.[1] ?? ''}`, [0, 1, 0]);
    } else if (token[0] === TokenType.Colon) {
      const next = tokens[at + 1];
      const last = closingOf(tokens, at + 1);
      if (!next || next[0] === TokenType.Colon) return [];
      const name =
        next[0] === TokenType.Function || next[0] === TokenType.Ident ? next[4].value.toLowerCase() : '';
      if (NEVER.test(name)) return [];
      if (next[0] === TokenType.Function && LISTS.test(name)) {
        const members = splitAt(tokens.slice(at + 2, last), TokenType.Comma).flatMap((one) =>
          expand(one, parents, budget),
        );
        const specificity =
          name === 'where' ? NOTHING : highest(members.map(({ specificity }) => specificity));
        if (name !== 'not') add(members, specificity);
        else if (members.length > 0)
          addRest(
            `:not(${members.map(textOfSelector).join()})`,
            specificity,
            highest(members.map(specificityOf)),
          );
      } else addRest(textOf(tokens.slice(at, last + 1)), [0, 1, 0]);
      at = last;
      continue;
    } else if (text !== '|' && token[0] !== TokenType.Comment) throw new UnwritableError();
    at = Math.max(at, end);
  }
  return selectors;
}

/** Adds a selector to the last compound of another. Returns none if no element matches both. */
function merge(one: Selector, other: Selector, added: Specificity): Selector[] {
  const [a = ANY, b = ANY] = [one.compounds.at(-1), other.compounds.at(-1)];
  const before = [...one.compounds.slice(0, -1), ...other.compounds.slice(0, -1)];
  if (one.compounds.length > 1 && other.compounds.length > 1) throw new UnwritableError();
  const types = [...new Set([a.type, b.type].filter((type) => type && type !== '*'))];
  if (types.length > 1) return [];
  const last = {
    combinator: a.combinator || b.combinator,
    type: types[0] ?? (a.type || b.type),
    rest: a.rest + b.rest,
    restSpecificity: sum(a.restSpecificity, b.restSpecificity),
  };
  return [{ compounds: [...before, last], specificity: sum(one.specificity, added) }];
}

const sum = (a: Specificity, b: Specificity): Specificity => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];

const compare = (a: readonly number[], b: readonly number[]): number => {
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    // A shorter path of layers is the parent, which comes after its layers.
    const difference = (a[at] ?? Number.MAX_VALUE) - (b[at] ?? Number.MAX_VALUE);
    if (difference !== 0) return difference;
  }
  return 0;
};

const highest = (specificities: readonly Specificity[]): Specificity =>
  specificities.reduce((max, one) => (compare(one, max) > 0 ? one : max), NOTHING);

/** Specificity of a selector as it is written out. */
const specificityOf = ({ compounds }: Selector): Specificity =>
  compounds.reduce(
    (total, { type, restSpecificity }) =>
      sum(sum(total, restSpecificity), [0, 0, type && type !== '*' ? 1 : 0]),
    NOTHING,
  );

const textOfSelector = ({ compounds }: Selector): string =>
  compounds.map(({ combinator, type, rest }) => `${combinator}${type + rest || '*'}`).join('');

/** Selectors that match every element, and add to one number of the specificity. */
const HEAVIER = [':not(#_)', ':not(._)', ':not(_)'];

/**
 * Creates a function that writes a part. Rules keep the order of their layers and original
 * specificities: a selector that is written with another specificity gets more where this order
 * needs it.
 */
function createWriter(parts: readonly Part[], budget: CssBudget): (part: Part) => string {
  interface Rank {
    readonly layer: Layer;
    readonly specificity: Specificity;
    /** Specificity to write: at least that of each of its selectors. */
    written: Specificity;
  }
  const ranks = new Map<string, Rank>();
  const keyOf = (layer: Layer, { specificity }: Selector): string =>
    `${layer.join('.')}/${specificity.join()}`;
  for (const part of parts) {
    if (typeof part === 'string') continue;
    for (const selector of part.selectors) {
      const key = keyOf(part.layer, selector);
      const [ids, classes, types] = specificityOf(selector);
      const rank = ranks.get(key) ?? {
        layer: part.layer,
        specificity: selector.specificity,
        written: NOTHING,
      };
      const [a, b, c] = rank.written;
      rank.written = [Math.max(a, ids), Math.max(b, classes), Math.max(c, types)];
      ranks.set(key, rank);
    }
  }
  let below: Specificity = [-1, 0, 0];
  const byOrder = (a: Rank, b: Rank): number =>
    compare(a.layer, b.layer) || compare(a.specificity, b.specificity);
  for (const rank of [...ranks.values()].sort(byOrder)) {
    const [, classes, types] = rank.written;
    if (compare(rank.written, below) <= 0) rank.written = [below[0] + 1, classes, types];
    below = rank.written;
  }
  return (part) => {
    if (typeof part === 'string') return part;
    const selectors = part.selectors.map((selector) => {
      const { written = NOTHING } = ranks.get(keyOf(part.layer, selector)) ?? {};
      const own = specificityOf(selector);
      const added = HEAVIER.map((text, at) => text.repeat((written[at] ?? 0) - (own[at] ?? 0))).join('');
      const text = textOfSelector(selector) + added;
      spend(budget, text.length / CHARACTERS_PER_TOKEN);
      return text;
    });
    return `${selectors.join()}{${part.declarations}}`;
  };
}
