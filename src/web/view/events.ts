/** @module Focus and clicks of elements whose buttons change. */
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * Keeps the focus in an element whose buttons appear and disappear. If the focused button is
 * removed or disabled, focuses the element itself, so that keyboard and screen reader users keep
 * their position. Shows an outline if the button had one.
 *
 * @returns a ref for the element, which needs `tabIndex={-1}`
 */
export function useFocusFallback<T extends HTMLElement>(): RefObject<T | null> {
  const element = useRef<T>(null);
  const hadFocus = element.current?.contains(document.activeElement);
  const focusVisible = element.current?.querySelector(':focus-visible') != null;
  useLayoutEffect(() => {
    if (hadFocus && !element.current?.querySelector(':focus:not(:disabled)'))
      element.current?.focus({ preventScroll: true, focusVisible });
  });
  return element;
}

/** Wraps a click handler to ignore the second of a double click: the button may have changed. */
export const ignoreDoubleClick =
  (handler: () => void) =>
  ({ detail }: { readonly detail: number }): void => {
    if (detail < 2) handler();
  };
