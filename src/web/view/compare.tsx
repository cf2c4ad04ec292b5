import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { formatBytes, formatChange } from '../../text.ts';
import { isArchive, isPdf } from '../actions/convert.ts';
import { followed, followOptions } from '../actions/follow-options.ts';
import { backoff } from '../client/queue.ts';
import { typeLabel } from '../format.ts';
import type { Size } from '../state/crop.ts';
import { compared, type Item, knownSize, markSaved } from '../state/items.ts';
import { saveNameOf } from '../state/names.ts';
import { choicesOf, type Options, parseOptions } from '../state/options.ts';
import { BackoffNotice } from './backoff.tsx';
import { CompareOptions } from './compare-options.tsx';
import { Cropper } from './cropper.tsx';
import { FieldChoices } from './fields.tsx';
import { Icon } from './icons.tsx';
import { Original } from './original.tsx';
import { useZoom } from './zoom.ts';

/** Dialog that compares a file with its result, which follows the options of this file. */
export function Compare({ item }: { item: Item }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { file, preview } = item;
  const choices = useMemo(() => choicesOf(item.own), [item]);
  const isCropping = useSignal(false);
  const size = preview.value?.thumbnail ? knownSize(item) : undefined;
  const state = item.state.value;
  const result = state.at === 'done' ? state.result : undefined;
  const options = useMemo(
    () => parseOptions(new URLSearchParams(state.at === 'done' ? state.query : '')),
    [state],
  );
  const progress = backoff.value ? 'Waiting' : 'Converting';
  // Before the browser paints: a key that is pressed next must reach the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => followOptions(item), [item]);
  return (
    <dialog
      ref={dialog}
      class="compare"
      aria-labelledby="compare-title"
      onClose={() => {
        compared.value = undefined;
      }}
    >
      <div class="compare-head">
        <h2 id="compare-title">{result ? saveNameOf(item, result) : file.name}</h2>
        {result && (
          <a
            class="button"
            href={result.url}
            download={saveNameOf(item, result)}
            onClick={() => markSaved(result)}
          >
            <Icon name="save" />
            Save
          </a>
        )}
        <button type="button" class="button bare" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="remove" />
        </button>
      </div>
      <BackoffNotice />
      <FieldChoices.Provider value={choices}>
        {isCropping.value && size ? (
          <Cropper file={file} size={size} />
        ) : result && isPdf(result.blob) ? (
          <iframe
            class="sheet"
            src={`${result.url}#navpanes=0`}
            title={`The PDF ${saveNameOf(item, result)}`}
          />
        ) : (
          <ComparedImages
            file={file}
            isReadable={Boolean(preview.value?.thumbnail)}
            size={size}
            options={options}
            isArchived={result !== undefined && isArchive(result.blob)}
            result={result && !isArchive(result.blob) ? result.url : undefined}
            labels={[
              `Original · ${typeLabel(file)} ${formatBytes(file.size)}`,
              `Result · ${result ? `${result.label} ${formatBytes(result.blob.size)}` : progress.toLowerCase()}`,
            ]}
          />
        )}
        <CompareOptions item={item} isCropping={isCropping} canCrop={size !== undefined}>
          <output class={followed.value.message ? 'error' : 'number'}>
            {followed.value.message ||
              (followed.value.busy
                ? progress
                : result && `${formatBytes(result.blob.size)} ${formatChange(file.size, result.blob.size)}`)}
          </output>
        </CompareOptions>
      </FieldChoices.Provider>
    </dialog>
  );
}

interface ComparedProps {
  readonly file: File;
  /** Whether the browser can show the original. */
  readonly isReadable: boolean;
  /** Size of the original in pixels, if it is known. */
  readonly size: Size | undefined;
  /** The options of the result. */
  readonly options: Options;
  /** Whether the result is an archive. */
  readonly isArchived: boolean;
  /** Object URL of the result; undefined for an archive, and until there is one. */
  readonly result: string | undefined;
  /** Labels of the original and of the result. */
  readonly labels: readonly [string, string];
}

/** Distance from the divider within which a pointer moves it, in pixels. */
const GRIP_PX = 24;

/**
 * The divider between two images, as percent of their width from the left. A pointer near it moves it; otherwise a pointer moves
 * zoomed images, and two pointers zoom.
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

/** Shows the original over the result, divided by a slider. The wheel, two fingers and keys zoom. */
function ComparedImages({ file, isReadable, size, options, isArchived, result, labels }: ComparedProps) {
  const original = useMemo(() => URL.createObjectURL(file), [file]);
  useEffect(() => () => URL.revokeObjectURL(original), [original]);
  const stage = useRef<HTMLElement>(null);
  const zoom = useZoom(stage);
  const both = isReadable && result !== undefined;
  const { split, handlers } = useDivider(stage, zoom, both);
  const [originalLabel, resultLabel] = labels;

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
              src={result ?? original}
              alt={result ? 'The result' : 'The original'}
              draggable={false}
              onLoad={zoom.measure}
            />
            {both && <Original src={original} size={size} options={options} />}
            {both && <span class="divider" aria-hidden="true" />}
          </div>
        </section>
        {(both || !result) && <span class="tag">{originalLabel}</span>}
        {result && <span class="tag end">{resultLabel}</span>}
      </div>
      <div class="compare-foot">
        {both ? (
          <label class="field split">
            <span class="label">Position of the divider</span>
            <input
              type="range"
              min="0"
              max="100"
              value={split.value}
              aria-valuetext={`${split.value}%`}
              onInput={({ currentTarget }) => {
                split.value = currentTarget.valueAsNumber;
              }}
            />
          </label>
        ) : (
          <p class="quiet">
            {isArchived
              ? 'The result is a ZIP archive, which cannot be shown.'
              : !isReadable && 'This browser cannot show the original. Only the result is shown.'}
          </p>
        )}
        <button
          type="button"
          class="button plain"
          aria-pressed={zoom.scale.value === 1}
          onClick={zoomToOwnSize}
        >
          Zoom to 100%
        </button>
      </div>
    </>
  );
}
