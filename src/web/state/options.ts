/** @module The conversion options of the page, in its address and in localStorage. */
import { computed, signal } from '@preact/signals';
import type { Fit, Position } from '../../conversion/plan/types.ts';
import { hasBytesLimit, MAX_DIMENSION, OUTPUTS, type OutputType, parseOutputType } from '../../formats.ts';

/**
 * Conversion options. As a query string with the field names of the API, they are in the page's address and
 * localStorage.
 */
export interface Options {
  readonly format: OutputType;
  /** 1 to 100. */
  readonly quality: number;
  /** Maximum width in pixels, as typed; empty for no limit. */
  readonly width: string;
  readonly height: string;
  readonly fit: Fit;
  readonly position: Position;
  readonly enlarge: boolean;
  /** Has an effect only for formats that can be lossless or lossy. */
  readonly lossless: boolean;
  /** Maximum size of a result in kB, as typed, possibly with decimals; empty for no limit. */
  readonly maxKilobytes: string;
  readonly keepMetadata: boolean;
  /** Colour of borders, and of what was transparent, as #rrggbb; empty for the default of the format. */
  readonly background: string;
  /** Frames of an animation; empty for the default of the format. */
  readonly frames: AllOrFirst | '';
  /** Pages of a file; empty for the default, all. */
  readonly pages: AllOrFirst | '';
}

/** Which frames or pages of a file are converted. */
export type AllOrFirst = 'all' | 'first';

/** Labels of the ways to fit an image into a box. */
export const FIT_LABELS: Readonly<Record<Fit, string>> = {
  inside: 'Fit inside',
  cover: 'Fill and crop',
  contain: 'Add borders',
  fill: 'Stretch',
};
/** Labels of the positions, row by row. */
export const POSITION_LABELS: Readonly<Record<Position, string>> = {
  'left top': 'Top left',
  top: 'Top',
  'right top': 'Top right',
  left: 'Left',
  center: 'Centre',
  right: 'Right',
  'left bottom': 'Bottom left',
  bottom: 'Bottom',
  'right bottom': 'Bottom right',
};
/** Fits for which the position has an effect. */
const POSITIONED: readonly Fit[] = ['cover', 'contain'];

/** Defaults of the API. */
const DEFAULTS: Options = {
  ...{ format: 'webp', quality: 80, width: '', height: '' },
  ...{ fit: 'inside', position: 'center', enlarge: false },
  ...{ lossless: false, maxKilobytes: '', keepMetadata: false },
  ...{ background: '', frames: '', pages: '' },
};
const ALL_OR_FIRST: Readonly<Record<AllOrFirst, true>> = { all: true, first: true };
const KILOBYTE = 1000;
/** Minimum of `max_bytes` that the API accepts, in kB. */
export const MIN_KILOBYTES = 0.001;
/** Maximum of `max_bytes` that the API accepts, in kB. */
export const MAX_KILOBYTES = 2 ** 31 / KILOBYTE;
/** Key in localStorage. */
const STORAGE_KEY = 'imagemill.choices';

export const options = signal<Options>(loadOptions());
/** The options as form fields of the API, without defaults. */
export const fields = computed(() => toFields(options.value));
/** Returns the options as a query string, for a file that has a format of its own if it is given. */
export const queryFor = (format: OutputType = options.value.format): string =>
  toFields({ ...options.value, format }).toString();

/** Changes some options, and stores all of them in the page's address and in localStorage. */
export function setOptions(changed: Partial<Options>): void {
  options.value = { ...options.value, ...changed };
  const query = fields.value.toString();
  history.replaceState(null, '', `?${query}`);
  store(query);
}

/** Returns whether `fit` has an effect: it needs a box with both sides. */
export const hasBox = ({ width, height }: Options): boolean => width !== '' && height !== '';
/** Returns whether results have exactly the size of the box. */
export const isExact = (all: Options): boolean => hasBox(all) && all.fit !== DEFAULTS.fit;
/** Returns whether `position` has an effect. */
export const hasPosition = (all: Options): boolean => hasBox(all) && POSITIONED.includes(all.fit);

/** Returns whether results are lossless because of the option: quality and maximum size have no effect then. */
export const isLossless = ({ format, lossless }: Options): boolean => lossless && OUTPUTS[format].lossless;

