/** @module Formats sizes and file types for the page. */

import { formatBytes } from '../base/text.ts';
import type { Formats } from '../client/library/index.ts';
import { INPUTS, type InputType } from '../tables/formats.ts';

/** Formats what all results together save, or cost. */
export const formatSaved = (before: number, after: number): string =>
  after > before ? `${formatBytes(after - before)} larger` : `${formatBytes(before - after)} saved`;

/** Formats a number in millions, with three significant digits. */
export const millions = (count: number): string => String(Number((count / 1_000_000).toPrecision(3)));

/** Returns the end of a sentence about what the operator of a server can do: for one that is public, the setting for trusted people. */
export const accessAdvice = (access: Formats['access'] | undefined): string =>
  access === 'public' ? ', or set ACCESS=private, if only people you trust can reach this server.' : '.';

/** Explains a limit of the server, in millions, or exactly if that would show no difference. */
export function formatExcess(
  value: number,
  max: number,
  [unit, unitOfMillions]: readonly [string, string],
  access: Formats['access'] | undefined,
): string {
  const [actual, limit] =
    millions(value) === millions(max)
      ? [`${value} ${unit}`, `${max} ${unit}`]
      : [`${millions(value)} ${unitOfMillions}`, `${millions(max)} ${unitOfMillions}`];
  return `The file has ${actual}. This server accepts ${limit}. Its operator can raise it${accessAdvice(access)}`;
}

/** Returns the extension of a file name in lower case, without the dot; empty without one. */
export const extensionOf = (name: string): string => /\.(\w{1,5})$/.exec(name)?.[1]?.toLowerCase() ?? '';

/** Returns the type with this extension or media subtype; undefined for an unknown one. The server detects it by content. */
export function inputTypeOf({ name, type }: File): InputType | undefined {
  const token = (extensionOf(name) || type.split('/')[1] || '').replace(/^tif$/, 'tiff');
  const found = Object.entries(INPUTS).find(([, { names }]) => names.includes(token));
  return found?.[0] as InputType | undefined;
}

/** Returns a label for the type of a file. */
export function typeLabel(file: File): string {
  const type = inputTypeOf(file);
  return type
    ? INPUTS[type].label
    : (extensionOf(file.name) || file.type.split('/')[1] || 'file').toUpperCase();
}
