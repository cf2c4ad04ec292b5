import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { formatBytes, plural } from '../../base/text.ts';
import { pack, packing } from '../actions/archive.ts';
import { convert } from '../actions/convert-files.ts';
import { formatSaved } from '../format.ts';
import { skipped } from '../state/add-files.ts';
import {
  busy,
  cancel,
  counts,
  done,
  isStale,
  items,
  pending,
  removal,
  remove,
  retryable,
} from '../state/items.ts';
import { secondsLeft } from '../state/rows.ts';
import { focusPicker, Removal } from './drop-zone.tsx';
import { Button } from './elements.tsx';
import { ignoreDoubleClick, useFocusFallback } from './events.ts';
import { ShareButton } from './file-actions.tsx';
import { checkOptions, FORM_ID } from './options-form.tsx';

/**
 * Totals and actions for all files. "Cancel all" and "Clear list" never appear where "Convert" was
 * or where the other one is, so that a second click does not undo the first, and a click is never
 * ignored.
 */
export function ActionBar() {
  const bar = useFocusFallback<HTMLElement>();
  const pendingCount = pending.value.length;
  return (
    <section ref={bar} class="action-bar" aria-label="All files" tabIndex={-1}>
      <Totals />
      <div class="actions">
        {busy.value && (
          <Button class="button plain cancel" onClick={() => cancel(items.value)}>
            Cancel all
          </Button>
        )}
        <Button disabled={busy.value} onClick={ignoreDoubleClick(clear)}>
          Clear list
        </Button>
        {retryable.value.length > 1 && (
          <Button icon="again" onClick={() => checkOptions() && convert(retryable.value)}>
            Try {retryable.value.length} again
          </Button>
        )}
        {!busy.value && <ShareButton label="Share all" results={done.value} />}
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

/** Progress, sizes before and after, and the last removal. */
function Totals() {
  const { done: converted, failed } = counts.value;
  const total = items.value.length;
  // Before the first conversion, those that will fail are no progress.
  const isStarted = busy.value || converted > 0 || pending.value.length === 0;
  const processed = isStarted ? converted + failed : 0;
  const isDone = converted > 0 && processed === total && pending.value.length === 0;
  return (
    <div class={isDone ? 'totals finished' : 'totals'}>
      <progress class="share" value={processed} max={total} aria-label="Files converted" />
      <p class="number">
        <strong>
          {processed > 0 && (!isDone || failed > 0) ? `${busy.value ? processed : converted} of ` : ''}
          {plural(total, 'file')}
        </strong>
        {removal.value ? <Removal /> : <Sums isDone={isDone} />}
      </p>
    </div>
  );
}

/** The sizes of files and results, and while some are converted, the time until all are. */
function Sums({ isDone }: { isDone: boolean }) {
  if (busy.value)
    return (
      secondsLeft.value !== undefined && (
        <span class="quiet"> · about {formatSeconds(secondsLeft.value)} left</span>
      )
    );
  const before = sum(done.value.map(({ file }) => file));
  const after = sum(done.value.map(({ result }) => result.blob));
  if (done.value.length === 0)
    return <span class="quiet"> · {formatBytes(sum(items.value.map(({ file }) => file)))}</span>;
  return (
    <>
      <span class="sizes">
        {' · '}
        {formatBytes(before)} → {formatBytes(after)}
      </span>
      <span class={after > before ? 'saved larger' : 'saved'}>
        {' · '}
        <Saved key={isDone} before={before} after={after} counts={isDone} />
      </span>
    </>
  );
}

/** Time in which what is saved counts up, in ms. */
const COUNT_MS = 900;

/** What all results together save. It counts up when all are done. */
function Saved({ before, after, counts: isCounting }: { before: number; after: number; counts: boolean }) {
  const share = useSignal(1);
  useEffect(() => {
    if (!isCounting || matchMedia('(prefers-reduced-motion: reduce)').matches) return undefined;
    const start = performance.now();
    const step = (now: number): void => {
      // The first frame can have begun before.
      const passed = Math.min(1, Math.max(0, (now - start) / COUNT_MS));
      share.value = 1 - (1 - passed) ** 3;
      if (share.value < 1) frame = requestAnimationFrame(step);
    };
    let frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, []);
  return <>{formatSaved(before, before + (after - before) * share.value)}</>;
}

const formatSeconds = (seconds: number): string =>
  seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;

const sum = (blobs: readonly Blob[]): number => blobs.reduce((total, { size: bytes }) => total + bytes, 0);

/** Removes all items. */
export function clear(): void {
  skipped.value = new Map();
  remove(items.value);
  focusPicker();
}