/** Summary of the options in a line. */
export const summary = computed(() => {
  const { format, quality, width, height } = options.value;
  const { label, quality: hasQuality } = OUTPUTS[format];
  const lossless = isLossless(options.value);
  const size = (width || height) && `${width || 'any'} × ${height || 'any'}`;
  return [label, lossless ? 'lossless' : hasQuality && `quality ${quality}`, size]
    .filter(Boolean)
    .join(' · ');
});

function toFields(all: Options): URLSearchParams {
  const { format, quality, width, height, fit, position, enlarge, maxKilobytes, keepMetadata } = all;
  const { background, frames, pages } = all;
  const lossless = isLossless(all);
  const limitsBytes = maxKilobytes !== '' && hasBytesLimit(format) && !lossless;
  const hasQuality = OUTPUTS[format].quality && !lossless;
  return new URLSearchParams({
    output_format: format,
    ...(hasQuality && quality !== DEFAULTS.quality && { quality: String(quality) }),
    ...(width !== '' && { width }),
    ...(height !== '' && { height }),
    ...(hasBox(all) && fit !== DEFAULTS.fit && { fit }),
    ...(hasPosition(all) && position !== DEFAULTS.position && { position }),
    ...((width !== '' || height !== '') && enlarge && { enlarge: 'true' }),
    ...(lossless && { lossless: 'true' }),
    ...(limitsBytes && { max_bytes: String(Math.round(Number(maxKilobytes) * KILOBYTE)) }),
    ...(keepMetadata && { strip_metadata: 'false' }),
    ...(background !== '' && { background }),
    ...(frames !== '' && { frames }),
    ...(pages !== '' && { pages }),
  });
}

/** Parses a query string. Invalid values count as absent. */
function parseOptions(query: URLSearchParams): Options {
  const parseInteger = (name: string, max: number): string => {
    const value = query.get(name) ?? '';
    return /^\d{1,10}$/.test(value) && Number(value) >= 1 && Number(value) <= max ? value : '';
  };
  const oneOf = <T extends string, F extends string>(
    labels: Readonly<Record<T, unknown>>,
    name: string,
    fallback: F,
  ): T | F => {
    const value = query.get(name) ?? '';
    return Object.hasOwn(labels, value) ? (value as T) : fallback;
  };
  const maxBytes = Number(parseInteger('max_bytes', MAX_KILOBYTES * KILOBYTE));
  return {
    format: parseOutputType(query.get('output_format') ?? query.get('format') ?? '') ?? DEFAULTS.format,
    quality: Number(parseInteger('quality', 100)) || DEFAULTS.quality,
    width: parseInteger('width', MAX_DIMENSION),
    height: parseInteger('height', MAX_DIMENSION),
    fit: oneOf(FIT_LABELS, 'fit', DEFAULTS.fit),
    position: oneOf(POSITION_LABELS, 'position', DEFAULTS.position),
    enlarge: query.get('enlarge') === 'true',
    lossless: query.get('lossless') === 'true',
    maxKilobytes: maxBytes ? String(maxBytes / KILOBYTE) : '',
    keepMetadata: query.get('strip_metadata') === 'false',
    background: parseColour(query.get('background') ?? ''),
    frames: oneOf(ALL_OR_FIRST, 'frames', DEFAULTS.frames),
    pages: oneOf(ALL_OR_FIRST, 'pages', DEFAULTS.pages),
  };
}

/** Parses a colour as the API does, `#rgb`, `#rrggbb` or a name of CSS. Returns #rrggbb; empty if it is none of them. */
function parseColour(text: string): string {
  const colour = /^[\da-f]{3}(?:[\da-f]{3})?$/i.test(text) ? `#${text}` : text;
  const context = new OffscreenCanvas(1, 1).getContext('2d') as OffscreenCanvasRenderingContext2D;
  context.fillStyle = colour;
  const parsed = String(context.fillStyle);
  return CSS.supports('color', colour) && /^#[\da-f]{6}$/.test(parsed) ? parsed : '';
}

/** Loads the options from the page's address, so that links can contain them, or from localStorage. */
function loadOptions(): Options {
  return parseOptions(new URLSearchParams(location.search.length > 1 ? location.search : loadStored()));
}

/** Returns the stored query string. localStorage throws if the user has disabled it. */
function loadStored(): string {
  try {
    return localStorage.getItem(STORAGE_KEY) ?? '';
  } catch {
    return '';
  }
}

function store(query: string): void {
  try {
    localStorage.setItem(STORAGE_KEY, query);
  } catch {
    // the page's address still has the options
  }
}
