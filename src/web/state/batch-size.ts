import { signal } from '@preact/signals';
import { get } from '../client/api.ts';
import { queued } from '../client/queue.ts';

/** How many files one request to this server may have, as its API reference says. */

/** As far as is known: the usual number, unless an operator has said otherwise. */
export const most = signal(20);

let learnt: Promise<number> | undefined;

/** Asks once, when it matters for the first time: the question counts toward the rate limit. */
export function mostFiles(): Promise<number> {
  learnt ??= learn().catch(() => {
    learnt = undefined;
    return most.value;
  });
  return learnt;
}

async function learn(): Promise<number> {
  const { blob } = await queued((signal) => get('/openapi.json', signal), new AbortController().signal);
  const { components } = JSON.parse(await blob.text());
  most.value = components.schemas.BatchForm.properties.files.maxItems;
  return most.value;
}
