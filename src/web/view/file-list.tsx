// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
import { isArchive } from '../actions/convert.ts';
import { compared, type Item, items, stateOf } from '../state/items.ts';
import { FileRow, removeRow } from './file-row.tsx';

/**
 * The rows of all files, as a grid with one tab stop. The arrow keys move between rows, and between a row and its controls.
 * Delete removes the file of a row, and Enter compares it.
 */
export function FileList() {
  return (
    <div class="files" role="grid" aria-label="Files" onKeyDown={handleKey}>
      {items.value.map((item) => (
        <FileRow key={item.id} item={item} />
      ))}
    </div>
  );
}

function handleKey(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const { key, currentTarget: grid } = event;
  const target = event.target as HTMLElement;
  const row = target.closest<HTMLElement>('.file');
  if (!row) return;
  const column = stopsOf(row).indexOf(target);
  const inRow = (other: Element | null) => other && (stopsOf(other)[column] ?? stopsOf(other).at(-1));
  const item = items.value[[...grid.children].indexOf(row)];
  const horizontal: Readonly<Record<string, () => Element | null | undefined>> = {
    ArrowLeft: () => stopsOf(row)[column - 1],
    ArrowRight: () => stopsOf(row)[column + 1],
  };
  const vertical: typeof horizontal = {
    ArrowUp: () => inRow(row.previousElementSibling),
    ArrowDown: () => inRow(row.nextElementSibling),
    Home: () => inRow(grid.firstElementChild),
    End: () => inRow(grid.lastElementChild),
  };
  // These keys change the value of a list of choices.
  const moves = target instanceof HTMLSelectElement ? horizontal : { ...horizontal, ...vertical };
  const move = moves[key];
  if (move) {
    event.preventDefault();
    (move() as HTMLElement | null | undefined)?.focus();
  } else if (item && key === 'Delete') {
    removeRow(target, item);
  } else if (item && key === 'Enter' && target === row && isComparable(item)) {
    event.preventDefault();
    compared.value = item;
  }
}

function isComparable(item: Item): boolean {
  const state = stateOf(item);
  return state.at === 'ready' || (state.at === 'done' && !isArchive(state.result.blob));
}

/** Returns where the focus can be in a row: on the row itself, and on its controls. */
const stopsOf = (row: Element): Element[] => [row, ...row.querySelectorAll('select, button, a')];
