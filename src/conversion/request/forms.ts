/** @module Parses the forms of the API: options, presets, several named results, and batches. */
import { z } from 'zod';
import { sanitizeForDisplay } from '../../base/text.ts';
import type { Config } from '../../tables/config.ts';
import { serviceError } from '../../tables/errors.ts';
import { explainDisabled, FRAME_DELAY_MS, OUTPUT_NAMES, type OutputType } from '../../tables/formats.ts';
import type { KeptMetadata } from '../../tables/options.ts';
import type { Combination, OnError, Parse, TextField, Variant, WatermarkFile } from '../context.ts';
import type { WantedConversion } from '../identify.ts';
import type { ConvertOptions } from '../plan/types.ts';
import {
  acceptedFormats,
  DEFAULT_FORMAT,
  flag,
  frameDelay,
  loopCount,
  oneOf,
  optionalFlag,
  optionFields,
  toOptionValues,
} from './checks.ts';
import { AUTO, describePart, findCombinedConflict, findConflict, SMALLEST, toPart } from './conflicts.ts';
import { parseVariants, splitPages, VARIANTS_FIELD, withOverrides } from './variants.ts';

/** What a request with a preset gets. */
export interface Preset {
  readonly fields: readonly TextField[];
  /** Absolute path of the image of its watermark. */
  readonly watermarkPath?: string | undefined;
  /** The image of its watermark, once it is checked. */
  readonly watermark?: WatermarkFile;
}

/** Presets by their names. */
export type Presets = ReadonlyMap<string, Preset>;

/** No presets. */
export const NO_PRESETS: Presets = new Map();

const PRESET_FIELD = 'preset';

/** Values that `Accept` turns into a format. */
const NEGOTIATED: readonly string[] = [AUTO, SMALLEST];

/** Creates a check for an output format, or one of {@link NEGOTIATED}. */
const requestedFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .toLowerCase()
    .transform((text) => (NEGOTIATED.includes(text) ? text : OUTPUT_NAMES.get(text)))
    .pipe(
      z.enum([...outputs, AUTO, SMALLEST], {
        error: ({ input }) =>
          `one of ${[...outputs, ...NEGOTIATED].join(', ')}${explainDisabled(String(input))}`,
      }),
    );

/** The fields of one result, and of each variant: its format and its options. */
const resultFields = (outputs: readonly OutputType[]) =>
  z.object({
    // No default in the schema: generated clients would send it in addition to the user's `format`.
    output_format: requestedFormat(outputs)
      .optional()
      .describe(
        `Output format. \`auto\` chooses the best format that \`Accept\` permits: avif, webp, then jpg or, with transparency, png; for animations webp, then gif. Wildcards do not permit avif and webp. \`smallest\` is the one of these formats whose result is the smallest at \`quality=auto\`, whatever \`quality\` is. Upper case and \`jpeg\` are accepted, too. They are not listed, so that each format has one name. Default: the value of \`format\`, or \`${DEFAULT_FORMAT}\`.`,
      ),
    format: requestedFormat(outputs)
      .optional()
      .describe(
        'Alternative name of `output_format`, with the same values. If both are sent, they must be equal.',
      ),
    ...optionFields(outputs),
    strip_metadata: optionalFlag(
      'Another field for two values of `metadata`: `true` is `none`, and `false` is `all`. An error if `metadata` has another value.',
    ),
  });

type ResultFields = z.output<ReturnType<typeof resultFields>>;

/** Base name of a combined file without a `name`. */
const COMBINED_NAME = 'combined';

/** Creates the check of the field that decides what a failure does. */
const errorField = (description: string) => oneOf('fail', 'skip').default('fail').describe(description);

