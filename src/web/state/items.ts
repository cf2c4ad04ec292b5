/** @module The files of the list, and their states. */
import { computed, type Signal, signal } from '@preact/signals';
import { naturalOrder, plural } from '../../base/text.ts';
import type { RevealedKind } from '../../client/library/index.ts';
import type { Size } from '../../tables/fitting.ts';
import { INPUTS } from '../../tables/formats.ts';
import type { Note } from '../../tables/notes.ts';
import { loadPreview, type PreviewSignal, revokePreview } from '../client/preview.ts';
import { inputTypeOf } from '../format.ts';
import { findRejection } from './formats.ts';
import { choicesOf, type OwnOptions, panel, queryFor, removeOwn, setOptions } from './options.ts';

/** A file in the list. */
export interface Item {
  readonly id: number;
  readonly file: File;
  /** Path of the file in the dropped or picked folder, with `/`; otherwise its name. */
  readonly path: string;
  readonly preview: PreviewSignal;
  /** Options of this file, instead of those of the panel. */
  readonly own: OwnOptions;
  readonly state: Signal<State>;
  /** The results of this visit, the last one in each format. */
  readonly candidates: Signal<readonly Candidate[]>;
}

/** A file to add to the list. */
export type AddedFile = Pick<Item, 'file' | 'path'>;

/** Why a file has failed. */
export interface Failure {
  readonly message: string;
  /** Whether the same request may succeed later. */
  readonly canRetry: boolean;
  /** Fields of which one must change before the file can succeed. By default, any. */
  readonly neededChanges?: readonly string[] | undefined;
}

/** State of a file. `query` has its conversion's options, and is absent if it was not sent. */
export type State =
  | { readonly at: 'ready' }
  | { readonly at: 'waiting' | 'converting'; readonly cancel: () => void }
  | { readonly at: 'uploading'; readonly cancel: () => void /** 0 to 1 */; readonly share: number }
  | { readonly at: 'done'; readonly query: string; readonly result: Result }
  | ({ readonly at: 'failed'; readonly query?: string } & Failure);

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
  /** Kinds of what the file's metadata gives away, and the result does not have, or still has. */
  readonly removed: readonly RevealedKind[];
  readonly kept: readonly RevealedKind[];
  /** The quality that the server chose, if it did. */
  readonly quality?: number | undefined;
  /** Whether it is the file itself. */
  readonly isOriginal?: true;
  readonly preview: PreviewSignal;
}

/** A result of a file in some format. */
export interface Candidate {
  readonly label: string;
  /** How it was reached. */
  readonly text: string;
  readonly bytes: number;
  /** The options of its conversion, as a query string. */
  readonly query: string;
}

/** Items that were removed, and the list before. */
interface Removal {
  readonly removed: readonly Item[];
  readonly before: readonly Item[];
  readonly message: string;
}

/** The list of files. */
export const items = signal<readonly Item[]>([]);
/** The last removal, which can be undone until files are added or removed. */
export const removal = signal<Removal | undefined>(undefined);
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

/** Returns a key that is equal for two choices of the same file. */
export const fileKey = ({ file, path }: AddedFile): string => [path, file.size, file.lastModified].join('/');

/** Appends files to the list. They replace failed items of the same file. */
export function add(files: readonly AddedFile[]): void {
  forgetRemoval();
  const added = files.map(({ file, path }): Item => {
    lastId += 1;
    const [preview, own] = [signal(undefined), signal({})];
    return { id: lastId, file, path, preview, own, state: signal({ at: 'ready' }), candidates: signal([]) };
  });
  const keys = new Set(added.map(fileKey));
  const { replaced = [], kept = [] } = Object.groupBy(items.value, (item) =>
    keys.has(fileKey(item)) ? 'replaced' : 'kept',
  );
  items.value = [...kept, ...added];
  for (const { preview } of replaced) revokePreview(preview);
  announcement.value = `${plural(added.length, 'file')} added.`;
  for (const { file, preview } of added) loadPreview(preview, file);
}

/** Removes items and cancels their requests. {@link undoRemoval} restores them. */
export function remove(removed: readonly Item[]): void {
  forgetRemoval();
  cancel(removed);
  const before = items.value;
  items.value = before.filter((item) => !removed.includes(item));
  const message = `${describeItems(removed)} removed`;
  removal.value = { removed, before, message };
  announcement.value = `${message}.`;
}

