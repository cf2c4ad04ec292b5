/** @module The zoom of an image by wheel, fingers and keys. */
import { useComputed, useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** Largest scale, in pixels of the page per pixel of the image. */
const MAX_SCALE = 8;
/** Factor of a step by key. */
const STEP = 1.25;
/** Exponent of the zoom per pixel of a wheel. */
const WHEEL_RATE = 0.002;

/** Position of a pointer in the window. */
type Point = Pick<PointerEvent, 'clientX' | 'clientY'>;

/**
 * Zooms the first child of a scrolling element, which contains an image. The point under the
 * pointer stays where it is.
 *
 * @returns the scale, 0 if the image is fitted into the element; the width of the child; and
 *   handlers of events
 */
export function useZoom(stage: RefObject<HTMLElement | null>) {
  const scale = useSignal(0);
  const naturalWidth = useSignal(0);
  const width = useComputed(() => (scale.value > 0 ? `${naturalWidth.value * scale.value}px` : ''));
  /** Point of the image, as fractions of its sides, to keep at a point of the window. */
  const anchor = useRef({ across: 0.5, down: 0.5, x: 0, y: 0 });
  const box = () => stage.current?.firstElementChild?.getBoundingClientRect() ?? new DOMRect();

  const zoomTo = (wanted: number, x: number, y: number): void => {
    const { left, top, width: shown, height } = box();
    anchor.current = { across: (x - left) / shown, down: (y - top) / height, x, y };
    const { clientWidth, clientHeight } = stage.current as HTMLElement;
    const ratio = height / shown;
    const fitted = Math.min(clientWidth, clientHeight / ratio) / naturalWidth.peek();
    // A small image is fitted at its own size.
    scale.value = wanted >= Math.min(fitted, 1) ? Math.min(wanted, MAX_SCALE) : 0;
  };
  const zoomBy = (factor: number, x: number, y: number): void =>
    zoomTo((box().width / naturalWidth.peek()) * factor, x, y);

  useLayoutEffect(() => {
    const { across, down, x, y } = anchor.current;
    const { left, top, width: shown, height } = box();
    stage.current?.scrollBy(left + across * shown - x, top + down * height - y);
  }, [scale.value]);

  useEffect(() => {
    const { current } = stage;
    const handleWheel = (event: WheelEvent): void => {
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY * WHEEL_RATE), event.clientX, event.clientY);
    };
    // Not passive, since it prevents scrolling.
    current?.addEventListener('wheel', handleWheel, { passive: false });
    return () => current?.removeEventListener('wheel', handleWheel);
  }, []);

  return {
    scale,
    width,
    zoomTo,
    isFitted: () => scale.peek() === 0,
    measure: ({ currentTarget }: { readonly currentTarget: HTMLImageElement }) => {
      naturalWidth.value = currentTarget.naturalWidth;
    },
    /** Zooms by two fingers, one of which has moved. */
    pinch(other: Point, before: Point, after: Point): void {
      const distance = (to: Point) => Math.hypot(to.clientX - other.clientX, to.clientY - other.clientY);
      const [x, y] = [(other.clientX + after.clientX) / 2, (other.clientY + after.clientY) / 2];
      zoomBy(distance(after) / Math.max(1, distance(before)), x, y);
    },
    /** Zooms with + and -, to 100 % with 1, and to the fitted size with 0. */
    handleKey({ key, ctrlKey, metaKey }: KeyboardEvent): void {
      if (ctrlKey || metaKey) return;
      const { left, top, width: wide, height } = (stage.current as HTMLElement).getBoundingClientRect();
      const [x, y] = [left + wide / 2, top + height / 2];
      if (key === '+' || key === '=') zoomBy(STEP, x, y);
      else if (key === '-') zoomBy(1 / STEP, x, y);
      else if (key === '0' || key === '1') zoomTo(Number(key), x, y);
    },
  };
}
