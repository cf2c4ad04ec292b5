import { z } from 'zod';
import { integer, OPTION_FIELDS, outputFormat } from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import { serviceError } from '../../errors.ts';
import type { OutputType } from '../../formats.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { CliError } from '../context.ts';

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

export interface CliOptions {
  readonly format: OutputType | undefined;
  readonly options: Omit<ConvertOptions, 'format'>;
  /** Conversions at once. */
  readonly jobs: number | undefined;
}

const { strip_metadata: _, ...fields } = OPTION_FIELDS;
const schemaFor = (outputs: readonly OutputType[]) =>
  z.object({
    ...fields,
    format: outputFormat(outputs).optional(),
    jobs: integer(1, 1024).optional(),
  });

/**
 * @param outputs the formats that are on
 * @throws Refused naming every wrong value, with status 2
 */
export function parseOptions(flags: Flags, outputs: readonly OutputType[]): CliOptions {
  const result = schemaFor(outputs).safeParse(flags);
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
