import { effect, signal } from '@preact/signals';
import { render } from 'preact';
import { backoff } from './client/queue.ts';
import { listenForFiles } from './state/add-files.ts';
import { combined, combines, hasUnsavedCombination, isCombining, previewed } from './state/combination.ts';
import { loadFormats } from './state/formats.ts';
import { announcement, busy, compared, counts, hasUnsaved, items, pending } from './state/items.ts';
import { formatLabel } from './state/options.ts';
import { BACKOFF_MESSAGES, BackoffNotice } from './view/backoff.tsx';
import { DropZone } from './view/drop-zone.tsx';
import { Millstone } from './view/elements.tsx';
import { Side } from './view/options-form.tsx';

/** What needs files, and the comparison dialog, which the first visit does not load. */
const parts = signal<(typeof import('./view/files.tsx') & typeof import('./view/compare.tsx')) | undefined>(
  undefined,
);

async function loadParts(): Promise<void> {
  const [files, compare] = await Promise.all([import('./view/files.tsx'), import('./view/compare.tsx')]);
  parts.value = { ...files, ...compare };
  files.loadZipWriter().catch(() => {}); // it is loaded again when it is needed
}

// The first input usually precedes files, and the server could be unreachable when they arrive.
for (const type of ['pointerover', 'keydown', 'dragenter'])
  addEventListener(type, () => loadParts().catch(() => {}), { once: true });
// The first file needs them. If they could not be loaded, the next one tries again.
effect(() => {
  if (parts.value || items.value.length === 0) return;
  loadParts().catch(() => alert('A part of the page could not be loaded. Reload the page.'));
});

/** The whole page. */
function Page() {
  const loaded = items.value.length > 0 ? parts.value : undefined;
  return (
    <>
      <header class={loaded ? 'masthead filled' : 'masthead'}>
        <p class="wordmark">
          <Millstone turning={(busy.value || isCombining.value) && !backoff.value} />
          <span>imagemill</span>
        </p>
        <h1>Convert images</h1>
        {loaded && (combines.value ? <loaded.CombinationBar /> : <loaded.ActionBar />)}
      </header>
      {!compared.value && <BackoffNotice />}
      <main class={items.value.length > 0 ? 'layout' : 'layout empty'}>
        <DropZone />
        <Side onConvert={() => loaded?.convert(pending.value)} />
        {loaded && (
          <section class="list" aria-label="Files">
            <loaded.Summary />
            <loaded.OrderBar />
            <loaded.FileList />
            <loaded.OpenMenu />
            <loaded.OpenGivesAway />
          </section>
        )}
      </main>
      <footer class="footer">
        <a href="docs">API reference</a>
      </footer>
      {loaded && previewed.value && combined.value && <loaded.CombinationPreview result={combined.value} />}
      {loaded && compared.value && <loaded.Compare item={compared.value} />}
      <p class="visually-hidden" role="status">
        {announcement} <Progress />
      </p>
    </>
  );
}

/** Progress of all files for screen readers, without the countdown: they would read each second. */
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
