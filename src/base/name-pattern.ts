/** @module Patterns for the names of results: `{name}-{width}w`. Runs in Node.js and browsers. */
import { baseNameOf, MAX_BASE_NAME_BYTES, truncateToBytes, utf8Length } from './text.ts';

/** What the words of a pattern stand for. */
export interface NameParts {
  /** Name of the input without extension. */
  readonly name: string;
  /** Size of the result in pixels; undefined for a result without one, such as a PDF. */
  readonly size: { readonly width: number; readonly height: number } | undefined;
  /** Position of the input among all inputs, from 1. */
  readonly number: number;
}

const WORDS = {
  name: ({ name }) => name,
  width: ({ size }) => String(size?.width),
  height: ({ size }) => String(size?.height),
  number: ({ number }) => String(number).padStart(3, '0'), // so that names sort by number
} as const satisfies Readonly<Record<string, (parts: NameParts) => string>>;

const WORD = /\{([^{}]*)\}/g;

/** The pattern of results that are named like their inputs. */
export const DEFAULT_PATTERN = '{name}';

/** Words for the size of the result, which is known only after the conversion. */
const SIZE_WORDS: readonly string[] = ['width', 'height'] satisfies (keyof typeof WORDS)[];

const wordsOf = (pattern: string): string[] => [...pattern.matchAll(WORD)].map(([, word = '']) => word);

/** Returns whether a pattern has the size of the result. */
export const namesSize = (pattern: string): boolean =>
  wordsOf(pattern).some((word) => SIZE_WORDS.includes(word));

/** Returns whether a pattern has the position of the input. */
export const namesNumber = (pattern: string): boolean => wordsOf(pattern).includes('number');

/** Returns whether the name of a result depends on nothing but the name of its input. */
export const namesInputOnly = (pattern: string): boolean => wordsOf(pattern).every((word) => word === 'name');

/** Returns what is wrong with a pattern, as a sentence; undefined if nothing is. */
export function findPatternError(pattern: string): string | undefined {
  if (pattern.trim() === '') return 'The name is empty.';
  if (/[/\\]/.test(pattern)) return 'A name cannot contain / or \\.';
  const unknown = wordsOf(pattern).find((word) => !Object.hasOwn(WORDS, word));
  if (unknown === undefined) return undefined;
  const known = Object.keys(WORDS).map((word) => `{${word}}`);
  return `{${unknown}} is unknown. A name can contain ${known.slice(0, -1).join(', ')} and ${known.at(-1)}.`;
}

/**
 * Returns the base name of a result. A long name of the input is shortened rather than the rest of
 * the pattern. A result without a size is named like its input if the pattern has the size.
 */
export function fillPattern(pattern: string, parts: NameParts): string {
  if (parts.size === undefined && namesSize(pattern)) return parts.name;
  const fill = (name: string): string =>
    pattern.replace(WORD, (text, word: string) =>
      Object.hasOwn(WORDS, word) ? WORDS[word as keyof typeof WORDS]({ ...parts, name }) : text,
    );
  const rest = utf8Length(fill(''));
  const filled = fill(truncateToBytes(parts.name, Math.max(0, MAX_BASE_NAME_BYTES - rest)));
  return baseNameOf(`${filled}.x`); // the extension that baseNameOf removes
}
