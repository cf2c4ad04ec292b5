// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
/** @module Moves rows by pointer, keys and buttons, and sorts them. */
import { useRef } from 'preact/hooks';
import { type Item, sortByName } from '../state/items.ts';
import {
  dragging,
  drop,
  dropDragged,
  grab,
  grabbed,
  isOrdered,
  moveGrabbed,
  numberOf,
  putBack,
} from '../state/order.ts';
import { Button } from './elements.tsx';

/** How to order the rows, above them. */
export function OrderBar() {
  if (!isOrdered.value) return null;
  return (
    <div class="order-bar">
      <p id="order-hint" class="quiet">
        Drag the handles, or press one and use the arrows.
      </p>
      <Button onClick={sortByName}>Sort by name</Button>
    </div>
  );
}

/** Keys that move the grabbed row. */
const MOVES: Readonly<Record<string, (at: number) => number>> = {
  ArrowUp: (at) => at - 1,
  ArrowDown: (at) => at + 1,
  Home: () => 0,
  End: () => Number.POSITIVE_INFINITY,
};

/** Distance that a pointer moves in a click at most, in pixels. */
const CLICK_PX = 4;
/** Distance from the window's edges at which a dragged row scrolls it, and how far, in pixels. */
const [EDGE_PX, SCROLL_PX] = [96, 12];

/** Returns the position of a row dragged to this height of the window, however rows are shifted. */
function positionAt(row: HTMLElement, y: number): number {
  const grid = row.parentElement as HTMLElement;
  const start = grid.getBoundingClientRect().top - grid.offsetTop;
  const others = ([...grid.children] as HTMLElement[]).filter((other) => other !== row);
  return others.filter(({ offsetTop, offsetHeight }) => start + offsetTop + offsetHeight / 2 < y).length;
}

/** Drags an item's row by its handle, and scrolls at the page's edges. Escape puts it back. */
function useDrag(item: Item) {
  /** The pointer that is down: where it is, and where it was in the page. */
  const pointer = useRef<{ readonly row: HTMLElement; readonly start: number; y: number } | undefined>(
    undefined,
  );
  /** Whether the last press was a drag. The browser reports it as a click, too. */
  const wasDrag = useRef(false);
  const update = (): void => {
    if (!pointer.current) return;
    const { row, start, y } = pointer.current;
    const by = y + scrollY - start;
    if (!wasDrag.current && Math.abs(by) <= CLICK_PX) return;
    wasDrag.current = true;
    dragging.value = { item, by, height: row.offsetHeight, to: positionAt(row, y) };
  };
  const scroll = (): void => {
    if (!pointer.current) return;
    const { y } = pointer.current;
    const by = y < EDGE_PX ? -SCROLL_PX : y > innerHeight - EDGE_PX ? SCROLL_PX : 0;
    if (by !== 0 && wasDrag.current) {
      scrollBy(0, by);
      update();
    }
    requestAnimationFrame(scroll);
  };
  return {
    wasDrag,
    handlers: {
      onPointerDown(event: PointerEvent & { currentTarget: HTMLElement }): void {
        const { currentTarget, pointerId, button, clientY: y } = event;
        if (button !== 0) return;
        currentTarget.setPointerCapture(pointerId);
        pointer.current = { row: currentTarget.closest('.file') as HTMLElement, start: y + scrollY, y };
        wasDrag.current = false;
        requestAnimationFrame(scroll);
      },
      onPointerMove({ clientY }: PointerEvent): void {
        if (!pointer.current) return;
        pointer.current.y = clientY;
        update();
      },
      onPointerCancel: () => {
        dragging.value = undefined;
      },
      onLostPointerCapture(): void {
        pointer.current = undefined;
        dropDragged();
      },
    },
    cancel(): void {
      pointer.current = undefined;
      dragging.value = undefined;
    },
  };
}

/** The handle of a row, with its number. A press grabs the row, which the arrow keys then move. */
export function OrderCell({ item }: { item: Item }) {
  const { wasDrag, handlers, cancel } = useDrag(item);
  const isGrabbed = grabbed.value?.item === item;
  const number = numberOf(item);
  return (
    <div class="file-order" role="gridcell">
      <Button
        look="bare"
        icon="grip"
        aria-label={`Move ${item.file.name}`}
        aria-pressed={isGrabbed}
        aria-describedby="order-hint"
        tabIndex={-1}
        {...handlers}
        onClick={({ currentTarget, detail }) => {
          currentTarget.focus(); // Safari does not
          if (wasDrag.current && detail > 0) return;
          if (isGrabbed) drop();
          else grab(item);
        }}
        onKeyDown={(event) => {
          const { key } = event;
          if (key === 'Escape') {
            cancel();
            putBack();
          }
          if (!isGrabbed || !MOVES[key] || event.altKey || event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          event.stopPropagation(); // these keys move between rows otherwise
          moveGrabbed(MOVES[key]);
        }}
      />
      <span class="number quiet">{number || ''}</span>
    </div>
  );
}

/** Buttons that move the grabbed row, for those who cannot drag and have no keys. */
export const MoveButtons = ({ item }: { item: Item }) => (
  <>
    {(['up', 'down'] as const).map((direction) => (
      <Button
        key={direction}
        look="plain square"
        icon={direction}
        aria-label={`Move ${item.file.name} ${direction}`}
        title={`Move ${direction}`}
        tabIndex={-1}
        onClick={() => moveGrabbed((at) => at + (direction === 'up' ? -1 : 1))}
      />
    ))}
    <Button tabIndex={-1} aria-label={`Done with ${item.file.name}`} onClick={drop}>
      Done
    </Button>
  </>
);
