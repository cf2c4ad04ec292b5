/** @module The conversion options of the page, in its address and in localStorage. */
import { computed, type Signal, signal } from '@preact/signals';
import {
  COMBINED_TYPES,
  combinesFrames,
  FRAME_DELAY_MS,
  hasBytesLimit,
  OUTPUT_NAMES,
  OUTPUTS,
  type OutputFormat,
  type OutputType,
} from '../../tables/formats.ts';
import {
  AREA_TEXT,
  fieldName,
  NUMBER_TEXTS,
  OPTION_NAMES,
  type OPTIONS,
  type OptionName,
  type OptionValue,
  optionRow,
  POINT_TEXT,
  parseMillimetres,
  parsePages,
} from '../../tables/options.ts';
import { loadStored, store } from '../storage.ts';
import { watermarkKey } from './watermark.ts';

type Rows = typeof OPTIONS;
/** Name of an option that the page offers. */
export type PageOption = { [N in OptionName]: Rows[N] extends { control: object } ? N : never }[OptionName];
/** A page's option: numbers, pages and colours as typed, empty for the API's default. */
type PageValue<N extends OptionName> = Rows[N]['type']['kind'] extends 'flag'
  ? boolean
  : Rows[N]['type'] extends { numbered: true }
    ? string
    : Rows[N]['type']['kind'] extends 'words'
      ? OptionValue<N> | (Rows[N] extends { default: unknown } ? never : '')
      : string;

/** Makes each file the smallest at which it looks the same, in a format that the server chooses. */
export const SMALLEST = 'smallest';
/** Format of results. */
export type PageFormat = OutputType | typeof SMALLEST;
/** The formats of the page. The smallest can hold what a WebP can, and has its own quality. */
export const FORMATS: Readonly<Record<PageFormat, OutputFormat>> = {
  ...OUTPUTS,
  [SMALLEST]: { ...OUTPUTS.webp, label: 'Smallest', quality: false, lossless: false },
};
/** Returns whether results can have a maximum of bytes. */
export const canLimitBytes = (format: PageFormat): boolean => format === SMALLEST || hasBytesLimit(format);
/** Returns whether the server can choose the quality of each result, beside a number. */
export const canChooseQuality = (format: PageFormat): boolean => format !== SMALLEST && hasBytesLimit(format);

/** Conversion options. The address and localStorage have them as a query with the API's fields. */
export type Options = { readonly [N in PageOption]: PageValue<N> } & {
  /** A name of the server for options, which then are unknown here; empty for none. */
  readonly preset: string;
  readonly format: PageFormat;
  /** Whether all files become one file, if the format permits that. */
  readonly combine: boolean;
  /** Time of each picture of an animation made of pictures, in ms, as typed. */
  readonly delay: string;
  /** Name of the one file, without its extension, as typed. */
  readonly name: string;
};

/** The quality that the server chooses for each picture, so that it looks the same. */
export const AUTO = 'auto';

/** Fields of one file made of all. They do not concern the conversion of a single one. */
const COMBINATION = ['combine', 'delay', 'name'] as const;

/** Fits for which the position has an effect. */
const POSITIONED: readonly Options['fit'][] = ['cover', 'contain'];

/** Returns whether one file of all is an animation, with a picture for each. */
export const combinesPictures = (format: PageFormat): boolean =>
  format !== SMALLEST && combinesFrames(format);

const fieldOf = (name: keyof Options): string => (name === 'format' ? 'output_format' : fieldName(name));

const isPageOption = (name: OptionName): name is PageOption => optionRow(name).control !== undefined;
/** The options that the page offers, in order. */
const PAGE_OPTIONS = OPTION_NAMES.filter(isPageOption);
const NAMES: readonly (keyof Options)[] = ['preset', 'format', ...PAGE_OPTIONS, ...COMBINATION];
/** Returns the row of an option; undefined for what only the page or a batch has. */
export const rowOf = (name: keyof Options) => (isListed(name) ? optionRow(name) : undefined);
const isListed = (name: keyof Options): name is PageOption =>
  (PAGE_OPTIONS as readonly (keyof Options)[]).includes(name);

/** Parses the value of a field. Returns the default of the API for an empty or invalid one. */
function parseValue(name: PageOption, text: string): string | boolean {
  const { type, default: fallback = '', control } = optionRow(name);
  switch (type.kind) {
    case 'flag':
      return text === String(!fallback) ? !fallback : fallback === true;
    case 'words':
    case 'numbers': {
      const isValid =
        Object.hasOwn(type.labels, text) ||
        ('point' in type && POINT_TEXT.test(text)) ||
        ('numbered' in type && parsePages(text) !== undefined) ||
        ('sized' in type && parseMillimetres(text) !== undefined);
      return isValid ? text : String(fallback);
    }
    case 'integer':
    case 'number': {
      if ('yes' in type && text === 'yes') return String(type.yes);
      if ('words' in type && Object.hasOwn(type.words ?? {}, text)) return text;
      const isValid =
        NUMBER_TEXTS[type.kind].test(text) && Number(text) >= type.min && Number(text) <= type.max;
      return isValid ? String(Number(text) / (control?.factor ?? 1)) : String(fallback);
    }
    case 'area':
      return AREA_TEXT.test(text) ? text : '';
    default:
      return parseColour(text);
  }
}

