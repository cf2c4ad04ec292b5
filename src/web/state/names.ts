/** @module The names under which results are saved. */
import { computed, effect, signal } from '@preact/signals';
import { DEFAULT_PATTERN, fillPattern, findPatternError, namesSize } from '../../name-pattern.ts';
import { baseNameOf, portableName } from '../../text.ts';
import { extensionOf } from '../format.ts';
import { loadStored, store } from '../storage.ts';
import { type Item, items, type Result } from './items.ts';

/** Key in localStorage. */
const STORAGE_KEY = 'imagemill.names';
/** Size in the example of a pattern, as long as no size is known. */
const EXAMPLE_SIZE = { width: 1200, height: 800 };

/** The pattern as typed. */
export const namePattern = signal(loadStored(STORAGE_KEY) || DEFAULT_PATTERN);
effect(() => store(STORAGE_KEY, namePattern.value));

/** What is wrong with the pattern. Results are then named like their files. */
export const patternError = computed(() => findPatternError(namePattern.value));
const pattern = computed(() => (patternError.value ? DEFAULT_PATTERN : namePattern.value));

/** Returns the file name for saving a result. */
export function saveNameOf({ file }: Pick<Item, 'file'>, { name, preview }: Result): string {
  if (pattern.value === DEFAULT_PATTERN) return name;
  return `${fill(file, preview.value ?? undefined)}.${extensionOf(name)}`;
}

/** Waits until the size of a result is known, if its name has it: until the browser has decoded or refused the result. */
export async function waitForName({ preview }: Result): Promise<void> {
  if (!namesSize(pattern.value)) return;
  await new Promise<void>((resolve) => {
    const stop = effect(() => {
      if (preview.value !== undefined) queueMicrotask(() => resolve(stop()));
    });
  });
}

/** An example of a name: that of the first file. */
export const exampleName = computed(() => {
  const [item] = items.value;
  const state = item?.state.value;
  if (item && state?.at === 'done') return saveNameOf(item, state.result);
  return `${fill(item?.file ?? new File([], 'photo.jpg'), item?.preview.value ?? EXAMPLE_SIZE)}.webp`;
});

function fill(file: File, size: { width: number; height: number } | undefined): string {
  return portableName(
    fillPattern(pattern.value, {
      name: baseNameOf(file.name),
      size,
      get number() {
        return Math.max(1, items.value.findIndex((item) => item.file === file) + 1);
      },
    }),
  );
}
