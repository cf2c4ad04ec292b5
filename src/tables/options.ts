/**
 * @module The table of options. Fields of the API, flags of the command line, controls of the page
 * and the types of a plan derive from it. Each row describes one option; the documents list them by
 * hand, and a test compares both.
 */
import { DPI, hasBytesLimit, listOutputs, MAX_DIMENSION, OUTPUTS, type OutputType } from './formats.ts';

/** Values that an option can have. */
export type OptionType =
  | {
      readonly kind: 'integer';
      readonly min: number;
      readonly max: number;
      /** Words that are permitted, too, in any case, with the label of each on the page. */
      readonly words?: Readonly<Record<string, string>>;
    }
  /** A number, which is rounded to three decimals. */
  | {
      readonly kind: 'number';
      readonly min: number;
      readonly max: number;
      /** Number for `yes`. If there is one, `no` is permitted, too. */
      readonly yes?: number;
    }
  | { readonly kind: 'flag' }
  /** Some numbers, with the label of each on the page. */
  | { readonly kind: 'numbers'; readonly labels: Readonly<Record<number, string>> }
  /** Words in any case, with the label of each on the page, and other names. */
  | {
      readonly kind: 'words';
      readonly labels: Readonly<Record<string, string>>;
      readonly aliases?: Readonly<Record<string, string>>;
      /** Whether a point of the image is permitted, too: {@link POINT_TEXT}. */
      readonly point?: true;
      /** Whether numbers of pages are permitted, too: {@link PAGES_TEXT}. */
      readonly numbered?: true;
      /** Whether a size in millimetres is permitted, too: {@link parseMillimetres}. */
      readonly sized?: true;
    }
  /** An area of an image, as `left,top,width,height`. */
  | { readonly kind: 'area' }
  /** A colour of CSS, as #rrggbb once it is checked. */
  | { readonly kind: 'colour' };

/** Texts of the numbers that options accept. More decimals than a double has are an error. */
export const NUMBER_TEXTS = { integer: /^\d{1,10}$/, number: /^\d{1,10}(?:\.\d{1,20})?$/ } as const;

/** Text of a point, as `left,top` in percent of the sides of the image. */
export const POINT_TEXT =
  /^(?:100(?:\.0{1,20})?|\d{1,2}(?:\.\d{1,20})?)%,(?:100(?:\.0{1,20})?|\d{1,2}(?:\.\d{1,20})?)%$/;

const LENGTH = String.raw`(?:\d{1,5}|\d{1,3}(?:\.\d{1,6})?%)`;
const POSITIVE = `(?=[^,]*[1-9])${LENGTH}`;
/** Text of an area, as `left,top,width,height` in pixels or percent. */
export const AREA_TEXT = new RegExp(`^${LENGTH},${LENGTH},${POSITIVE},${POSITIVE}$`);

/** Text of numbers and ranges of pages. {@link parsePages} checks the numbers. */
export const PAGES_TEXT = /^\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?){0,99}$/;

/** Sides of a PDF page in mm. Viewers open at most 14 400 points (ISO 32000-1, annex C.2). */
export const PAGE_SIDE = { min: 1, max: 5080 } as const;
/** Text of a size in millimetres. {@link parseMillimetres} checks the numbers. */
export const SIZE_TEXT = /^\d{1,4}(?:\.\d{1,3})?x\d{1,4}(?:\.\d{1,3})?$/;

/** Parses a size in millimetres, such as `210x297`; undefined if not in {@link PAGE_SIDE}. */
export function parseMillimetres(text: string): readonly [width: number, height: number] | undefined {
  if (!SIZE_TEXT.test(text)) return undefined;
  const [width = 0, height = 0] = text.split('x').map(Number);
  const isPossible = Math.min(width, height) >= PAGE_SIDE.min && Math.max(width, height) <= PAGE_SIDE.max;
  return isPossible ? [width, height] : undefined;
}

/** Maximum number of a page: the maximum of `MAX_FRAMES`. */
export const MAX_PAGE = 10_000;

/** Numbers of the first and the last of adjacent pages, from 1. */
type PageRange = readonly [first: number, last: number];

