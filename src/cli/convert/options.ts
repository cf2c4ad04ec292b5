/** @module Validates the options of the `convert` command. */
import { z } from 'zod';
import { integer, OPTION_FIELDS, outputFormat } from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { serviceError } from '../../errors.ts';
import { OUTPUT_TYPES, type OutputType } from '../../formats.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { CliError } from '../context.ts';

/** Options as given on the command line. */
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
  readonly update?: boolean;
  readonly delete?: boolean;
  readonly yes?: boolean;
  readonly watch?: boolean;
  readonly shard?: string;
  readonly url?: readonly string[];
  readonly report?: string;
}

/** Validated options. */
export interface CliOptions {
  readonly format: OutputType | undefined;
  readonly options: Omit<ConvertOptions, 'format'>;
  /** Number of concurrent conversions. */
  readonly jobs: number | undefined;
}

const { strip_metadata: _, ...fields } = OPTION_FIELDS;
const schema = z.object({
  ...fields,
  format: outputFormat(OUTPUT_TYPES).optional(),
  jobs: integer(1, 1024).optional(),
});

/**
 * Validates the options with the checks of the service.
 *
 * @throws {CliError} naming every invalid value, with status 2
 */
export function parseOptions(flags: Flags): CliOptions {
  const result = schema.safeParse(flags);
  if (result.success) {
    const { format, jobs, ...options } = result.data;
    return { format, jobs, options: { ...options, stripMetadata: !flags.keepMetadata } };
  }
  const lines = result.error.issues.map(({ path, message }) => {
    const name = String(path[0]) as keyof Flags;
    return serviceError('FIELD_INVALID', `--${name}`, sanitizeForDisplay(String(flags[name])), message)
      .message;
  });
  throw new CliError(lines.join('\n'), 2);
}

/** Returns the options as form fields of the API. */
export function toFormFields(flags: Flags, format: OutputType): [string, string][] {
  const given = Object.keys(OPTION_FIELDS).flatMap((name): [string, string][] => {
    const flag = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) as keyof Flags;
    return flags[flag] === undefined ? [] : [[name, String(flags[flag])]];
  });
  return [...given, ['output_format', format], ['strip_metadata', String(!flags.keepMetadata)]];
}
