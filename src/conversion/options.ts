/**
 * @module Checks and descriptions of the conversion options, as fields of a form or of a command line. Messages and the API
 * reference are generated from them.
 */
import { z } from 'zod';
import type { Config } from '../config.ts';
import { serviceError } from '../errors.ts';
import { hasBytesLimit, MAX_DIMENSION, OUTPUTS, type OutputType, parseOutputType } from '../formats.ts';
import { colourByName } from '../images/svg/css.ts';
import { sanitizeForDisplay } from '../text.ts';
import { acceptedFormats } from './accepted-format.ts';
import { type ConvertOptions, FITS, POSITIONS, type Position } from './plan/types.ts';
import { expandPreset, NO_PRESETS, type Presets } from './presets.ts';
import { MIN_QUALITY } from './search-quality.ts';
import type { OnError, Parse, TextField, Variant } from './types.ts';
import { parseVariants, VARIANTS_FIELD } from './variants.ts';

/** Creates a check for a whole number from `min` to `max`. */
export const integer = (min: number, max: number) => {
  const expected = `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,10}$/, expected)
    .transform(Number)
    .pipe(z.int(expected).min(min, expected).max(max, expected));
};

const trueOrFalse = z.stringbool({
  truthy: ['true', '1', 'yes', 'on'],
  falsy: ['false', '0', 'no', 'off'],
  error: 'true or false (or 1/0, yes/no, on/off)',
});
const flag = (fallback: boolean, description: string) =>
  trueOrFalse.default(fallback).describe(`${description} Also \`1/0\`, \`yes/no\`, \`on/off\`.`);

/** Output format of a request without one. */
export const DEFAULT_FORMAT: OutputType = 'webp';

/** Creates a check for an output format. `outputs` are the enabled formats. */
export const outputFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .transform(parseOutputType)
    .pipe(z.enum(outputs, `one of ${outputs.join(', ')}`));

/** Creates a check for one of several words, in any case. */
const oneOf = <const T extends string>(...words: [T, ...T[]]) =>
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(words, words.length > 2 ? `one of ${words.join(', ')}` : words.join(' or ')));

/** Other names of positions, from sharp. */
const POSITION_ALIASES: Readonly<Record<string, Position>> = {
  centre: 'center',
  north: 'top',
  northeast: 'right top',
  east: 'right',
  southeast: 'right bottom',
  south: 'bottom',
  southwest: 'left bottom',
  west: 'left',
  northwest: 'left top',
};

const position = z
  .string()
  .toLowerCase()
  .transform((word) => (Object.hasOwn(POSITION_ALIASES, word) ? POSITION_ALIASES[word] : word))
  .pipe(z.enum(POSITIONS, `one of ${[...POSITIONS, ...Object.keys(POSITION_ALIASES)].join(', ')}`));

const CROP = 'left,top,width,height, each in whole pixels or with a % in percent, and no side of 0';
const LENGTH = String.raw`(?:\d{1,5}|\d{1,3}(?:\.\d{1,6})?%)`;
const POSITIVE = `(?=[^,]*[1-9])${LENGTH}`;

/** Area as `left,top,width,height`. */
const crop = z.string().regex(new RegExp(`^${LENGTH},${LENGTH},${POSITIVE},${POSITIVE}$`), CROP);

const COLOUR = 'a colour as #rgb, #rrggbb or a name of CSS';

