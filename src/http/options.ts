import { z } from 'zod';
import type { ConvertOptions } from '../convert/plan/types.ts';
import { fail } from '../errors.ts';
import { type OutputType, outputTypeNamed } from '../formats.ts';
import type { TextField } from './upload.ts';

/** Form fields → ConvertOptions. Each field's check says, in words, what it expects. */

const wholeNumber = (least: number, most: number) => {
  const expected = `a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, expected)
    .transform(Number)
    .refine((value) => value >= least && value <= most, expected);
};

const YES = ['true', '1', 'yes', 'on'];
const NO = ['false', '0', 'no', 'off'];
const trueOrFalse = z
  .string()
  .toLowerCase()
  .refine((word) => [...YES, ...NO].includes(word), 'true or false (or 1/0, yes/no, on/off)')
  .transform((word) => YES.includes(word));

const outputFormat = (outputs: readonly OutputType[]) =>
  z.string().transform((word, context): OutputType => {
    const type = outputTypeNamed(word);
    if (type && outputs.includes(type)) return type;
    context.addIssue({ code: 'custom', message: `one of ${outputs.join(', ')}` });
    return z.NEVER;
  });

const schemaFor = (outputs: readonly OutputType[]) =>
  z.object({
    output_format: outputFormat(outputs).optional(),
    format: outputFormat(outputs).optional(),
    quality: wholeNumber(1, 100).default(80),
    width: wholeNumber(1, 16384).optional(),
    height: wholeNumber(1, 16384).optional(),
    strip_metadata: trueOrFalse.default(true),
  });

export type ParseOptions = (fields: readonly TextField[]) => ConvertOptions;

/**
 * Makes the function that reads the options from a form's text fields. An empty field
 * is as if absent, and one that is not an option is passed over.
 *
 * It throws a ServiceError with status 400 that names field, value and what was expected.
 *
 * @param outputs the formats that can be written on this machine
 */
export function createParseOptions(outputs: readonly OutputType[]): ParseOptions {
  const schema = schemaFor(outputs);
  const known = Object.keys(schema.shape);

  return (fields) => {
    const given = new Map<string, string>();
    for (const [name, value] of fields) {
      if (value === '' || !known.includes(name)) continue;
      if (given.has(name)) throw fail('FIELD_REPEATED', name);
      given.set(name, value);
    }
    const result = schema.safeParse(Object.fromEntries(given));
    const [issue] = result.error?.issues ?? [];
    if (!result.success || issue) {
      const name = String(issue?.path[0]);
      throw fail('FIELD_INVALID', name, printable(given.get(name) ?? ''), issue?.message ?? 'another value');
    }
    const { output_format, format, quality, width, height, strip_metadata } = result.data;
    if (output_format && format && output_format !== format) {
      throw fail('FORMATS_DIFFER', given.get('output_format') ?? '', given.get('format') ?? '');
    }
    const chosen = output_format ?? format ?? 'webp';
    return { format: chosen, quality, width, height, stripMetadata: strip_metadata };
  };
}

/** A client's own words, short and harmless enough to be said back. */
function printable(value: string): string {
  const clean = value.replace(/\p{C}/gu, '\uFFFD');
  return clean.length > 40 ? `${clean.slice(0, 40)}…` : clean;
}
