import { backoff } from '../client/backoff.ts';
import { announcement, busy, compared, counts, items } from '../state/items.ts';
import { ActionBar } from './action-bar.tsx';
import { Compare } from './compare.tsx';
import { Curl } from './curl.tsx';
import { DropZone } from './drop-zone.tsx';
import { FileRow } from './file-row.tsx';
import { Millstone } from './icons.tsx';
import { OptionsForm } from './options-form.tsx';

/** The whole page. */
export function Page() {
  return (
    <>
      <header class="masthead">
        <p class="wordmark">
          <Millstone turning={busy.value && !backoff.value} />
          imagemill
        </p>
        <h1>Convert images</h1>
      </header>
      <BackoffNotice />
      <main class={items.value.length > 0 ? 'layout' : 'layout empty'}>
        <DropZone />
        <aside class="side" aria-label="Options">
          <OptionsForm />
          <Curl />
        </aside>
        {items.value.length > 0 && (
          <section class="work" aria-label="Files">
            <ul class="files">
              {items.value.map((item) => (
                <FileRow key={item.id} item={item} />
              ))}
            </ul>
          </section>
        )}
      </main>
      {items.value.length > 0 && <ActionBar />}
      <footer class="footer">
        <p>Images are converted on this server, which does not store them.</p>
        <a href="/docs">API reference</a>
      </footer>
      {compared.value && <Compare key={compared.value.id} item={compared.value} />}
      <p class="visually-hidden" role="status">
        {announcement} <Progress />
      </p>
    </>
  );
}

/** Reasons of a backoff, for the notice and for screen readers. */
const BACKOFF_MESSAGES = {
  limit: 'The rate limit of the server is reached.',
  busy: 'The server is overloaded.',
  away: 'The server cannot be reached.',
};

/** Notice of the current backoff and its remaining time. */
function BackoffNotice() {
  const current = backoff.value;
  if (!current) return null;
  return (
    <section class="notice" aria-label="Waiting">
      <strong>{BACKOFF_MESSAGES[current.why]}</strong> The page continues{' '}
      {current.why === 'away' ? (
        'when the server is back.'
      ) : (
        <>
          in <span class="number">{current.seconds} s</span>.
        </>
      )}
    </section>
  );
}

/** Progress of all files for screen readers. Omits the countdown, which would be read out every second. */
function Progress() {
  const { done, failed, busy } = counts.value;
  if (done + failed + busy === 0) return null;
  return (
    <>
      {done} of {items.value.length} converted{failed > 0 && `, ${failed} failed`}.{' '}
      {backoff.value && busy > 0 && BACKOFF_MESSAGES[backoff.value.why]}
    </>
  );
}
