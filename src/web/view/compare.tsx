import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { isPdf } from '../client/convert.ts';
import { formatChange, formatSize } from '../format.ts';
import { compared, type Done, type Item } from '../state/items.ts';
import { Icon } from './icons.tsx';

/** The result beside what it was made of, in a dialog. */
export function Compare({ item }: { item: Item }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { file, state, seen } = item;
  const shown = useMemo(() => (state.peek() as Done).result, [state]);
  useEffect(() => dialog.current?.showModal(), []);
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
          <h2 id="compare-title">{shown.name}</h2>
          <p class="quiet number">
            {formatSize(file.size)} → {formatSize(shown.blob.size)},{' '}
            {formatChange(file.size, shown.blob.size)}
          </p>
        </div>
        <a class="button" href={shown.url} download={shown.name}>
          <Icon name="save" />
          Save
        </a>
        <button type="button" class="button bare" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="remove" />
        </button>
      </div>
      {isPdf(shown.blob) ? (
        <iframe class="sheet" src={`${shown.url}#navpanes=0`} title={`The PDF ${shown.name}`} />
      ) : (
        <Pictures file={file} result={shown.url} both={Boolean(seen.value?.thumbnail)} />
      )}
    </dialog>
  );
}

/** Both pictures one over the other; the slider says where the one ends and the other begins. */
function Pictures({ file, result, both }: { file: File; result: string; both: boolean }) {
  const original = useMemo(() => URL.createObjectURL(file), [file]);
  useEffect(() => () => URL.revokeObjectURL(original), [original]);
  const split = useSignal(50);
  const whole = useSignal(false);
  const stage = useRef<HTMLElement>(null);
  // What was in the middle, and the divider with it, is in sight after the zoom, too.
  useLayoutEffect(() => {
    if (!stage.current) return;
    const { scrollWidth, scrollHeight, clientWidth, clientHeight } = stage.current;
    const left = (split.peek() / 100) * scrollWidth - clientWidth / 2;
    stage.current.scrollTo(left, (scrollHeight - clientHeight) / 2);
  }, [whole.value]);
  const follow = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    if (event.type === 'pointermove' && event.buttons !== 1) return;
    const { left, width } = event.currentTarget.getBoundingClientRect();
    split.value = Math.round(Math.min(100, Math.max(0, ((event.clientX - left) / width) * 100)));
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section ref={stage} class={whole.value ? 'stage whole' : 'stage'} tabIndex={0} aria-label="Picture">
        <div
          class="pair"
          style={{ '--split': `${split.value}%` }}
          {...(both && { onPointerDown: follow, onPointerMove: follow })}
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
              aria-label="How much of the original is shown"
              aria-valuetext={`${split.value}%`}
              onInput={({ currentTarget }) => {
                split.value = currentTarget.valueAsNumber;
              }}
            />
          </label>
        ) : (
          <p class="quiet">This browser cannot show the original, so here is the result alone.</p>
        )}
        <button
          type="button"
          class="button plain"
          aria-pressed={whole.value}
          onClick={() => {
            whole.value = !whole.value;
          }}
        >
          Zoom to 100%
        </button>
      </div>
    </>
  );
}
