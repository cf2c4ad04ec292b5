/** @module Validates the options of the `convert` command, and returns what the results of each file are. */
import { z } from 'zod';
import type { Config } from '../../config.ts';
import { createParsers, findConflict } from '../../conversion/forms.ts';
import {
  DEFAULT_FORMAT,
  integer,
  optionFields,
  outputFormat,
  toOptionValues,
} from '../../conversion/options.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import type { Variant, WatermarkFile } from '../../conversion/types.ts';
import { splitPages } from '../../conversion/variants.ts';
import { readWatermark } from '../../conversion/watermark.ts';
import { ServiceError, StartupError, serviceError } from '../../errors.ts';
import { explainDisabled, type InputType, type OutputType } from '../../formats.ts';
import { fieldName, flagName, OPTION_NAMES, type OptionName, optionRow } from '../../options.ts';
import { sanitizeForDisplay } from '../../text.ts';
import { CliError } from '../context.ts';
import { toFileError } from './converter.ts';

/** Options as given on the command line. A flag without a value is true. */
export interface Flags extends Readonly<Partial<Record<OptionName, string | true>>> {
  readonly format?: string;
  readonly preset?: string;
  readonly presets?: string;
  readonly watermark?: string;
  readonly keepMetadata?: true;
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
  readonly verify?: string;
  readonly verbose?: boolean;
  readonly dryRun?: boolean;
  readonly keepExtension?: boolean;
  readonly safeNames?: boolean;
  readonly name?: string;
  readonly preserveTimes?: boolean;
  readonly maxFileSize?: string;
  readonly maxPixels?: string;
}

/**
 * Validates the options with the checks of the service.
 *
 * @param outputs the enabled output formats
 * @throws {CliError} naming every invalid value
 */
export function parseOptions(flags: Flags, outputs: readonly OutputType[]) {
  if (flags.keepMetadata && (flags.metadata ?? 'all') !== 'all')
    throw new CliError('--keep-metadata and --metadata contradict each other.');
  const others = { format: outputFormat(outputs).optional(), jobs: integer(1, 1024).optional() };
  const given = { ...optionTexts(flags), format: flags.format, jobs: flags.jobs };
  const result = z.object({ ...optionFields(outputs), ...others }).safeParse(given);
  if (result.success) {
    const { format, jobs } = result.data;
    return { format, jobs, options: toOptionValues(result.data) };
  }
  const lines = result.error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const value = sanitizeForDisplay(String(given[name as keyof typeof given]));
    const expected = name === 'format' ? message + explainDisabled(value) : message;
    return serviceError('FIELD_INVALID', flagName(name), value, expected).message;
  });
  throw new CliError(lines.join('\n'));
}

type OptionValues = ReturnType<typeof parseOptions>['options'];

/** Returns the options that were given, as texts by the field name of the API: the 50 of `--scale 50%`. */
function optionTexts(flags: Flags): Record<string, string> {
  const given: Readonly<Record<string, unknown>> = { ...flags };
  const texts = OPTION_NAMES.flatMap((name) => {
    const value = given[name];
    if (value === undefined) return [];
    const isPercent = optionRow(name).control?.unit === '%';
    return [[fieldName(name), isPercent ? String(value).replace(/%$/, '') : String(value)] as const];
  });
  return scaleByPercent({ ...Object.fromEntries(texts), ...(flags.keepMetadata && { metadata: 'all' }) });
}

/**
 * Replaces `--width 50%` or `--height 50%` by `--scale 50`.
 *
 * @throws {CliError} if another option states the size, too
 */
function scaleByPercent(texts: Record<string, string>): Record<string, string> {
  const { width, height, scale, ...others } = texts;
  const percent = [width, height].find((side) => side?.endsWith('%'));
  if (percent === undefined) return texts;
  if ([width, height, scale].some((size) => size !== undefined && size !== percent))
    throw new CliError(
      `A size in percent, such as ${sanitizeForDisplay(percent)}, is the only size of a result.`,
    );
  return { ...others, scale: percent.slice(0, -1) };
}

/** Fields that state what is kept of the metadata. Versions up to 0.2.0 ignore `metadata`, and have no copyright. */
const METADATA_FIELDS: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map([
  ['none', { strip_metadata: 'true' }],
  ['copyright', { metadata: 'copyright' }],
  ['all', { strip_metadata: 'false' }],
]);

/** Returns the options as form fields of the API, in the words that instances of earlier versions know, too. */
export function toFormFields(flags: Flags, format: OutputType): [string, string][] {
  const { preset } = flags;
  const { metadata = '', ...others } = optionTexts(flags);
  const fields = { ...others, ...METADATA_FIELDS.get(metadata.toLowerCase()), output_format: format };
  return Object.entries(preset === undefined ? fields : { ...fields, preset });
}

