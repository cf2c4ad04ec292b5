import { useSignal } from '@preact/signals';
import { render } from 'preact';
import { backoff, enterKey } from './client/queue.ts';
import { listenForFiles } from './state/add-files.ts';
import { loadFormats } from './state/formats.ts';
import { announcement, busy, compared, counts, hasUnsaved, items } from './state/items.ts';
import { ActionBar } from './view/action-bar.tsx';
import { Compare } from './view/compare.tsx';
import { DropZone } from './view/drop-zone.tsx';
import { FileList } from './view/file-list.tsx';
import { Millstone } from './view/icons.tsx';
import { Side } from './view/options-form.tsx';

/** The whole page. */
function Page() {
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
        <Side />
        {items.value.length > 0 && (
          // The buttons for all files precede the rows, so that the keyboard reaches them first.
          <div class="list">
            <ActionBar />
            <section class="work" aria-label="Files">
              <FileList />
            </section>
          </div>
        )}
      </main>
      <footer class="footer">
        <p>Images are converted on this server, which does not store them.</p>
        <a href="docs">API reference</a>
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
  key: 'This server needs an API key.',
  'wrong-key': 'The server does not accept this API key.',
};

/** Notice of the current backoff and its remaining time. */
function BackoffNotice() {
  const current = backoff.value;
  if (!current) return null;
  if (current.why === 'key' || current.why === 'wrong-key') return <KeyNotice why={current.why} />;
  return (
    <section class="notice" aria-label="Waiting">
      <strong>{BACKOFF_MESSAGES[current.why]}</strong> The page continues{' '}
      {'seconds' in current ? (
        <>
          in <span class="number">{current.seconds} s</span>.
        </>
      ) : (
        'when the server is back.'
      )}
    </section>
  );
}

/** Asks for the API key that the server needs. */
function KeyNotice({ why }: { why: 'key' | 'wrong-key' }) {
  const key = useSignal('');
  const use = (event: Event): void => {
    event.preventDefault();
    enterKey(key.value);
  };
  return (
    <form class="notice key" aria-label="API key" onSubmit={use}>
      <label for="key">
        <strong>{BACKOFF_MESSAGES[why]}</strong> Ask its operator for one.
      </label>
      <input
        id="key"
        type="password"
        required
        pattern="[!-~]+"
        autocomplete="off"
        onInput={({ currentTarget }) => {
          key.value = currentTarget.value.trim();
        }}
      />
      <button type="submit" class="button plain">
        Use key
      </button>
    </form>
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

render(<Page />, document.getElementById('page') as HTMLElement);
listenForFiles();
addEventListener('beforeunload', (event) => {
  if (hasUnsaved()) event.preventDefault(); // the browser asks whether to leave
});
loadFormats();
