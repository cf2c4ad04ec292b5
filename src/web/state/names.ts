/** @module The names under which results are saved. */
import { computed, effect, signal } from '@preact/signals';
import { DEFAULT_PATTERN, fillPattern, findPatternError, namesSize } from '../../base/name-pattern.ts';
import { baseNameOf, portableName } from '../../base/text.ts';
import { fitInto, parseArea, roundingOf, type Size } from '../../tables/fitting.ts';
import { AREA_TEXT } from '../../tables/options.ts';
import { extensionOf, inputTypeOf } from '../format.ts';
import { loadStored, store } from '../storage.ts';
import { parseCrop } from './crop.ts';
import { type Item, items, knownSize, type Result } from './items.ts';
import { choicesOf, FORMATS, type Options, options, SMALLEST } from './options.ts';
import { turnedSize } from './turns.ts';

/** Key in localStorage. */
const STORAGE_KEY = 'imagemill.names';
/** Size of the picture in the example of a pattern, as long as no size is known. */
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

/** Waits for a result's size, if its name has it, until the browser has decoded or refused it. */
export async function waitForName({ preview }: Result): Promise<void> {
  if (!namesSize(pattern.value)) return;
  await new Promise<void>((resolve) => {
    const stop = effect(() => {
      if (preview.value !== undefined) queueMicrotask(() => resolve(stop()));
    });
  });
}

/** The first file's name as an example: before its conversion, with what its options state. */
export const exampleName = computed(() => {
  const [item] = items.value;
  const state = item?.state.value;
  if (item && state?.at === 'done') return saveNameOf(item, state.result);
  const all = item ? choicesOf(item.own).all() : options.value;
  const file = item?.file ?? new File([], 'photo.jpg');
  const isImage = FORMATS[all.format].mediaType.startsWith('image/');
  const size = item?.preview.value?.stated ?? (item && knownSize(item)) ?? EXAMPLE_SIZE;
  const planned = isImage ? plannedSize(size, all, inputTypeOf(file) === 'svg') : undefined;
  return `${fill(file, planned)}.${all.format === SMALLEST ? '…' : all.format}`;
});

/** Returns a result's size as far as options state it: without `trim` and what a preset has. */
function plannedSize(picture: Size, all: Options, isDrawing: boolean): Size {
  const size = turnedSize(picture, all);
  const isPart = AREA_TEXT.test(all.crop);
  // The area of a drawing has parts of pixels.
  const area = isDrawing && isPart ? parseArea(all.crop, size) : parseCrop(all.crop, size);
  const [width, height] = [Number(all.width) || undefined, Number(all.height) || undefined];
  const box = {
    width,
    height,
    scale: width || height ? undefined : Number(all.scale),
    fit: width && height ? all.fit : 'inside',
    enlarge: all.enlarge || isDrawing,
  };
  return fitInto(area, box, roundingOf(box, isDrawing && !isPart)).result;
}

function fill(file: File, size: Size | undefined): string {
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
