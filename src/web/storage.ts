/** @module Texts in the storage of the browser or a tab, which throws if the user disabled it. */

type StorageName = 'localStorage' | 'sessionStorage';

/** Returns a stored text, empty if there is none. */
export function loadStored(key: string, storage: StorageName = 'localStorage'): string {
  try {
    return window[storage].getItem(key) ?? '';
  } catch {
    return '';
  }
}

/** Stores a text, if that is possible. Otherwise, it is gone when the page is closed. */
export function store(key: string, text: string, storage: StorageName = 'localStorage'): void {
  try {
    window[storage].setItem(key, text);
  } catch {
    // nothing else depends on it
  }
}
