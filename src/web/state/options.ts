/** @module The conversion options of the page, in its address and in localStorage. */
import { computed, signal } from '@preact/signals';
import type { AllOrFirst, Fit, Position } from '../../conversion/plan/types.ts';
import { DPI, hasBytesLimit, MAX_DIMENSION, OUTPUT_NAMES, OUTPUTS, type OutputType } from '../../formats.ts';

/**
 * Conversion options. As a query string with the field names of the API, they are in the page's address and
 * localStorage.
 */
export interface Options {
  /** A name of the server for options, which then are unknown here; empty for none. */
  readonly preset: string;
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
  /** Pixels per inch of a page of a PDF, as typed; empty for the default. */
  readonly dpi: string;
}

/** Labels of the ways to fit an image into a box. */
export const FIT_LABELS: Readonly<Record<Fit, string>> = {
  inside: 'Fit inside',
  cover: 'Fill and crop',
  contain: 'Add borders',
  fill: 'Stretch',
};
/** Labels of the positions, row by row. */
export const POSITION_LABELS: Readonly<Record<Position, string>> = {
  ...{ 'left top': 'Top left', top: 'Top', 'right top': 'Top right' },
  ...{ left: 'Left', center: 'Centre', right: 'Right' },
  ...{ 'left bottom': 'Bottom left', bottom: 'Bottom', 'right bottom': 'Bottom right' },
  attention: 'Automatic',
};
/** Fits for which the position has an effect. */
const POSITIONED: readonly Fit[] = ['cover', 'contain'];

const ALL_OR_FIRST: Readonly<Record<AllOrFirst, true>> = { all: true, first: true };
const KILOBYTE = 1000;
/** Minimum of `max_bytes` that the API accepts, in kB. */
export const MIN_KILOBYTES = 0.001;
/** Maximum of `max_bytes` that the API accepts, in kB. */
export const MAX_KILOBYTES = 2 ** 31 / KILOBYTE;

/** Fields of the API whose names differ from those of the options. */
const FIELD_NAMES: Readonly<Partial<Record<keyof Options, string>>> = {
  format: 'output_format',
  maxKilobytes: 'max_bytes',
  keepMetadata: 'strip_metadata',
};
const fieldOf = (name: keyof Options): string => FIELD_NAMES[name] ?? name;

/** Creates a parser of a whole number from 1 to `max`. */
const upTo =
  (max: number) =>
  (text: string): string =>
    /^\d{1,10}$/.test(text) && Number(text) >= 1 && Number(text) <= max ? text : '';
/** Creates a parser of a value that has a label. */
const oneOf =
  <T extends string, F extends string>(labels: Readonly<Record<T, unknown>>, fallback: F) =>
  (text: string): T | F =>
    Object.hasOwn(labels, text) ? (text as T) : fallback;

/** Parses the value of a field. Returns the default of the API for an empty or invalid one. */
const PARSERS: { readonly [Name in keyof Options]: (text: string) => Options[Name] } = {
  preset: (text) => text,
  format: (text) => OUTPUT_NAMES.get(text.toLowerCase()) ?? 'webp',
  quality: (text) => Number(upTo(100)(text)) || 80,
  width: upTo(MAX_DIMENSION),
  height: upTo(MAX_DIMENSION),
  fit: oneOf(FIT_LABELS, 'inside'),
  position: oneOf(POSITION_LABELS, 'center'),
  enlarge: (text) => text === 'true',
  lossless: (text) => text === 'true',
  maxKilobytes(text) {
    const bytes = upTo(MAX_KILOBYTES * KILOBYTE)(text);
    return bytes && String(Number(bytes) / KILOBYTE);
  },
  keepMetadata: (text) => text === 'false',
  background: parseColour,
  frames: oneOf(ALL_OR_FIRST, ''),
  pages: oneOf(ALL_OR_FIRST, ''),
  dpi: upTo(DPI.max),
};
const NAMES = Object.keys(PARSERS) as readonly (keyof Options)[];

/** Parses a query string. Invalid values count as absent. */
function parseOptions(query: URLSearchParams): Options {
  const textOf = (name: keyof Options): string =>
    query.get(fieldOf(name)) ?? (name === 'format' ? query.get('format') : undefined) ?? '';
  return Object.fromEntries(NAMES.map((name) => [name, PARSERS[name](textOf(name))])) as unknown as Options;
}

/** Defaults of the API. */
const DEFAULTS = parseOptions(new URLSearchParams());
/** Key in localStorage. */
const STORAGE_KEY = 'imagemill.choices';

/** The options without a preset, or the preset. */
const base = signal<Options>(DEFAULTS);
/** Options that the person has changed since the preset was chosen. They take precedence over it. */
const overrides = signal<Partial<Options>>({});
/** The current options. With a preset, those that {@link isSet} denies have a meaningless value. */
export const options = computed<Options>(() => {
  const { preset } = base.value;
  return preset === '' ? base.value : { ...DEFAULTS, ...overrides.value, preset };
});

