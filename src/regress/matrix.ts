/**
 * @module The matrix of a regression check: the conversions of each image, and the thresholds of a
 * change. Options have the names and checks of the API.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse, YAMLError } from 'yaml';
import { z } from 'zod';
import type { TextField } from '../conversion/context.ts';
import { readPresets } from '../conversion/input/presets-file.ts';
import type { ConvertOptions } from '../conversion/plan/types.ts';
import { createOptionsParser, expandPreset, formSchemas, type Presets } from '../conversion/request/forms.ts';
import { namedOptions, toTextFields, VARIANTS_FIELD, withOverrides } from '../conversion/request/variants.ts';
import { systemReason } from '../files/system.ts';
import type { Config } from '../tables/config.ts';
import { ServiceError, StartupError } from '../tables/errors.ts';
import { ALL_OUTPUT_TYPES, type OutputType } from '../tables/formats.ts';
import { defaultThresholds, type Thresholds, thresholds } from './thresholds.ts';

/** One conversion that is applied to every image. */
export interface Case {
  /** Unique name, also the name of the result file. */
  readonly name: string;
  readonly options: ConvertOptions;
  /** {@link options} as form fields of the API. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface TestMatrix {
  readonly cases: readonly Case[];
  /** Returns the thresholds of a case for an image; undefined if it does not apply. */
  thresholds(image: string, name: string): Thresholds | undefined;
  /** Source of the matrix, stored with a baseline. */
  readonly source: MatrixSource;
}

/** The comparison is not possible. The message names the file, field or backend, and the cause. */
export class RegressError extends Error {
  override readonly name = 'RegressError';
}

const ownThresholds = thresholds.partial().optional();

const schema = z.strictObject({
  thresholds: ownThresholds,
  /** Path of a file with presets, relative to the matrix. */
  presets: z.string().optional(),
  cases: z.array(namedOptions.extend({ thresholds: ownThresholds })).min(1, 'expected at least one case'),
  overrides: z
    .array(
      z.strictObject({
        images: z.string().default('*'),
        cases: z.array(z.string()).optional(),
        thresholds: ownThresholds,
        skip: z.boolean().optional(),
      }),
    )
    .optional(),
});

/** Parsed YAML or JSON, not validated. {@link toMatrix} validates it. */
export type MatrixSource = Readonly<Record<string, unknown>>;

/**
 * Each output format with default options, and three common cases: a thumbnail, a small file, kept
 * metadata.
 */
export const defaultMatrix = (outputs: readonly OutputType[]): MatrixSource => ({
  cases: [
    ...outputs.map((format) => ({ name: format, format })),
    { name: 'png-300', format: 'png', width: 300, height: 300 },
    { name: 'jpg-square-300', format: 'jpg', width: 300, height: 300, fit: 'cover' },
    // At a lower quality, two encoders differ more.
    { name: 'webp-1000-q60', format: 'webp', width: 1000, quality: 60, thresholds: { patch: 12, deltaE: 1 } },
    { name: 'jpg-kept', format: 'jpg', strip_metadata: false },
  ],
});

/**
 * Validates a matrix.
 *
 * @param loadPresets returns the presets. Called if a case names one.
 * @throws {RegressError} that names the field and the expected value
 */
