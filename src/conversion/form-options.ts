import { z } from 'zod';
import { serviceError } from '../errors.ts';
import type { OutputType } from '../formats.ts';
import { sanitizeForDisplay } from '../text.ts';
import type { OnError } from './batch.ts';
import { conflictIn, DEFAULT_FORMAT, oneOf, optionFields, outputFormat } from './options.ts';
import type { ConvertOptions } from './plan/types.ts';

/**
 * Form fields → ConvertOptions. What comes out of a field's check and what is told of it are also what the API
 * reference says of it.
 */

const convertFields = (outputs: readonly OutputType[]) =>
  z.object({
    // The schema names no default: clients that send defaults would contradict a `format` of the user's.
    output_format: outputFormat(outputs)
      .optional()
      .describe(
        `What the picture is to become; in any case, and \`jpeg\` for \`jpg\`. When absent: what \`format\` says, or \`${DEFAULT_FORMAT}\`.`,
      ),
    format: outputFormat(outputs)
      .optional()
      .describe('Another name of `output_format`. When both are sent, they must say the same.'),
    ...optionFields(outputs),
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

/** The name and the value of a text field of a form. */
export type TextField = readonly [name: string, value: string];

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
  const conflict = conflictIn(options, outputs);
  if (conflict) throw serviceError('FIELD_INVALID', conflict.field, conflict.value, conflict.expected);
  return options;
}
