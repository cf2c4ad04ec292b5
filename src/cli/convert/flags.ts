/** @module Validates the options of `convert`, and returns what the results of each file are. */
import { z } from 'zod';
import { parseAmount, sanitizeForDisplay } from '../../base/text.ts';
import type { Variant, WatermarkFile } from '../../conversion/context.ts';
import { readWatermark } from '../../conversion/input/watermark-image.ts';
import type { ConvertOptions } from '../../conversion/plan/types.ts';
import {
  acceptedFormats,
  DEFAULT_FORMAT,
  frameDelay,
  integer,
  loopCount,
  optionFields,
  outputFormat,
  toOptionValues,
  type WantedFormat,
} from '../../conversion/request/checks.ts';
import {
  type Conflict,
  describePart,
  findCombinedConflict,
  findConflict,
  SMALLEST,
  toPart,
} from '../../conversion/request/conflicts.ts';
import { createParsers } from '../../conversion/request/forms.ts';
import { splitPages } from '../../conversion/request/variants.ts';
import type { FrameTiming } from '../../images/combined/combiner.ts';
import type { Config } from '../../tables/config.ts';
import { ServiceError, StartupError, serviceError } from '../../tables/errors.ts';
import {
  ALL_OUTPUT_TYPES,
  explainDisabled,
  type InputType,
  OUTPUTS,
  type OutputType,
} from '../../tables/formats.ts';
import { fieldName, flagName, OPTION_NAMES, type OptionName, optionRow } from '../../tables/options.ts';
import { CliError } from '../context.ts';
import { toFileError } from './converter.ts';

/** Flags with a text, besides those of the table of options. */
type TextFlag =
  | ('format' | 'preset' | 'presets' | 'watermark' | 'jobs' | 'delay' | 'loop' | 'shard' | 'report')
  | ('verify' | 'name' | 'maxFileSize' | 'maxPixels');
type Switch =
  | ('combine' | 'force' | 'quiet' | 'json' | 'update' | 'delete' | 'yes' | 'watch' | 'verbose' | 'dryRun')
  | ('keepExtension' | 'safeNames' | 'preserveTimes');

/** Options as given on the command line. A flag without a value is true. */
export interface Flags
  extends Readonly<
    Partial<Record<OptionName, string | true> & Record<TextFlag, string> & Record<Switch, boolean>>
  > {
  readonly keepMetadata?: true;
  readonly url?: readonly string[];
}

/**
 * Validates the options with the checks of the service.
 *
 * @throws {CliError} naming every invalid value
 */
