import { computed, signal } from '@preact/signals';
import type { Fit, Position } from '../../conversion/plan/types.ts';
import { hasBytesLimit, OUTPUTS, type OutputType, parseOutputType } from '../../formats.ts';

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
  readonly fit: Fit;
  readonly position: Position;
  readonly enlarge: boolean;
  /** The most that a result may have, in units of 1024 bytes, as typed; empty for no limit. */
  readonly maxKilobytes: string;
  readonly keepMetadata: boolean;
}

/** The ways to fit a picture into a box, as people say them. */
export const FITS: Readonly<Record<Fit, string>> = {
  inside: 'Fit inside',
  cover: 'Fill and crop',
  contain: 'Add borders',
  fill: 'Stretch',
};
export const POSITIONS: Readonly<Record<Position, string>> = {
  'left top': 'Top left',
  top: 'Top',
  'right top': 'Top right',
  left: 'Left',
  center: 'Center',
  right: 'Right',
  'left bottom': 'Bottom left',
  bottom: 'Bottom',
  'right bottom': 'Bottom right',
};
/** The fits for which the position matters. */
const POSITIONED: readonly Fit[] = ['cover', 'contain'];

/** The server's own defaults: what is not said means these. */
const DEFAULTS: Options = {
  ...{ format: 'webp', quality: 80, width: '', height: '' },
  ...{ fit: 'inside', position: 'center', enlarge: false, maxKilobytes: '', keepMetadata: false },
};
/** Pixels a side, the most that the API takes. */
export const MAX_DIMENSION = 16_384;
const KILOBYTE = 1024;
/** The most that the API takes, in units of 1024 bytes. */
export const MAX_KILOBYTES = 2 ** 21;
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

/** Whether the way to fit matters: it needs a box with both sides. */
export const hasBox = ({ width, height }: Options): boolean => width !== '' && height !== '';
/** Whether the position matters. */
export const hasPosition = (all: Options): boolean => hasBox(all) && POSITIONED.includes(all.fit);

function fieldsOf(all: Options): URLSearchParams {
  const { format, quality, width, height, fit, position, enlarge, maxKilobytes, keepMetadata } = all;
  const limitsBytes = maxKilobytes !== '' && hasBytesLimit(format);
  return new URLSearchParams({
    output_format: format,
    ...(OUTPUTS[format].quality && quality !== DEFAULTS.quality && { quality: String(quality) }),
    ...(width !== '' && { width }),
    ...(height !== '' && { height }),
    ...(hasBox(all) && fit !== DEFAULTS.fit && { fit }),
    ...(hasPosition(all) && position !== DEFAULTS.position && { position }),
    ...((width !== '' || height !== '') && enlarge && { enlarge: 'true' }),
    ...(limitsBytes && { max_bytes: String(Number(maxKilobytes) * KILOBYTE) }),
    ...(keepMetadata && { strip_metadata: 'false' }),
  });
}

/** What cannot be understood counts as not said. */
function choicesOf(said: URLSearchParams): Options {
  const whole = (name: string, most: number): string => {
    const value = said.get(name) ?? '';
    return /^\d{1,10}$/.test(value) && Number(value) >= 1 && Number(value) <= most ? value : '';
  };
  const oneOf = <T extends string>(words: Readonly<Record<T, string>>, name: string, usual: T): T => {
    const value = said.get(name) ?? '';
    return Object.hasOwn(words, value) ? (value as T) : usual;
  };
  const maxBytes = Number(whole('max_bytes', MAX_KILOBYTES * KILOBYTE));
  return {
    format: parseOutputType(said.get('output_format') ?? said.get('format') ?? '') ?? DEFAULTS.format,
    quality: Number(whole('quality', 100)) || DEFAULTS.quality,
    width: whole('width', MAX_DIMENSION),
    height: whole('height', MAX_DIMENSION),
    fit: oneOf(FITS, 'fit', DEFAULTS.fit),
    position: oneOf(POSITIONS, 'position', DEFAULTS.position),
    enlarge: said.get('enlarge') === 'true',
    maxKilobytes: maxBytes ? String(Math.max(1, Math.floor(maxBytes / KILOBYTE))) : '',
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
