/** @module Keeps files instead of results that are larger. */
import { computed, signal } from '@preact/signals';
import { plural } from '../../base/text.ts';
import { loadPreview } from '../client/preview.ts';
import { typeLabel } from '../format.ts';
import { combines } from '../state/combination.ts';
import { announcement, forgetResult, type Item, items, type Result, saved } from '../state/items.ts';
import { isArchive } from './convert-files.ts';

/** Returns whether the result of a file is larger than the file, and no archive of its pages. */
export const isLarger = ({ file, state: { value } }: Item): boolean =>
  !combines.value &&
  value.at === 'done' &&
  value.result.blob.size > file.size &&
  !isArchive(value.result.blob);

/** The files with larger results. */
export const larger = computed(() => items.value.filter(isLarger));

/** Keeps files instead of their results. They keep all of their metadata. */
export function keepOriginals(all: readonly Item[]): void {
  for (const item of all) keepOriginal(item);
  announcement.value = `${plural(all.length, 'original')} kept.`;
}

function keepOriginal({ file, state }: Item): void {
  if (state.value.at !== 'done') return;
  const { query, result } = state.value;
  forgetResult(state.value);
  const original: Result = {
    blob: file,
    url: URL.createObjectURL(file),
    name: file.name,
    label: typeLabel(file),
    notes: [],
    removed: [],
    kept: [...result.removed, ...result.kept],
    isOriginal: true,
    preview: signal(undefined),
  };
  loadPreview(original.preview, file);
  saved.add(original); // nothing is lost with the page
  state.value = { at: 'done', query, result: original };
}