/** The options as form fields of the API, without defaults. */
export const fields = computed(() => toFields(options.value, isSet('format')));
/** Returns the options as a query string, for a file that has a format of its own if it is given. */
export const queryFor = (format?: OutputType): string =>
  toFields(
    { ...options.value, ...(format && { format }) },
    format !== undefined || isSet('format'),
  ).toString();

/**
 * Changes some options, and stores all of them in the page's address and in localStorage. A preset hides the other options until
 * it is removed, and a change after it overrides it.
 */
export function setOptions(changed: Partial<Options>): void {
  if (base.value.preset === '' || 'preset' in changed) {
    base.value = { ...base.value, ...changed };
    overrides.value = {};
  } else {
    overrides.value = { ...overrides.value, ...changed };
  }
  storeOptions();
}

/** Changes one option, as {@link setOptions} does. */
export const setOption = <K extends keyof Options>(name: K, value: Options[K]): void =>
  setOptions({ [name]: value } as Partial<Options>);

function storeOptions(): void {
  const query = fields.value.toString();
  history.replaceState(null, '', `?${query}`);
  store(query);
}

/** Returns whether the value of an option applies, rather than that of the preset, which only the server knows. */
export const isSet = (name: keyof Options): boolean =>
  base.value.preset === '' || name === 'preset' || name in overrides.value;

/** Makes the value of the preset apply again. */
export function unset(name: keyof Options): void {
  const { [name]: _, ...others } = overrides.value;
  overrides.value = others;
  storeOptions();
}

/** Returns whether `fit` can have an effect: it needs a box with both sides. */
export const hasBox = ({ preset, width, height }: Options): boolean =>
  preset !== '' || (width !== '' && height !== '');
/** Returns whether results have exactly the size of the box, as far as that is known. */
export const isExact = (all: Options): boolean => hasBox(all) && all.fit !== DEFAULTS.fit;
/** Returns whether `position` can have an effect. */
export const hasPosition = (all: Options): boolean =>
  hasBox(all) && (POSITIONED.includes(all.fit) || !isSet('fit'));

/** Returns whether results are lossless because of the option: quality and maximum size have no effect then. */
export const isLossless = ({ format, lossless }: Options): boolean => lossless && OUTPUTS[format].lossless;

/** Name of the result format. */
export const formatLabel = computed(() => (isSet('format') ? OUTPUTS[options.value.format].label : 'Preset'));

/** Summary of the options in a line. */
export const summary = computed(() => {
  const { preset, format, quality, width, height } = options.value;
  const lossless = isLossless(options.value);
  const hasQuality = OUTPUTS[format].quality && isSet('quality');
  const size = (width || height) && `${width || 'any'} × ${height || 'any'}`;
  return [
    preset,
    isSet('format') && OUTPUTS[format].label,
    lossless ? 'lossless' : hasQuality && `quality ${quality}`,
    size,
  ]
    .filter(Boolean)
    .join(' · ');
});

/** Returns the values of the fields. An empty one is absent. */
const toTexts = (all: Options): Readonly<Record<keyof Options, string>> => ({
  ...all,
  quality: String(all.quality),
  enlarge: String(all.enlarge),
  lossless: String(all.lossless),
  maxKilobytes: all.maxKilobytes && String(Math.round(Number(all.maxKilobytes) * KILOBYTE)),
  keepMetadata: String(!all.keepMetadata),
});
const DEFAULT_TEXTS = toTexts(DEFAULTS);

/** @param hasFormat whether the format is not that of the preset */
function toFields(all: Options, hasFormat: boolean): URLSearchParams {
  const { preset, format, width, height } = all;
  const lossless = isLossless(all);
  const hasEffect: Partial<Record<keyof Options, boolean>> = {
    quality: OUTPUTS[format].quality && !lossless,
    fit: hasBox(all),
    position: hasPosition(all),
    enlarge: preset !== '' || width !== '' || height !== '',
    lossless: OUTPUTS[format].lossless,
    maxKilobytes: hasBytesLimit(format) && !lossless,
  };
  const isSent = (name: keyof Options, text: string): boolean => {
    if (name === 'preset') return true;
    if (name === 'format') return hasFormat;
    return preset === '' ? text !== DEFAULT_TEXTS[name] : isSet(name);
  };
  const texts = toTexts(all);
  return new URLSearchParams(
    NAMES.flatMap((name) =>
      texts[name] !== '' && isSent(name, texts[name]) && (hasEffect[name] ?? true)
        ? [[fieldOf(name), texts[name]]]
        : [],
    ),
  );
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
function loadOptions(): void {
  const query = new URLSearchParams(location.search.length > 1 ? location.search : loadStored());
  const { preset, ...others } = parseOptions(query);
  if (preset === '') {
    base.value = { preset, ...others };
  } else {
    base.value = { ...DEFAULTS, preset };
    const given = Object.entries(others).filter(([name]) => query.has(fieldOf(name as keyof Options)));
    overrides.value = Object.fromEntries(given);
  }
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

loadOptions();