/** Parses pages such as `1-3,5`; undefined if wrong. Ranges ascend, with a gap between each. */
export function parsePages(text: string): PageRange[] | undefined {
  if (!PAGES_TEXT.test(text)) return undefined;
  const ranges = text.split(',').map((range): PageRange => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return [first, last];
  });
  if (ranges.some(([first, last]) => first < 1 || last < first || last > MAX_PAGE)) return undefined;
  const joined: PageRange[] = [];
  for (const [first, last] of ranges.sort(([one], [other]) => one - other)) {
    const [from, to] = joined.at(-1) ?? [first, 0];
    if (joined.length > 0 && first <= to + 1) joined.splice(-1, 1, [from, Math.max(to, last)]);
    else joined.push([first, last]);
  }
  return joined;
}

/** Formats the ranges of {@link parsePages}. */
export const formatPages = (ranges: readonly PageRange[]): string =>
  ranges.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(',');

/** How the page shows an option. */
export interface Control {
  readonly label: string;
  /** What a flag does, beside its label. */
  readonly details?: string;
  readonly unit?: string;
  /** How many units of the API a unit of the page has. Default: 1. */
  readonly factor?: number;
}

/** Flag of the command line. Its name is that of the option: `--max-bytes`. */
interface FlagRow {
  readonly short?: string;
  /** Name of the value in the help. By default, the words of the option. */
  readonly value?: string;
  /** Help, without the default if there is one. */
  readonly help: string;
}

/**
 * What an option changes. A plan takes a short path only if the path honours the effects of all
 * options that are set. A `filter` and `colours` are stages of `src/conversion/plan/edits.ts`.
 */
export type Effect =
  /** What is read, how it is encoded, details of a watermark: no short path leaves that out. */
  | 'encoding'
  /** The size of the result. */
  | 'size'
  /** How the image fits into the size. No effect without one. */
  | 'fitting'
  /** The part of the image that is shown. */
  | 'part'
  /** The orientation of the image. */
  | 'turn'
  /** The pixels after the resize. */
  | 'filter'
  /** The colours after the resize, which are converted to sRGB before. */
  | 'colours'
  /** How many colours a PNG or GIF has. */
  | 'palette';

interface OptionRow {
  readonly type: OptionType;
  readonly effect: Effect;
  /** Value without the option, if that is a value. */
  readonly default?: string | number | boolean;
  /**
   * Whether another field states some of its values. Then the API reference has no default, because
   * generated clients would send it in addition to the other field.
   */
  readonly hasOtherField?: true;
  /** Markdown for the API reference, without the default. Can depend on the enabled formats. */
  readonly description: string | ((outputs: readonly OutputType[]) => string);
  readonly examples?: readonly (string | number)[];
  readonly flag: FlagRow;
  /** Absent if the page does not offer the option. */
  readonly control?: Control;
}

/** Lowest quality at which a result is encoded for `max_bytes`. Below it, images are not usable. */
export const MIN_QUALITY = 10;
/** Qualities among which `quality=auto` selects. */
export const AUTO_QUALITY = { min: 30, max: 95 } as const;
/** Maximum of `max_bytes`: more than any result can have. */
const MAX_BYTES = 2 ** 31;

/** Tolerance of `trim=yes` in percent: 10 of 255 as in sharp, for the noise of JPEG on white. */
const DEFAULT_TOLERANCE = 4;

const POSITION_ALIASES = {
  centre: 'center',
  north: 'top',
  northeast: 'right top',
  east: 'right',
  southeast: 'right bottom',
  south: 'bottom',
  southwest: 'left bottom',
  west: 'left',
  northwest: 'left top',
} as const;

const ALIAS_NAMES = Object.keys(POSITION_ALIASES)
  .map((name) => `\`${name}\``)
  .join(', ');

/** Places in a box, with their labels. */
const PLACES = {
  center: 'Centre',
  top: 'Top',
  'right top': 'Top right',
  right: 'Right',
  'right bottom': 'Bottom right',
  bottom: 'Bottom',
  'left bottom': 'Bottom left',
  left: 'Left',
  'left top': 'Top left',
} as const;

