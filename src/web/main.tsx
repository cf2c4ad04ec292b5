import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { loadZipWriter } from './actions/archive.ts';
import { backoff } from './client/queue.ts';
import { listenForFiles } from './state/add-files.ts';
import { combined, combines, hasUnsavedCombination, isCombining, previewed } from './state/combination.ts';
import { loadFormats } from './state/formats.ts';
import { announcement, busy, compared, counts, hasUnsaved, items } from './state/items.ts';
import { formatLabel } from './state/options.ts';
import { ActionBar } from './view/action-bar.tsx';
import { BACKOFF_MESSAGES, BackoffNotice } from './view/backoff.tsx';
import { CombinationBar, CombinationPreview } from './view/combination-bar.tsx';
import { DropZone } from './view/drop-zone.tsx';
import { Millstone } from './view/elements.tsx';
import { FileList } from './view/file-list.tsx';
import { Side } from './view/options-form.tsx';
import { OrderBar } from './view/order.tsx';

/** The comparison dialog, which the first visit does not load. */
const comparison = signal<typeof import('./view/compare.tsx').Compare | undefined>(undefined);

// Loads it with the first file, so that it opens at once, and tries again when it is opened.
effect(() => {
  if (comparison.value || (items.value.length === 0 && !compared.value)) return;
  loadZipWriter().catch(() => {}); // it is loaded again when it is needed
  import('./view/compare.tsx').then(
    ({ Compare }) => {
      comparison.value = Compare;
    },
    () => {
      if (compared.peek()) alert('The comparison could not be loaded. Reload the page.');
      compared.value = undefined;
    },
  );
});

/** The whole page. */
function Page() {
  const Compare = comparison.value;
  return (
    <>
      <header class="masthead">
        <p class="wordmark">
          <Millstone turning={(busy.value || isCombining.value) && !backoff.value} />
          imagemill
        </p>
        <h1>Convert images</h1>
      </header>
      {!compared.value && <BackoffNotice />}
      <main class={items.value.length > 0 ? 'layout' : 'layout empty'}>
        <DropZone />
        <Side />
        {items.value.length > 0 && (
          // The buttons for all files precede the rows, so that the keyboard reaches them first.
          <div class="list">
            {combines.value ? <CombinationBar /> : <ActionBar />}
            <section class="work" aria-label="Files">
              <OrderBar />
              <FileList />
            </section>
          </div>
        )}
      </main>
      <footer class="footer">
        <p>Images are converted on this server, which does not store them.</p>
        <a href="docs">API reference</a>
      </footer>
      {previewed.value && combined.value && <CombinationPreview result={combined.value} />}
      {Compare && compared.value && <Compare key={compared.value.id} item={compared.value} />}
      <p class="visually-hidden" role="status">
        {announcement} <Progress />
      </p>
    </>
  );
}

/** Progress of all files for screen readers. Omits the countdown, which would be read out every second. */
function Progress() {
  if (combines.value)
    return (
      isCombining.value && (
        <>
          Making one {formatLabel}. {describeBackoff()}
        </>
      )
    );
  const { done, failed, busy } = counts.value;
  if (done + failed + busy === 0) return null;
  return (
    <>
      {done} of {items.value.length} converted{failed > 0 && `, ${failed} failed`}.{' '}
      {busy > 0 && describeBackoff()}
    </>
  );
}

const describeBackoff = (): string => (backoff.value ? BACKOFF_MESSAGES[backoff.value.why] : '');

render(<Page />, document.getElementById('page') as HTMLElement);
listenForFiles();
addEventListener('beforeunload', (event) => {
  if (hasUnsaved() || hasUnsavedCombination()) event.preventDefault(); // the browser asks whether to leave
});
loadFormats();
