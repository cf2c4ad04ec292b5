/** @module The results of each file: one by the options of the command, or those of a preset. */
import type { Config } from '../../config.ts';
import { createParsers, findConflict, type Presets } from '../../conversion/forms.ts';
import { DEFAULT_FORMAT } from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import type { TextField } from '../../conversion/types.ts';
import { ServiceError, StartupError, serviceError } from '../../errors.ts';
import type { OutputType } from '../../formats.ts';
import { CliError } from '../context.ts';
import { type CliOptions, type Flags, flagName, optionTexts } from './options.ts';

/** One of the results of each file. */
export interface WantedResult {
  /** Name of the variant; undefined for the only result. */
  readonly variant?: string;
  readonly options: ConvertOptions;
}

/**
 * Returns the results of each file: one, or those of a preset with variants.
 *
 * @param options see {@link parseOptions}
 * @param format format of `--format` or `-o`, if there is one
 * @param outputs the enabled output formats
 * @throws {CliError} if there is no such preset, or if options contradict each other
 */
export async function parseResults(
  flags: Flags,
  { options }: CliOptions,
  format: OutputType | undefined,
  { outputs, config }: { outputs: readonly OutputType[]; config: Config },
): Promise<readonly WantedResult[]> {
  const { preset, presets: file, url } = flags;
  const single = { ...options, format: format ?? DEFAULT_FORMAT };
  if (file !== undefined && url)
    throw new CliError('--presets is for this machine: an instance of --url has its own presets.');
  if (preset === undefined) {
    if (file !== undefined) throw new CliError('--presets needs --preset with the name of a preset.');
    assertCompatible(single, outputs);
    return [{ options: single }];
  }
  if (url) {
    const why = 'only the instance knows the format of the preset, and names of results have its extension';
    if (format === undefined) throw new CliError(`--preset with --url needs --format: ${why}.`);
    const named: ConvertOptions & { readonly preset: string } = { ...single, preset };
    return [{ options: named }];
  }
  const path = file ?? config.PRESETS_FILE;
  if (path === undefined) throw new CliError('--preset needs --presets or PRESETS_FILE with a file.');
  const { readPresets } = await import('../../conversion/presets-file.ts');
  try {
    const setting = file === undefined ? 'PRESETS_FILE' : '--presets';
    const presets = readPresets(path, outputs, config, setting);
    const fields: TextField[] = Object.entries(optionTexts(flags, outputs));
    return parsePreset(preset, format === undefined ? fields : [...fields, ['format', format]], {
      presets,
      ...{ outputs, config },
    });
  } catch (error) {
    if (error instanceof ServiceError || error instanceof StartupError) throw new CliError(error.message);
    throw error;
  }
}

/** Parses the fields of a command as those of a request. */
function parsePreset(
  preset: string,
  fields: readonly TextField[],
  { presets, outputs, config }: { presets: Presets; outputs: readonly OutputType[]; config: Config },
): readonly WantedResult[] {
  const form = createParsers(outputs, config, presets).convert([...fields, ['preset', preset]]);
  const variants = form.variants.map(({ name, options }) => ({ variant: name, options }));
  const results = variants.length > 0 ? variants : [{ options: form.options }];
  if (results.some(({ options }) => options.accepted))
    throw new CliError(
      `Preset "${preset}" leaves the format to browsers (auto): use another preset, or --format.`,
    );
  return results;
}

/**
 * Checks that the options do not contradict each other.
 *
 * @param outputs the enabled output formats
 * @throws {CliError} naming the option
 */
function assertCompatible(options: ConvertOptions, outputs: readonly OutputType[]): void {
  const conflict = findConflict(options, outputs);
  if (!conflict) return;
  const { field, value, expected } = conflict;
  throw new CliError(serviceError('FIELD_INVALID', flagName(field), value, expected).message);
}
