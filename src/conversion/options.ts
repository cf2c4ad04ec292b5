import { z } from 'zod';
import { hasBytesLimit, OUTPUTS, type OutputType, parseOutputType } from '../formats.ts';
import { colourByName } from './input/svg/css.ts';
import { type ConvertOptions, FITS, POSITIONS, type Position } from './plan/types.ts';
import { MIN_QUALITY } from './search-quality.ts';

/**
 * What may be asked of a conversion besides its format. Each check says, in words, what it expects; what comes out
 * of it and what is told of it are also what the API reference says.
 */

export const integer = (least: number, most: number) => {
  const expected = `a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^\d{1,10}$/, expected)
    .transform(Number)
    .pipe(z.int(expected).min(least, expected).max(most, expected));
};

const trueOrFalse = z.stringbool({
  truthy: ['true', '1', 'yes', 'on'],
  falsy: ['false', '0', 'no', 'off'],
  error: 'true or false (or 1/0, yes/no, on/off)',
});

/** What is made when nobody says what. */
export const DEFAULT_FORMAT: OutputType = 'webp';

/** @param outputs the formats that can be written */
export const outputFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .transform(parseOutputType)
    .pipe(z.enum(outputs, `one of ${outputs.join(', ')}`));

export const oneOf = <const T extends string>(...words: [T, ...T[]]) =>
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(words, words.length > 2 ? `one of ${words.join(', ')}` : words.join(' or ')));

/** Other names of positions, as sharp has them. */
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

const COLOUR = 'a colour as #rgb, #rrggbb or a name of CSS';

/** CSS hex, three or six digits; the mark in front may be left out, since shells take it for a comment. */
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

/** The most that `max_bytes` may say: more than any result has. */
const MAX_BYTES = 2 ** 31;

/** Options that make no sense together: the field, its value and what was expected. */
export interface Conflict {
  readonly field: 'fit' | 'lossless' | 'max_bytes';
  readonly value: string;
  readonly expected: string;
}

/**
 * Finds options that contradict each other.
 *
 * @param outputs the formats that can be written, for the message
 * @returns undefined if the options are compatible
 */
export function conflictIn(
  { fit, width, height, maxBytes, lossless, format }: ConvertOptions,
  outputs: readonly OutputType[],
): Conflict | undefined {
  if (fit && fit !== 'inside' && !(width && height))
    return { field: 'fit', value: fit, expected: 'both width and height with it' };
  if (maxBytes !== undefined && !hasBytesLimit(format)) {
    const expected = `one of ${outputs.filter(hasBytesLimit).join(', ')} as the format, not ${format}`;
    return { field: 'max_bytes', value: String(maxBytes), expected };
  }
  if (lossless && maxBytes !== undefined)
    return { field: 'lossless', value: 'true', expected: 'false together with max_bytes' };
  return undefined;
}

/**
 * The checks of the options by name. Every value is text, as forms and command lines have it.
 *
 * @param outputs the formats that can be written, which the descriptions name
 */
export const optionFields = (outputs: readonly OutputType[]) => ({
  quality: integer(1, 100)
    .default(80)
    .describe(
      `1 is the smallest file, 100 the best picture. Acts on ${outputs.filter((type) => OUTPUTS[type].quality).join(', ')}.${outputs.includes('jxl') ? ' 100 is lossless for jxl.' : ''}`,
    ),
  width: integer(1, 16384)
    .optional()
    .meta({
      description:
        'Most pixels across. The picture is fitted inside, its aspect kept, unless `fit` says something else, and only enlarged with `enlarge`; an SVG is drawn at the size asked for.',
      examples: [1200],
    }),
  height: integer(1, 16384)
    .optional()
    .meta({ description: 'Most pixels down, with the meaning of `width`.', examples: [800] }),
  fit: oneOf(...FITS)
    .default('inside')
    .meta({
      description:
        'How the picture is put into `width` and `height`, as in sharp. `inside`: all of it, no larger than both. `cover`: exactly both, and what is outside is cut off. `contain`: exactly both, with borders. `fill`: exactly both, stretched. All but `inside` need both `width` and `height`. A picture that is smaller does not grow without `enlarge`: `cover` cuts what is outside, `contain` adds more border, `fill` only shortens sides.',
      examples: ['cover'],
    }),
  position: position.default('center').meta({
    description: `What \`cover\` leaves and where \`contain\` places the picture. Also ${Object.keys(
      POSITION_ALIASES,
    )
      .map((name) => `\`${name}\``)
      .join(', ')}; in any case.`,
    examples: ['right top'],
  }),
  enlarge: trueOrFalse
    .default(false)
    .describe(
      'Whether a picture may become larger than it is. An SVG is drawn at the size asked for in any case. Also `1/0`, `yes/no`, `on/off`.',
    ),
  lossless: trueOrFalse
    .default(false)
    .describe(
      'Whether a WebP has exactly the pixels of the picture, whatever `quality` says. Other formats ignore it. Excludes `max_bytes`. Also `1/0`, `yes/no`, `on/off`.',
    ),
  max_bytes: integer(1, MAX_BYTES)
    .optional()
    .meta({
      description: `The most bytes the result may have. When it has more with \`quality\`, the quality goes down as far as it must, to ${MIN_QUALITY} at most; \`X-Conversion-Quality\` says to what. When that is not enough, the request is refused. Acts on ${outputs.filter(hasBytesLimit).join(', ')} and is refused for other formats.`,
      examples: [200_000],
    }),
  strip_metadata: trueOrFalse
    .default(true)
    .describe(
      'Whether EXIF, IPTC, XMP and the colour profile are taken out; when not, they stay where the format can hold them. Also `1/0`, `yes/no`, `on/off`.',
    ),
  frames: oneOf('all', 'first')
    .optional()
    .describe(
      'Which frames of an animation. When absent: all where the output can move, and the first elsewhere. A PDF gets a page a frame only for `all`.',
    ),
  pages: oneOf('all', 'first')
    .optional()
    .describe('Which pages of a TIFF that becomes a PDF or a TIFF. When absent: all.'),
  background: colour.optional().meta({
    description:
      'What transparency is laid over where the format has none, and the borders of `fit=contain`: a colour as `#rgb`, `#rrggbb` or a name of CSS. When absent: white; and for borders transparent where the format has transparency.',
    examples: ['#ffffff', '#08f', 'rebeccapurple'],
  }),
});
