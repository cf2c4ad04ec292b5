import { plural } from '../../base/text.ts';
import { pack, packing } from '../actions/archive.ts';
import { convert } from '../actions/convert-files.ts';
import { formatSaved } from '../format.ts';
import { skipped } from '../state/add-files.ts';
import {
  busy,
  counts,
  done,
  failedOnly,
  isStale,
  items,
  pending,
  remove,
  retryable,
  toggleFailedOnly,
} from '../state/items.ts';
import { focusPicker, Removal } from './drop-zone.tsx';
import { Button } from './elements.tsx';
import { useBusyClick, useFocusFallback } from './events.ts';
import { checkOptions, FORM_ID } from './options-form.tsx';

/**
 * Totals and actions for all files. "Cancel all" and "Clear list" never appear where "Convert" was, so that a
 * second click does not undo the first.
 */
export function ActionBar() {
  const bar = useFocusFallback<HTMLElement>();
  const pendingCount = pending.value.length;
  const handleClick = useBusyClick(busy.value, cancelAll, clear);
  return (
    <section ref={bar} class="action-bar" aria-label="All files" tabIndex={-1}>
      <Totals />
      <div class="actions">
        <Button onClick={handleClick}>{busy.value ? 'Cancel all' : 'Clear list'}</Button>
        {retryable.value.length > 1 && (
          <Button icon="right" onClick={() => checkOptions() && convert(retryable.value)}>
            Try {retryable.value.length} again
          </Button>
        )}
        <Button
          look={pendingCount > 0 || busy.value ? 'plain' : 'main'}
          icon="save"
          disabled={done.value.length === 0 || packing.value || busy.value}
          onClick={pack}
        >
          Download ZIP
        </Button>
        {pendingCount > 0 && (
          <Button look="main" type="submit" form={FORM_ID}>
            Convert {pending.value.every(isStale) ? `${pendingCount} again` : plural(pendingCount, 'file')}
          </Button>
        )}
      </div>
    </section>
  );
}

/** Progress, sizes before and after, and the number of failures. */
function Totals() {
  const { done: converted, failed, busy } = counts.value;
  const before = sum(done.value.map(({ file }) => file));
  const after = sum(done.value.map(({ result }) => result.blob));
  const total = items.value.length;
  const processed = converted + failed;
  const isDone = converted > 0 && processed === total && pending.value.length === 0;
  return (
    <div class={isDone ? 'totals finished' : 'totals'}>
      <progress class="share" value={processed} max={total} aria-label="Files converted" />
      <p class="number">
        <strong>
          {isDone
            ? `Done: ${converted} converted`
            : processed > 0
              ? `${processed} of ${plural(total, 'file')}`
              : plural(total, 'file')}
        </strong>
        {failed > 0 && (
          <span class="error">
            {isDone ? ', ' : ' · '}
            <button
              type="button"
              class="link"
              aria-pressed={failedOnly.value !== undefined}
              title={failedOnly.value ? 'Show all files' : 'Show only these files'}
              onClick={toggleFailedOnly}
            >
              {failed} failed
            </button>
          </span>
        )}
        {converted > 0 && (
          <span class={busy > 0 ? 'quiet' : 'saved'}>
            {' · '}
            {formatSaved(before, after)}
          </span>
        )}
      </p>
      <Removal />
    </div>
  );
}

const sum = (blobs: readonly Blob[]): number => blobs.reduce((total, { size: bytes }) => total + bytes, 0);

/** Cancels all items, last first, so that no waiting item starts in a slot that becomes free. */
function cancelAll(): void {
  for (const { state } of items.value.toReversed()) if ('cancel' in state.value) state.value.cancel();
}

/** Removes all items. */
export function clear(): void {
  skipped.value = new Map();
  remove(items.value);
  focusPicker();
}
