// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
import { computed, signal, useComputed } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { formatBytes, formatChange } from '../../base/text.ts';
import { OUTPUTS, type OutputType } from '../../tables/formats.ts';
import { NOTES, type Note } from '../../tables/notes.ts';
import { type OptionName, optionRow } from '../../tables/options.ts';
import { isArchive } from '../actions/convert-files.ts';
import type { Preview } from '../client/preview.ts';
import { typeLabel } from '../format.ts';
import { combined, combines } from '../state/combination.ts';
import { formats } from '../state/formats.ts';
import {
  compared,
  type Item,
  isStale,
  type Result,
  remove,
  resetOptions,
  shown,
  stateOf,
} from '../state/items.ts';
import { choicesOf, formatLabel } from '../state/options.ts';
import { dragging, drop, grabbed, isOrdered, shiftOf } from '../state/order.ts';
import { toTransform } from '../state/turns.ts';
import { focusPicker } from './drop-zone.tsx';
import { Button, Entries } from './elements.tsx';
import { useFocusFallback } from './events.ts';
import { Actions } from './file-actions.tsx';
import { OrderCell } from './order.tsx';

/**
 * The rows of all files, as a grid with one tab stop. The arrow keys move between rows, and between a row and its controls.
 * Delete removes the file of a row, and Enter compares it.
 */
