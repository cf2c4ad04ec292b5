import { z } from 'zod';
import { OPTION_FIELDS, outputFormat, wholeNumber } from '../../convert/options.ts';
import type { ConvertOptions } from '../../convert/plan/types.ts';
import { fail } from '../../errors.ts';
import { OUTPUT_TYPES, type OutputType } from '../../formats.ts';
import { printable } from '../../printable.ts';
import { Refused } from '../surroundings.ts';

/** What was asked for on the command line, checked as the service checks its fields. */

/** As they were typed. */
export interface Flags {
  readonly output: string;
  readonly format?: string;
  readonly quality?: string;
  readonly width?: string;
  readonly height?: string;
  readonly frames?: string;
  readonly pages?: string;
  readonly background?: string;
  readonly keepMetadata?: boolean;
  readonly jobs?: string;
  readonly force?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

export interface Wishes {
  readonly format: OutputType | undefined;
  readonly options: Omit<ConvertOptions, 'format'>;
  /** Conversions at once. */
  readonly jobs: number | undefined;
}

const { strip_metadata: _, ...fields } = OPTION_FIELDS;
const schema = z.object({
  ...fields,
  format: outputFormat(OUTPUT_TYPES).optional(),
  jobs: wholeNumber(1, 1024).optional(),
});

/** @throws Refused naming every wrong value, with status 2 */
export function wishesOf(flags: Flags): Wishes {
  const result = schema.safeParse(flags);
  if (result.success) {
    const { format, jobs, ...options } = result.data;
    return { format, jobs, options: { ...options, stripMetadata: !flags.keepMetadata } };
  }
  const lines = result.error.issues.map(({ path, message }) => {
    const name = String(path[0]) as keyof Flags;
    return fail('FIELD_INVALID', `--${name}`, printable(String(flags[name])), message).message;
  });
  throw new Refused(lines.join('\n'), 2);
}
