import { z } from 'zod';
import { type OutputType, parseOutputType } from '../formats.ts';

/**
 * What may be asked of a conversion besides its format. Each check says, in words, what it expects; what comes out
 * of it and what is told of it are also what the API reference says.
 */

export const integer = (least: number, most: number) => {
  const expected = `a whole number from ${least} to ${most}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, expected)
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

export const oneOf = <const T extends string>(...words: [T, T]) =>
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(words, words.join(' or ')));

/** CSS hex, three or six digits; the mark in front may be left out, since shells take it for a comment. */
const colour = z
  .string()
  .regex(/^#?(?:[\dA-Fa-f]{3}|[\dA-Fa-f]{6})$/, 'a colour as #rgb or #rrggbb')
  .overwrite((text) => {
    const digits = text.replace('#', '').toLowerCase();
    return `#${digits.length === 3 ? digits.replace(/./g, '$&$&') : digits}`;
  });

/** Every value is text, as forms and command lines have it. */
export const OPTION_FIELDS = {
  quality: integer(1, 100)
    .default(80)
    .describe(
      '1 is the smallest file, 100 the best picture. Acts on webp, jpg, pdf, avif and jxl; 100 is lossless for jxl.',
    ),
  width: integer(1, 16384)
    .optional()
    .meta({
      description:
        'Most pixels across. The picture is fitted inside, its aspect kept, and never enlarged; an SVG is drawn at the size asked for.',
      examples: [1200],
    }),
  height: integer(1, 16384)
    .optional()
    .meta({ description: 'Most pixels down, with the meaning of `width`.', examples: [800] }),
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
      'What transparency is laid over where the format has none: a colour as `#rgb` or `#rrggbb`. When absent: white.',
    examples: ['#ffffff', '#08f'],
  }),
};
