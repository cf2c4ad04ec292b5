/** @module Sets of options under names of the person, in this browser. */
import { computed, signal } from '@preact/signals';
import { loadStored, store } from '../storage.ts';
import { applyQuery, fields } from './options.ts';

/** Key in localStorage. The value is a query string, with a set as the value of each name. */
const STORAGE_KEY = 'imagemill.settings';

/** The sets as query strings, by their names. */
export const settings = signal<Readonly<Record<string, string>>>(
  Object.fromEntries(new URLSearchParams(loadStored(STORAGE_KEY))),
);

/** The name of the set that equals the current options; undefined for none. */
export const chosenSettings = computed(() => {
  const query = fields.value.toString();
  return Object.keys(settings.value).find((name) => settings.value[name] === query);
});

/** Keeps the current options under a name. */
export const saveSettings = (name: string): void =>
  change({ ...settings.value, [name]: String(fields.value) });

/** Forgets a set. The options stay as they are. */
export function removeSettings(name: string): void {
  const { [name]: _, ...others } = settings.value;
  change(others);
}

/** Chooses a set, or the defaults of the API for an empty name. */
export const applySettings = (name: string): void =>
  applyQuery(new URLSearchParams(settings.value[name] ?? ''));

function change(sets: Readonly<Record<string, string>>): void {
  settings.value = sets;
  store(STORAGE_KEY, new URLSearchParams(sets).toString());
}