/** Returns whether a text selects pages, or is empty. */
export const isPages = (text: string): boolean => parseValue('pages', text) === text;

/** Parses a query string. Invalid values count as absent. */
export function parseOptions(query: URLSearchParams): Options {
  const textOf = (name: keyof Options): string =>
    query.get(fieldOf(name)) ?? (name === 'format' ? query.get('format') : undefined) ?? '';
  const parsed = PAGE_OPTIONS.map((name) => [name, parseValue(name, textOf(name))] as const);
  const [format, delay] = [textOf('format').toLowerCase(), Number(textOf('delay'))];
  return {
    ...(Object.fromEntries(parsed) as Options),
    preset: textOf('preset'),
    format: format === SMALLEST ? format : (OUTPUT_NAMES.get(format) ?? 'webp'),
    combine: textOf('combine') === 'true',
    delay:
      Number.isInteger(delay) && delay >= FRAME_DELAY_MS.min && delay <= FRAME_DELAY_MS.max
        ? String(delay)
        : '',
    name: textOf('name'),
  };
}

/** Defaults of the API. */
const DEFAULTS = parseOptions(new URLSearchParams());
/** Key in localStorage. */
const STORAGE_KEY = 'imagemill.choices';

/** The options without a preset, or the preset. */
const base = signal<Options>(DEFAULTS);
/** Options that the person has changed since choosing the preset. They take precedence. */
const overrides = signal<Partial<Options>>({});
/** The current options. With a preset, those that {@link isSet} denies have a meaningless value. */
export const options = computed<Options>(() => {
  const { preset } = base.value;
  return preset === '' ? base.value : { ...DEFAULTS, ...overrides.value, preset };
});

/** The options as form fields of the API, without defaults. */
export const fields = computed(() => toFields(panel));
/** Returns a file's options as a query, with the watermark's key, or without options of one. */
export function queryFor(choices: Choices): string {
  const query = [...toFields(choices)].filter(
    ([name]) =>
      !(COMBINATION as readonly string[]).includes(name) &&
      (watermarkKey.value || !name.startsWith('watermark_')),
  );
  if (watermarkKey.value) query.push(['watermark', watermarkKey.value]);
  return new URLSearchParams(query).toString();
}

/**
 * Changes some options, and stores all of them in the page's address and in localStorage. A preset
 * hides the other options until it is removed, and a change after it overrides it.
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
  store(STORAGE_KEY, query);
}

/** Returns whether an option's value applies, not the preset's, which only the server knows. */
export const isSet = (name: keyof Options): boolean =>
  base.value.preset === '' || name === 'preset' || name in overrides.value;

/** Makes the value of the preset apply again. */
export function unset(name: keyof Options): void {
  const { [name]: _, ...others } = overrides.value;
  overrides.value = others;
  storeOptions();
}

/** The options of the panel or of one file, for code that treats both alike. */
export interface Choices {
  /** Returns the values. */
  readonly all: () => Options;
  readonly isSet: (name: keyof Options) => boolean;
  readonly set: (changed: Partial<Options>) => void;
  readonly unset: (name: keyof Options) => void;
}

/** The options of the panel, for all files. */
export const panel: Choices = { all: () => options.value, isSet, set: setOptions, unset };

/** Options that one file has instead of those of the panel. */
export type OwnOptions = Signal<Partial<Options>>;

/** Returns the options of a file: its own, and for the rest those of the panel. */
export const choicesOf = (own: OwnOptions): Choices => ({
  all: () => ({ ...options.value, ...own.value }),
  isSet: (name) => name in own.value || isSet(name),
  set(changed) {
    // What is set to the value of the panel follows it again. A format stays chosen.
    const kept = Object.entries({ ...own.value, ...changed }).filter(
      ([key, value]) =>
        !(key in changed) ||
        key === 'format' ||
        !isSet(key as keyof Options) ||
        value !== options.value[key as keyof Options],
    );
    own.value = Object.fromEntries(kept);
  },
  unset: (name) => removeOwn(own, [name]),
});

/** Removes some of the options of a file. */
export function removeOwn(own: OwnOptions, names: readonly string[]): void {
  own.value = Object.fromEntries(Object.entries(own.value).filter(([name]) => !names.includes(name)));
}

