import { computed, signal } from '@preact/signals';
import { OUTPUTS, type OutputType, parseOutputType } from '../../formats.ts';

/**
 * What the person wants. It is written in the words of the API, as a query string, in three places:
 * in the page's address, in what the browser remembers, and in the requests.
 */

export interface Options {
  readonly format: OutputType;
  /** 1 to 100. */
  readonly quality: number;
  /** Most pixels a side, as typed; empty for no limit. */
  readonly width: string;
  readonly height: string;
  readonly keepMetadata: boolean;
}

/** The server's own defaults: what is not said means these. */
const DEFAULTS: Options = { format: 'webp', quality: 80, width: '', height: '', keepMetadata: false };
/** Pixels a side, the most that the API takes. */
export const MAX_DIMENSION = 16_384;
const MEMORY = 'imagemill.choices';

export const options = signal<Options>(atStart());
/** The choices as form fields of the API, defaults left out. */
export const fields = computed(() => fieldsOf(options.value));

/** Changes some of the choices, and remembers all of them. */
export function setOptions(changed: Partial<Options>): void {
  options.value = { ...options.value, ...changed };
  const query = fields.value.toString();
  history.replaceState(null, '', `?${query}`);
  remember(query);
}

function fieldsOf({ format, quality, width, height, keepMetadata }: Options): URLSearchParams {
  return new URLSearchParams({
    output_format: format,
    ...(OUTPUTS[format].quality && quality !== DEFAULTS.quality && { quality: String(quality) }),
    ...(width !== '' && { width }),
    ...(height !== '' && { height }),
    ...(keepMetadata && { strip_metadata: 'false' }),
  });
}

/** What cannot be understood counts as not said. */
function choicesOf(said: URLSearchParams): Options {
  const whole = (name: string, most: number): string => {
    const value = said.get(name) ?? '';
    return /^\d{1,5}$/.test(value) && Number(value) >= 1 && Number(value) <= most ? value : '';
  };
  return {
    format: parseOutputType(said.get('output_format') ?? said.get('format') ?? '') ?? DEFAULTS.format,
    quality: Number(whole('quality', 100)) || DEFAULTS.quality,
    width: whole('width', MAX_DIMENSION),
    height: whole('height', MAX_DIMENSION),
    keepMetadata: said.get('strip_metadata') === 'false',
  };
}

/** The address wins, so that a link brings its choices along. */
function atStart(): Options {
  return choicesOf(new URLSearchParams(location.search.length > 1 ? location.search : remembered()));
}

/** A browser may be told to remember nothing; then it throws. */
function remembered(): string {
  try {
    return localStorage.getItem(MEMORY) ?? '';
  } catch {
    return '';
  }
}

function remember(query: string): void {
  try {
    localStorage.setItem(MEMORY, query);
  } catch {
    // The address still has it.
  }
}
