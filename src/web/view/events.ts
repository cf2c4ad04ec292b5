/** @module Focus and clicks of elements whose buttons change. */
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * Keeps the focus in an element whose buttons appear and disappear. If the focused button is removed or disabled,
 * focuses the element itself, so that keyboard and screen reader users keep their position. Shows an outline if the
 * button had one.
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

/** Wraps a click handler to ignore the second click of a double click, since the button may have changed its action. */
export const ignoreDoubleClick =
  (handler: () => void) =>
  ({ detail }: { readonly detail: number }): void => {
    if (detail < 2) handler();
  };

/** Time in which a click was probably meant for what the button did before, in ms. */
const REACTION_MS = 700;

/**
 * Wraps the click handlers of a button that has another one while `isBusy`. Ignores a click right after the change, and the second
 * click of a double click.
 */
export function useBusyClick(isBusy: boolean, whileBusy: () => void, otherwise: () => void) {
  const endedAt = useRef(Number.NEGATIVE_INFINITY);
  useLayoutEffect(() => {
    if (!isBusy) return undefined;
    return () => {
      endedAt.current = performance.now();
    };
  }, [isBusy]);
  return ignoreDoubleClick(() => {
    if (isBusy) whileBusy();
    else if (performance.now() - endedAt.current > REACTION_MS) otherwise();
  });
}
