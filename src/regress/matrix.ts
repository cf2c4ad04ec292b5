import { readFile } from 'node:fs/promises';
import { parse, YAMLError } from 'yaml';
import { z } from 'zod';
import { createParsers, formFields } from '../conversion/form-options.ts';
import type { ConvertOptions } from '../conversion/plan/types.ts';
import { ServiceError } from '../errors.ts';
import { ALL_OUTPUT_TYPES, OUTPUT_TYPES, type OutputType } from '../formats.ts';
import { defaultThresholds, type Thresholds, thresholdFields } from './thresholds.ts';

/** What every image is converted to, and how much of a change is one. Its options have the API's own names and checks. */

export interface Case {
  /** Unique; also the name of the result's file. */
  readonly name: string;
  readonly options: ConvertOptions;
  /** The same as the API's form fields. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface Matrix {
  readonly cases: readonly Case[];
  /** Undefined when there is no such case, or it is to be left out for this image. */
  thresholds(image: string, name: string): Thresholds | undefined;
  /** As it was written, to be kept with a baseline. */
  readonly source: MatrixSource;
}

/** A matrix makes no sense; the message says where and why. */
export class MatrixError extends Error {
  override readonly name = 'MatrixError';
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
/** What YAML makes of `background: #fff` is nothing: the rest of the line is a comment. */
const NO_VALUE = 'expected a text, a number, true or false; what has a # needs quotes';
const thresholds = z.strictObject(thresholdFields).partial();

const schema = z.strictObject({
  thresholds: thresholds.optional(),
  cases: z
    .array(
      z
        .object({
          name: z.string().regex(NAME, 'expected letters, digits, dots, dashes and underscores'),
          thresholds: thresholds.optional(),
        })
        .catchall(z.union([z.string(), z.number(), z.boolean()], { error: NO_VALUE })),
    )
    .min(1, 'expected at least one case'),
  overrides: z
    .array(
      z.strictObject({
        images: z.string().default('*'),
        cases: z.array(z.string()).optional(),
        thresholds: thresholds.optional(),
        skip: z.boolean().optional(),
      }),
    )
    .optional(),
});

/** As it was written; {@link toMatrix} says whether it makes sense. */
export type MatrixSource = Readonly<Record<string, unknown>>;

/**
 * Each output as it is by default, and what most services do besides: thumbnails, small files, kept metadata.
 *
 * @param outputs the formats that are on
 */
export const defaultMatrix = (outputs: readonly OutputType[]): MatrixSource => ({
  cases: [
    ...outputs.map((format) => ({ name: format, format })),
    { name: 'png-300', format: 'png', width: 300, height: 300 },
    // The more is left out, the more two encoders differ in what.
    { name: 'webp-1000-q60', format: 'webp', width: 1000, quality: 60, thresholds: { psnr: 33, patch: 10 } },
    { name: 'jpg-kept', format: 'jpg', strip_metadata: false },
  ],
});

/** That of a service as it is by default. */
export const DEFAULT_MATRIX = defaultMatrix(OUTPUT_TYPES);

/** @throws MatrixError naming the place and what was expected */
export function toMatrix(source: unknown): Matrix {
  const result = schema.safeParse(source);
  if (!result.success) {
    throw new MatrixError(
      result.error.issues
        .map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`)
        .join('\n'),
    );
  }
  const { data } = result;
  const cases = data.cases.map(({ name, thresholds: _, ...fields }) => toCase(name, fields));
  for (const [at, { name }] of cases.entries()) {
    if (cases.findIndex((one) => one.name === name) < at)
      throw new MatrixError(`two cases are called ${name}`);
  }
  for (const name of data.overrides?.flatMap((rule) => rule.cases ?? []) ?? []) {
    if (!cases.some((one) => one.name === name))
      throw new MatrixError(`overrides: no case is called ${name}`);
  }
  const rules = (data.overrides ?? []).map((rule) => ({ ...rule, fits: glob(rule.images) }));
  return {
    cases,
    source: source as MatrixSource,
    thresholds(image, name) {
      const { options } = cases.find((one) => one.name === name) ?? {};
      if (!options) return undefined;
      const own = data.cases.find((one) => one.name === name)?.thresholds;
      const meant = rules.filter(({ fits, cases: only }) => fits(image) && (only?.includes(name) ?? true));
      if (meant.some(({ skip }) => skip)) return undefined;
      return Object.assign(
        {},
        defaultThresholds(options.format),
        data.thresholds,
        own,
        ...meant.map((rule) => rule.thresholds ?? {}),
      );
    },
  };
}

/** A matrix in YAML or JSON, which is YAML, too. @throws MatrixError */
export async function readMatrix(path: string): Promise<Matrix> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new MatrixError(error.message);
  });
  try {
    return toMatrix(parse(text));
  } catch (error) {
    if (error instanceof MatrixError || error instanceof YAMLError) {
      throw new MatrixError(`${path}: ${error.message}`, { cause: error });
    }
    throw error;
  }
}

const parseFields = createParsers(ALL_OUTPUT_TYPES).convert;
const KNOWN = Object.keys(formFields(ALL_OUTPUT_TYPES).convert.shape);

function toCase(name: string, given: Readonly<Record<string, string | number | boolean>>): Case {
  const fields = Object.entries(given).map(([field, value]) => [field, String(value)] as const);
  for (const [field] of fields) {
    if (!KNOWN.includes(field)) {
      throw new MatrixError(
        `case ${name}: there is no option "${field}"; the options are ${KNOWN.join(', ')}`,
      );
    }
  }
  try {
    return { name, fields, options: parseFields(fields) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new MatrixError(`case ${name}: ${error.message}`, { cause: error });
  }
}

/** `*` is any text, `?` one character; a pattern without a slash is about names, whatever their folder. */
function glob(pattern: string): (image: string) => boolean {
  const escaped = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.');
  const whole = new RegExp(`^${escaped}$`, 's');
  return (image) => whole.test(pattern.includes('/') ? image : (image.split('/').at(-1) ?? image));
}
