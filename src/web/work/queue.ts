import { effect } from '@preact/signals';
import { hold, isWorthAnother } from './hold.ts';

/** Which request goes when: a few side by side, the others in order, none while something holds them up. */

/** A browser opens six connections to a server; some stay free for the page itself. */
const LANES = 3;

let free = LANES;
const line: (() => void)[] = [];

effect(() => {
  if (!hold.value) letIn();
});

/**
 * Runs `task` when it is its turn. What fails because of a hold is tried again after it, before others.
 *
 * Rejects with the task's own error, or the signal's reason.
 */
export async function queued<T>(task: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    await turn(signal, attempt > 1);
    try {
      return await task(signal);
    } catch (error) {
      if (signal.aborted || !(await isWorthAnother(error, attempt))) throw error;
    } finally {
      free += 1;
      letIn();
    }
  }
}

function turn(signal: AbortSignal, first: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const enter = (): void => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      line.splice(line.indexOf(enter), 1);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    if (first) line.unshift(enter);
    else line.push(enter);
    letIn();
  });
}

function letIn(): void {
  while (free > 0 && !hold.value) {
    const enter = line.shift();
    if (!enter) return;
    free -= 1;
    enter();
  }
}