/** Returns whether `fit` can have an effect: it needs a box with both sides. */
export const hasBox = ({ preset, width, height }: Options): boolean =>
  preset !== '' || (width !== '' && height !== '');
/** Returns whether results have exactly the size of the box, as far as that is known. */
export const isExact = (all: Options): boolean => hasBox(all) && all.fit !== DEFAULTS.fit;
/** Returns whether `position` can have an effect. */
export const hasPosition = (all: Options): boolean =>
  hasBox(all) && (POSITIONED.includes(all.fit) || !isSet('fit'));

/** Returns whether the option makes results lossless: quality and maximum size do nothing. */
export const isLossless = ({ format, lossless }: Options): boolean => lossless && FORMATS[format].lossless;

/** Name of the result format. */
export const formatLabel = computed(() => (isSet('format') ? FORMATS[options.value.format].label : 'Preset'));

/** Summary of the options in a line. */
export const summary = computed(() => {
  const { preset, format, quality, width, height, scale } = options.value;
  const lossless = isLossless(options.value);
  const hasQuality = FORMATS[format].quality && isSet('quality');
  const size = width || height ? `${width || 'any'} × ${height || 'any'}` : scale && `${scale}%`;
  return [
    preset,
    isSet('format') && FORMATS[format].label,
    lossless ? 'lossless' : hasQuality && `quality ${quality}`,
    size,
  ]
    .filter(Boolean)
    .join(' · ');
});

/** Returns the text of a field; empty if it is absent. */
function toText(all: Options, name: keyof Options): string {
  const text = String(all[name]);
  const factor = rowOf(name)?.control?.factor;
  return factor && text !== '' ? String(Math.round(Number(text) * factor)) : text;
}

function toFields(choices: Choices): URLSearchParams {
  const all = choices.all();
  const { preset, format, width, height, scale } = all;
  const lossless = isLossless(all);
  const hasPaper = FORMATS[format].paper === true;
  const hasEffect: Partial<Record<keyof Options, boolean>> = {
    quality: FORMATS[format].quality && !lossless && (all.quality !== AUTO || canChooseQuality(format)),
    fit: hasBox(all),
    position: hasPosition(all),
    scale: width === '' && height === '',
    enlarge: preset !== '' || width !== '' || height !== '' || scale !== '',
    lossless: FORMATS[format].lossless,
    pages: isPages(all.pages),
    maxBytes: canLimitBytes(format) && !lossless,
    combine: (COMBINED_TYPES as readonly PageFormat[]).includes(format),
    delay: all.combine && combinesPictures(format),
    name: all.combine,
    pageSize: hasPaper,
    pageMargin: hasPaper,
    pageOrientation: hasPaper && all.pageSize !== 'image',
  };
  const isSent = (name: keyof Options, text: string): boolean => {
    if (name === 'preset') return true;
    if (name === 'format') return choices.isSet(name);
    return preset === '' ? text !== toText(DEFAULTS, name) : choices.isSet(name);
  };
  return new URLSearchParams(
    NAMES.flatMap((name) => {
      const text = toText(all, name);
      return text !== '' && isSent(name, text) && (hasEffect[name] ?? true) ? [[fieldOf(name), text]] : [];
    }),
  );
}

/** Parses a colour like the API, `#rgb`, `#rrggbb` or a CSS name. Returns #rrggbb, or ''. */
function parseColour(text: string): string {
  const colour = /^[\da-f]{3}(?:[\da-f]{3})?$/i.test(text) ? `#${text}` : text;
  const context = new OffscreenCanvas(1, 1).getContext('2d') as OffscreenCanvasRenderingContext2D;
  context.fillStyle = colour;
  const parsed = String(context.fillStyle);
  return CSS.supports('color', colour) && /^#[\da-f]{6}$/.test(parsed) ? parsed : '';
}

/** Replaces all options by those of a query string. */
export function applyQuery(query: URLSearchParams): void {
  readQuery(query);
  storeOptions();
}

function readQuery(query: URLSearchParams): void {
  const strips = query.get('strip_metadata'); // another field for two values of `metadata`
  if (strips !== null && !query.has('metadata')) query.set('metadata', strips === 'false' ? 'all' : 'none');
  const { preset, ...others } = parseOptions(query);
  overrides.value = {};
  if (preset === '') {
    base.value = { preset, ...others };
  } else {
    base.value = { ...DEFAULTS, preset };
    const given = Object.entries(others).filter(([name]) => query.has(fieldOf(name as keyof Options)));
    overrides.value = Object.fromEntries(given);
  }
}

// Links can contain the options.
readQuery(new URLSearchParams(location.search.length > 1 ? location.search : loadStored(STORAGE_KEY)));