/** Colour as in CSS, with three or six hex digits. The `#` is optional, because it starts a comment in shells. */
const hexColour = z
  .string()
  .regex(/^#?(?:[\dA-Fa-f]{3}|[\dA-Fa-f]{6})$/, COLOUR)
  .overwrite((text) => {
    const digits = text.replace('#', '').toLowerCase();
    return `#${digits.length === 3 ? digits.replace(/./g, '$&$&') : digits}`;
  });

/** A name that CSS knows, such as `rebeccapurple`. */
const namedColour = z
  .string()
  .regex(/^[A-Za-z]{3,20}$/, COLOUR)
  .refine((name) => colourByName(name) !== undefined, COLOUR)
  .overwrite((name) => colourByName(name) ?? name);

const colour = z.union([hexColour, namedColour], COLOUR);

/** Returns whether the fields ask for the best format that the client accepts, so that the response depends on `Accept`. */
export const dependsOnAccept = (fields: readonly TextField[]): boolean =>
  fields.some(([name, value]) =>
    name === VARIANTS_FIELD
      ? /"auto"/i.test(value)
      : /^(?:output_)?format$/.test(name) && value.toLowerCase() === AUTO,
  );

/** Maximum of `max_bytes`: more than any result can have. */
const MAX_BYTES = 2 ** 31;

/** Options that contradict each other: the field to change, its value and what was expected. */
export interface Conflict {
  readonly field: 'fit' | 'lossless' | 'max_bytes';
  readonly value: string;
  readonly expected: string;
}

/**
 * Finds options that contradict each other.
 *
 * @param outputs the enabled output formats, for the message
 * @returns undefined if the options are compatible
 */
export function findConflict(
  { fit, width, height, maxBytes, lossless, format }: ConvertOptions,
  outputs: readonly OutputType[],
): Conflict | undefined {
  if (fit && fit !== 'inside' && !(width && height))
    return { field: 'fit', value: fit, expected: 'width and height to be set, too' };
  if (maxBytes !== undefined && !hasBytesLimit(format)) {
    const expected = `one of the formats ${outputs.filter(hasBytesLimit).join(', ')}, not ${format}`;
    return { field: 'max_bytes', value: String(maxBytes), expected };
  }
  if (lossless && maxBytes !== undefined)
    return { field: 'lossless', value: 'true', expected: 'false if max_bytes is set' };
  return undefined;
}

const pagedFormats = (outputs: readonly OutputType[]): string =>
  outputs
    .filter((type) => OUTPUTS[type].pages)
    .map((type) => OUTPUTS[type].label)
    .join(' or ');

/**
 * Creates the checks of the options, by field name. Every value is text, from a form or a command line.
 *
 * @param outputs the enabled output formats, which the descriptions name
 */
export const optionFields = (outputs: readonly OutputType[]) => ({
  quality: integer(1, 100)
    .default(80)
    .describe(
      `1 gives the smallest file, 100 the best quality. Applies to ${outputs.filter((type) => OUTPUTS[type].quality).join(', ')}.${outputs.includes('jxl') ? ' 100 is lossless for jxl.' : ''}`,
    ),
  crop: crop.optional().meta({
    description:
      'Part of the image to convert, as `left,top,width,height` in pixels of the upright image, or with a `%` in percent of its side. Applies before `width`, `height` and `fit`. An error if it is not inside of the image. Applies to each frame and each page.',
    examples: ['100,50,640,480', '25%,25%,50%,50%'],
  }),
  width: integer(1, MAX_DIMENSION)
    .optional()
    .meta({
      description:
        'Maximum width in pixels. The image is scaled to fit and keeps its aspect ratio, unless `fit` is set. It is enlarged only with `enlarge`. An SVG is rendered at the requested size.',
      examples: [1200],
    }),
  height: integer(1, MAX_DIMENSION)
    .optional()
    .meta({ description: 'Maximum height in pixels, as for `width`.', examples: [800] }),
  fit: oneOf(...FITS)
    .default('inside')
    .meta({
      description:
        'How the image fits into `width` and `height`, as in sharp. `inside`: no larger than either. `cover`: exactly this size, cropped. `contain`: exactly this size, with borders. `fill`: exactly this size, stretched. All except `inside` require both `width` and `height`. Without `enlarge`, a smaller image is not enlarged: `cover` only crops, `contain` adds wider borders, `fill` only shrinks.',
      examples: ['inside', 'cover'], // Swagger UI starts with the first
    }),
  position: position.default('center').meta({
    description: `The part that \`cover\` keeps, and the place where \`contain\` puts the image, in any case. Also ${Object.keys(
      POSITION_ALIASES,
    )
      .map((name) => `\`${name}\``)
      .join(', ')}.`,
    examples: ['center', 'right top'],
  }),
  enlarge: flag(false, 'Whether an image can be enlarged. An SVG is always rendered at the requested size.'),
  lossless: flag(
    false,
    'Whether a WebP has exactly the pixels of the image, regardless of `quality`. Other formats ignore it. Excludes `max_bytes`.',
  ),
  max_bytes: integer(1, MAX_BYTES)
    .optional()
    .meta({
      description: `Maximum size of the result in bytes. If the result is larger at \`quality\`, the quality is lowered as far as necessary, but not below ${MIN_QUALITY}. \`X-Conversion-Quality\` states the quality that was used. If that is not sufficient, the request fails. Applies to ${outputs.filter(hasBytesLimit).join(', ')}; an error for other formats.`,
      examples: [200_000],
    }),
  strip_metadata: flag(
    true,
    'Whether to remove EXIF, IPTC, XMP and the colour profile. If false, they are kept if the format supports them.',
  ),
  frames: oneOf('all', 'first')
    .optional()
    .describe(
      'Frames of an animation to convert. Default: all if the output can be animated, otherwise the first. A PDF gets one page per frame only with `all`.',
    ),
  pages: oneOf('all', 'first')
    .optional()
    .describe(`Pages of a TIFF to convert to a ${pagedFormats(outputs)}. Default: all.`),
  background: colour.optional().meta({
    description:
      'Colour that replaces transparency if the format has none, and colour of the borders of `fit=contain`, as `#rgb`, `#rrggbb` or a name of CSS. Default: white, and transparent for borders if the format has transparency.',
    examples: ['#ffffff', '#08f', 'rebeccapurple'],
  }),
});

