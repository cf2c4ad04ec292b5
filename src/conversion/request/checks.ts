/**
 * @module Checks of the conversion options, as fields of a form or of a command line, from the
 * table of options. Messages and the API reference are generated from them. Chooses the output
 * format of `output_format=auto`: the best one that the client accepts.
 */
import { z } from 'zod';
import type { ImageInfo } from '../../images/image-info.ts';
import { colourByName } from '../../images/svg/css.ts';
import { serviceError } from '../../tables/errors.ts';
import {
  FRAME_DELAY_MS,
  hasBytesLimit,
  OUTPUT_NAMES,
  OUTPUTS,
  type OutputType,
} from '../../tables/formats.ts';
import {
  AREA_TEXT,
  fieldName,
  formatPages,
  MAX_PAGE,
  NUMBER_TEXTS,
  OPTION_NAMES,
  OPTIONS,
  type OptionName,
  type OptionType,
  type OptionValues,
  optionRow,
  PAGE_SIDE,
  PAGES_TEXT,
  POINT_TEXT,
  parseMillimetres,
  parsePages,
  SIZE_TEXT,
} from '../../tables/options.ts';
import type { ConvertOptions } from '../plan/types.ts';
import { SMALLEST } from './conflicts.ts';

/** Creates a check for the text of a number, and for its value. */
const numberText = <T extends number>(
  kind: keyof typeof NUMBER_TEXTS,
  expected: string,
  value: z.ZodType<T, number>,
) => z.string().regex(NUMBER_TEXTS[kind], expected).transform(Number).pipe(value);

/** Creates a check for a whole number from `min` to `max`. */
export const integer = (min: number, max: number, expected = `a whole number from ${min} to ${max}`) =>
  numberText('integer', expected, z.int(expected).min(min, expected).max(max, expected));

/** Creates a check for a whole number, or one of some words in any case. */
function integerOrWord({ min, max, words }: Extract<OptionType, { kind: 'integer' }>): z.ZodType {
  if (!words) return integer(min, max);
  const names = Object.keys(words);
  const expected = `a whole number from ${min} to ${max}, or ${names.join(', ')}`;
  return z.union([z.string().toLowerCase().pipe(z.enum(names)), integer(min, max, expected)], expected);
}

/** Checks the time of a frame in ms. */
export const frameDelay = () => integer(FRAME_DELAY_MS.min, FRAME_DELAY_MS.max);
/** Checks how often an animation plays. */
export const loopCount = () => integer(0, 65_535);

/** Creates a check for a number, which is rounded to three decimals. */
function decimal({ min, max, yes }: Extract<OptionType, { kind: 'number' }>): z.ZodType {
  const either = yes === undefined ? '' : 'yes, no or ';
  const expected = `${either}a number from ${min} to ${max}`;
  const rounded = z.number(expected).overwrite((number) => Number(number.toFixed(3)));
  const checked = numberText('number', expected, rounded.min(min, expected).max(max, expected));
  if (yes === undefined) return checked;
  const isOn = z.stringbool({
    truthy: ['yes', 'true', 'on'],
    falsy: ['no', 'false', 'off'],
    error: expected,
  });
  const word = isOn.transform((on) => (on ? 'yes' : 'no')).pipe(z.enum(['yes', 'no']));
  return z.union([word, checked], expected);
}

const trueOrFalse = z.stringbool({
  truthy: ['true', '1', 'yes', 'on'],
  falsy: ['false', '0', 'no', 'off'],
  error: 'true or false (or 1/0, yes/no, on/off)',
});
/** Creates a check for a yes or no. */
export const flag = (fallback: boolean, description: string) =>
  trueOrFalse.default(fallback).describe(describeFlag(description));

/** Creates a check for a yes or no without a default. */
export const optionalFlag = (description: string) =>
  trueOrFalse.optional().describe(describeFlag(description));

const describeFlag = (description: string): string => `${description} Also \`1/0\`, \`yes/no\`, \`on/off\`.`;

/** Output format of a request without one. */
export const DEFAULT_FORMAT: OutputType = 'webp';

/** The options of a request without any, except its format. */
export const DEFAULT_OPTIONS = {
  quality: OPTIONS.quality.default,
  metadata: OPTIONS.metadata.default,
} as const;

/** An output format, or the one of several whose result is the smallest. */
export type WantedFormat = OutputType | typeof SMALLEST;