/** Cancels items in progress, last first: no waiting one starts in a slot that becomes free. */
export function cancel(all: readonly Item[]): void {
  for (const { state } of all.toReversed()) if ('cancel' in state.value) state.value.cancel();
}

/** Moves an item to a position of the list, from 0. Ends the undo of an earlier removal. */
export function moveItem(item: Item, to: number): void {
  forgetRemoval();
  items.value = items.value.filter((other) => other !== item).toSpliced(to, 0, item);
}

/** Sorts the list by the names of the files and folders. */
export function sortByName(): void {
  forgetRemoval();
  const compareNames = naturalOrder();
  items.value = items.value.toSorted((one, other) => compareNames(one.path, other.path));
  announcement.value = 'Sorted by name.';
}

/** Describes items by their results, which took time to make, or else by their files. */
function describeItems(all: readonly Item[]): string {
  const files = plural(all.length, 'file');
  const count = all.filter(({ state }) => state.value.at === 'done').length;
  const results = plural(count, 'result');
  if (count === 0) return files;
  return count === all.length ? results : `${files} with ${results}`;
}

/** Restores the items of the last removal with results. Cancelled requests are not repeated. */
export function undoRemoval(): void {
  if (!removal.value) return;
  const { removed, before } = removal.value;
  removal.value = undefined;
  items.value = before;
  announcement.value = `${describeItems(removed)} restored.`;
}

/** Frees the results of the last removal, which then cannot be undone. */
function forgetRemoval(): void {
  for (const { preview, state } of removal.value?.removed ?? []) {
    revokePreview(preview);
    forgetResult(state.value);
  }
  removal.value = undefined;
}

/** Results that the user has saved. */
export const saved = new WeakSet<Result>();

/** Returns whether the list has a result that was not saved. */
export const hasUnsaved = (): boolean => done.value.some(({ result }) => !saved.has(result));

/** Revokes the object URLs of a result to free its memory. */
export function forgetResult(state: State): void {
  if (state.at !== 'done') return;
  URL.revokeObjectURL(state.result.url);
  revokePreview(state.result.preview);
}

/** The options of items without own ones, as a query. Each item asks for it after a change. */
const panelQuery = computed(() => queryFor(panel));

/** Returns the options of an item as a query. The server would reject page numbers of an image. */
export function queryOf({ file, own }: Item): string {
  const query = Object.keys(own.value).length > 0 ? queryFor(choicesOf(own)) : panelQuery.value;
  const type = inputTypeOf(file);
  if (!type || INPUTS[type].pages || !query.includes('pages=')) return query;
  const fields = new URLSearchParams(query);
  fields.delete('pages');
  return fields.toString();
}

/** Moves an item's own options to the panel. No other item keeps own values of these. */
export function applyToAll({ own }: Item): void {
  const changed = own.value;
  setOptions(changed);
  for (const item of items.value) removeOwn(item.own, Object.keys(changed));
  announcement.value = 'These options apply to all files.';
}

/** Removes the own options of an item. */
export function resetOptions({ file, own }: Item): void {
  own.value = {};
  announcement.value = `${file.name} has the options of all files.`;
}

/** Returns the size of a picture in pixels, if the browser can read it. */
export const knownSize = ({ preview: { value } }: Item): Size | undefined =>
  value?.width ? value : undefined;

/** Returns the state of an item. One that the server would reject fails before it is sent. */
export function stateOf({ file, preview, state: { value } }: Item): State {
  const message = value.at === 'ready' ? findRejection(file, preview.value) : undefined;
  return message === undefined ? value : { at: 'failed', message, canRetry: false };
}

/** Returns whether an item was converted with other options, or has failed and these may help. */
export function isStale(item: Item): boolean {
  const state = stateOf(item);
  if (!('query' in state)) return false;
  const [query, current] = [state.query, queryOf(item)];
  if (state.at === 'done' || !state.neededChanges) return query !== current;
  const [before, after] = [new URLSearchParams(query), new URLSearchParams(current)];
  // Some of the reasons can be those of the watermark.
  const neededChanges = before.has('watermark') ? [...state.neededChanges, 'watermark'] : state.neededChanges;
  return neededChanges.some((field) => before.get(field) !== after.get(field));
}

/** Returns whether an item has not been converted with the current options. */
const isPending = (item: Item): boolean => stateOf(item).at === 'ready' || isStale(item);
