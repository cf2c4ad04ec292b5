/** @module Parses CSS, and resolves what librsvg lacks: `var()` and new colour functions. */
import { color, SyntaxFlag, serializeRGB } from '@csstools/css-color-parser';
import { parseComponentValue } from '@csstools/css-parser-algorithms';
import { type CSSToken, TokenType, tokenize, tokenizer } from '@csstools/css-tokenizer';
import { COLOUR_FUNCTIONS } from './features.ts';
import { applyEdits, type Edit } from './svg-markup.ts';

export { type CSSToken, TokenType };

/** A declaration and its position in the style sheet or attribute. */
export interface Declaration {
  readonly name: string;
  readonly value: string;
  readonly start: number;
}

/** A rule of a style sheet. At-rules and nested rules are ignored, as librsvg does. */
export interface Rule {
  readonly selector: string;
  readonly declarations: readonly Declaration[];
}

export const OPENING: readonly string[] = [
  TokenType.Function,
  TokenType.OpenParen,
  TokenType.OpenSquare,
  TokenType.OpenCurly,
];
const CLOSING: readonly string[] = [TokenType.CloseParen, TokenType.CloseSquare, TokenType.CloseCurly];

/** CSS that all rewriters of one SVG can still parse together. A token takes up to 1 µs. */
export interface CssBudget {
  /** 0 after a text exceeded the budget, so that no later text is parsed without that one. */
  tokens: number;
}

/**
 * Number of tokens to parse: for each character of an SVG, in addition for any SVG, and at most.
 * Each text is parsed up to three times, and two to four characters of CSS are a token.
 */
const TOKENS_PER_CHARACTER = 4;
const MIN_TOKENS = 2048;
const MAX_TOKENS = 256 * 1024;
/** Characters of a long token, such as a font, or of replacements, that take as long as one. */
export const CHARACTERS_PER_TOKEN = 16;
/** Number of tokens that take as long as converting a colour. */
const COLOUR_TOKENS = 50;
/** Maximum number of functions and parentheses in a colour. Its parser calls itself for each. */
const MAX_NESTED = 32;

/** Creates the budget for an SVG of this number of characters. */
export const createCssBudget = (length: number): CssBudget => ({
  tokens: Math.min(MAX_TOKENS, MIN_TOKENS + length * TOKENS_PER_CHARACTER),
});

/** Returns the tokens of a text, or none if it exceeds the budget. */
export function tokensOf(css: string, budget: CssBudget): CSSToken[] {
  const reader = tokenizer({ css });
  const tokens: CSSToken[] = [];
  budget.tokens -= css.length / CHARACTERS_PER_TOKEN;
  for (; budget.tokens > 0 && !reader.endOfFile(); budget.tokens -= 1) tokens.push(reader.nextToken());
  tokens.push([TokenType.EOF, '', css.length, css.length - 1, undefined]); // closes every bracket that is open
  budget.tokens = Math.max(0, budget.tokens);
  return budget.tokens > 0 ? tokens : [];
}

/** Joins tokens. `stringify` takes each as an argument, of which a call has at most 100,000. */
export const textOf = (tokens: readonly CSSToken[]): string => tokens.map(([, text]) => text).join('');

const startOf = (token: CSSToken | undefined): number => token?.[2] ?? 0;
const endOf = (token: CSSToken | undefined): number => (token?.[3] ?? -1) + 1;

/** Returns the index of the token that closes the one at `from`, or of the last token. */
export function closingOf(tokens: readonly CSSToken[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    const type = tokens[at]?.[0] as string;
    if (OPENING.includes(type)) depth += 1;
    if (CLOSING.includes(type)) depth -= 1;
    if (depth === 0) return at;
  }
  return tokens.length - 1;
}

/** Parses the rules of a style sheet. Returns none if it exceeds the budget. */
export function parseRules(css: string, budget: CssBudget): Rule[] {
  const tokens = tokensOf(css, budget);
  const rules: Rule[] = [];
  let start = 0;
  for (let at = 0; at < tokens.length; at += 1) {
    const type = tokens[at]?.[0];
    if (type === TokenType.Semicolon) start = at + 1;
    if (type !== TokenType.OpenCurly) continue;
    const end = closingOf(tokens, at);
    const prelude = tokens.slice(start, at).filter(([kind]) => kind !== TokenType.Comment);
    if (!prelude.some(([kind]) => kind === TokenType.AtKeyword))
      rules.push({
        selector: textOf(prelude).trim(),
        declarations: declarationsIn(tokens.slice(at + 1, end)),
      });
    at = end;
    start = end + 1;
  }
  return rules;
}

/** Parses the declarations of a style attribute. Returns none if it exceeds the budget. */
export function parseDeclarations(css: string, budget: CssBudget): Declaration[] {
  return declarationsIn(tokensOf(css, budget));
}

/** What ends a declaration. */
const ENDS: readonly string[] = [TokenType.Semicolon, TokenType.EOF];

function declarationsIn(tokens: readonly CSSToken[]): Declaration[] {
  const declarations: Declaration[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    let end = at;
    while (end < tokens.length && !ENDS.includes(tokens[end]?.[0] as string))
      end = closingOf(tokens, end) + 1;
    const part = trim(tokens.slice(at, end));
    const colon = part.findIndex(([type]) => type === TokenType.Colon);
    const value = trim(part.slice(colon + 1));
    if (part[0]?.[0] === TokenType.Ident && colon > 0 && value.length > 0)
      declarations.push({ name: part[0][1], value: textOf(value), start: startOf(part[0]) });
    at = end;
  }
  return declarations;
}

