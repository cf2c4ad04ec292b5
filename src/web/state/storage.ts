/** @module Texts in localStorage. It throws if the user has disabled it. */

/** Returns a stored text, empty if there is none. */
export function loadStored(key: string): string {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

/** Stores a text, if that is possible. Otherwise, it is gone when the page is closed. */
export function store(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {
    // nothing else depends on it
  }
}
