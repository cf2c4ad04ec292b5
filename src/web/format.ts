/** @module Formats sizes and file types for the page. */
import { formatBytes } from '../base/text.ts';
import { INPUTS, type InputType } from '../tables/formats.ts';

/** What the quality that the server chooses means. */
export const LOOKS_THE_SAME = 'looks the same';

/** Formats what all results together save, or cost. */
export const formatSaved = (before: number, after: number): string =>
  after > before ? `${formatBytes(after - before)} larger` : `${formatBytes(before - after)} saved`;

/** Formats a number in millions, with three significant digits. */
export const millions = (count: number): string => String(Number((count / 1_000_000).toPrecision(3)));

/** Explains that a format is switched off. */
export const formatSwitchedOff = (label: string): string =>
  `${label} is switched off on this server. Its operator can switch it on.`;

/** Explains a limit of the server, in millions, or exactly if that would show no difference. */
export function formatExcess(
  value: number,
  max: number,
  [unit, unitOfMillions]: readonly [string, string],
): string {
  const [actual, limit] =
    millions(value) === millions(max)
      ? [`${value} ${unit}`, `${max} ${unit}`]
      : [`${millions(value)} ${unitOfMillions}`, `${millions(max)} ${unitOfMillions}`];
  return `The file has ${actual}. This server accepts ${limit}. Its operator can raise it.`;
}

/** Returns the extension of a file name in lower case, without the dot; empty without one. */
export const extensionOf = (name: string): string => /\.(\w{1,5})$/.exec(name)?.[1]?.toLowerCase() ?? '';

/** Extensions that the server lists as no format's names. An MPO is several JPEG images. */
export const OTHER_EXTENSIONS: Readonly<Record<string, InputType>> = { tif: 'tiff', mpo: 'jpg' };

/** Returns the type of an extension or media subtype, if known. The server detects by content. */
export function inputTypeOf({ name, type }: File): InputType | undefined {
  const extension = extensionOf(name) || type.split('/')[1] || '';
  const token = OTHER_EXTENSIONS[extension] ?? extension;
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
