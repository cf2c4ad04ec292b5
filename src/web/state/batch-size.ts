import { get } from '../work/api.ts';
import { queued } from '../work/queue.ts';

/** How many files one request to this server may have, as its API reference says. */

/** Unless an operator has said otherwise. */
const USUAL = 20;

let learnt: Promise<number> | undefined;

/** Asks once, when it matters for the first time: the question counts toward the rate limit. */
export function mostFiles(): Promise<number> {
  learnt ??= learn().catch(() => {
    learnt = undefined;
    return USUAL;
  });
  return learnt;
}

async function learn(): Promise<number> {
  const { blob } = await queued((signal) => get('/openapi.json', signal), new AbortController().signal);
  const { components } = JSON.parse(await blob.text());
  return components.schemas.BatchForm.properties.files.maxItems;
}
