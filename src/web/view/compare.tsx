import '../style/compare.css';
import { computed, type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { formatBytes, formatChange } from '../../base/text.ts';
import type { Size } from '../../tables/fitting.ts';
import { isArchive, isPdf } from '../actions/convert-files.ts';
import { followed, followOptions } from '../actions/follow-options.ts';
import { backoff } from '../client/queue.ts';
import { typeLabel } from '../format.ts';
import { choose } from '../state/candidates.ts';
import { combines } from '../state/combination.ts';
import {
  applyToAll,
  compared,
  type Item,
  knownSize,
  type Result,
  remove,
  resetOptions,
} from '../state/items.ts';
import { saveNameOf } from '../state/names.ts';
import { choicesOf, type Options, parseOptions } from '../state/options.ts';
import { shown } from '../state/rows.ts';
import { BackoffNotice } from './backoff.tsx';
import { Cropper, Original } from './cropper.tsx';
import { Dialog, Pdf, useObjectUrl } from './dialog.tsx';
import { Button } from './elements.tsx';
import { FieldChoices, QualityField, Select } from './fields.tsx';
import { formatEntries, isComparable, SaveLink, ShareButton, TurnButtons } from './file-actions.tsx';
import { SizeFields } from './size-fields.tsx';
import { useZoom } from './zoom.ts';

/** Dialog that compares a file with its result, which follows the options of this file. */
export function Compare({ item }: { item: Item }) {
  const { file } = item;
  const choices = useMemo(() => choicesOf(item.own), [item]);
  const isCropping = useSignal(false);
  const size = shownSize(item);
  const state = item.state.value;
  const result = state.at === 'done' ? state.result : undefined;
  const options = useMemo(
    () => parseOptions(new URLSearchParams(state.at === 'done' ? state.query : '')),
    [state],
  );
  const name = result ? saveNameOf(item, result) : file.name;
  const progress = backoff.value ? 'Waiting' : 'Converting';
  useEffect(() => followOptions(item), [item]);
  useLayoutEffect(() => {
    isCropping.value = false;
  }, [item]);
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => step(item, -1),
    ArrowRight: () => step(item, 1),
    Delete: () => removeCompared(item),
    s: () => document.querySelector<HTMLElement>('dialog a[download]')?.click(),
  };
  return (
    <Dialog
      class="compare"
      heading={name}
      tools={
        result && (
          <>
            <ShareButton label="Share" results={[{ file, result }]} />
            <SaveLink name={name} result={result} />
          </>
        )
      }
      onClose={() => {
        compared.value = undefined;
      }}
      onKeyDown={(event) => {
        const { key, target, altKey, ctrlKey, metaKey } = event;
        // These elements have other uses for the keys, and so has a zoomed picture.
        const isUsed = (target as Element).closest('input, select, .zoomed, .cropper');
        if (isUsed || altKey || ctrlKey || metaKey || !keys[key]) return;
        event.preventDefault();
        keys[key]();
      }}
    >
      <BackoffNotice />
      <FieldChoices.Provider value={choices}>
        {isCropping.value && size ? (
          <Cropper key={item.id} file={file} size={size} />
        ) : result && isPdf(result.blob) ? (
          <Pdf name={name} result={result} />
        ) : (
          <ComparedImages item={item} result={result} options={options} />
        )}
        <CompareOptions item={item} isCropping={isCropping}>
          <output class={followed.value.message ? 'error' : 'number'}>
            {followed.value.message ||
              (followed.value.busy
                ? progress
                : result && `${formatBytes(result.blob.size)} ${formatChange(file.size, result.blob.size)}`)}
          </output>
        </CompareOptions>
      </FieldChoices.Provider>
      <Candidates item={item} />
      <Strip item={item} />
    </Dialog>
  );
}

/** The files to compare, in the order of the list. */
const comparable = computed(() => shown.value.filter(isComparable));

/** Compares the next or the previous file, if there is one. */
function step(item: Item, by: 1 | -1): void {
  const all = comparable.value;
  compared.value = all[all.indexOf(item) + by] ?? item;
}

/** Removes a file, and compares the next one, or the one before the last. */
function removeCompared(item: Item): void {
  const all = comparable.value;
  const at = all.indexOf(item);
  compared.value = all[at + 1] ?? all[at - 1];
  remove([item]);
}

