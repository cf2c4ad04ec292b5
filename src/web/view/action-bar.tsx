import { forgetArchives, pack, packing } from '../client/archive.ts';
import { convert } from '../client/convert.ts';
import { formatChange, formatSize, plural } from '../format.ts';
import { skipped } from '../state/add-files.ts';
import { busy, counts, done, failed, items, pending, remove } from '../state/items.ts';
import { focusPicker } from './drop-zone.tsx';
import { Icon } from './icons.tsx';
import { ignoreDoubleClick } from './ignore-double-click.ts';
import { FORM_ID } from './options-form.tsx';
import { useFocusFallback } from './use-focus-fallback.ts';

/**
 * What can be done with all files together, and what came of it so far. Nothing that stops or clears ever takes the place
 * of "Convert": whoever presses that twice would undo it.
 */
export function ActionBar() {
  const bar = useFocusFallback<HTMLElement>();
  const todo = pending.value.length;
  return (
    <section ref={bar} class="action-bar" aria-label="All files" tabIndex={-1}>
      <Totals />
      <div class="actions">
        <button
          type="button"
          class="button plain"
          onClick={ignoreDoubleClick(busy.value ? cancelAll : clear)}
        >
          {busy.value ? 'Cancel all' : 'Clear list'}
        </button>
        {failed.value.length > 1 && (
          <button type="button" class="button plain" onClick={() => convert(failed.value)}>
            <Icon name="again" />
            Try {failed.value.length} again
          </button>
        )}
        <button
          type="button"
          class={todo > 0 || busy.value ? 'button plain' : 'button'}
          disabled={done.value.length === 0 || packing.value || busy.value}
          onClick={pack}
        >
          <Icon name="save" />
          Download ZIP
        </button>
        {todo > 0 && (
          <button type="submit" form={FORM_ID} class="button">
            Convert {plural(todo, 'file')}
          </button>
        )}
      </div>
    </section>
  );
}

function Totals() {
  const { done: count, failed: bad } = counts.value;
  const before = sum(done.value.map(({ file }) => file));
  const after = sum(done.value.map(({ result }) => result.blob));
  const all = items.value.length;
  return (
    <div class="totals">
      <progress class="share" value={count} max={all} aria-label="Files converted" />
      <p class="number">
        <strong>{count === 0 ? plural(all, 'file') : `${count} of ${plural(all, 'file')}`}</strong>
        {count > 0 && (
          <span class="quiet">
            {' · '}
            {formatSize(before)} → {formatSize(after)}, {formatChange(before, after)}
          </span>
        )}
        {bad > 0 && <span class="trouble"> · {bad} failed</span>}
      </p>
    </div>
  );
}

const sum = (blobs: readonly Blob[]): number => blobs.reduce((total, { size: bytes }) => total + bytes, 0);

/** The last first: nothing that waits may take the place of what is cancelled. */
function cancelAll(): void {
  for (const { state } of items.value.toReversed()) if ('cancel' in state.value) state.value.cancel();
}

function clear(): void {
  forgetArchives();
  skipped.value = 0;
  remove(items.value);
  focusPicker();
}