const selectOutputs = (outputs: readonly OutputType[], has: (type: OutputType) => boolean): string =>
  outputs.filter(has).join(', ');

const isIndexed = (type: OutputType): boolean => OUTPUTS[type].indexed === true;

/** All options of a result, except its format, in the order of the API reference. */
export const OPTIONS = {
  quality: {
    type: { kind: 'integer', min: 1, max: 100, words: { auto: 'Automatic' } },
    default: 80,
    effect: 'encoding',
    description(outputs) {
      const exact = selectOutputs(outputs, (type) => OUTPUTS[type].losslessQuality === true);
      return `1 gives the smallest file, 100 the best quality. Applies to ${selectOutputs(outputs, (type) => OUTPUTS[type].quality)}.${exact && ` 100 is lossless for ${exact}.`} \`auto\` is the lowest quality from ${AUTO_QUALITY.min} to ${AUTO_QUALITY.max} at which a still image looks the same, as ${selectOutputs(outputs, hasBytesLimit)}; \`X-Image-Quality\` states it. Animations and other formats have the default.`;
    },
    examples: [80, 'auto'], // Swagger UI starts with the first
    flag: {
      short: '-q',
      value: '1-100|auto',
      help: `quality of ${listOutputs('and', (type) => OUTPUTS[type].quality)}; auto: the lowest that looks the same`,
    },
    control: { label: 'Quality' },
  },
  rotate: {
    type: { kind: 'numbers', labels: { 0: 'None', 90: '90° right', 180: '180°', 270: '90° left' } },
    default: 0,
    effect: 'turn',
    description:
      'Degrees by which the upright image is rotated clockwise. `width`, `height` and `crop` apply to the rotated image.',
    examples: [0, 90], // Swagger UI starts with the first
    flag: { help: 'rotate the upright image clockwise, before --crop and the fit' },
    control: { label: 'Rotate' },
  },
  flip: {
    type: { kind: 'words', labels: { horizontal: 'Left to right', vertical: 'Upside down', both: 'Both' } },
    effect: 'turn',
    description: 'Reflects the image, after `rotate` and before `crop`.',
    flag: { help: 'reflect the image, after --rotate and before --crop' },
    control: { label: 'Flip' },
  },
  crop: {
    type: { kind: 'area' },
    effect: 'part',
    description:
      'Part of the image to convert, as `left,top,width,height` in pixels of the upright image, after `rotate` and `flip`, or with a `%` in percent of its side. Applies before `width`, `height` and `fit`. An error if it is not inside of the image. Applies to each frame and each page.',
    examples: ['100,50,640,480', '25%,25%,50%,50%'],
    flag: {
      value: 'l,t,w,h',
      help: 'part of the upright image, in pixels or percent (25%,0,50%,100%), before the fit',
    },
    control: { label: 'Crop' },
  },
  trim: {
    type: { kind: 'number', min: 0, max: 100, yes: DEFAULT_TOLERANCE },
    effect: 'part',
    description: `Removes a border of the colour of the top left corner, after \`crop\`: \`yes\`, \`no\`, or the tolerance in percent. \`yes\` is ${DEFAULT_TOLERANCE}, \`0\` removes only pixels of exactly this colour. An image of one colour is kept.`,
    examples: ['no', 'yes', 10], // Swagger UI starts with the first
    flag: {
      value: 'tolerance',
      help: `remove a border of the colour of the top left corner: yes (${DEFAULT_TOLERANCE}), as without a value, or a tolerance in percent`,
    },
    control: { label: 'Trim tolerance', unit: '%' },
  },
  width: {
    type: { kind: 'integer', min: 1, max: MAX_DIMENSION },
    effect: 'size',
    description:
      'Maximum width in pixels. The image is scaled to fit and keeps its aspect ratio, unless `fit` is set. It is enlarged only with `enlarge`. An SVG is rendered at the requested size.',
    examples: [1200],
    flag: {
      value: 'pixels',
      help: 'maximum width, or 50% of the image; without --enlarge, only SVGs are enlarged',
    },
    control: { label: 'Max width', unit: 'px' },
  },
  height: {
    type: { kind: 'integer', min: 1, max: MAX_DIMENSION },
    effect: 'size',
    description: 'Maximum height in pixels, as for `width`.',
    examples: [800],
    flag: { value: 'pixels', help: 'maximum height' },
    control: { label: 'Max height', unit: 'px' },
  },
  scale: {
    type: { kind: 'number', min: 1, max: 1000 },
    effect: 'size',
    description:
      'Size of the result in percent of the image after `rotate`, `crop` and `trim`, instead of `width` and `height`. An image is enlarged only with `enlarge`, an SVG always.',
    examples: [50],
    flag: {
      value: 'percent',
      help: 'size in percent of the image, such as 50%, 1 to 1000, instead of --width and --height',
    },
    control: { label: 'Scale', unit: '%' },
  },
  fit: {
    type: {
      kind: 'words',
      labels: { inside: 'Fit inside', cover: 'Fill and crop', contain: 'Add borders', fill: 'Stretch' },
    },
    default: 'inside',
    effect: 'fitting',
    description:
      'How the image fits into `width` and `height`, as in sharp. `inside`: no larger than either. `cover`: exactly this size, cropped. `contain`: exactly this size, with borders. `fill`: exactly this size, stretched. All except `inside` require both `width` and `height`. Without `enlarge`, a smaller image is not enlarged: `cover` only crops, `contain` adds wider borders, `fill` only shrinks.',
    examples: ['inside', 'cover'], // Swagger UI starts with the first
    flag: { help: 'how to fit the image into --width and --height' },
    control: { label: 'Fit' },
  },
  position: {
    type: {
      kind: 'words',
      labels: { ...PLACES, attention: 'Automatic' },
      aliases: POSITION_ALIASES,
      point: true,
    },
    default: 'center',
    effect: 'fitting',
    description: `The part that \`cover\` keeps, and the place where \`contain\` puts the image, in any case. With \`attention\`, edges, skin tones and saturation decide what \`cover\` keeps. A point, as \`left,top\` in percent of the image after \`crop\`, is as near to the centre of \`cover\` as the edges permit. Also ${ALIAS_NAMES}.`,
    examples: ['center', 'right top', '30%,70%', 'attention'],
    flag: {
      value: 'place',
      help: 'part that cover keeps: top, "right top" …, a point (30%,70%) or attention; or place in the box of contain',
    },
    control: { label: 'Position' },
  },
  blur: {
    type: { kind: 'number', min: 0.3, max: 100 },
    effect: 'filter',
    description:
      'Blurs the image by a Gaussian function after the resize. The value is its standard deviation (sigma) in pixels of the result.',
    examples: [2.5],
    flag: { value: 'sigma', help: 'blur the resized image; the standard deviation in pixels, 0.3 to 100' },
    control: { label: 'Blur', unit: 'px' },
  },
  sharpen: {
    type: { kind: 'number', min: 0.3, max: 10 },
    effect: 'filter',
    description:
      'Sharpens the image after `blur`: adds its difference from the image blurred by a Gaussian function. The value is the standard deviation (sigma) of the function in pixels of the result.',
    examples: [0.8],
    flag: { value: 'sigma', help: 'sharpen the resized image; the standard deviation in pixels, 0.3 to 10' },
    control: { label: 'Sharpen', unit: 'px' },
  },
  greyscale: {
    type: { kind: 'flag' },
    default: false,
    effect: 'colours',
    description:
      'Whether the result has no colours, only the luminance of sRGB and transparency. The colour of `background` stays.',
    flag: { help: 'remove the colours' },
    control: { label: 'Greyscale', details: 'removes the colours' },
  },
  watermarkPosition: {
    type: { kind: 'words', labels: PLACES, aliases: POSITION_ALIASES },
    default: 'right bottom',
    effect: 'encoding',
    description:
      'Place of the watermark, with the words of `position` except `attention`. Its distance from the edges is 3% of the shorter side.',
    examples: ['right bottom', 'center'],
    flag: { value: 'place', help: 'place of the watermark: top, "right top" …' },
    control: { label: 'Watermark position' },
  },
  watermarkOpacity: {
    type: { kind: 'integer', min: 1, max: 100 },
    default: 100,
    effect: 'encoding',
    description: 'Opacity of the watermark in percent.',
    examples: [100, 50],
    flag: { value: 'percent', help: 'opacity of the watermark' },
    control: { label: 'Opacity', unit: '%' },
  },
  watermarkScale: {
    type: { kind: 'integer', min: 1, max: 100 },
    default: 20,
    effect: 'encoding',
    description:
      'Width of the watermark in percent of the width of the picture. A watermark that would be higher than the picture is as high as it.',
    examples: [20, 50],
    flag: { value: 'percent', help: 'width of the watermark in percent of that of the picture' },
    control: { label: 'Watermark width', unit: '%' },
  },
  watermarkRepeat: {
    type: { kind: 'flag' },
    default: false,
    effect: 'encoding',
    description:
      'Whether the watermark is repeated over the whole picture, from `watermark_position`, at distances of 3% of the shorter side.',
    flag: { help: 'repeat the watermark over the whole picture' },
    control: { label: 'Repeat', details: 'the watermark over the whole picture' },
  },
  enlarge: {
    type: { kind: 'flag' },
    default: false,
    effect: 'fitting',
    description: 'Whether an image can be enlarged. An SVG is always rendered at the requested size.',
    flag: { help: 'allow enlargement' },
    control: { label: 'Enlarge', details: 'images that are smaller than the maximum size' },
  },
  lossless: {
    type: { kind: 'flag' },
    default: false,
    effect: 'encoding',
    description:
      'Whether a WebP or PDF has exactly the pixels of the image, regardless of `quality`. A PDF contains an unedited JPEG as it is. With `metadata=all`, an upright JPEG becomes a JPEG XL from which its bytes can be restored. Otherwise ignored. Excludes `max_bytes`.',
    flag: {
      help: 'write WebP and PDF without loss, and JPEG XL from which a JPEG can be restored, with --metadata=all',
    },
    control: { label: 'Lossless', details: 'keeps every pixel, for a larger file' },
  },
  colors: {
    type: { kind: 'integer', min: 2, max: 256 },
    effect: 'palette',
    description: (outputs) =>
      `Maximum number of colours, with transparency as one of them, for ${selectOutputs(outputs, isIndexed)}. Each frame of an animation has as many. Default: a PNG keeps all colours, and a GIF has up to 256. Otherwise ignored.`,
    examples: [64],
    flag: {
      value: '2-256',
      help: `maximum number of colours of ${listOutputs('and', isIndexed)}, for a smaller file`,
    },
  },
  dither: {
    type: { kind: 'flag' },
    default: true,
    effect: 'palette',
    description:
      'Whether pixels of different colours stand for the colours that `colors` leaves out. Animations are never dithered. No effect without `colors`.',
    flag: { help: 'do not mix pixels to show the colours that --colors leaves out' },
  },
  maxBytes: {
    type: { kind: 'integer', min: 1, max: MAX_BYTES },
    effect: 'encoding',
    description: (outputs) =>
      `Maximum size of the result in bytes. If the result is larger at \`quality\`, the quality is lowered as far as necessary, but not below ${MIN_QUALITY}. \`X-Image-Quality\` states the quality that was used. If that is not sufficient, the request fails. Applies to ${selectOutputs(outputs, hasBytesLimit)}; an error for other formats.`,
    examples: [200_000],
    flag: {
      value: 'size',
      help: `maximum size of ${listOutputs('and', hasBytesLimit)}, such as 200k: lowers the quality as needed`,
    },
    control: { label: 'Max file size', unit: 'kB', factor: 1000 },
  },
  metadata: {
    type: { kind: 'words', labels: { none: 'Removed', copyright: 'Only copyright', all: 'Kept' } },
    default: 'none',
    hasOtherField: true,
    effect: 'encoding',
    description: (outputs) =>
      `Metadata of the result. \`none\`: none, and the colours are sRGB. \`copyright\`: the author, the copyright, the credit line and the terms of use, as EXIF, IPTC and XMP state them, and the colour profile, but no place, no camera and no thumbnail; for ${selectOutputs(outputs, (type) => OUTPUTS[type].copyright)}. \`all\`: EXIF, IPTC, XMP and the colour profile, if the format supports them. Default: \`none\`.`,
    examples: ['none', 'copyright'],
    flag: { help: 'metadata of the result; copyright also keeps the colour profile' },
    control: { label: 'Metadata' },
  },
  frames: {
    type: { kind: 'words', labels: { all: 'All frames', first: 'First frame' } },
    effect: 'encoding',
    description:
      'Frames of an animation to convert. Default: all if the output can be animated, otherwise the first. A PDF gets one page per frame only with `all`.',
    flag: { help: 'frames of an animation (default: all if the output can be animated)' },
    control: { label: 'Animations' },
  },
  pages: {
    type: { kind: 'words', labels: { all: 'All pages', first: 'First page' }, numbered: true },
    effect: 'encoding',
    description(outputs) {
      const paged = outputs.filter((type) => OUTPUTS[type].pages).map((type) => OUTPUTS[type].label);
      return `Pages of a TIFF or a PDF to convert: \`all\`, \`first\`, or numbers and ranges from 1, such as \`1-3,5\`. A ${paged.join(' or ')} has all of them, in the order of the file. Other formats have the first page; of several numbers, each page becomes an image, \`NAME-p1\` and so on, and the response is an archive. Default: all.`;
    },
    examples: ['first', '2', '1-3,5'],
    flag: {
      value: 'all|first|1-3,5',
      help: 'pages of a TIFF or PDF; with numbers, each is an image, or all are in one PDF or TIFF (default: all)',
    },
    control: { label: 'Pages' },
  },
  dpi: {
    type: { kind: 'integer', min: DPI.min, max: DPI.max },
    effect: 'encoding',
    description: `Pixels per inch of a page of a PDF, before it is fitted into \`width\` and \`height\`. Default: ${DPI.default}. For the output format pdf, pixels per inch of a picture on its page, instead of what its file states. Otherwise ignored.`,
    examples: [300],
    flag: {
      value: 'dpi',
      help: `pixels per inch of a page of a PDF to convert, or of a picture in a PDF, ${DPI.min} to ${DPI.max} (default: ${DPI.default}, or what the picture states)`,
    },
    control: { label: 'PDF resolution', unit: 'dpi' },
  },
  pageSize: {
    type: {
      kind: 'words',
      labels: { image: 'Picture', a3: 'A3', a4: 'A4', a5: 'A5', letter: 'Letter', legal: 'Legal' },
      sized: true,
    },
    default: 'image',
    effect: 'encoding',
    description:
      'Size of the pages of a PDF: that of the picture (`image`), `a3`, `a4`, `a5`, `letter`, `legal`, or `WIDTHxHEIGHT` in millimetres. The picture is scaled to the page, and never cropped. Other formats ignore it.',
    examples: ['image', 'a4', '100x150'],
    flag: { value: 'size', help: 'pages of a PDF: image, a3, a4, a5, letter, legal or WIDTHxHEIGHT in mm' },
    control: { label: 'Page size' },
  },
  pageMargin: {
    type: { kind: 'number', min: 0, max: 1000 },
    default: 0,
    effect: 'encoding',
    description: 'Margin of the pages of a PDF in millimetres, on each side. Other formats ignore it.',
    examples: [10],
    flag: { value: 'mm', help: 'margin of the pages of a PDF in millimetres' },
    control: { label: 'Page margin', unit: 'mm' },
  },
  pageOrientation: {
    type: {
      kind: 'words',
      labels: { auto: 'Like the picture', portrait: 'Portrait', landscape: 'Landscape' },
    },
    default: 'auto',
    effect: 'encoding',
    description:
      'Orientation of the pages of a PDF, by default that of the picture. The others need a `page_size` other than `image`.',
    flag: { help: 'orientation of the pages of a PDF, with --page-size' },
    control: { label: 'Page orientation' },
  },
  background: {
    type: { kind: 'colour' },
    effect: 'encoding',
    description:
      'Colour that replaces transparency if the format has none, and colour of the borders of `fit=contain`, as `#rgb`, `#rrggbb` or a name of CSS. Default: white, and transparent for borders if the format has transparency.',
    examples: ['#ffffff', '#08f', 'rebeccapurple'],
    flag: {
      value: 'colour',
      help: 'colour that replaces transparency and fills the borders of contain, #rgb, #rrggbb or a CSS name (default: white)',
    },
    control: { label: 'Background' },
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

type Rows = typeof OPTIONS;
/** Name of an option. */
export type OptionName = keyof Rows;
/** Name of an option with one of the effects. */
export type OptionWith<E extends Effect> = {
  [N in OptionName]: Rows[N]['effect'] extends E ? N : never;
}[OptionName];
/** The names of all options, in order. */
export const OPTION_NAMES = Object.keys(OPTIONS) as readonly OptionName[];
/** Returns the row of an option, for code that treats all options alike. */
export const optionRow = (name: OptionName): OptionRow => OPTIONS[name];
/** Returns the names of the options with one of the effects, in order. */
export const optionsWith = <E extends Effect>(...effects: readonly E[]): readonly OptionWith<E>[] =>
  OPTION_NAMES.filter((name) =>
    (effects as readonly Effect[]).includes(OPTIONS[name].effect),
  ) as OptionWith<E>[];

/** A point of an image: the distances from the left and the top in percent of its sides. */
export type Point = `${number}%,${number}%`;

/** Numbers and ranges of pages, as {@link formatPages} writes them. */
type PageNumbers = `${number}${string}`;

/** Width and height of a page in millimetres. */
type Millimetres = `${number}x${number}`;

/** Value of an option, parsed. */
export type OptionValue<N extends OptionName> = Rows[N]['type'] extends infer T
  ? T extends { labels: infer L }
    ?
        | keyof L
        | (T extends { point: true } ? Point : never)
        | (T extends { numbered: true } ? PageNumbers : never)
        | (T extends { sized: true } ? Millimetres : never)
    : T extends { kind: 'integer' | 'number' }
      ? number | (T extends { words: infer W } ? keyof W : never)
      : T extends { kind: 'flag' }
        ? boolean
        : string
  : never;

/** Options that every conversion states. */
type Required = 'quality' | 'metadata';
/** Parsed options of a result, except its format. */
export type OptionValues = { readonly [N in Required]: OptionValue<N> } & {
  readonly [N in Exclude<OptionName, Required>]?: OptionValue<N> | undefined;
};

/** Returns the field of the API for an option: `max_bytes` for `maxBytes`. */
export const fieldName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Returns the flag of the command line for an option or a field: `--max-bytes`. */
export const flagName = (name: string): string => `--${fieldName(name).replaceAll('_', '-')}`;

/**
 * Returns the flag of an option with its value as in a help, such as `-q, --quality <1-100>`, and
 * its description. A value in brackets can be left out, and is then `yes`. A flag that is on by
 * default is turned off: `--no-dither`.
 */
export function describeFlag(name: OptionName): [flags: string, help: string] {
  const { type, flag, default: fallback } = optionRow(name);
  const value = flag.value ?? ('labels' in type && Object.keys(type.labels).join('|'));
  const shown = value && ('yes' in type ? `[${value}]` : `<${value}>`);
  const long = fallback === true ? flagName(name).replace('--', '--no-') : flagName(name);
  const flags = [flag.short, [long, shown].filter(Boolean).join(' ')];
  const isStated = fallback !== undefined && type.kind !== 'flag';
  return [flags.filter(Boolean).join(', '), `${flag.help}${isStated ? ` (default: ${fallback})` : ''}`];
}

/** Returns whether an option has another value than its default, or, if unknown, any value. */
export const isOptionSet = (name: string, value: unknown): boolean =>
  value !== undefined && value !== (OPTIONS as Readonly<Record<string, OptionRow>>)[name]?.default;

/** What a result keeps of the metadata. */
export type KeptMetadata = OptionValue<'metadata'>;
/** Ways to fit an image into a box. */
export type Fit = OptionValue<'fit'>;
/** Position of an image in its box, with the name of sharp. */
export type Position = OptionValue<'position'>;