/** The fields that the form of `POST /convert` has in addition. */
const CONVERT_FIELDS = {
  [VARIANTS_FIELD]: z
    .string()
    .optional()
    .meta({
      description:
        'Several results of the image: a JSON array of objects with a `name` and any options of this form. The other fields apply to all of them. The field can be repeated, with one object each. The response is an archive of all results, with a `manifest.json`.',
      examples: [
        '[{"name":"card","width":300},{"name":"zoom","format":"jpg"}]',
        '{"name":"card","width":300,"height":200,"fit":"cover"}',
      ],
    }),
  combine: flag(
    false,
    'Whether all results become one file, instead of an archive: the pages of a PDF or a TIFF, or the frames of a GIF or a WebP. Frames have the size of the first picture, or `width` and `height`, with `fit=contain` unless `fit` is set, and are the first ones of animations. `GET /formats` lists the formats that work here. Excludes `variants` and `max_bytes`, and for frames also `metadata` and `frames=all`.',
  ),
  order: oneOf('request', 'name')
    .default('request')
    .describe(
      'Order of the files in a combined file. `request`: that of the request. `name`: by their names, as in file managers: `IMG_2` before `IMG_10`.',
    ),
  name: z
    .string()
    .optional()
    .meta({
      description: `Name of a combined file. Folders and control characters are removed, and the extension of the format is added. Default: \`${COMBINED_NAME}\`.`,
      examples: ['album', 'receipts.pdf'],
    }),
  delay: frameDelay()
    .default(FRAME_DELAY_MS.default)
    .describe(
      'Time of each frame of a combined GIF or WebP in milliseconds. A GIF has hundredths of a second.',
    ),
  loop: loopCount().default(0).describe('How often a combined GIF or WebP is played. 0 means forever.'),
  on_error: errorField(
    'What to do if a variant fails. `fail`: the request fails, and the message names the variant. `skip`: `manifest.json` and `errors.json` list the errors.',
  ),
};

/** The fields that only the form of `POST /batch` has, or that mean something else there. */
const BATCH_FIELDS = {
  on_error: errorField(
    'What to do if a file fails. `fail`: the request fails with the status of that file, and the message names the file. `skip`: the archive contains the other files, and its `errors.json` lists the errors; a combined file has the others, and `X-Skipped-Files` lists the positions of those that failed; if all files fail, the response is the error of the first file. Send this field before the files, so that it also applies to files that are rejected during the upload.',
  ),
  manifest: flag(
    false,
    'Whether the archive has a `manifest.json` with the name, size, SHA-256 and notes of each result.',
  ),
};

/** The fields that only the form of `POST /identify` has. */
const IDENTIFY_FORM = z.object({
  plan: flag(
    false,
    'Whether the description has the `explanation` of a conversion with the options of the request: what it does and why, its commands, its key and the limits.',
  ),
  reveal: flag(
    false,
    'Whether the description lists what the metadata gives away: place, time, camera and its serial number, owner, software and comments, and the embedded thumbnail.',
  ),
  combine: flag(
    false,
    'Whether the conversion is that of a part of a combined file. For frames, it needs `width` and `height`.',
  ),
});

/** The checks of the text fields of each form. */
export type FormSchemas = ReturnType<typeof formSchemas>;

/** Returns the checks of the fields of each form, from which the API reference is generated. */
export const formSchemas = (outputs: readonly OutputType[], presets: Presets = NO_PRESETS) => {
  const names = [...presets.keys()];
  const preset = {
    [PRESET_FIELD]: z
      .enum(names)
      .optional()
      .describe(
        'Name of options that the operator has defined. Other fields of the request take precedence.',
      ),
  };
  const extra = names.length > 0 ? preset : {};
  const result = resultFields(outputs);
  const convert = result.extend(CONVERT_FIELDS);
  return {
    result,
    convert: convert.extend(extra),
    batch: convert.extend(BATCH_FIELDS).extend(extra),
    identify: result.extend(extra).extend(IDENTIFY_FORM.shape),
  };
};

/** The text fields of `POST /convert` or `POST /batch`, parsed. */
export interface FormOptions {
  readonly options: ConvertOptions;
  /** Several results of each file, variants or pages, instead of that of `options`. */
  readonly variants: readonly Variant[];
  readonly onError: OnError;
  /** Whether the archive has a list of the results. Always with the field `variants`. */
  readonly manifest: boolean;
  /** Set if all results become one file. */
  readonly combination: (Combination & CombinedOrder) | undefined;
  /** The watermark of the preset. That of a request takes precedence. */
  readonly watermark: WatermarkFile | undefined;
}

interface CombinedOrder {
  /** The name that the client wants, with the extension of the format: any text. */
  readonly name: string;
  readonly order: 'request' | 'name';
}

