/** @module The one file that all files of the list become, and its state. */
import { computed, effect, signal, untracked } from '@preact/signals';
import { baseNameOf, portableName } from '../../base/text.ts';
import { INPUTS } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import { extensionOf, inputTypeOf } from '../format.ts';
import { formats } from './formats.ts';
import {
  cancel,
  forgetResult,
  type Item,
  items,
  queryOf,
  type Result,
  removal,
  type State,
  saved,
  stateOf,
} from './items.ts';
import { combinesPictures, isSet, options, panel, queryFor } from './options.ts';

/** Whether the server can make one file in the chosen format. */
export const canCombine = computed(
  () =>
    isSet('format') &&
    ((formats.value?.combine as readonly string[] | undefined)?.includes(options.value.format) ?? false),
);
/** Whether all files become one file. */
export const combines = computed(() => canCombine.value && options.value.combine);

/** One file made of others. */
export interface Combination extends Result {
  /** Number of its pages or frames, with the noun. */
  readonly pages: string;
  /** The files, with what is to know about each. */
  readonly fileNotes: ReadonlyMap<Item, readonly Note[]>;
}

/** State of the one file. `key` is that of {@link plan}. */
export type CombinationState =
  | Exclude<State, { readonly at: 'done' | 'failed' }>
  /** Files with options of their own are converted singly before. */
  | {
      readonly at: 'preparing';
      readonly cancel: () => void;
      readonly prepared: number;
      readonly count: number;
    }
  | { readonly at: 'done'; readonly key: string; readonly result: Combination }
  | { readonly at: 'failed'; readonly key: string; readonly message: string };

/** State of the one file. */
export const combination = signal<CombinationState>({ at: 'ready' });
/** Whether the one file is in progress. */
export const isCombining = computed(() => 'cancel' in combination.value);
/** The one file; undefined before it is made. */
export const combined = computed(() =>
  combination.value.at === 'done' ? combination.value.result : undefined,
);
// Without any of its files in the list, it would seem to be made of others.
effect(() => {
  const files = combined.value?.fileNotes;
  if (files && !removal.value && !items.value.some((item) => files.has(item))) forgetCombination();
});

/** Whether the one file is shown in its dialog. */
export const previewed = signal(false);

/** Frees the one file and its memory. */
export function forgetCombination(): void {
  const state = combination.peek();
  if ('cancel' in state) state.cancel();
  if (state.at === 'done') forgetResult({ ...state, query: '' });
  combination.value = { at: 'ready' };
}

/** Returns whether there is one file that was not saved. */
export const hasUnsavedCombination = (): boolean =>
  combined.value !== undefined && !saved.has(combined.value);

// What is in progress ends where its progress is not shown.
effect(() => {
  const isOn = combines.value;
  const state = combination.peek();
  if (!isOn && 'cancel' in state) state.cancel();
  if (isOn) untracked(() => cancel(items.value));
});

/** Name of the one file without a name. */
export const DEFAULT_NAME = 'combined';
/** Returns the name under which the one file is saved, with its format's extension. */
export function nameOfCombined(result?: Result): string {
  const extension = `.${result ? extensionOf(result.name) : options.value.format}`;
  const typed = options.value.name.trim() || DEFAULT_NAME;
  const base = typed.toLowerCase().endsWith(extension) ? typed.slice(0, -extension.length) : typed;
  return portableName(baseNameOf(`${base}.`)) + extension; // a dot in it is not that of an extension
}

/** Fields of the encoding, of which the one file has those of the panel. */
const ENCODING = ['output_format', 'quality', 'lossless', 'max_bytes', 'metadata'];
/** Fields of the pages of a PDF. */
const PAGE = ['page_size', 'page_margin', 'page_orientation'];
/** Fields that can apply to a picture, and again to the one file. */
const SHARED = ['background', 'dpi'];
/** Fields that give all pictures of an animation one size. */
const SIZE = ['width', 'height', 'scale', 'fit', 'position', 'enlarge'];
/** Quality of a photo that is converted singly before. */
const PHOTO_QUALITY = '95';

/** A file that becomes part of the one file. With `query`, it is converted singly before. */
export interface Part {
  readonly item: Item;
  readonly query?: string;
}

/** The files that become one file: all but those that the server would reject. */
export const combinable = computed(() =>
  items.value.filter((item) => {
    const state = stateOf(item);
    return state.at !== 'failed' || 'query' in state;
  }),
);

/**
 * How the files become one file. A batch has the same options for all files. So if the files have
 * different ones, those with any are converted singly before. `key` tells whether a file was made
 * in the same way.
 */
export const plan = computed(() => {
  const { format, delay } = options.value;
  const isAnimation = combinesPictures(format);
  const all = new URLSearchParams(queryFor(panel));
  const excluded = isAnimation ? ['max_bytes', 'metadata'] : ['max_bytes'];
  const file = pick(all, (name) => !excluded.includes(name) && !isEdit(name, isAnimation));
  const rows = combinable.value.map((item) => ({ item, edits: editsOf(item, isAnimation) }));
  const isSame = rows.every(({ edits }) => edits === rows[0]?.edits);
  const isLossless = file.get('lossless') === 'true';
  const parts = rows.map(({ item, edits }): Part => {
    const query = new URLSearchParams(edits);
    const isPlain = isSame || ![...query.keys()].some((name) => isEdit(name, isAnimation));
    return isPlain ? { item } : { item, query: singleQuery(item, query, isLossless) };
  });
  const query = new URLSearchParams({
    ...Object.fromEntries(isSame ? new URLSearchParams(rows[0]?.edits) : []),
    ...Object.fromEntries(file),
    combine: 'true',
    ...(isAnimation && delay !== '' && { delay }),
  });
  const key = JSON.stringify([String(query), parts.map(({ item, query: own }) => [item.id, own])]);
  return { key, parts, query: String(query) };
});

const pick = (query: URLSearchParams, isPicked: (name: string) => boolean): URLSearchParams =>
  new URLSearchParams([...query].filter(([name]) => isPicked(name)));

/** Returns whether a field changes a picture in a way that the one file cannot repeat. */
const isEdit = (name: string, isAnimation: boolean): boolean =>
  ![...ENCODING, ...PAGE, ...SHARED, ...(isAnimation ? SIZE : [])].includes(name);

/** Returns an item's options besides the encoding, as a query. An animation has its first frame. */
const editsOf = (item: Item, isAnimation: boolean): string =>
  pick(
    new URLSearchParams(queryOf(item)),
    (name) => ![...ENCODING, ...PAGE].includes(name) && !(isAnimation && name === 'frames'),
  ).toString();

/** Returns the query of a picture that is converted singly before, with minimal loss. */
function singleQuery({ file }: Item, edits: URLSearchParams, isLossless: boolean): string {
  const type = inputTypeOf(file);
  const { opaque = false, pages = false } = type ? INPUTS[type] : {};
  const hasPages = pages && !combinesPictures(options.value.format) && formats.value?.output.includes('tiff');
  const encoding =
    edits.get('frames') === 'all'
      ? { output_format: 'webp', lossless: 'true' }
      : hasPages
        ? { output_format: 'tiff' }
        : opaque && !isLossless
          ? { output_format: 'jpg', quality: PHOTO_QUALITY }
          : { output_format: 'png' };
  return new URLSearchParams([...edits, ...Object.entries(encoding)]).toString();
}
