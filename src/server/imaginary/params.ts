/** @module Parameters of imaginary: how their texts are read, and the error of a wrong one. */
import { sanitizeForDisplay } from '../../base/text.ts';
import { serviceError } from '../../tables/errors.ts';

/** Parameters by name: text of a query, or values of JSON without arrays, objects and null. */
export type Params = Readonly<Record<string, string | number | boolean | undefined>>;

/** Fields of the API by name. */
export type Fields = Readonly<Record<string, string | number | undefined>>;

/** Returns a parameter for a message. */
export const textOf = (params: Params, name: string): string => String(params[name] ?? '');

/** Returns a parameter as an integer, rounded as imaginary does, unless absent, empty or 0. */
export function integer(params: Params, name: string): number | undefined {
  const value = params[name] ?? '';
  if (value === '') return undefined;
  const number = Math.round(Number(value));
  if (!(number >= 0)) throw invalid(name, String(value), 'a number');
  return number || undefined;
}

export const isTrue = (params: Params, name: string): boolean => /^(?:1|t|true)$/i.test(String(params[name]));

/** Converts a colour such as `255,200,150`. Other text stays for the error of `background`. */
export function toHex(colour: string): string {
  const parts = colour.split(',').map((part) => Number(part.trim()));
  if (parts.length !== 3 || !parts.every((part) => part >= 0 && part <= 255)) return colour;
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;
}

/** Creates the error of a parameter. */
export const invalid = (name: string, value: string, expected: string) =>
  serviceError('FIELD_INVALID', name, sanitizeForDisplay(value), expected);