export function toMatrix(source: unknown, loadPresets?: () => Presets): TestMatrix {
  const result = schema.safeParse(source);
  if (!result.success) {
    const { issues } = result.error;
    const problems = issues.map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`);
    throw new RegressError(problems.join('\n'));
  }
  const { data } = result;
  if (data.cases.some((one) => 'preset' in one)) {
    const { presets: _, ...others } = data;
    const presets = loadPresets?.();
    return toMatrix({ ...others, cases: data.cases.flatMap((one) => withoutPreset(one, presets)) });
  }
  const cases = data.cases.map(({ name, thresholds: _, ...fields }) => toCase(name, fields));
  const names = cases.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw new RegressError(`two cases are named ${twice}`);
  const rules = (data.overrides ?? []).map((rule) => ({ ...rule, matches: glob(rule.images) }));
  const unknown = rules.flatMap((rule) => rule.cases ?? []).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new RegressError(`overrides: no case is named ${unknown}`);
  return {
    cases,
    source: source as MatrixSource,
    thresholds(image, name) {
      const at = names.indexOf(name);
      const { options } = cases[at] ?? {};
      if (!options) return undefined;
      const own = data.cases[at]?.thresholds;
      const matching = rules.filter(
        ({ matches, cases: only }) => matches(image) && (only?.includes(name) ?? true),
      );
      if (matching.some(({ skip }) => skip)) return undefined;
      const exceptions = matching.map((rule) => rule.thresholds ?? {});
      return Object.assign({}, defaultThresholds(options), data.thresholds, own, ...exceptions);
    },
  };
}

type NamedCase = z.output<typeof schema>['cases'][number];

/**
 * Replaces the preset of a case by its options, so that the matrix needs no other file. A preset
 * with variants becomes a case for each of them.
 *
 * @throws {RegressError} if there is no such preset
 */
function withoutPreset(given: NamedCase, presets: Presets | undefined): readonly unknown[] {
  const { name, thresholds: own, ...options } = given;
  if (!('preset' in options)) return [given];
  if (!presets)
    throw new RegressError(
      `case ${name}: a preset needs a file: "presets: FILE" in the matrix, or --presets, or PRESETS_FILE`,
    );
  const toCases = (suffix: string, fields: readonly TextField[]) => ({
    name: `${name}${suffix}`,
    ...Object.fromEntries(fields),
    thresholds: own,
  });
  if (presets.get(String(options.preset))?.watermarkPath !== undefined)
    throw new RegressError(`case ${name}: a preset with a watermark cannot be used here`);
  const fields = orRegressError(name, () => expandPreset(toTextFields({ name, ...options }), presets));
  const base = fields.filter(([field]) => field !== VARIANTS_FIELD && field !== 'on_error');
  const variants = fields.find(([field]) => field === VARIANTS_FIELD)?.[1];
  if (variants === undefined) return [toCases('', base)];
  return z
    .array(namedOptions)
    .parse(JSON.parse(variants))
    .map((variant) => toCases(`-${variant.name}`, withOverrides(base, toTextFields(variant))));
}

/**
 * Reads a matrix from a YAML file. JSON is a subset of YAML.
 *
 * @param config its file of presets is used if the matrix names none
 * @param presets file of presets that takes precedence over that of the matrix
 * @throws {RegressError} if the file, or the one of the presets, cannot be read or is invalid
 */
export async function readMatrix(
  path: string,
  config: Pick<Config, 'PRESETS_FILE' | 'MAX_VARIANTS'>,
  presets?: string,
): Promise<TestMatrix> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new RegressError(`${path} cannot be read: ${systemReason(error)}`);
  });
  try {
    const source = parse(text);
    const own = typeof source?.presets === 'string' ? resolve(dirname(path), source.presets) : undefined;
    const file = presets ?? own ?? config.PRESETS_FILE;
    if (file === undefined) return toMatrix(source);
    return toMatrix(source, () => readPresets(file, ALL_OUTPUT_TYPES, config, 'presets'));
  } catch (error) {
    if (error instanceof StartupError) throw new RegressError(error.message, { cause: error });
    if (error instanceof RegressError || error instanceof YAMLError)
      throw new RegressError(`${path}: ${error.message}`, { cause: error });
    throw error;
  }
}

const FORMS = formSchemas(ALL_OUTPUT_TYPES);
const parseFields = createOptionsParser(ALL_OUTPUT_TYPES, FORMS);
const FIELD_NAMES = Object.keys(FORMS.result.shape);

function toCase(name: string, given: Readonly<Record<string, string | number | boolean>>): Case {
  const fields = toTextFields({ name, ...given });
  const [unknown] = fields.find(([field]) => !FIELD_NAMES.includes(field)) ?? [];
  if (unknown !== undefined)
    throw new RegressError(
      `case ${name}: there is no option "${unknown}"; the options are ${FIELD_NAMES.join(', ')}`,
    );
  return { name, fields, options: orRegressError(name, () => parseFields(fields)) };
}

/** @throws {RegressError} for an error of the options of a case */
function orRegressError<T>(name: string, parseOptions: () => T): T {
  try {
    return parseOptions();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new RegressError(`case ${name}: ${error.message}`, { cause: error });
  }
}

/**
 * Compiles a glob pattern. `*` matches any text, `?` one character. A pattern without a slash
 * matches the file name in any folder.
 */
function glob(pattern: string): (image: string) => boolean {
  const escaped = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.');
  const expression = new RegExp(`^${escaped}$`, 's');
  return (image) => expression.test(pattern.includes('/') ? image : (image.split('/').at(-1) ?? image));
}