export function FileList() {
  const grid = useRef<HTMLDivElement>(null);
  const { activeElement } = document;
  const focused = grid.current?.contains(activeElement) ? (activeElement as HTMLElement) : undefined;
  // A row that changes its place in the document loses the focus.
  useLayoutEffect(() => {
    if (focused?.isConnected && focused !== document.activeElement) focused.focus();
  });
  return (
    <div
      ref={grid}
      class={isOrdered.value ? 'files ordered' : 'files'}
      role="grid"
      aria-label="Files"
      onKeyDown={handleKey}
    >
      {shown.value.map((item) => (
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
  const item = shown.value[[...grid.children].indexOf(row)];
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
const stopsOf = (row: Element): Element[] =>
  [row, ...row.querySelectorAll('select, button, a')].filter((element) => element.checkVisibility());

/** Row of a file, with its preview, state and actions. Its controls are reached with arrow keys, see {@link FileList}. */
function FileRow({ item }: { item: Item }) {
  const { file, path, preview } = item;
  const row = useFocusFallback<HTMLDivElement>();
  const isTabStop = useComputed(() => tabStop.value === item.id);
  const transform = useComputed(() => toTransform(choicesOf(item.own).all()));
  const state = stateOf(item);
  const result = state.at === 'done' && !combines.value ? state.result : undefined;
  const isFinal = state.at === 'failed' && !state.canRetry;
  const isDragged = useComputed(() => dragging.value?.item === item);
  const shift = useComputed(() => shiftOf(item)).value;
  return (
    <div
      ref={row}
      class={`file ${state.at}${isDragged.value ? ' dragged' : ''}`}
      style={{ translate: shift ? `0 ${shift}px` : '' }}
      role="row"
      aria-label={path}
      tabIndex={isTabStop.value ? 0 : -1}
      onFocusIn={() => {
        focused.value = item.id;
      }}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (grabbed.value?.item !== item || currentTarget.contains(relatedTarget as Node | null)) return;
        // A move in the document takes the focus, too, but returns it at once.
        setTimeout(() => {
          if (grabbed.value?.item === item && !currentTarget.contains(document.activeElement)) drop();
        });
      }}
    >
      {isOrdered.value && <OrderCell item={item} />}
      <Thumbnail
        src={preview.value?.thumbnail ?? result?.preview.value?.thumbnail}
        kind={typeLabel(file)}
        transform={preview.value?.thumbnail ? transform.value : ''}
      />
      <div class="file-text" role="gridcell">
        <p class="file-name" title={path}>
          {path !== file.name && <span class="quiet">{path.slice(0, -file.name.length)}</span>}
          {file.name}
        </p>
        <p class="file-properties number">
          {typeLabel(file)} {formatBytes(file.size)}
          {result ? (
            <Outcome before={file.size} result={result} />
          ) : (
            preview.value && preview.value.width > 0 && ` · ${formatPixels(preview.value)}`
          )}
        </p>
        <FileState item={item} />
        <Own item={item} />
      </div>
      {!combines.value && (
        <div role="gridcell" class="file-format">
          <FormatField item={item} />
        </div>
      )}
      <Actions item={item} />
      <div class={isFinal ? 'file-remove final' : 'file-remove'} role="gridcell">
        <Button
          look={isFinal ? 'plain' : 'bare'}
          icon={isFinal ? undefined : 'remove'}
          aria-label={`Remove ${file.name}`}
          tabIndex={-1}
          onClick={({ currentTarget }) => removeRow(currentTarget, item)}
        >
          {isFinal && 'Remove'}
        </Button>
      </div>
    </div>
  );
}

/** ID of the item whose row had the focus last. */
const focused = signal(0);
/** ID of the item whose row is the tab stop of the list. */
const tabStop = computed(() => (shown.value.find(({ id }) => id === focused.value) ?? shown.value[0])?.id);

/** Removes a row. The focus moves to the same element of the next or previous row, or to the file picker if there is none. */
function removeRow(control: HTMLElement, item: Item): void {
  const row = control.closest('.file');
  const neighbour = row?.nextElementSibling ?? row?.previousElementSibling;
  const target = row === control ? neighbour : neighbour?.querySelector('.file-remove button');
  if (target) (target as HTMLElement).focus();
  else focusPicker();
  remove([item]);
}

/** The thumbnail, or the type of the file if the browser cannot decode it. */
function Thumbnail({ src, kind, transform }: { src: string | undefined; kind: string; transform: string }) {
  return (
    <div class="thumbnail" aria-hidden="true">
      {src ? <img src={src} alt="" style={{ transform }} /> : <span>{kind}</span>}
    </div>
  );
}

/** Format, size and saving of a result, after those of the original. */
function Outcome({ before, result: { blob, label, preview } }: { before: number; result: Result }) {
  return (
    <>
      {' → '}
      <strong>
        {label} {formatBytes(blob.size)}
      </strong>{' '}
      <span class={blob.size > before ? 'pill larger' : 'pill'}>{formatChange(before, blob.size)}</span>{' '}
      {preview.value && <span class="pixels">{formatPixels(preview.value)}</span>}
    </>
  );
}

/** Progress of a file, the reason why it failed, and what to know about its result. */
function FileState({ item }: { item: Item }) {
  const state = stateOf(item);
  if (combines.value && state.at !== 'failed')
    return <Notes of={combined.value?.fileNotes.get(item) ?? []} />;
  switch (state.at) {
    case 'ready':
    case 'waiting':
      return <p class="file-state">{state.at === 'ready' ? 'Ready' : 'Waiting'}</p>;
    case 'uploading':
      return (
        <p class="file-state number">
          Uploading {Math.floor(state.share * 100)}%
          <progress value={state.share} aria-label={`Upload of ${item.file.name}`} />
        </p>
      );
    case 'converting':
      return (
        <p class="file-state">
          Converting
          <progress aria-label={`Conversion of ${item.file.name}`} />
        </p>
      );
    case 'failed':
      return <p class="file-state error">{state.message}</p>;
    case 'done':
      return (
        <>
          {isStale(item) && <p class="file-state stale">Converted with other options.</p>}
          <Notes of={state.result.notes} />
        </>
      );
  }
}

/** What to know about a result. */
const Notes = ({ of: notes }: { of: readonly Note[] }) =>
  notes.map((note) => (
    <p key={note} class={NOTES[note].loss ? 'file-state loss' : 'file-state note'}>
      {NOTES[note].page}
    </p>
  ));

/** Names the options that only this file has, except its format, which is shown beside it. */
function Own({ item }: { item: Item }) {
  const names = Object.keys(item.own.value).filter((name) => name !== 'format');
  if (names.length === 0) return null;
  return (
    <p class="file-state">
      Own options: {names.map((name) => optionRow(name as OptionName).control?.label).join(', ')} ·{' '}
      <button
        type="button"
        class="link"
        aria-label={`Reset the options of ${item.file.name}`}
        tabIndex={-1}
        onClick={() => resetOptions(item)}
      >
        Reset
      </button>
    </p>
  );
}

/** Selects the format of a single file. By default, it is the one of all files. */
function FormatField({ item: { file, own } }: { item: Item }) {
  const { set, unset } = choicesOf(own);
  return (
    <select
      aria-label={`Format of ${file.name}`}
      tabIndex={-1}
      value={own.value.format ?? ''}
      onChange={({ currentTarget: { value } }) => {
        if (value) set({ format: value as OutputType });
        else unset('format');
      }}
    >
      <option value="">→ {formatLabel}</option>
      <Entries of={(formats.value?.output ?? []).map((type) => [type, OUTPUTS[type].label])} />
    </select>
  );
}

const formatPixels = ({ width, height }: Preview): string => `${width} × ${height}`;
