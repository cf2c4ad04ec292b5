import { z } from 'zod';
import type { OnError } from '../convert/batch.ts';
import type { ConvertOptions } from '../convert/plan/types.ts';
import { fail } from '../errors.ts';
import { type OutputType, outputTypeNamed } from '../formats.ts';
import { printable } from './printable.ts';
import type { TextField } from './upload.ts';

/**
 * Form fields → ConvertOptions. Each field's check says, in words, what it expects. What comes out of a check and
 * what is told of the field are also what the API reference says of it.
 */

const wholeNumber = (least: number, most: number) => {
  const expected = `a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, expected)
    .transform(Number)
    .pipe(z.int(expected).min(least, expected).max(most, expected));
};

const trueOrFalse = z.stringbool({
  truthy: ['true', '1', 'yes', 'on'],
  falsy: ['false', '0', 'no', 'off'],
  error: 'true or false (or 1/0, yes/no, on/off)',
});

const DEFAULT_FORMAT: OutputType = 'webp';

const outputFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .transform(outputTypeNamed)
    .pipe(z.enum(outputs, `one of ${outputs.join(', ')}`));

const oneOf = <const T extends string>(...words: [T, T]) =>
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(words, words.join(' or ')));

/** CSS hex, three or six digits; the mark in front may be left out, since shells take it for a comment. */
const colour = z
  .string()
  .regex(/^#?(?:[\dA-Fa-f]{3}|[\dA-Fa-f]{6})$/, 'a colour as #rgb or #rrggbb')
  .overwrite((text) => {
    const digits = text.replace('#', '').toLowerCase();
    return `#${digits.length === 3 ? digits.replace(/./g, '$&$&') : digits}`;
  });

const convertFields = (outputs: readonly OutputType[]) =>
  z.object({
    output_format: outputFormat(outputs).optional().meta({
      description: 'What the picture is to become; in any case, and `jpeg` for `jpg`.',
      default: DEFAULT_FORMAT,
    }),
    format: outputFormat(outputs)
      .optional()
      .describe('Another name of `output_format`. When both are sent, they must say the same.'),
    quality: wholeNumber(1, 100)
      .default(80)
      .describe('1 is the smallest file, 100 the best picture. Acts on webp, jpg and pdf.'),
    width: wholeNumber(1, 16384)
      .optional()
      .meta({
        description:
          'Most pixels across. The picture is fitted inside, its aspect kept, and never enlarged; an SVG is drawn at the size asked for.',
        examples: [1200],
      }),
    height: wholeNumber(1, 16384)
      .optional()
      .meta({ description: 'Most pixels down, with the meaning of `width`.', examples: [800] }),
    strip_metadata: trueOrFalse
      .default(true)
      .describe(
        'Whether EXIF, IPTC, XMP and the colour profile are taken out; when not, they stay where the format can hold them. Also `1/0`, `yes/no`, `on/off`.',
      ),
    frames: oneOf('all', 'first')
      .optional()
      .describe(
        'Which frames of an animation. When absent: all where the output can move, and the first elsewhere. A PDF gets a page a frame only for `all`.',
      ),
    pages: oneOf('all', 'first')
      .optional()
      .describe('Which pages of a TIFF that becomes a PDF. When absent: all.'),
    background: colour.optional().meta({
      description:
        'What transparency is laid over where the format has none: a colour as `#rgb` or `#rrggbb`. When absent: white.',
      examples: ['#ffffff', '#08f'],
    }),
  });

const batchFields = (outputs: readonly OutputType[]) =>
  convertFields(outputs).extend({
    on_error: oneOf('fail', 'skip')
      .default('fail')
      .describe(
        'What becomes of the rest when a file is no good. `fail`: the request fails with the status of that file, and the message names it. `skip`: the archive holds the rest, and its `errors.json` says what was wrong; when nothing is left, the error of the first file is the answer. Send it before the files, so that it also counts for what is refused while it arrives.',
      ),
  });

/** The checks of both forms' text fields, for the formats that can be written on this machine. */
export const formFields = (outputs: readonly OutputType[]) => ({
  convert: convertFields(outputs),
  batch: batchFields(outputs),
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
  const checks = formFields(outputs);
  return {
    convert: (fields) => toOptions(check(checks.convert, fields), fields),
    batch(fields) {
      const { on_error, ...rest } = check(checks.batch, fields);
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
  return { ...rest, format: output_format ?? format ?? DEFAULT_FORMAT, stripMetadata: strip_metadata };
}