/** Creates a check for an output format. `outputs` are the enabled formats. */
export const outputFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .toLowerCase()
    .transform((text) => OUTPUT_NAMES.get(text) ?? text)
    .pipe(
      z.enum<readonly WantedFormat[]>([...outputs, SMALLEST], `one of ${outputs.join(', ')}, ${SMALLEST}`),
    );

/** Creates a check for one of several words, in any case. */
export const oneOf = <const T extends string>(...words: [T, ...T[]]) =>
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(words, words.length > 2 ? `one of ${words.join(', ')}` : words.join(' or ')));

/** Creates a check for one of several numbers. */
const oneNumber = (numbers: readonly number[]) => {
  const expected = `one of ${numbers.join(', ')}`;
  return numberText('integer', expected, z.literal(numbers, expected) as z.ZodType<number, number>);
};

/** Creates a check for one of several words or their other names, in any case. */
function words({ labels, aliases = {}, point, numbered, sized }: Extract<OptionType, { kind: 'words' }>) {
  const names = Object.keys(labels);
  const all = [...names, ...Object.keys(aliases)];
  const either = all.length > 2 ? `one of ${all.join(', ')}` : all.join(' or ');
  const others = point
    ? ', or a point as left%,top% with two numbers from 0 to 100'
    : numbered
      ? `, or numbers and ranges from 1 to ${MAX_PAGE}, such as 1-3,5`
      : sized
        ? `, or WIDTHxHEIGHT in millimetres from ${PAGE_SIDE.min} to ${PAGE_SIDE.max}`
        : '';
  const expected = either + others;
  const word = z
    .string()
    .toLowerCase()
    .transform((text) => (Object.hasOwn(aliases, text) ? aliases[text] : text))
    .pipe(z.enum(names, expected));
  if (numbered) return z.union([word, pageNumbers(expected)], expected);
  if (sized) return z.union([word, millimetres(expected)], expected);
  return point ? z.union([word, focalPoint(expected)], expected) : word;
}

/** Creates a check for numbers and ranges of pages, which are sorted and joined. */
const pageNumbers = (expected: string) =>
  z
    .string()
    .regex(PAGES_TEXT, expected)
    .refine((text) => parsePages(text) !== undefined, expected)
    .overwrite((text) => formatPages(parsePages(text) ?? []));

/** Creates a check for a size in millimetres, without zeros that change nothing. */
const millimetres = (expected: string) =>
  z
    .string()
    .toLowerCase()
    .regex(SIZE_TEXT, expected)
    .refine((text) => parseMillimetres(text) !== undefined, expected)
    .overwrite((text) => text.split('x').map(Number).join('x'));

/** Creates a check for a point in percent, rounded to three decimals. */
const focalPoint = (expected: string) =>
  z
    .string()
    .regex(POINT_TEXT, expected)
    .overwrite((text) =>
      text
        .split(',')
        .map((percent) => `${Number(Number.parseFloat(percent).toFixed(3))}%`)
        .join(),
    );

const CROP = 'left,top,width,height, each in whole pixels or with a % in percent, and no side of 0';

const area = z.string().regex(AREA_TEXT, CROP);

const COLOUR = 'a colour as #rgb, #rrggbb or a name of CSS';

/** Colour as in CSS, of three or six hex digits. The `#`, a comment in shells, is optional. */
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
  .regex(/^[A-Za-z]{3,20}$/, { error: COLOUR, abort: true }) // the parser throws for 512 open brackets
  .refine((name) => colourByName(name) !== undefined, COLOUR)
  .overwrite((name) => colourByName(name) ?? name);

const colour = z.union([hexColour, namedColour], COLOUR);

function checkFor(type: OptionType): z.ZodType {
  switch (type.kind) {
    case 'integer':
      return integerOrWord(type);
    case 'number':
      return decimal(type);
    case 'flag':
      return trueOrFalse;
    case 'numbers':
      return oneNumber(Object.keys(type.labels).map(Number));
    case 'words':
      return words(type);
    case 'area':
      return area;
    case 'colour':
      return colour;
  }
}

/** Creates the checks of the options, by field name, from text. Descriptions name the `outputs`. */
export function optionFields(outputs: readonly OutputType[]): Record<string, z.ZodType> {
  const check = (name: OptionName): z.ZodType => {
    const { type, default: fallback, hasOtherField, description, examples } = optionRow(name);
    const text = typeof description === 'string' ? description : description(outputs);
    const checked = checkFor(type);
    return (fallback === undefined || hasOtherField ? checked.optional() : checked.default(fallback)).meta({
      description: type.kind === 'flag' ? describeFlag(text) : text,
      ...(examples && { examples }),
    });
  };
  return Object.fromEntries(OPTION_NAMES.map((name) => [fieldName(name), check(name)]));
}