/** The results of each file, of which an only one has an empty name, and the watermark of `--watermark` or of their preset. */
interface Wanted {
  readonly results: readonly Variant[];
  readonly watermark?: WatermarkFile | undefined;
}

interface ResultRules {
  /** Format of `--format` or `-o`, if there is one. */
  readonly format: OutputType | undefined;
  /** The enabled formats. */
  readonly types: readonly InputType[];
  readonly outputs: readonly OutputType[];
  readonly config: Config;
}

/**
 * Returns the results of each file: one, those of several pages, or those of a preset with variants.
 *
 * @param options those of {@link parseOptions}
 * @throws {CliError} if there is no such preset, if options contradict each other, or if a watermark cannot be read
 */
export async function parseResults(flags: Flags, options: OptionValues, rules: ResultRules): Promise<Wanted> {
  const wanted = await findResults(flags, options, rules).catch((error) => {
    const isKnown = error instanceof ServiceError || error instanceof StartupError;
    throw isKnown ? new CliError(error.message) : error;
  });
  return { ...wanted, watermark: (await openWatermark(flags, rules.types)) ?? wanted.watermark };
}

/** @throws {CliError} if the file of `--watermark` cannot be read, or is no image for one */
async function openWatermark({ watermark: path }: Flags, types: readonly InputType[]) {
  if (path === undefined) return undefined;
  return readWatermark(path, types).catch((error) => {
    throw new CliError(`--watermark ${sanitizeForDisplay(path)}: ${toFileError(error, path).message}`);
  });
}

/** @throws {ServiceError} if there are too many pages, and the errors of {@link readPreset} */
async function findResults(flags: Flags, options: OptionValues, rules: ResultRules): Promise<Wanted> {
  const { preset, presets: file, url } = flags;
  const { format, outputs } = rules;
  const single = { ...options, format: format ?? DEFAULT_FORMAT };
  if (file !== undefined && url)
    throw new CliError('--presets is for this machine: an instance of --url has its own presets.');
  if (preset === undefined) {
    if (file !== undefined) throw new CliError('--presets needs --preset with the name of a preset.');
    assertCompatible(single, outputs);
    return { results: splitPages([{ name: '', options: single }]) };
  }
  if (!url) return readPreset(preset, flags, rules);
  const why = 'only the instance knows the format of the preset, and names of results have its extension';
  if (format === undefined) throw new CliError(`--preset with --url needs --format: ${why}.`);
  const named: ConvertOptions & { readonly preset: string } = { ...single, preset };
  return { results: [{ name: '', options: named }] };
}

/**
 * Reads a preset, and parses the options of the command beside it as the fields of a request.
 *
 * @throws {StartupError} if the file has an error
 * @throws {ServiceError} if there is no such preset, or options contradict each other
 */
async function readPreset(preset: string, flags: Flags, rules: ResultRules): Promise<Wanted> {
  const { format, types, outputs, config } = rules;
  const path = flags.presets ?? config.PRESETS_FILE;
  if (path === undefined) throw new CliError('--preset needs --presets or PRESETS_FILE with a file.');
  const { openWatermarks, readPresets } = await import('../../conversion/presets-file.ts');
  const setting = flags.presets === undefined ? 'PRESETS_FILE' : '--presets';
  const all = readPresets(path, outputs, config, setting);
  // Only this one: another command may not have the images of the others.
  const own = new Map([...all].filter(([name]) => name === preset));
  const presets = new Map([...all, ...(await openWatermarks(own, types, [setting, path]))]);
  const fields = Object.entries({ ...optionTexts(flags), ...(format && { format }), preset });
  const form = createParsers(outputs, config, presets).convert(fields);
  const results = form.variants.length > 0 ? form.variants : [{ name: '', options: form.options }];
  if (results.some(({ options }) => options.accepted))
    throw new CliError(
      `Preset "${preset}" leaves the format to browsers (auto): use another preset, or --format.`,
    );
  return { results, watermark: form.watermark };
}

/** @throws {CliError} naming the option, if it contradicts another one */
function assertCompatible(options: ConvertOptions, outputs: readonly OutputType[]): void {
  const conflict = findConflict(options, outputs);
  if (!conflict) return;
  const [field, value, expected] = conflict;
  if (field === 'lossless') throw new CliError('--lossless and --max-bytes contradict each other.');
  throw new CliError(serviceError('FIELD_INVALID', flagName(field), value, expected).message);
}
