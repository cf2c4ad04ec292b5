import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * For a part of the page whose buttons come and go: when the one with the focus goes, or is switched off, the part
 * itself gets it, so that those who work by keyboard or by ear stay where they are; it is outlined for those who saw
 * an outline before. It needs `tabIndex={-1}`.
 */
export function useFocusFallback<T extends HTMLElement>(): RefObject<T | null> {
  const part = useRef<T>(null);
  const had = part.current?.contains(document.activeElement);
  const focusVisible = part.current?.querySelector(':focus-visible') != null;
  useLayoutEffect(() => {
    if (had && !part.current?.querySelector(':focus:not(:disabled)'))
      part.current?.focus({ preventScroll: true, focusVisible });
  });
  return part;
}
