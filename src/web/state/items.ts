/** @module The files of the list, and their states. */
import { computed, type Signal, signal } from '@preact/signals';
import type { Note } from '../../notes.ts';
import { plural } from '../../text.ts';
import { loadPreview, type PreviewSignal, revokePreview } from '../client/preview.ts';
import { fields } from './options.ts';

/** A file in the list. */
export interface Item {
  readonly id: number;
  readonly file: File;
  /** Path of the file in the dropped or picked folder, with `/`; otherwise its name. */
  readonly path: string;
  readonly preview: PreviewSignal;
  readonly state: Signal<State>;
}

/** A file to add to the list. */
export type AddedFile = Pick<Item, 'file' | 'path'>;

/** State of a file. `query` holds the options of its conversion. */
export type State =
  | { readonly at: 'ready' }
  | { readonly at: 'waiting' | 'converting'; readonly cancel: () => void }
  | { readonly at: 'uploading'; readonly cancel: () => void /** 0 to 1 */; readonly share: number }
  | { readonly at: 'done'; readonly query: string; readonly result: Result }
  | { readonly at: 'failed'; readonly query: string; readonly message: string };

/** A converted file. */
export interface Result {
  readonly blob: Blob;
  /** Object URL of the blob. */
  readonly url: string;
  /** File name for saving. */
  readonly name: string;
  readonly notes: readonly Note[];
  readonly preview: PreviewSignal;
}

/** State of a converted file. */
export type Done = Extract<State, { at: 'done' }>;

/** The list of files. */
export const items = signal<readonly Item[]>([]);
/** The item in the comparison dialog. */
export const compared = signal<Item | undefined>(undefined);
/** Last change of the list, announced to screen readers. */
export const announcement = signal('');

/** Number of items per state; `busy` sums up those in progress. */
export const counts = computed(() => {
  const count = { ready: 0, waiting: 0, uploading: 0, converting: 0, done: 0, failed: 0 };
  for (const { state } of items.value) count[state.value.at] += 1;
  return { ...count, busy: count.waiting + count.uploading + count.converting };
});
/** Whether any item is in progress. */
export const busy = computed(() => counts.value.busy > 0);
/** Items that are not converted with the current options. */
export const pending = computed(() => items.value.filter(isPending));
export const failed = computed(() => items.value.filter(({ state }) => state.value.at === 'failed'));
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
    return { id: lastId, file, path, preview: signal(undefined), state: signal({ at: 'ready' }) };
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

/** Returns whether an item has not been converted with the current options. */
function isPending({ state: { value } }: Item): boolean {
  if (value.at === 'ready') return true;
  return 'query' in value && value.query !== fields.value.toString();
}
