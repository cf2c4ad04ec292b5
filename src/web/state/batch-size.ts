/** @module The maximum number of files per batch request. */
import { signal } from '@preact/signals';
import { get } from '../client/api.ts';
import { queued } from '../client/queue.ts';

/** Maximum number of files per batch request: the server's default until {@link loadMaxFiles} has loaded its value. */
export const maxFiles = signal(20);

let loaded: Promise<number> | undefined;

/** Loads the limit from the API reference once, on first use, since the request counts toward the rate limit. */
export function loadMaxFiles(): Promise<number> {
  loaded ??= load().catch(() => {
    loaded = undefined;
    return maxFiles.value;
  });
  return loaded;
}

async function load(): Promise<number> {
  const { blob } = await queued((signal) => get('/openapi.json', signal), new AbortController().signal);
  const { components } = JSON.parse(await blob.text());
  maxFiles.value = components.schemas.BatchForm.properties.files.maxItems;
  return maxFiles.value;
}