/** The text fields of `POST /identify`, parsed. */
export interface IdentifyFields extends WantedConversion {
  /** Whether to list the values of the metadata. */
  readonly reveal: boolean;
  /** Whether the fields ask for a conversion. Without one, only the image is described. */
  readonly isWanted: boolean;
  /** The watermark of the preset. That of a request takes precedence. */
  readonly watermark: WatermarkFile | undefined;
}

/** Creates the function that parses the options of one result. */
export function createOptionsParser(
  outputs: readonly OutputType[],
  { result }: Pick<FormSchemas, 'result'>,
): Parse<ConvertOptions> {
  return (fields, accept) => toOptions(parseFields(result, fields), fields, outputs, accept);
}

/** Creates the functions that parse the options of all endpoints, with the enabled outputs. */
export function createParsers(
  outputs: readonly OutputType[],
  { MAX_VARIANTS: maxVariants }: Pick<Config, 'MAX_VARIANTS'>,
  presets: Presets = NO_PRESETS,
  forms = formSchemas(outputs, presets),
) {
  const names = Object.keys(forms.result.shape);
  const parse = createOptionsParser(outputs, forms);
  type Checked = z.output<FormSchemas['convert']> & { readonly manifest?: boolean };
  const parserOf =
    (form: FormSchemas['convert' | 'batch']): Parse<FormOptions> =>
    (sent, accept) => {
      const fields = expandPreset(sent, presets);
      const checked: Checked = parseFields(form, fields);
      const { on_error: onError, variants: given, manifest = false, combine, ...single } = checked;
      const watermark = findPreset(sent, presets)?.watermark;
      if (given === undefined) {
        const options = toOptions(single, fields, outputs, accept);
        const pages = splitPages([{ name: '', options }]);
        const form = { options, variants: pages.length > 1 ? pages : [], onError, manifest, watermark };
        return combine ? combineResults(form, checked, outputs) : { ...form, combination: undefined };
      }
      if (combine) throw serviceError('FIELD_INVALID', 'combine', 'true', 'false beside variants');
      const values = fields.flatMap(([name, value]) =>
        name === VARIANTS_FIELD && value !== '' ? [value] : [],
      );
      const base = fields.filter(([name]) => names.includes(name));
      const variants = splitPages(
        parseVariants(values, base, { parse: (options) => parse(options, accept), names, maxVariants }),
      );
      const { options } = variants[0] as Variant;
      return { options, variants, onError, manifest: true, combination: undefined, watermark };
    };
  return {
    convert: parserOf(forms.convert),
    batch: parserOf(forms.batch),
    identify(sent: readonly TextField[], accept?: string): IdentifyFields {
      const fields = expandPreset(sent, presets);
      const { plan, combine, reveal } = parseFields(IDENTIFY_FORM, fields);
      const hasOptions = fields.some(([name, value]) => value !== '' && names.includes(name));
      const watermark = findPreset(sent, presets)?.watermark;
      const options = parse(fields, accept);
      const part = combine ? describePart(options, outputs) : { options };
      if ('conflict' in part) throw serviceError('FIELD_INVALID', ...part.conflict);
      const isWanted = plan || combine || hasOptions;
      return { options: part.options, plan, reveal, isWanted, watermark };
    },
  };
}

/**
 * Returns whether the fields that precede a file ask to skip it if it is invalid. Without the
 * field, or with the field after the file, an invalid file fails the upload.
 */
export function skipsErrors(fields: readonly TextField[], presets: Presets): boolean {
  const preset = findPreset(fields, presets)?.fields ?? [];
  return withOverrides(preset, fields).some(
    ([name, value]) => name === 'on_error' && value.toLowerCase() === 'skip',
  );
}

/** Returns the first preset that the fields name. */
const findPreset = (fields: readonly TextField[], presets: Presets) =>
  presets.get(fields.find(([field, value]) => field === PRESET_FIELD && value !== '')?.[1] ?? '');

/**
 * Replaces the field `preset` by the fields of the preset that the request does not have.
 *
 * @throws {ServiceError} with status 400, if there is no such preset
 */
