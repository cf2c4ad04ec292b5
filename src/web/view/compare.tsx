import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { formatBytes } from '../../text.ts';
import { isPdf } from '../actions/convert.ts';
import { formatChange } from '../format.ts';
import { compared, type Done, type Item } from '../state/items.ts';
import { Icon } from './icons.tsx';

/** Dialog that compares a result with its original. */
export function Compare({ item }: { item: Item }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { file, state, preview } = item;
  const result = useMemo(() => (state.peek() as Done).result, [state]);
  // Before the browser paints: a key that is pressed next must reach the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
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
        <div>
          <h2 id="compare-title">{result.name}</h2>
          <p class="quiet number">
            {formatBytes(file.size)} → {formatBytes(result.blob.size)},{' '}
            {formatChange(file.size, result.blob.size)}
          </p>
        </div>
        <a class="button" href={result.url} download={result.name}>
          <Icon name="save" />
          Save
        </a>
        <button type="button" class="button bare" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="remove" />
        </button>
      </div>
      {isPdf(result.blob) ? (
        <iframe class="sheet" src={`${result.url}#navpanes=0`} title={`The PDF ${result.name}`} />
      ) : (
        <ComparedImages file={file} result={result.url} both={Boolean(preview.value?.thumbnail)} />
      )}
    </dialog>
  );
}

/**
 * Shows the original over the result, divided by a slider.
 *
 * @param both whether the browser can show the original
 */
function ComparedImages({ file, result, both }: { file: File; result: string; both: boolean }) {
  const original = useMemo(() => URL.createObjectURL(file), [file]);
  useEffect(() => () => URL.revokeObjectURL(original), [original]);
  const split = useSignal(50);
  const zoomed = useSignal(false);
  const stage = useRef<HTMLElement>(null);
  // Keep the divider and the vertical centre in view after zooming.
  useLayoutEffect(() => {
    if (!stage.current) return;
    const { scrollWidth, scrollHeight, clientWidth, clientHeight } = stage.current;
    const left = (split.peek() / 100) * scrollWidth - clientWidth / 2;
    stage.current.scrollTo(left, (scrollHeight - clientHeight) / 2);
  }, [zoomed.value]);
  const moveDivider = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    if (event.type === 'pointermove' && event.buttons !== 1) return;
    const { left, width } = event.currentTarget.getBoundingClientRect();
    split.value = Math.round(Math.min(100, Math.max(0, ((event.clientX - left) / width) * 100)));
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard */}
      <section ref={stage} class={zoomed.value ? 'stage whole' : 'stage'} tabIndex={0} aria-label="Image">
        <div
          class="pair"
          style={{ '--split': `${split.value}%` }}
          {...(both && { onPointerDown: moveDivider, onPointerMove: moveDivider })}
        >
          <img class="after" src={result} alt="The result" draggable={false} />
          {both && <img class="before" src={original} alt="The original" draggable={false} />}
          {both && <span class="divider" aria-hidden="true" />}
        </div>
      </section>
      <div class="compare-foot">
        {both ? (
          <label class="field split">
            <span class="label">
              <span>Original</span>
              <span>Result</span>
            </span>
            <input
              type="range"
              min="0"
              max="100"
              value={split.value}
              aria-label="Position of the divider between original and result"
              aria-valuetext={`${split.value}%`}
              onInput={({ currentTarget }) => {
                split.value = currentTarget.valueAsNumber;
              }}
            />
          </label>
        ) : (
          <p class="quiet">This browser cannot show the original. Only the result is shown.</p>
        )}
        <button
          type="button"
          class="button plain"
          aria-pressed={zoomed.value}
          onClick={() => {
            zoomed.value = !zoomed.value;
          }}
        >
          Zoom to 100%
        </button>
      </div>
    </>
  );
}
