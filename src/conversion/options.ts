/**
 * @module Checks and descriptions of the conversion options, as fields of a form or of a command line. Messages and the API
 * reference are generated from them. Chooses the output format of `output_format=auto`: the best one that the client accepts.
 */
import { z } from 'zod';
import { serviceError } from '../errors.ts';
import { DPI, hasBytesLimit, MAX_DIMENSION, OUTPUT_NAMES, OUTPUTS, type OutputType } from '../formats.ts';
import type { ImageInfo } from '../images/image-info.ts';
import { colourByName } from '../images/svg/css.ts';
import { type ConvertOptions, FITS, POSITIONS, type Position } from './plan/types.ts';
import { MIN_QUALITY } from './search-quality.ts';

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
/** Creates a check for a yes or no. */
export const flag = (fallback: boolean, description: string) =>
  trueOrFalse.default(fallback).describe(`${description} Also \`1/0\`, \`yes/no\`, \`on/off\`.`);

/** Output format of a request without one. */
export const DEFAULT_FORMAT: OutputType = 'webp';

/** The options of a request without any, except its format. */
export const DEFAULT_OPTIONS = { quality: 80, stripMetadata: true } as const;

/** Creates a check for an output format. `outputs` are the enabled formats. */
export const outputFormat = (outputs: readonly OutputType[]) =>
  z
    .string()
    .transform((text) => OUTPUT_NAMES.get(text.toLowerCase()))
    .pipe(z.enum(outputs, `one of ${outputs.join(', ')}`));

/** Creates a check for one of several words, in any case. */
export const oneOf = <const T extends string>(...words: [T, ...T[]]) =>
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

/** Maximum of `max_bytes`: more than any result can have. */
const MAX_BYTES = 2 ** 31;

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
    .default(DEFAULT_OPTIONS.quality)
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
    description: `The part that \`cover\` keeps, and the place where \`contain\` puts the image, in any case. With \`attention\`, edges, skin tones and saturation decide what \`cover\` keeps. Also ${Object.keys(
      POSITION_ALIASES,
    )
      .map((name) => `\`${name}\``)
      .join(', ')}.`,
    examples: ['center', 'right top', 'attention'],
  }),
  enlarge: flag(false, 'Whether an image can be enlarged. An SVG is always rendered at the requested size.'),
  lossless: flag(
    false,
    'Whether a WebP has exactly the pixels of the image, regardless of `quality`. With `strip_metadata=false`, an upright JPEG becomes a JPEG XL from which its bytes can be restored. Otherwise ignored. Excludes `max_bytes`.',
  ),
  max_bytes: integer(1, MAX_BYTES)
    .optional()
    .meta({
      description: `Maximum size of the result in bytes. If the result is larger at \`quality\`, the quality is lowered as far as necessary, but not below ${MIN_QUALITY}. \`X-Conversion-Quality\` states the quality that was used. If that is not sufficient, the request fails. Applies to ${outputs.filter(hasBytesLimit).join(', ')}; an error for other formats.`,
      examples: [200_000],
    }),
  strip_metadata: flag(
    DEFAULT_OPTIONS.stripMetadata,
    'Whether to remove EXIF, IPTC, XMP and the colour profile. If false, they are kept if the format supports them.',
  ),
  frames: oneOf('all', 'first')
    .optional()
    .describe(
      'Frames of an animation to convert. Default: all if the output can be animated, otherwise the first. A PDF gets one page per frame only with `all`.',
    ),
  pages: oneOf('all', 'first')
    .optional()
    .describe(`Pages of a TIFF or a PDF to convert to a ${pagedFormats(outputs)}. Default: all.`),
  dpi: integer(DPI.min, DPI.max)
    .optional()
    .meta({
      description: `Pixels per inch of a page of a PDF, before it is fitted into \`width\` and \`height\`. Ignored for other images. Default: ${DPI.default}.`,
      examples: [300],
    }),
  background: colour.optional().meta({
    description:
      'Colour that replaces transparency if the format has none, and colour of the borders of `fit=contain`, as `#rgb`, `#rrggbb` or a name of CSS. Default: white, and transparent for borders if the format has transparency.',
    examples: ['#ffffff', '#08f', 'rebeccapurple'],
  }),
});

/** Formats that can be chosen, with the quality value that the client gives each, above 0 and up to 1. */
export type AcceptedFormats = Readonly<Partial<Record<OutputType, number>>>;

/** Formats of still images, best first. The last ones are chosen only if nothing else fits. */
const STILLS: readonly OutputType[] = ['avif', 'webp', 'jpg', 'png', 'gif'];
const TRANSPARENT: readonly OutputType[] = ['avif', 'webp', 'png', 'gif'];
const ANIMATED: readonly OutputType[] = ['webp', 'gif'];

/** Formats that a wildcard does not permit: older browsers that cannot show AVIF send a wildcard beside `image/webp`. */
const NAMED_ONLY: readonly OutputType[] = ['avif', 'webp'];

const MEDIA_RANGE = /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/;
const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** Parses a media range with its quality value (RFC 9110, sections 12.4.2 and 12.5.1); undefined if it is malformed. */
function parseRange(text: string): { readonly name: string; readonly quality: number } | undefined {
  const [name = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
  return MEDIA_RANGE.test(name) && WEIGHT.test(weight) ? { name, quality: Number(weight) } : undefined;
}

/**
 * Returns the enabled formats that `Accept` permits. A header that is missing or malformed is the same as a wildcard, which does
 * not permit {@link NAMED_ONLY}.
 *
 * @param outputs the enabled output formats
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
 * Chooses the format with the highest quality value, among those that suit the image: an animation stays one, and transparency is
 * kept, if an accepted format can hold it.
 */
export function chooseFormat(
  accepted: AcceptedFormats,
  { animation, pixels }: ImageInfo,
  { frames }: ConvertOptions,
): OutputType {
  const tiers = [
    ...(animation && frames !== 'first' ? [ANIMATED] : []),
    ...(pixels?.alpha === false ? [] : [TRANSPARENT]),
    STILLS,
  ];
  const suitable = tiers.map((tier) => tier.filter((format) => accepted[format] !== undefined));
  const quality = (format: OutputType): number => accepted[format] as number;
  const [best] = [...(suitable.find((tier) => tier.length > 0) ?? [])].sort(
    (a, b) => quality(b) - quality(a),
  );
  return best as OutputType;
}