const isBlank = ([type]: CSSToken): boolean => type === TokenType.Whitespace || type === TokenType.Comment;

/** Returns tokens without white space and comments. */
export const withoutBlanks = (tokens: readonly CSSToken[]): CSSToken[] =>
  tokens.filter((token) => !isBlank(token));

/** Splits tokens at those of a type that are in no brackets. */
export function splitAt(tokens: readonly CSSToken[], separator: TokenType): CSSToken[][] {
  const parts: CSSToken[][] = [];
  let start = 0;
  for (let at = 0; at < tokens.length; at += 1) {
    if (tokens[at]?.[0] === separator) {
      parts.push(tokens.slice(start, at));
      start = at + 1;
    } else at = closingOf(tokens, at);
  }
  return [...parts, tokens.slice(start)];
}

/** Returns tokens without white space and comments at both ends. */
export function trim(tokens: readonly CSSToken[]): CSSToken[] {
  const first = tokens.findIndex((token) => !isBlank(token));
  return first < 0 ? [] : tokens.slice(first, tokens.findLastIndex((token) => !isBlank(token)) + 1);
}

/** Values of custom properties by name; undefined if elements have different values. */
export type Variables = ReadonlyMap<string, string | undefined>;

/** Maximum depth of references between custom properties. */
const MAX_DEPTH = 32;
/** Maximum number of characters to insert, since properties can grow exponentially. */
const MAX_INSERTED = 256 * 1024;

/**
 * Creates a function that replaces `var()` and colour functions in a text. Functions that cannot be
 * resolved, or exceed the budget, are not changed. The references of each custom property are
 * replaced once.
 */
export function createResolver(variables: Variables, budget: CssBudget): (css: string) => string {
  const resolved = new Map<string, string | undefined>();
  const resolvedValue = (name: string, depth: number): string | undefined => {
    if (!resolved.has(name)) {
      resolved.set(name, undefined); // for references of the property to itself
      const value = variables.get(name);
      resolved.set(name, value && replaceVariables(value, depth));
    }
    return resolved.get(name);
  };
  const replaceVariables = (css: string, depth: number): string => {
    if (depth > MAX_DEPTH || !css.includes('var(')) return css;
    return replaceFunctions(css, ['var'], budget, (call) => {
      const content = trim(call.slice(1, -1));
      const name = content[0]?.[1] ?? '';
      if (variables.has(name)) return resolvedValue(name, depth + 1);
      const comma = content.findIndex(([type]) => type === TokenType.Comma);
      return comma < 0 ? undefined : replaceVariables(textOf(trim(content.slice(comma + 1))), depth + 1);
    });
  };
  const resolveColours = (css: string): string =>
    replaceFunctions(css, COLOUR_FUNCTIONS, budget, (call) => colourOf(call, budget));
  return (css) => resolveColours(replaceLightDark(replaceVariables(css, 0), budget));
}

/** Replaces `light-dark()` by its first value (CSS Color 5, section 4). */
function replaceLightDark(css: string, budget: CssBudget): string {
  if (!css.includes('light-dark(')) return css;
  return replaceFunctions(css, ['light-dark'], budget, (call) => {
    const values = splitAt(call.slice(1, -1), TokenType.Comma);
    return values.length === 2 ? textOf(trim(values[0] ?? [])) : undefined;
  });
}

/** Replaces the outermost calls of functions with these names, in lower case. */
function replaceFunctions(
  css: string,
  names: readonly string[],
  budget: CssBudget,
  replacementOf: (call: readonly CSSToken[]) => string | undefined,
): string {
  const tokens = tokensOf(css, budget);
  const edits: Edit[] = [];
  let inserted = 0;
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] as CSSToken;
    if (token[0] !== TokenType.Function || !names.includes(token[4].value.toLowerCase())) continue;
    const end = closingOf(tokens, at);
    const text = replacementOf(tokens.slice(at, end + 1));
    if (text !== undefined) edits.push({ start: startOf(token), end: endOf(tokens[end]), text });
    inserted += text?.length ?? 0;
    at = end;
  }
  if (inserted > MAX_INSERTED) return css;
  budget.tokens = Math.max(0, budget.tokens - inserted / CHARACTERS_PER_TOKEN);
  return applyEdits(css, edits);
}

/** Returns a CSS colour name as `#rrggbb`; undefined for other words, also of system colours. */
export function colourByName(name: string): string | undefined {
  const component = parseComponentValue(tokenize({ css: name }));
  const parsed = (component && color(component)) || undefined;
  if (!parsed?.syntaxFlags.has(SyntaxFlag.ColorKeyword) || parsed.alpha !== 1) return undefined;
  return `#${Buffer.from(parsed.channels.map((value) => Math.round(value * 255))).toString('hex')}`;
}

function colourOf(call: readonly CSSToken[], budget: CssBudget): string | undefined {
  if (call.filter(([type]) => OPENING.includes(type)).length > MAX_NESTED) return undefined;
  if (budget.tokens < COLOUR_TOKENS) return undefined;
  budget.tokens -= COLOUR_TOKENS;
  return serialize(call);
}

/** Returns a CSS colour as `rgb()` or `rgba()`; undefined for anything else. */
export function toRgb(text: string): string | undefined {
  return serialize(tokenize({ css: text }));
}

function serialize(tokens: readonly CSSToken[]): string | undefined {
  const component = parseComponentValue([...tokens]);
  const parsed = component && color(component);
  return parsed ? serializeRGB(parsed, false).toString() : undefined; // clipped, as in browsers
}