/** Value of a format that stands for the best one that the client accepts. */
const AUTO = 'auto';

/** Creates a check for an output format, or {@link AUTO}. */
const requestedFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .transform((text) => (text.toLowerCase() === AUTO ? AUTO : parseOutputType(text)))
    .pipe(z.enum([...outputs, AUTO], `one of ${[...outputs, AUTO].join(', ')}`));

const convertFields = (outputs: readonly OutputType[]) =>
  z.object({
    // No default in the schema: generated clients would send it in addition to the user's `format`.
    output_format: requestedFormat(outputs)
      .optional()
      .describe(
        `Output format, in any case. \`jpeg\` means \`jpg\`, and \`auto\` the best format that \`Accept\` permits: avif, webp, then jpg or, with transparency, png; for animations webp, then gif. Default: the value of \`format\`, or \`${DEFAULT_FORMAT}\`.`,
      ),
    format: requestedFormat(outputs)
      .optional()
      .describe('Alternative name of `output_format`. If both are sent, they must be equal.'),
    ...optionFields(outputs),
  });

/** The form of `POST /convert`. */
const convertForm = (outputs: readonly OutputType[]) =>
  convertFields(outputs).extend({
    [VARIANTS_FIELD]: z
      .string()
      .optional()
      .meta({
        description:
          'Several results of the image: a JSON array of objects with a `name` and any options of this form. The other fields apply to all of them. The field can be repeated, with one object each. The response is an archive of all results, with a `manifest.json`, or `multipart/mixed` if `Accept` asks for it.',
        examples: [
          '[{"name":"card","width":300},{"name":"zoom","format":"jpg"}]',
          '{"name":"card","width":300,"height":200,"fit":"cover"}',
        ],
      }),
    on_error: oneOf('fail', 'skip')
      .default('fail')
      .describe(
        'What to do if a variant fails. `fail`: the request fails, and the message names the variant. `skip`: `manifest.json` and `errors.json` list the errors.',
      ),
  });

const batchFields = (outputs: readonly OutputType[]) =>
  convertForm(outputs).extend({
    on_error: oneOf('fail', 'skip')
      .default('fail')
      .describe(
        'What to do if a file fails. `fail`: the request fails with the status of that file, and the message names the file. `skip`: the archive contains the other files, and its `errors.json` lists the errors; if all files fail, the response is the error of the first file. Send this field before the files, so that it also applies to files that are rejected during the upload.',
      ),
    manifest: flag(
      false,
      'Whether the archive has a `manifest.json` with the name, size, SHA-256 and notes of each result.',
    ),
  });

/**
 * Returns the checks of the text fields of both forms.
 *
 * @param outputs the enabled output formats
 * @param presets the field `preset` has their names. Absent if there are none.
 */
export const formFields = (outputs: readonly OutputType[], presets: Presets = NO_PRESETS) => {
  const names = [...presets.keys()];
  const preset = {
    preset: z
      .enum(names)
      .optional()
      .describe(
        'Name of options that the operator has defined. Other fields of the request take precedence.',
      ),
  };
  const extra = names.length > 0 ? preset : {};
  return { convert: convertForm(outputs).extend(extra), batch: batchFields(outputs).extend(extra) };
};

export type { Parse, TextField } from './types.ts';

/** Options of a form. */
export interface FormOptions {
  readonly options: ConvertOptions;
  /** Several results of each file, instead of the one that `options` describe. Empty without the field. */
  readonly variants: readonly Variant[];
  readonly onError: OnError;
  /** Whether the archive has a list of the results. Always with variants. */
  readonly manifest: boolean;
}

