import { computed, type Signal, signal } from '@preact/signals';
import type { Note } from '../../conversion/plan/types.ts';
import { lookInto, revokePreview, type Seen } from '../client/preview.ts';
import { fields } from './options.ts';

/** The files on the page, and how far each has come. */

export interface Item {
  readonly id: number;
  readonly file: File;
  readonly seen: Seen;
  readonly state: Signal<State>;
}

export type State =
  | { readonly at: 'ready' }
  | { readonly at: 'waiting' | 'converting'; readonly cancel: () => void }
  | { readonly at: 'uploading'; readonly cancel: () => void /** 0 to 1 */; readonly share: number }
  | { readonly at: 'done'; readonly query: string; readonly result: Result }
  | { readonly at: 'failed'; readonly query: string; readonly message: string };

export interface Result {
  readonly blob: Blob;
  readonly url: string;
  /** What it is called when it is saved. */
  readonly name: string;
  readonly notes: readonly Note[];
  readonly seen: Seen;
}

export type Done = Extract<State, { at: 'done' }>;

export const items = signal<readonly Item[]>([]);
/** Which item's result is looked at. */
export const compared = signal<Item | undefined>(undefined);
/** What happened to the list, for those who cannot see it. */
export const announcement = signal('');

/** How many are in each state; and those that the current choices have something to do for. */
export const counts = computed(() => {
  const count = { ready: 0, waiting: 0, uploading: 0, converting: 0, done: 0, failed: 0 };
  for (const { state } of items.value) count[state.value.at] += 1;
  return { ...count, busy: count.waiting + count.uploading + count.converting };
});
export const busy = computed(() => counts.value.busy > 0);
export const pending = computed(() => items.value.filter(isPending));
export const failed = computed(() => items.value.filter(({ state }) => state.value.at === 'failed'));
export const done = computed(() =>
  items.value.flatMap(({ file, state }) => (state.value.at === 'done' ? [{ file, ...state.value }] : [])),
);

let lastId = 0;

/** Puts files at the end of the list. */
export function add(files: readonly File[]): void {
  const added = files.map((file): Item => {
    lastId += 1;
    return { id: lastId, file, seen: signal(undefined), state: signal({ at: 'ready' }) };
  });
  items.value = [...items.value, ...added];
  announcement.value = `${added.length} ${added.length === 1 ? 'file' : 'files'} added.`;
  for (const { file, seen } of added) lookInto(seen, file);
}

/** Takes items away, with all that is under way for them. */
export function remove(gone: readonly Item[]): void {
  for (const item of gone) {
    const state = item.state.value;
    if ('cancel' in state) state.cancel();
    revokePreview(item.seen);
    forgetResult(state);
  }
  items.value = items.value.filter((item) => !gone.includes(item));
  announcement.value = `${gone.length} ${gone.length === 1 ? 'file' : 'files'} removed.`;
}

/** Gives back what a result takes of the browser's memory. */
export function forgetResult(state: State): void {
  if (state.at !== 'done') return;
  URL.revokeObjectURL(state.result.url);
  revokePreview(state.result.seen);
}

/** Not converted yet, or not with these choices. */
function isPending({ state: { value } }: Item): boolean {
  if (value.at === 'ready') return true;
  return 'query' in value && value.query !== fields.value.toString();
}