export function parseOptions(flags: Flags, outputs: readonly OutputType[]) {
  if (flags.keepMetadata && (flags.metadata ?? 'all') !== 'all')
    throw new CliError('--keep-metadata and --metadata contradict each other.');
  const others = {
    format: outputFormat(outputs).optional(),
    jobs: integer(1, 1024).optional(),
    delay: frameDelay().optional(),
    loop: loopCount().optional(),
  };
  const { format: name, jobs: count, delay: ms, loop: times } = flags;
  const given = { ...optionTexts(flags), format: name, jobs: count, delay: ms, loop: times };
  const result = z.object({ ...optionFields(outputs), ...others }).safeParse(given);
  if (result.success) {
    const { format, jobs, delay, loop } = result.data;
    return { format, jobs, delay, loop, options: toOptionValues(result.data) };
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

/** `Accept` of a command that chooses among all formats. */
const ALL_FORMATS = ALL_OUTPUT_TYPES.map((type) => OUTPUTS[type].mediaType).join();

/** Returns a text as the API expects it: 50 for `--scale 50%`, 100000 for `--max-bytes 100k`. */
function plainNumber(text: string, unit: string | undefined): string {
  if (unit === '%') return text.replace(/%$/, '');
  return unit === 'kB' ? String(parseAmount(text) ?? text) : text;
}

/** Returns the options that were given, as texts by the field name of the API. */
function optionTexts(flags: Flags): Record<string, string> {
  const given: Readonly<Record<string, unknown>> = { ...flags };
  const texts = OPTION_NAMES.flatMap((name) => {
    const value = given[name];
    const isDefault = value === true && optionRow(name).default === true; // the parser sets a flag with --no-
    if (value === undefined || isDefault) return [];
    return [[fieldName(name), plainNumber(String(value), optionRow(name).control?.unit)] as const];
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

/** Fields for what is kept of metadata. Up to 0.2.0, there is no `metadata` and no copyright. */
const METADATA_FIELDS: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map([
  ['none', { strip_metadata: 'true' }],
  ['copyright', { metadata: 'copyright' }],
  ['all', { strip_metadata: 'false' }],
]);

/** Returns the options as form fields of the API, in words that earlier versions know, too. */
export function toFormFields(flags: Flags, format: OutputType): [string, string][] {
  const { preset } = flags;
  const { metadata = '', ...others } = optionTexts(flags);
  const fields = { ...others, ...METADATA_FIELDS.get(metadata.toLowerCase()), output_format: format };
  return Object.entries(preset === undefined ? fields : { ...fields, preset });
}

/**
 * The results of each file, of which an only one has an empty name, and the watermark of
 * `--watermark` or of their preset.
 */
interface Wanted {
  readonly results: readonly Variant[];
  readonly watermark?: WatermarkFile | undefined;
  /** That of a preset with `combine`. */
  readonly timing?: FrameTiming | undefined;
}

interface ResultRules {
  /** Format of `--format` or `-o`, if there is one. */
  readonly format: WantedFormat | undefined;
  readonly types: readonly InputType[];
  readonly outputs: readonly OutputType[];
  readonly config: Config;
}

/**
 * Returns the results of each file: one, those of several pages, or those of a preset with
 * variants.
 *
 * @param options those of {@link parseOptions}
 * @throws {CliError} if there is no such preset, if options contradict each other, or if a
 *   watermark cannot be read
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
  const single: ConvertOptions =
    format === SMALLEST
      ? {
          ...options,
          format: DEFAULT_FORMAT,
          accepted: acceptedFormats(ALL_FORMATS, outputs, options),
          smallest: true,
          quality: 'auto',
        }
      : { ...options, format: format ?? DEFAULT_FORMAT };
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
  const { openWatermarks, readPresets } = await import('../../conversion/input/presets-file.ts');
  const setting = flags.presets === undefined ? 'PRESETS_FILE' : '--presets';
  const all = readPresets(path, outputs, config, setting);
  // Only this one: another command may not have the images of the others.
  const own = new Map([...all].filter(([name]) => name === preset));
  const presets = new Map([...all, ...(await openWatermarks(own, types, [setting, path]))]);
  const fields = Object.entries({ ...optionTexts(flags), ...(format && { format }), preset });
  const form = createParsers(outputs, config, presets).convert(fields, ALL_FORMATS);
  const results = form.variants.length > 0 ? form.variants : [{ name: '', options: form.options }];
  if (results.some(({ options }) => options.accepted && !options.smallest))
    throw new CliError(
      `Preset "${preset}" leaves the format to browsers (auto): use another preset, or --format.`,
    );
  return { results, watermark: form.watermark, timing: form.combination?.timing };
}

/** @throws {CliError} for an option that needs the name of a result before its format is chosen */
export function assertSmallest({ url, update, delete: deletes, watch, shard }: Flags): void {
  const excluded = Object.entries({ url, update, delete: deletes, watch, shard }).find(([, value]) => value);
  if (!excluded) return;
  const why = 'the format of a result, and so its name, is chosen during the conversion';
  throw new CliError(`${flagName(excluded[0])} is not possible with --format ${SMALLEST}: ${why}.`);
}

/**
 * Returns the only result of each file as a part of one file.
 *
 * @throws {CliError} if its options, or others of the command, contradict that
 */
export function toCombinedParts(
  results: readonly Variant[],
  { url, verify, shard, delete: deletes, watch }: Flags,
  outputs: readonly OutputType[],
): Variant[] {
  const excluded = Object.entries({ url, verify, shard, delete: deletes, watch }).find(([, value]) => value);
  if (excluded) throw new CliError(`${flagName(excluded[0])} is not possible if all inputs become one file.`);
  return results.map(({ name, options }) => {
    const conflict = findCombinedConflict(options, false, outputs);
    if (conflict) throw conflictError(conflict);
    return { name, options: toPart(options) };
  });
}

/**
 * Returns the results as parts of one file, each of which is described without the others.
 *
 * @throws {CliError} if their options contradict that
 */
export const toDescribedParts = (results: readonly Variant[], outputs: readonly OutputType[]): Variant[] =>
  results.map(({ name, options }) => {
    const part = describePart(options, outputs);
    if ('conflict' in part) throw conflictError(part.conflict);
    return { name, options: part.options };
  });

/** @throws {CliError} naming the option, if it contradicts another one */
function assertCompatible(options: ConvertOptions, outputs: readonly OutputType[]): void {
  const conflict = findConflict(options, outputs);
  if (conflict?.[0] === 'lossless') throw new CliError('--lossless and --max-bytes contradict each other.');
  if (conflict) throw conflictError(conflict);
}

function conflictError([field, value, expected]: Conflict): CliError {
  const flag = field === 'output_format' ? '--format' : flagName(field);
  return new CliError(serviceError('FIELD_INVALID', flag, value, expected).message);
}
