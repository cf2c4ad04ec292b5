import { signal } from '@preact/signals';
import { isAlive, Refusal, Unreachable } from './api.ts';

/** What holds all requests up: too many of them, or a server that is away. Both end by themselves. */

/** The seconds that are left are whole ones. */
export type Hold = { readonly why: 'limit'; readonly seconds: number } | { readonly why: 'away' };

export const hold = signal<Hold | undefined>(undefined);

/** Milliseconds between two looks whether the server is back. */
const LOOK_AGAIN_MS = 1_000;
const TOO_MANY_REQUESTS = 429;

/**
 * Whether a request that failed like this should be sent again, once nothing holds it up any more.
 *
 * @param attempt how often it was tried
 */
export async function isWorthAnother(error: unknown, attempt: number): Promise<boolean> {
  if (error instanceof Refusal && error.status === TOO_MANY_REQUESTS) {
    countDown(Math.max(1, error.retryAfter));
    return true;
  }
  if (!(error instanceof Unreachable)) return false;
  // A file that cannot be read any more looks like a server that is away.
  if (await isAlive()) return attempt === 1;
  waitForServer();
  return true;
}

/** Everybody who is refused at once is refused for the same reason: one of them counts. */
function countDown(seconds: number): void {
  if (hold.value) return;
  const end = Date.now() + seconds * 1000;
  hold.value = { why: 'limit', seconds };
  const timer = setInterval(() => {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left <= 0) clearInterval(timer);
    hold.value = left > 0 ? { why: 'limit', seconds: left } : undefined;
  }, 250);
}

function waitForServer(): void {
  if (hold.value) return;
  hold.value = { why: 'away' };
  const lookAgain = async (): Promise<void> => {
    if (await isAlive()) hold.value = undefined;
    else setTimeout(lookAgain, LOOK_AGAIN_MS);
  };
  setTimeout(lookAgain, LOOK_AGAIN_MS);
}
