/** @module Checks named options: variants, presets, and the cases of a regression check. */
import { z } from 'zod';
import { sanitizeForDisplay } from '../../base/text.ts';
import { ServiceError, serviceError } from '../../tables/errors.ts';
import { OUTPUTS } from '../../tables/formats.ts';
import type { Parse, TextField, Variant } from '../context.ts';
import { numberedPages } from '../plan/size.ts';
import type { ConvertOptions } from '../plan/types.ts';

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
const NAME_EXPECTED = 'expected up to 64 letters, digits, dots, hyphens and underscores';
/** YAML parses `background: #fff` as null, since `#` starts a comment. */
const NO_VALUE = 'expected a text, a number, true or false; put quotes around a value with a #';

/** A name, and options as fields of the API. */
export const namedOptions = z
  .object({ name: z.string(NAME_EXPECTED).regex(NAME, NAME_EXPECTED) })
  .catchall(z.union([z.string(), z.number(), z.boolean()], { error: NO_VALUE }));

type NamedOptions = z.output<typeof namedOptions>;

/** Name of the field with the variants of a request. */
export const VARIANTS_FIELD = 'variants';
const VARIANTS_EXPECTED = 'a JSON array of objects, each with a name and options';

/** Returns the options of an entry as text fields. */
export function toTextFields({ name: _, ...options }: NamedOptions): TextField[] {
  return Object.entries(options).map(([field, value]) => [field, String(value)]);
}

/** Fields that a field replaces: other names of it, and other ways to set the size. */
const REPLACED_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['output_format', ['format']],
  ['format', ['output_format']],
  ['strip_metadata', ['metadata']],
  ['metadata', ['strip_metadata']],
  ['scale', ['width', 'height', 'fit']],
  ['width', ['scale']],
  ['height', ['scale']],
]);

/** Returns fields with others, without those that the others replace, also by another name. */
export function withOverrides(fields: readonly TextField[], others: readonly TextField[]): TextField[] {
  const replaced = new Set(
    others.flatMap(([name, value]) => (value === '' ? [] : [name, ...(REPLACED_FIELDS.get(name) ?? [])])),
  );
  return [...fields.filter(([name]) => !replaced.has(name)), ...others];
}

interface VariantRules {
  readonly parse: Parse<ConvertOptions>;
  readonly names: readonly string[];
  readonly maxVariants: number;
}

/**
 * Parses the values of `variants`: JSON arrays of entries, or entries. `base` applies to all.
 *
 * @throws {ServiceError} with status 400, naming the variant; with status 406 if `Accept` permits
 *   no format
 */
export function parseVariants(
  values: readonly string[],
  base: readonly TextField[],
  { parse, names, maxVariants }: VariantRules,
): Variant[] {
  // Each value has an entry or more. Parsing all that a form can have takes several milliseconds.
  if (values.length > maxVariants) throw serviceError('TOO_MANY_VARIANTS', values.length, maxVariants);
  const entries = values.flatMap(readEntries);
  if (entries.length > maxVariants) throw serviceError('TOO_MANY_VARIANTS', entries.length, maxVariants);
  const taken = new Set<string>();
  return entries.map((entry, at) => {
    const checked = namedOptions.safeParse(entry);
    if (!checked.success) {
      const { path, message } = checked.error.issues[0] as z.core.$ZodIssue;
      const field = sanitizeForDisplay(path.join('.'));
      throw serviceError('VARIANT_INVALID', String(at + 1), `${field}: ${message}.`);
    }
    const { name } = checked.data;
    const label = `"${name}"`;
    if (taken.has(name.toLowerCase()))
      throw serviceError('VARIANT_INVALID', label, 'another variant has this name.');
    taken.add(name.toLowerCase());
    try {
      const fields = toTextFields(checked.data);
      const [unknown] = fields.find(([field]) => !names.includes(field)) ?? [];
      const expected = `one of ${names.join(', ')}`;
      if (unknown !== undefined)
        throw serviceError('FIELD_INVALID', 'option', sanitizeForDisplay(unknown), expected);
      return { name, options: parse(withOverrides(base, fields)) };
    } catch (error) {
      // What `Accept` permits is no error of a variant.
      if (!(error instanceof ServiceError) || error.code === 'NOT_ACCEPTABLE') throw error;
      throw serviceError('VARIANT_INVALID', label, error.message);
    }
  });
}

/** Maximum images of a file's pages. Two digits or letters distinguish their working files. */
export const MAX_PAGE_IMAGES = 1000;

/**
 * Replaces each variant with several pages, whose format holds only one, by a variant for each
 * page: `p1` and so on.
 *
 * @throws {ServiceError} FIELD_INVALID if there are too many pages, before they are listed
 */
export function splitPages(variants: readonly Variant[]): Variant[] {
  const planned = variants.map((variant) => {
    const { options } = variant;
    const ranges = OUTPUTS[options.format].pages ? [] : (numberedPages(options) ?? []);
    return { variant, ranges, count: ranges.reduce((sum, [first, last]) => sum + 1 + last - first, 0) };
  });
  const [largest] = [...planned].sort((one, other) => other.count - one.count);
  if (largest && planned.reduce((sum, { count }) => sum + count, 0) > MAX_PAGE_IMAGES) {
    const expected = `at most ${MAX_PAGE_IMAGES} pages in all`;
    throw serviceError('FIELD_INVALID', 'pages', largest.variant.options.pages ?? '', expected);
  }
  return planned.flatMap(({ variant, ranges, count }) => {
    const { name, options } = variant;
    if (count < 2) return variant;
    return ranges.flatMap(([first, last]) =>
      Array.from({ length: 1 + last - first }, (_, at) => ({
        name: `${name && `${name}-`}p${first + at}`,
        options: { ...options, pages: `${first + at}` as const },
      })),
    );
  });
}

/** Parses a JSON array of entries, or one entry. */
function readEntries(text: string): unknown[] {
  const invalid = () =>
    serviceError('FIELD_INVALID', 'variants', sanitizeForDisplay(text), VARIANTS_EXPECTED);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid();
  }
  const entries: unknown[] = Array.isArray(value) ? value : [value];
  const isEntry = (one: unknown): boolean => typeof one === 'object' && one !== null && !Array.isArray(one);
  if (entries.length === 0 || !entries.every(isEntry)) throw invalid();
  return entries;
}
