import { signal } from '@preact/signals';
import { isAlive, Refusal, Unreachable } from './api.ts';

/** What holds all requests up: too many of them, a server that has no time, or none at all. All end by themselves. */

/** The seconds that are left are whole ones. */
export type Backoff = { readonly why: 'limit' | 'busy'; readonly seconds: number } | { readonly why: 'away' };

export const backoff = signal<Backoff | undefined>(undefined);

/** Milliseconds between two looks whether the server is back. */
const LOOK_AGAIN_MS = 1_000;
const TOO_MANY_REQUESTS = 429;
const BAD_GATEWAY = 502;
const UNAVAILABLE = 503;
/** What a proxy says while the server behind it is away. */
const FROM_A_PROXY = [BAD_GATEWAY, UNAVAILABLE, 504];
/** A server that is full or restarts asks for so many seconds or fewer; for more, when it is no use to wait in line. */
const MAX_BACKOFF_S = 10;

/**
 * Whether a request that failed like this should be sent again, once nothing holds it up any more.
 *
 * @param attempt how often it was tried
 */
export async function shouldRetry(error: unknown, attempt: number): Promise<boolean> {
  if (error instanceof Refusal) {
    const { status, retryAfter } = error;
    if (status === TOO_MANY_REQUESTS) return countDown('limit', Math.max(1, retryAfter));
    if (status === UNAVAILABLE && retryAfter > 0 && retryAfter <= MAX_BACKOFF_S)
      return countDown('busy', retryAfter);
    if (!FROM_A_PROXY.includes(status)) return false;
  } else if (!(error instanceof Unreachable)) return false;
  // A file that cannot be read any more looks like a server that is away.
  // And one of several that restarts is back, or another answers, before it is asked.
  const cutOff = error instanceof Unreachable || error.status === BAD_GATEWAY;
  if (await isAlive()) return cutOff && attempt === 1;
  waitForServer();
  return true;
}

/** Everybody who is refused at once is refused for the same reason: one of them counts. */
function countDown(why: 'limit' | 'busy', seconds: number): true {
  if (backoff.value) return true;
  const end = Date.now() + seconds * 1000;
  backoff.value = { why, seconds };
  const timer = setInterval(() => {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left <= 0) clearInterval(timer);
    backoff.value = left > 0 ? { why, seconds: left } : undefined;
  }, 250);
  return true;
}

function waitForServer(): void {
  if (backoff.value) return;
  backoff.value = { why: 'away' };
  const lookAgain = async (): Promise<void> => {
    if (await isAlive()) backoff.value = undefined;
    else setTimeout(lookAgain, LOOK_AGAIN_MS);
  };
  setTimeout(lookAgain, LOOK_AGAIN_MS);
}