/** The results of a file in several formats, by their bytes. A click chooses one. */
function Candidates({ item }: { item: Item }) {
  const state = item.state.value;
  const all = item.candidates.value.toSorted((one, other) => one.bytes - other.bytes);
  if (all.length < 2) return null;
  const most = Math.max(...all.map(({ bytes }) => bytes));
  return (
    <ul class="candidates" aria-label="Results of this file">
      {all.map((candidate) => (
        <li key={candidate.label}>
          <button
            type="button"
            class={candidate.bytes > item.file.size ? 'candidate larger' : 'candidate'}
            aria-current={state.at === 'done' && state.query === candidate.query ? 'true' : undefined}
            onClick={() => choose(item, candidate)}
          >
            {candidate.text} <strong class="number">{formatBytes(candidate.bytes)}</strong>
            <span class="bar" style={{ width: `${(candidate.bytes / most) * 100}%` }} />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The thumbnails of all files, of which one is compared. */
function Strip({ item }: { item: Item }) {
  const strip = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    strip.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [item]);
  if (comparable.value.length < 2) return null;
  return (
    <nav
      ref={strip}
      class="strip"
      aria-label="Other files"
      title="← and → change the file, S saves it, Delete removes it"
    >
      {comparable.value.map((other) => (
        <button
          key={other.id}
          type="button"
          class="thumbnail"
          aria-label={other.file.name}
          aria-current={other === item ? 'true' : undefined}
          tabIndex={other === item ? 0 : -1}
          onClick={() => {
            compared.value = other;
          }}
        >
          {other.preview.value?.thumbnail ? (
            <img src={other.preview.value.thumbnail} alt="" loading="lazy" />
          ) : (
            <span>{typeLabel(other.file)}</span>
          )}
        </button>
      ))}
    </nav>
  );
}

/** Returns the size of the original in pixels, if the browser can show it. */
const shownSize = (item: Item): Size | undefined =>
  item.preview.value?.thumbnail ? knownSize(item) : undefined;

/** Returns what the crop by hand lacks; empty if nothing, or before the preview is there. */
function cropHint(item: Item): string {
  const preview = item.preview.value;
  if (preview === undefined || shownSize(item)) return '';
  return preview?.thumbnail
    ? 'Needs an SVG with a width and a height.'
    : 'Needs an original that this browser can show.';
}

/** Distance from the divider within which a pointer moves it, in pixels. */
const GRIP_PX = 24;

/**
 * The divider between two images, as percent of their width from the left. A pointer near it moves
 * it; otherwise a pointer moves zoomed images, and two pointers zoom.
 */
function useDivider(stage: RefObject<HTMLElement | null>, zoom: ReturnType<typeof useZoom>, both: boolean) {
  const split = useSignal(50);
  const pointers = useRef(new Map<number, PointerEvent>());
  const movesDivider = useRef(false);
  const moveDivider = ({ clientX, currentTarget }: PointerEvent): void => {
    const { left, width } = (currentTarget as HTMLElement).getBoundingClientRect();
    split.value = Math.round(Math.min(100, Math.max(0, ((clientX - left) / width) * 100)));
  };
  const start = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    event.preventDefault(); // the slider on the grip would move by itself
    event.currentTarget.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, event);
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const distance = Math.abs(event.clientX - left - (width * split.peek()) / 100);
    movesDivider.current = both && (zoom.isFitted() || distance < GRIP_PX);
    if (movesDivider.current) moveDivider(event);
  };
  const move = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const other = [...pointers.current.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    pointers.current.set(event.pointerId, event);
    if (other) zoom.pinch(other, before, event);
    else if (movesDivider.current) moveDivider(event);
    else stage.current?.scrollBy(before.clientX - event.clientX, before.clientY - event.clientY);
  };
  const end = ({ pointerId }: PointerEvent): void => {
    pointers.current.delete(pointerId);
  };
  return {
    split,
    handlers: { onPointerDown: start, onPointerMove: move, onPointerUp: end, onPointerCancel: end },
  };
}

interface ComparedProps {
  readonly item: Item;
  readonly result: Result | undefined;
  /** The options of the result. */
  readonly options: Options;
}

/** Shows the original over the result, divided by a slider. Wheel, two fingers and keys zoom. */
function ComparedImages({ item, result, options }: ComparedProps) {
  const { file, preview } = item;
  const isReadable = Boolean(preview.value?.thumbnail);
  const isArchived = result !== undefined && isArchive(result.blob);
  const visible = isArchived ? undefined : result;
  const original = useObjectUrl(file);
  const stage = useRef<HTMLElement>(null);
  const zoom = useZoom(stage);
  const both = isReadable && visible !== undefined;
  const { split, handlers } = useDivider(stage, zoom, both);

  // The zoom to the image's own size keeps the divider and the vertical centre in view.
  const zoomToOwnSize = (): void => {
    if (!stage.current) return;
    const { top, height } = stage.current.getBoundingClientRect();
    const pair = stage.current.firstElementChild?.getBoundingClientRect();
    const x = (pair?.left ?? 0) + ((pair?.width ?? 0) * split.peek()) / 100;
    zoom.zoomTo(zoom.scale.peek() === 1 ? 0 : 1, x, top + height / 2);
  };
  return (
    <>
      <div class="viewer">
        <section
          ref={stage}
          class={`stage ${zoom.scale.value > 0 ? 'zoomed' : ''} ${zoom.scale.value >= 2 ? 'magnified' : ''}`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
          tabIndex={0}
          aria-label="Image"
          onKeyDown={zoom.handleKey}
        >
          <div
            class={both ? 'pair divided' : 'pair'}
            style={{ '--split': `${split.value}%`, width: zoom.width.value }}
            {...handlers}
          >
            <img
              class="after"
              src={visible?.url ?? original}
              alt={visible ? 'The result' : 'The original'}
              draggable={false}
              onLoad={zoom.measure}
            />
            {both && <Original src={original} size={shownSize(item)} options={options} />}
            {both && (
              <input
                type="range"
                class="divider-value"
                aria-label="Position of the divider"
                min="0"
                max="100"
                value={split.value}
                aria-valuetext={`${split.value}%`}
                onInput={({ currentTarget }) => {
                  split.value = currentTarget.valueAsNumber;
                }}
              />
            )}
            {both && <span class="divider" aria-hidden="true" />}
          </div>
        </section>
        <Button class="button plain zoom" aria-pressed={zoom.scale.value === 1} onClick={zoomToOwnSize}>
          Zoom to 100%
        </Button>
        {(both || !visible) && (
          <span class="tag">{`Original · ${typeLabel(file)} ${formatBytes(file.size)}`}</span>
        )}
        {visible && (
          <span class="tag end">{`Result · ${visible.label} ${formatBytes(visible.blob.size)}`}</span>
        )}
      </div>
      {(isArchived || !isReadable) && (
        <p class="compare-foot quiet">
          {isArchived
            ? 'The result is a ZIP archive, which cannot be shown.'
            : 'This browser cannot show the original. Only the result is shown.'}
        </p>
      )}
    </>
  );
}

interface CompareOptionsProps {
  readonly item: Item;
  readonly isCropping: Signal<boolean>;
  readonly children: ComponentChildren;
}

/** The options of one file, which can become those of all files. */
function CompareOptions({ item, isCropping, children }: CompareOptionsProps) {
  const isOwn = Object.keys(item.own.value).length > 0;
  const hint = cropHint(item);
  return (
    <>
      <section class="compare-foot own" aria-label="Options of this file">
        <div class="tools">
          <TurnButtons item={item} />
          <Button
            icon="crop"
            aria-pressed={isCropping.value}
            disabled={!shownSize(item)}
            aria-describedby={hint ? 'crop-needs' : undefined}
            onClick={() => {
              isCropping.value = !isCropping.value;
            }}
          >
            Crop
          </Button>
          {hint && <small id="crop-needs">{hint}</small>}
        </div>
        {!combines.value && (
          <>
            <Select name="format" label="Convert to" labels={Object.fromEntries(formatEntries())} />
            <QualityField />
          </>
        )}
        <SizeFields />
      </section>
      <div class="compare-foot">
        <div class="tools">
          <Button disabled={!isOwn} onClick={() => resetOptions(item)}>
            Reset
          </Button>
          <Button disabled={!isOwn} onClick={() => applyToAll(item)}>
            Apply to all
          </Button>
        </div>
        {children}
      </div>
    </>
  );
}
