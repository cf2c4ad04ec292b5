/** @module The files of the list, and their states. */
import { computed, type Signal, signal } from '@preact/signals';
import type { OutputType } from '../../formats.ts';
import type { Note } from '../../notes.ts';
import { plural } from '../../text.ts';
import { loadPreview, type PreviewSignal, revokePreview } from '../client/preview.ts';
import { findRejection } from './formats.ts';
import { queryFor } from './options.ts';

/** A file in the list. */
export interface Item {
  readonly id: number;
  readonly file: File;
  /** Path of the file in the dropped or picked folder, with `/`; otherwise its name. */
  readonly path: string;
  readonly preview: PreviewSignal;
  /** Output format of this file; undefined for the one of all files. */
  readonly format: Signal<OutputType | undefined>;
  readonly state: Signal<State>;
}

/** A file to add to the list. */
export type AddedFile = Pick<Item, 'file' | 'path'>;

/**
 * State of a file. `query` holds the options of its conversion; it is absent if no options help. `canRetry` tells whether the
 * same request may succeed later.
 */
export type State =
  | { readonly at: 'ready' }
  | { readonly at: 'waiting' | 'converting'; readonly cancel: () => void }
  | { readonly at: 'uploading'; readonly cancel: () => void /** 0 to 1 */; readonly share: number }
  | { readonly at: 'done'; readonly query: string; readonly result: Result }
  | { readonly at: 'failed'; readonly query?: string; readonly message: string; readonly canRetry: boolean };

/** A converted file. */
export interface Result {
  readonly blob: Blob;
  /** Object URL of the blob. */
  readonly url: string;
  /** File name for saving. */
  readonly name: string;
  /** Name of its format. */
  readonly label: string;
  readonly notes: readonly Note[];
  readonly preview: PreviewSignal;
}

/** The list of files. */
export const items = signal<readonly Item[]>([]);
/** The item in the comparison dialog. */
export const compared = signal<Item | undefined>(undefined);
/** Last change of the list, announced to screen readers. */
export const announcement = signal('');

/** Number of items per state; `busy` sums up those in progress. */
export const counts = computed(() => {
  const count = { ready: 0, waiting: 0, uploading: 0, converting: 0, done: 0, failed: 0 };
  for (const item of items.value) count[stateOf(item).at] += 1;
  return { ...count, busy: count.waiting + count.uploading + count.converting };
});
/** Whether any item is in progress. */
export const busy = computed(() => counts.value.busy > 0);
/** Items that are not converted with the current options. */
export const pending = computed(() => items.value.filter(isPending));
/** Failed items whose request may succeed later. */
export const retryable = computed(() =>
  items.value.filter(({ state: { value } }) => value.at === 'failed' && value.canRetry),
);
/** Converted files with their results. */
export const done = computed(() =>
  items.value.flatMap(({ file, path, state }) =>
    state.value.at === 'done' ? [{ file, path, ...state.value }] : [],
  ),
);

let lastId = 0;

/** Appends files to the list. */
export function add(files: readonly AddedFile[]): void {
  const added = files.map(({ file, path }): Item => {
    lastId += 1;
    const [preview, format] = [signal(undefined), signal(undefined)];
    return { id: lastId, file, path, preview, format, state: signal({ at: 'ready' }) };
  });
  items.value = [...items.value, ...added];
  announcement.value = `${plural(added.length, 'file')} added.`;
  for (const { file, preview } of added) loadPreview(preview, file);
}

/** Removes items, cancels their requests and frees their results. */
export function remove(removed: readonly Item[]): void {
  for (const item of removed) {
    const state = item.state.value;
    if ('cancel' in state) state.cancel();
    revokePreview(item.preview);
    forgetResult(state);
  }
  items.value = items.value.filter((item) => !removed.includes(item));
  announcement.value = `${plural(removed.length, 'file')} removed.`;
}

/** Revokes the object URLs of a result to free its memory. */
export function forgetResult(state: State): void {
  if (state.at !== 'done') return;
  URL.revokeObjectURL(state.result.url);
  revokePreview(state.result.preview);
}

/** Returns the options for an item, as a query string. */
export const queryOf = ({ format }: Item): string => queryFor(format.value);

/** Returns the state of an item. A file that the server would reject has failed before it is sent. */
export function stateOf({ file, preview, state: { value } }: Item): State {
  const message = value.at === 'ready' ? findRejection(file, preview.value) : undefined;
  return message === undefined ? value : { at: 'failed', message, canRetry: false };
}

/** Returns whether an item was converted, or has failed, with other options than the current ones. */
export function isStale(item: Item): boolean {
  const state = stateOf(item);
  return 'query' in state && state.query !== queryOf(item);
}

/** Returns whether an item has not been converted with the current options. */
const isPending = (item: Item): boolean => stateOf(item).at === 'ready' || isStale(item);
