/** @module The formats and limits of the server. */
import { computed, signal } from '@preact/signals';
import type { OutputType } from '../../formats.ts';
import { type ApiResponse, get, type ResponseError } from '../client/api.ts';
import { queued } from '../client/queue.ts';
import { options, setOptions } from './options.ts';

/** Response of `GET /formats`. */
interface Formats {
  /** Input types and file extensions. */
  readonly input: readonly string[];
  readonly output: readonly OutputType[];
  readonly limits: Readonly<Record<'max_file_bytes' | 'max_pixels' | 'max_batch_files', number>>;
}

/** Formats and limits of this server; undefined until loaded. */
export const formats = signal<Formats | undefined>(undefined);

/** The `accept` attribute of file pickers: the server's types, and all others that the system considers images. */
export const accepted = computed(() =>
  ['image/*', ...(formats.value?.input ?? []).map((name) => `.${name}`)].join(),
);

/** Delay before a retry if the response has no Retry-After, in ms. */
const DEFAULT_RETRY_MS = 5_000;

/** Loads the formats. Retries until the server responds, for example after a restart. */
export async function loadFormats(): Promise<void> {
  const response = await queued((signal) => get('/formats', signal), new AbortController().signal).catch(
    ({ retryAfter }: ResponseError) => {
      setTimeout(loadFormats, retryAfter * 1000 || DEFAULT_RETRY_MS);
    },
  );
  if (response) await applyFormats(response);
}

async function applyFormats(response: ApiResponse): Promise<void> {
  const loaded = JSON.parse(await response.blob.text()) as Formats;
  formats.value = loaded;
  const [first] = loaded.output;
  if (first && !loaded.output.includes(options.value.format)) setOptions({ format: first });
}
