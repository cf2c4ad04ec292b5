/** @module The order of the files that become one file: rows that keys or a pointer move. */
import { computed, effect, signal } from '@preact/signals';
import { combinable, combines } from './combination.ts';
import { announcement, type Item, items, moveItem } from './items.ts';

/** Whether rows can be moved. */
export const isOrdered = computed(() => combines.value && items.value.length > 1);

/** The item that keys and buttons move, and its position before. */
export const grabbed = signal<{ readonly item: Item; readonly from: number } | undefined>(undefined);

effect(() => {
  if (grabbed.value && !(isOrdered.value && items.value.includes(grabbed.value.item)))
    grabbed.value = undefined;
});

/** Returns an item's number in the one file, from 1; 0 if it does not become part of it. */
export const numberOf = (item: Item): number => combinable.value.indexOf(item) + 1;

const describePosition = (item: Item): string =>
  `position ${items.peek().indexOf(item) + 1} of ${items.peek().length}`;

/** Grabs an item, so that {@link moveGrabbed} moves it. */
export function grab(item: Item): void {
  grabbed.value = { item, from: items.peek().indexOf(item) };
  announcement.value = `${item.file.name} grabbed, ${describePosition(item)}. Arrow keys move it, Space drops it, Escape puts it back.`;
}

/** Moves the grabbed item to a position of the list, or to the next one that exists. */
export function moveGrabbed(to: (at: number) => number): void {
  if (!grabbed.value) return;
  const { item } = grabbed.value;
  const all = items.peek();
  const at = all.indexOf(item);
  const next = Math.min(Math.max(0, to(at)), all.length - 1);
  if (next !== at) moveItem(item, next);
  announcement.value = `${item.file.name}: ${describePosition(item)}.`;
}

/** Drops the grabbed item where it is. */
export function drop(): void {
  if (!grabbed.value) return;
  const { item } = grabbed.value;
  grabbed.value = undefined;
  announcement.value = `${item.file.name} dropped, ${describePosition(item)}.`;
}

/** Puts the grabbed item back. */
export function putBack(): void {
  if (!grabbed.value) return;
  const { item, from } = grabbed.value;
  grabbed.value = undefined;
  if (items.peek().indexOf(item) !== from) moveItem(item, from);
  announcement.value = `${item.file.name} put back, ${describePosition(item)}.`;
}

/** The item that a pointer drags. */
interface Dragging {
  readonly item: Item;
  /** How far it is dragged, and the height of its row, in pixels. */
  readonly by: number;
  readonly height: number;
  /** Its position in the list if it is dropped here. */
  readonly to: number;
}

/** The item that a pointer drags; undefined for none. */
export const dragging = signal<Dragging | undefined>(undefined);

/** Moves the dragged item to where it is dropped. */
export function dropDragged(): void {
  if (!dragging.value) return;
  const { item, to } = dragging.value;
  dragging.value = undefined;
  if (items.peek().indexOf(item) === to) return;
  moveItem(item, to);
  announcement.value = `${item.file.name}: ${describePosition(item)}.`;
}

/** Returns how far an item's row is shifted in pixels: dragged, or to make room for that one. */
export function shiftOf(item: Item): number {
  if (!dragging.value) return 0;
  const { item: dragged, by, height, to } = dragging.value;
  if (item === dragged) return by;
  const [at, from] = [item, dragged].map((each) => items.value.indexOf(each)) as [number, number];
  if (from < at && at <= to) return -height;
  return to <= at && at < from ? height : 0;
}
