// biome-ignore-all lint/a11y/useSemanticElements: browsers drop the roles of table elements whose display is grid
// biome-ignore-all lint/a11y/useFocusableInteractive: the rows and their controls have the focus
import { computed, signal, useComputed } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { formatBytes, formatChange } from '../../base/text.ts';
import type { Size } from '../../tables/fitting.ts';
import { isLarger, keepOriginals } from '../actions/keep-original.ts';
import { typeLabel } from '../format.ts';
import { describeOutcome } from '../state/candidates.ts';
import { combines } from '../state/combination.ts';
import { compared, type Item, knownSize, type Result, stateOf } from '../state/items.ts';
import { choicesOf } from '../state/options.ts';
import { dragging, drop, grabbed, isOrdered, shiftOf } from '../state/order.ts';
import { shown } from '../state/rows.ts';
import { toTransform } from '../state/turns.ts';
import { useFocusFallback } from './events.ts';
import { Actions, isComparable, removeRow, Tools } from './file-actions.tsx';
import { Mark, marksOf } from './file-marks.tsx';
import { OrderCell } from './order.tsx';

/**
 * The rows of all files, as a grid with one tab stop. The arrow keys move between rows, and between
 * a row and its controls. Delete removes the file of a row, and Enter compares it.
 */
export function FileList() {
  const grid = useRef<HTMLDivElement>(null);
  const { activeElement } = document;
  const focused = grid.current?.contains(activeElement) ? (activeElement as HTMLElement) : undefined;
  // A row that changes its place in the document loses the focus, and one that is now in the closed
  // group of failures is gone.
  useLayoutEffect(() => {
    if (!focused || focused === document.activeElement) return;
    if (focused.isConnected) focused.focus();
    else if (document.activeElement === document.body)
      document.querySelector<HTMLElement>('.failures')?.focus();
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

/** Returns where the focus can be in a row: on the row itself, and on its controls. */
const stopsOf = (row: Element): Element[] =>
  [row, ...row.querySelectorAll('select, button, a')].filter((element) => element.checkVisibility());

/** Row of a file: preview, state, actions. Arrow keys reach its controls, see {@link FileList}. */
function FileRow({ item }: { item: Item }) {
  const { file, path, preview } = item;
  const row = useFocusFallback<HTMLDivElement>();
  const isTabStop = useComputed(() => tabStop.value === item.id);
  const transform = useComputed(() => toTransform(choicesOf(item.own).all()));
  const state = stateOf(item);
  const result = state.at === 'done' && !combines.value ? state.result : undefined;
  const reached = combines.value ? undefined : describeOutcome(state);
  const isPlain = combines.value || state.at === 'ready';
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
        item={item}
        src={preview.value?.thumbnail ?? result?.preview.value?.thumbnail}
        transform={preview.value?.thumbnail ? transform.value : ''}
      />
      <div class="file-text" role="gridcell">
        <div class="file-title">
          <FileName path={path} name={file.name} />
          {marksOf(item).map((mark) => (
            <Mark key={mark.text} {...mark} />
          ))}
        </div>
        {state.at === 'failed' ? (
          <p class="file-state error">{state.message}</p>
        ) : (
          <div class="file-properties number">
            <p title={reached}>
              <span class={isPlain ? undefined : 'source'}>
                {typeLabel(file)} {formatBytes(file.size)}
                {!isPlain && (result && !result.isOriginal ? ' → ' : ' · ')}
              </span>
              {result ? <Outcome before={file.size} result={result} /> : <Progress item={item} />}
            </p>
            {reached && <span class="reached">{reached}</span>}
            {isLarger(item) && (
              <button
                type="button"
                class="link keep"
                aria-label={`Keep the original ${file.name}`}
                tabIndex={-1}
                onClick={() => keepOriginals([item])}
              >
                Keep the original
              </button>
            )}
          </div>
        )}
      </div>
      {state.at !== 'failed' && <Tools item={item} />}
      <Actions item={item} />
    </div>
  );
}

/** Length of the end of a name that is always visible. */
const END_LENGTH = 9;

/** A file's name after its folder, cut in the middle if it is long: its end stays visible. */
function FileName({ path, name }: { path: string; name: string }) {
  const letters = [...name];
  return (
    <p class="file-name" title={path}>
      {path !== name && <span class="quiet">{path.slice(0, -name.length)}</span>}
      <span>{letters.slice(0, -END_LENGTH).join('')}</span>
      <span>{letters.slice(-END_LENGTH).join('')}</span>
    </p>
  );
}

/** ID of the item whose row had the focus last. */
const focused = signal(0);
/** ID of the item whose row is the tab stop of the list. */
const tabStop = computed(() => (shown.value.find(({ id }) => id === focused.value) ?? shown.value[0])?.id);

/** The thumbnail, or else the type of the file. It opens the comparison, which may convert. */
function Thumbnail({ item, src, transform }: { item: Item; src: string | undefined; transform: string }) {
  const picture = src ? <img src={src} alt="" style={{ transform }} /> : <span>{typeLabel(item.file)}</span>;
  return (
    <div role="gridcell" class="file-thumbnail">
      {isComparable(item) ? (
        <button
          type="button"
          class="thumbnail"
          aria-label={`Compare ${item.file.name}`}
          title="Compare"
          tabIndex={-1}
          onClick={() => {
            compared.value = item;
          }}
        >
          {picture}
        </button>
      ) : (
        <div class="thumbnail" aria-hidden="true">
          {picture}
        </div>
      )}
    </div>
  );
}

/** Format, size and saving of a result, after those of the original. */
function Outcome({ before, result }: { before: number; result: Result }) {
  const { blob, label, preview, isOriginal } = result;
  if (isOriginal) return <strong>original kept</strong>;
  return (
    <>
      <strong>
        {label} {formatBytes(blob.size)}
      </strong>{' '}
      <span class={blob.size > before ? 'pill larger' : 'pill'}>{formatChange(before, blob.size)}</span>{' '}
      {preview.value && <span class="pixels">{formatPixels(preview.value)}</span>}
    </>
  );
}

/** How far the conversion of a file is, or its size in pixels before. */
function Progress({ item }: { item: Item }) {
  const state = stateOf(item);
  const name = item.file.name;
  if (combines.value || state.at === 'ready') {
    const size = knownSize(item);
    return size && <span class="pixels"> · {formatPixels(size)}</span>;
  }
  if (state.at === 'uploading')
    return (
      <>
        Uploading {Math.floor(state.share * 100)}%{' '}
        <progress value={state.share} aria-label={`Upload of ${name}`} />
      </>
    );
  if (state.at !== 'converting') return <>Waiting</>;
  return (
    <>
      Converting <progress aria-label={`Conversion of ${name}`} />
    </>
  );
}

const formatPixels = ({ width, height }: Size): string => `${width} × ${height}`;
