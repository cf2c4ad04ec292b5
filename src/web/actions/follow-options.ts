/** @module Keeps the result of the selected file up to date while the options change. */
import { effect, signal as signalOf } from '@preact/signals';
import { queued } from '../client/queue.ts';
import { finish } from '../state/candidates.ts';
import { forgetResult, type Item, queryOf } from '../state/items.ts';
import { describeFailure, requestResult } from './convert-files.ts';

/** Time without a change of the options before a request, in ms. */
const DEBOUNCE_MS = 200;

/** State of the current request: whether it is in progress, and its error message. */
export const followed = signalOf({ busy: false, message: '' });

/**
 * Converts a file now and whenever its options change, one request at a time: a change aborts the
 * previous one. The last result stays until the next one is complete.
 *
 * @returns a function that ends it
 */
export function followOptions(item: Item): () => void {
  let controller = new AbortController();
  const stop = effect(() => {
    const query = queryOf(item);
    const state = item.state.peek();
    controller.abort();
    controller = new AbortController();
    if ('cancel' in state) state.cancel();
    const isCurrent = state.at === 'done' && state.query === query;
    followed.value = { busy: !isCurrent, message: '' };
    if (!isCurrent) update(item, query, controller.signal);
  });
  return () => {
    stop();
    controller.abort();
  };
}

/** Converts a file after the debounce time, before the waiting files of the list. */
async function update(item: Item, query: string, signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, DEBOUNCE_MS));
  if (signal.aborted) return;
  try {
    const result = await queued(() => requestResult(item, query, signal), signal, true);
    forgetResult(item.state.peek());
    finish(item, query, result);
    followed.value = { busy: false, message: '' };
  } catch (error) {
    const { message } = await describeFailure(error, item.file);
    if (!signal.aborted) followed.value = { busy: false, message };
  }
}