/** The functions that parse text fields. */
interface Parsers {
  /** Parses the form of `POST /convert`. */
  readonly convert: Parse<FormOptions>;
  /** Parses the form of `POST /batch`. */
  readonly batch: Parse<FormOptions>;
  /** Parses the form of `POST /identify`. Undefined if there is no option. */
  readonly identify: Parse<ConvertOptions | undefined>;
}

/** Creates the function that parses the options of one result. */
export function createOptionsParser(outputs: readonly OutputType[]): Parse<ConvertOptions> {
  const checks = convertFields(outputs);
  return (fields, accept) => toOptions(check(checks, fields), fields, outputs, accept);
}

/**
 * Creates the functions that parse the options of both endpoints.
 *
 * @param outputs the enabled output formats
 */
export function createParsers(
  outputs: readonly OutputType[],
  { MAX_VARIANTS: maxVariants }: Pick<Config, 'MAX_VARIANTS'>,
  presets: Presets = NO_PRESETS,
): Parsers {
  const forms = formFields(outputs);
  const names = optionNames(outputs);
  const parse = createOptionsParser(outputs);
  type Checked = z.output<ReturnType<typeof convertForm>> & { readonly manifest?: boolean };
  type Form = typeof forms.convert | typeof forms.batch;
  const toForm = (checked: Checked, fields: readonly TextField[], accept?: string): FormOptions => {
    const { on_error: onError, variants: given, manifest = false, ...single } = checked;
    if (given === undefined)
      return { options: toOptions(single, fields, outputs, accept), variants: [], onError, manifest };
    const values = fields.flatMap(([name, value]) =>
      name === VARIANTS_FIELD && value !== '' ? [value] : [],
    );
    const base = fields.filter(([name]) => names.includes(name));
    const variants = parseVariants(values, base, {
      parse: (options) => parse(options, accept),
      names,
      maxVariants,
    });
    return { options: (variants[0] as Variant).options, variants, onError, manifest: true };
  };
  const parseForm = (form: Form, sent: readonly TextField[], accept?: string): FormOptions => {
    const fields = expandPreset(sent, presets);
    return toForm(check(form, fields), fields, accept);
  };
  return {
    convert: (fields, accept) => parseForm(forms.convert, fields, accept),
    batch: (fields, accept) => parseForm(forms.batch, fields, accept),
    // Without a known option, nothing is described but the image.
    identify: (fields, accept) =>
      fields.some(([name, value]) => value !== '' && names.includes(name))
        ? parse(fields, accept)
        : undefined,
  };
}

/** Returns the names of the options of a result. */
export const optionNames = (outputs: readonly OutputType[]): string[] =>
  Object.keys(convertFields(outputs).shape);

/**
 * Returns whether the fields that precede a file ask to skip it if it is invalid. Without the field, or with the field after
 * the file, an invalid file fails the upload.
 */
export function skipsErrors(fields: readonly TextField[]): boolean {
  return fields.some(([name, value]) => name === 'on_error' && value.toLowerCase() === 'skip');
}

function check<S extends z.ZodObject>(schema: S, fields: readonly TextField[]): z.output<S> {
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

/** Renames the fields whose names in the API are not those of {@link ConvertOptions}. */
export function toOptionNames<T extends z.output<z.ZodObject<ReturnType<typeof optionFields>>>>({
  max_bytes: maxBytes,
  strip_metadata: stripMetadata,
  ...others
}: T) {
  return { ...others, maxBytes, stripMetadata };
}

function toOptions(
  checked: z.output<ReturnType<typeof convertFields>>,
  fields: readonly TextField[],
  outputs: readonly OutputType[],
  accept: string | undefined,
): ConvertOptions {
  const { output_format, format, ...rest } = toOptionNames(checked);
  if (output_format && format && output_format !== format) {
    const sent = (field: string) => fields.find(([name, value]) => name === field && value !== '')?.[1] ?? '';
    throw serviceError('CONFLICTING_FORMATS', sent('output_format'), sent('format'));
  }
  const requested = output_format ?? format ?? DEFAULT_FORMAT;
  const accepted = requested === AUTO ? acceptedFormats(accept, outputs, rest) : undefined;
  if (accepted && Object.keys(accepted).length === 0) throw serviceError('NOT_ACCEPTABLE');
  const options = {
    ...rest,
    format: requested === AUTO ? DEFAULT_FORMAT : requested,
    ...(accepted && { accepted }),
  };
  const conflict = findConflict(options, outputs);
  if (conflict) throw serviceError('FIELD_INVALID', conflict.field, conflict.value, conflict.expected);
  return options;
}