/** Returns the values of {@link optionFields} by the names of the options. Ignores other fields. */
export const toOptionValues = (checked: Readonly<Record<string, unknown>>): OptionValues =>
  Object.fromEntries(
    OPTION_NAMES.map((name) => {
      const { type, default: fallback } = optionRow(name);
      const value = checked[fieldName(name)] ?? fallback;
      // A number can be `yes`, which stands for one, or `no`.
      if (type.kind !== 'number' || typeof value !== 'string') return [name, value];
      return [name, value === 'yes' ? type.yes : undefined];
    }),
  ) as unknown as OptionValues;

/** Formats that can be chosen, with the client's quality value for each: above 0, up to 1. */
export type AcceptedFormats = Readonly<Partial<Record<OutputType, number>>>;

/** Formats of still images, best first. The last ones are chosen only if nothing else fits. */
const STILLS: readonly OutputType[] = ['avif', 'webp', 'jpg', 'png', 'gif'];
const TRANSPARENT: readonly OutputType[] = ['avif', 'webp', 'png', 'gif'];
const ANIMATED: readonly OutputType[] = ['webp', 'gif'];

/** Formats that no wildcard permits: browsers without AVIF send one beside `image/webp`. */
const NAMED_ONLY: readonly OutputType[] = ['avif', 'webp'];

const MEDIA_RANGE = /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/;
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Parses a media range and its quality (RFC 9110, 12.4.2 and 12.5.1); undefined if malformed. */
function parseRange(text: string): { readonly name: string; readonly quality: number } | undefined {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
  return MEDIA_RANGE.test(name) && WEIGHT.test(weight) ? { name, quality: Number(weight) } : undefined;
}

/**
 * Returns the enabled formats that `Accept` permits. A header that is missing or malformed is the
 * same as a wildcard, which does not permit {@link NAMED_ONLY}.
 *
 * @throws {ServiceError} NOT_ACCEPTABLE if there is none
 */
export function acceptedFormats(
  accept: string | undefined,
  outputs: readonly OutputType[],
  { maxBytes }: Pick<ConvertOptions, 'maxBytes'>,
): AcceptedFormats {
  const parts = (accept ?? '').split(',').filter((part) => part.trim() !== '');
  const ranges = parts.map(parseRange);
  const isMissing = ranges.length === 0 || ranges.includes(undefined);
  const valid = isMissing ? [{ name: '*/*', quality: 1 }] : ranges;
  const qualityOf = (format: OutputType): number => {
    const { mediaType } = OUTPUTS[format];
    const wildcards = NAMED_ONLY.includes(format) ? [] : [mediaType.replace(/[^/]+$/, '*'), '*/*'];
    // The most specific range applies.
    const [range] = [mediaType, ...wildcards].flatMap((name) => valid.filter((each) => each?.name === name));
    return range?.quality ?? 0;
  };
  const candidates = STILLS.filter(
    (format) => outputs.includes(format) && (maxBytes === undefined || hasBytesLimit(format)),
  );
  const accepted = candidates
    .map((format) => [format, qualityOf(format)] as const)
    .filter(([, quality]) => quality > 0);
  if (accepted.length > 0) return Object.fromEntries(accepted);
  throw serviceError(
    'NOT_ACCEPTABLE',
    candidates.map((format) => OUTPUTS[format].mediaType),
  );
}

/**
 * Returns the accepted formats that suit the image, by descending quality value: an animation stays
 * one, and transparency is kept, if an accepted format can hold it.
 */
export function suitableFormats(
  accepted: AcceptedFormats,
  { animation, pixels }: ImageInfo,
  { frames }: ConvertOptions,
): OutputType[] {
  const tiers = [
    ...(animation && frames !== 'first' ? [ANIMATED] : []),
    ...(pixels?.alpha === false ? [] : [TRANSPARENT]),
    STILLS,
  ];
  const suitable = tiers.map((tier) => tier.filter((format) => accepted[format] !== undefined));
  const quality = (format: OutputType): number => accepted[format] as number;
  return [...(suitable.find((tier) => tier.length > 0) ?? [])].sort((a, b) => quality(b) - quality(a));
}
