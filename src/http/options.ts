import { z } from 'zod';
import type { OnError } from '../convert/batch.ts';
import type { ConvertOptions } from '../convert/plan/types.ts';
import { fail } from '../errors.ts';
import { type OutputType, outputTypeNamed } from '../formats.ts';
import { printable } from './printable.ts';
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

const allOrFirst = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['all', 'first'], 'all or first'));

/** CSS hex, three or six digits; the mark in front may be left out, since shells take it for a comment. */
const colour = z
  .string()
  .regex(/^#?(?:[\da-f]{3}|[\da-f]{6})$/i, 'a colour as #rgb or #rrggbb')
  .transform((text) => {
    const digits = text.replace('#', '').toLowerCase();
    return `#${digits.length === 3 ? digits.replace(/./g, '$&$&') : digits}`;
  });

const convertFields = (outputs: readonly OutputType[]) =>
  z.object({
    output_format: outputFormat(outputs).optional(),
    format: outputFormat(outputs).optional(),
    quality: wholeNumber(1, 100).default(80),
    width: wholeNumber(1, 16384).optional(),
    height: wholeNumber(1, 16384).optional(),
    strip_metadata: trueOrFalse.default(true),
    frames: allOrFirst.optional(),
    pages: allOrFirst.optional(),
    background: colour.optional(),
  });

const batchFields = (outputs: readonly OutputType[]) =>
  convertFields(outputs).extend({
    on_error: z
      .string()
      .toLowerCase()
      .pipe(z.enum(['fail', 'skip'], 'fail or skip'))
      .default('fail'),
  });

export type Parse<T> = (fields: readonly TextField[]) => T;
export interface BatchOptions {
  readonly options: ConvertOptions;
  readonly onError: OnError;
}

/**
 * Makes the functions that read the options of both endpoints from a form's text fields. An
 * empty field is as if absent, and one that is not an option is passed over.
 *
 * They throw a ServiceError with status 400 that names field, value and what was expected.
 *
 * @param outputs the formats that can be written on this machine
 */
export function createParsers(outputs: readonly OutputType[]): {
  convert: Parse<ConvertOptions>;
  batch: Parse<BatchOptions>;
} {
  const forConvert = convertFields(outputs);
  const forBatch = batchFields(outputs);
  return {
    convert: (fields) => toOptions(check(forConvert, fields), fields),
    batch(fields) {
      const { on_error, ...rest } = check(forBatch, fields);
      return { options: toOptions(rest, fields), onError: on_error };
    },
  };
}

function check<S extends z.ZodObject>(schema: S, fields: readonly TextField[]): z.output<S> {
  const given = new Map<string, string>();
  for (const [name, value] of fields) {
    if (value === '' || !Object.hasOwn(schema.shape, name)) continue;
    if (given.has(name)) throw fail('FIELD_REPEATED', name);
    given.set(name, value);
  }
  const result = schema.safeParse(Object.fromEntries(given));
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
  const name = String(path[0]);
  throw fail('FIELD_INVALID', name, printable(given.get(name) ?? ''), message);
}

function toOptions(
  checked: z.output<ReturnType<typeof convertFields>>,
  fields: readonly TextField[],
): ConvertOptions {
  const { output_format, format, strip_metadata, ...rest } = checked;
  if (output_format && format && output_format !== format) {
    const sent = (field: string) => fields.find(([name, value]) => name === field && value !== '')?.[1] ?? '';
    throw fail('FORMATS_DIFFER', sent('output_format'), sent('format'));
  }
  return { ...rest, format: output_format ?? format ?? 'webp', stripMetadata: strip_metadata };
}
