/** @module Which items have a row, and what many of them have in common. */
import { computed, effect, signal } from '@preact/signals';
import { NOTES, type Note } from '../../tables/notes.ts';
import { combined, combines } from './combination.ts';
import { counts, done, type Item, items, stateOf } from './items.ts';

/** Whether the group of the items that have failed was opened. */
export const isGroupOpened = signal(false);

/** The failed items, as a group. It has none in the one file, where each has its place. */
export const failures = computed(() =>
  combines.value ? [] : items.value.filter((item) => stateOf(item).at === 'failed'),
);
/** Whether the items of the group have rows. If there are no others, they always have. */
export const isGroupOpen = computed(
  () => isGroupOpened.value || failures.value.length === items.value.length,
);
/** The items with a row, in order: those that have failed come first. */
export const shown = computed(() => {
  if (failures.value.length === 0) return items.value;
  const others = items.value.filter((item) => !failures.value.includes(item));
  return isGroupOpen.value ? [...failures.value, ...others] : others;
});

/** The item whose menu is open, and the button that opened it. */
export const menu = signal<{ readonly item: Item; readonly anchor: HTMLElement } | undefined>(undefined);

/** The item whose metadata is listed. */
export const revealing = signal<Item | undefined>(undefined);

/** The notes of all results, with how many files have each. What a result lacks comes first. */
export const sharedNotes = computed(() => {
  const all = combines.value
    ? [...(combined.value?.fileNotes.values() ?? [])].flat()
    : done.value.flatMap(({ result }) => result.notes);
  const numbers = new Map<Note, number>();
  for (const note of all) numbers.set(note, (numbers.get(note) ?? 0) + 1);
  return [...numbers].sort(([one], [other]) => Number(NOTES[other].loss) - Number(NOTES[one].loss));
});

/** When the current run began, in ms, and the number of its files. */
let run = { start: 0, files: 0 };

/** Estimated time until all items are converted, in seconds; undefined while it is unknown. */
export const secondsLeft = signal<number | undefined>(undefined);
effect(() => {
  const { busy } = counts.value;
  run = busy === 0 || run.files === 0 ? { start: performance.now(), files: busy } : run;
  run.files = Math.max(run.files, busy);
  const finished = run.files - busy;
  secondsLeft.value =
    busy > 0 && finished > 1 ? (((performance.now() - run.start) / finished) * busy) / 1000 : undefined;
});

const TITLE = document.title;
// The tab states the progress.
effect(() => {
  const { done, failed, busy } = counts.value;
  document.title = busy > 0 ? `${done + failed} of ${items.value.length} · imagemill` : TITLE;
});
