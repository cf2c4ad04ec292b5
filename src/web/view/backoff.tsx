import { backoff, enterKey } from '../client/queue.ts';
import { Button } from './elements.tsx';

/** Reasons of a backoff, for the notice and for screen readers. */
export const BACKOFF_MESSAGES = {
  limit: 'The rate limit of the server is reached.',
  busy: 'The server is overloaded.',
  away: 'The server cannot be reached.',
  key: 'This server needs an API key.',
  'wrong-key': 'The server does not accept this API key.',
};

/** Notice of the current backoff and its remaining time. */
export function BackoffNotice() {
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
  return (
    <form
      class="notice key"
      aria-label="API key"
      onSubmit={(event) => {
        event.preventDefault();
        enterKey(String(new FormData(event.currentTarget).get('key')));
      }}
    >
      <label for="key">
        <strong>{BACKOFF_MESSAGES[why]}</strong> Ask its operator for one.
      </label>
      <input id="key" name="key" type="password" required pattern="[!-~]+" autocomplete="off" />
      <Button type="submit">Use key</Button>
    </form>
  );
}