export function expandPreset(fields: readonly TextField[], presets: Presets): readonly TextField[] {
  const names = fields.flatMap(([field, value]) => (field === PRESET_FIELD && value !== '' ? [value] : []));
  const [name] = names;
  if (name === undefined) return fields;
  if (names.length > 1) throw serviceError('FIELD_REPEATED', PRESET_FIELD);
  const preset = presets.get(name);
  const expected =
    presets.size > 0 ? `one of ${[...presets.keys()].join(', ')}` : 'none: there are no presets';
  if (!preset) throw serviceError('FIELD_INVALID', PRESET_FIELD, sanitizeForDisplay(name), expected);
  return withOverrides(
    preset.fields,
    fields.filter(([field]) => field !== PRESET_FIELD),
  );
}

/**
 * Checks the fields that a form has. Ignores empty and unknown fields.
 *
 * @throws {ServiceError} FIELD_REPEATED, or FIELD_INVALID for the first invalid field
 */
function parseFields<S extends z.ZodObject>(schema: S, fields: readonly TextField[]): z.output<S> {
  const given = new Map<string, string>();
  for (const [name, value] of fields) {
    if (value === '' || !Object.hasOwn(schema.shape, name)) continue;
    if (given.has(name) && name !== VARIANTS_FIELD) throw serviceError('FIELD_REPEATED', name);
    given.set(name, value);
  }
  const result = schema.safeParse(Object.fromEntries(given));
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0] as z.core.$ZodIssue;
  const name = String(path[0]);
  throw serviceError('FIELD_INVALID', name, sanitizeForDisplay(given.get(name) ?? ''), message);
}

/**
 * Returns the options of a result from checked fields. Messages quote the fields as sent.
 *
 * @throws {ServiceError} CONFLICTING_FORMATS, NOT_ACCEPTABLE, or FIELD_INVALID if options
 *   contradict each other
 */
function toOptions(
  checked: ResultFields,
  fields: readonly TextField[],
  outputs: readonly OutputType[],
  accept: string | undefined,
): ConvertOptions {
  const { output_format, format: other } = checked;
  const rest = { ...toOptionValues(checked), ...metadataOf(checked) };
  if (output_format && other && output_format !== other) {
    const sent = (field: string) => fields.find(([name, value]) => name === field && value !== '')?.[1] ?? '';
    throw serviceError('CONFLICTING_FORMATS', sent('output_format'), sent('format'));
  }
  const requested = output_format ?? other ?? DEFAULT_FORMAT;
  const format = OUTPUT_NAMES.get(requested); // undefined if `Accept` determines it
  const options: ConvertOptions = {
    ...rest,
    format: format ?? DEFAULT_FORMAT,
    accepted: format ? undefined : acceptedFormats(accept, outputs, rest),
    ...(requested === SMALLEST && { smallest: true, quality: 'auto' as const }),
  };
  const conflict = findConflict(options, outputs);
  if (conflict) throw serviceError('FIELD_INVALID', ...conflict);
  return options;
}

/**
 * Returns the value of `metadata` that `strip_metadata` means.
 *
 * @throws {ServiceError} FIELD_INVALID if `metadata` has another value
 */
function metadataOf({ metadata, strip_metadata: strips }: ResultFields & { readonly metadata?: unknown }): {
  readonly metadata?: KeptMetadata;
} {
  if (strips === undefined) return {};
  const meant = strips ? 'none' : 'all';
  if (metadata === undefined || metadata === meant) return { metadata: meant };
  const expected = `${meant} if strip_metadata is ${strips}`;
  throw serviceError('FIELD_INVALID', 'metadata', String(metadata), expected);
}

type CombinedFields = Pick<z.output<FormSchemas['convert']>, 'order' | 'name' | 'delay' | 'loop'>;

/**
 * Returns a form whose results become one file.
 *
 * @throws {ServiceError} FIELD_INVALID if its options contradict that
 */
function combineResults(
  form: Omit<FormOptions, 'combination'>,
  { order, name = COMBINED_NAME, delay: delayMs, loop }: CombinedFields,
  outputs: readonly OutputType[],
): FormOptions {
  const { options, variants } = form;
  const { format } = options;
  const conflict = findCombinedConflict(options, variants.length > 0, outputs);
  if (conflict) throw serviceError('FIELD_INVALID', ...conflict);
  const extension = `.${format}`;
  const named = name.toLowerCase().endsWith(extension) ? name : `${name}${extension}`;
  return {
    ...form,
    options: toPart(options),
    variants: variants.map((variant) => ({ ...variant, options: toPart(variant.options) })),
    combination: { format, timing: { delayMs, loopCount: loop }, order, name: named },
  };
}
