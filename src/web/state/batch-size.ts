import { signal } from '@preact/signals';
import { get } from '../client/api.ts';
import { queued } from '../client/queue.ts';

/** Maximum number of files per batch request: the server's default until {@link mostFiles} has loaded its value. */
export const most = signal(20);

let loaded: Promise<number> | undefined;

/** Loads the limit from the API reference once, on first use, since the request counts toward the rate limit. */
export function mostFiles(): Promise<number> {
  loaded ??= load().catch(() => {
    loaded = undefined;
    return most.value;
  });
  return loaded;
}

async function load(): Promise<number> {
  const { blob } = await queued((signal) => get('/openapi.json', signal), new AbortController().signal);
  const { components } = JSON.parse(await blob.text());
  most.value = components.schemas.BatchForm.properties.files.maxItems;
  return most.value;
}
