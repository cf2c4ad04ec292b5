/** @module Validates form fields. The API reference is generated from the same checks and descriptions. */
import { z } from 'zod';
import { serviceError } from '../errors.ts';
import type { OutputType } from '../formats.ts';
import { sanitizeForDisplay } from '../text.ts';
import type { OnError } from './batch.ts';
import { DEFAULT_FORMAT, findConflict, oneOf, optionFields, outputFormat } from './options.ts';
import type { ConvertOptions } from './plan/types.ts';

const convertFields = (outputs: readonly OutputType[]) =>
  z.object({
    // No default in the schema: generated clients would send it in addition to the user's `format`.
    output_format: outputFormat(outputs)
      .optional()
      .describe(
        `Output format, in any case. \`jpeg\` means \`jpg\`. Default: the value of \`format\`, or \`${DEFAULT_FORMAT}\`.`,
      ),
    format: outputFormat(outputs)
      .optional()
      .describe('Alternative name of `output_format`. If both are sent, they must be equal.'),
    ...optionFields(outputs),
  });

const batchFields = (outputs: readonly OutputType[]) =>
  convertFields(outputs).extend({
    on_error: oneOf('fail', 'skip')
      .default('fail')
      .describe(
        'What to do if a file fails. `fail`: the request fails with the status of that file, and the message names the file. `skip`: the archive contains the other files, and its `errors.json` lists the errors; if all files fail, the response is the error of the first file. Send this field before the files, so that it also applies to files that are rejected during the upload.',
      ),
  });

/** Returns the checks of the text fields of both forms. `outputs` are the enabled output formats. */
export const formFields = (outputs: readonly OutputType[]) => ({
  convert: convertFields(outputs),
  batch: batchFields(outputs),
});

/** The name and the value of a text field of a form. */
export type TextField = readonly [name: string, value: string];

/**
 * Parses the text fields of a form. Ignores empty and unknown fields.
 *
 * @throws {ServiceError} with status 400, naming the field, its value and what was expected
 */
export type Parse<T> = (fields: readonly TextField[]) => T;

/** Options of a batch. */
export interface BatchOptions {
  readonly options: ConvertOptions;
  readonly onError: OnError;
}

/**
 * Creates the functions that parse the options of both endpoints.
 *
 * @param outputs the enabled output formats
 */
export function createParsers(outputs: readonly OutputType[]): {
  convert: Parse<ConvertOptions>;
  batch: Parse<BatchOptions>;
} {
  const checks = formFields(outputs);
  return {
    convert: (fields) => toOptions(check(checks.convert, fields), fields, outputs),
    batch(fields) {
      const { on_error, ...rest } = check(checks.batch, fields);
      return { options: toOptions(rest, fields, outputs), onError: on_error };
    },
  };
}

function check<S extends z.ZodObject>(schema: S, fields: readonly TextField[]): z.output<S> {
  const given = new Map<string, string>();
  for (const [name, value] of fields) {
    if (value === '' || !Object.hasOwn(schema.shape, name)) continue;
    if (given.has(name)) throw serviceError('FIELD_REPEATED', name);
    given.set(name, value);
  }
  const result = schema.safeParse(Object.fromEntries(given));
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
  const name = String(path[0]);
  throw serviceError('FIELD_INVALID', name, sanitizeForDisplay(given.get(name) ?? ''), message);
}

function toOptions(
  checked: z.output<ReturnType<typeof convertFields>>,
  fields: readonly TextField[],
  outputs: readonly OutputType[],
): ConvertOptions {
  const { output_format, format, strip_metadata, max_bytes, ...rest } = checked;
  if (output_format && format && output_format !== format) {
    const sent = (field: string) => fields.find(([name, value]) => name === field && value !== '')?.[1] ?? '';
    throw serviceError('CONFLICTING_FORMATS', sent('output_format'), sent('format'));
  }
  const options = {
    ...rest,
    format: output_format ?? format ?? DEFAULT_FORMAT,
    maxBytes: max_bytes,
    stripMetadata: strip_metadata,
  };
  const conflict = findConflict(options, outputs);
  if (conflict) throw serviceError('FIELD_INVALID', conflict.field, conflict.value, conflict.expected);
  return options;
}
