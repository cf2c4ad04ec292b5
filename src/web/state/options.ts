/** @module The conversion options of the page, in its address and in localStorage. */
import { computed, signal } from '@preact/signals';
import { OUTPUTS, type OutputType, parseOutputType } from '../../formats.ts';

/** Conversion options. As a query string with the field names of the API, they are in the page's address and localStorage. */
export interface Options {
  readonly format: OutputType;
  /** 1 to 100. */
  readonly quality: number;
  /** Maximum width in pixels, as typed; empty for no limit. */
  readonly width: string;
  readonly height: string;
  readonly keepMetadata: boolean;
}

/** Defaults of the API. */
const DEFAULTS: Options = { format: 'webp', quality: 80, width: '', height: '', keepMetadata: false };
/** Maximum width and height that the API accepts, in pixels. */
export const MAX_DIMENSION = 16_384;
/** Key in localStorage. */
const STORAGE_KEY = 'imagemill.choices';

/** The current options. */
export const options = signal<Options>(loadOptions());
/** The options as form fields of the API, without defaults. */
export const fields = computed(() => toFields(options.value));

/** Changes some options, and stores all of them in the page's address and in localStorage. */
export function setOptions(changed: Partial<Options>): void {
  options.value = { ...options.value, ...changed };
  const query = fields.value.toString();
  history.replaceState(null, '', `?${query}`);
  store(query);
}

function toFields({ format, quality, width, height, keepMetadata }: Options): URLSearchParams {
  return new URLSearchParams({
    output_format: format,
    ...(OUTPUTS[format].quality && quality !== DEFAULTS.quality && { quality: String(quality) }),
    ...(width !== '' && { width }),
    ...(height !== '' && { height }),
    ...(keepMetadata && { strip_metadata: 'false' }),
  });
}

/** Parses a query string. Invalid values count as absent. */
function parseOptions(query: URLSearchParams): Options {
  const parseInteger = (name: string, max: number): string => {
    const value = query.get(name) ?? '';
    return /^\d{1,5}$/.test(value) && Number(value) >= 1 && Number(value) <= max ? value : '';
  };
  return {
    format: parseOutputType(query.get('output_format') ?? query.get('format') ?? '') ?? DEFAULTS.format,
    quality: Number(parseInteger('quality', 100)) || DEFAULTS.quality,
    width: parseInteger('width', MAX_DIMENSION),
    height: parseInteger('height', MAX_DIMENSION),
    keepMetadata: query.get('strip_metadata') === 'false',
  };
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
