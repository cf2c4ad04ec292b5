import { computed, signal } from '@preact/signals';
import type { OutputType } from '../../formats.ts';
import { type Answer, get, type Refusal } from '../client/api.ts';
import { queued } from '../client/queue.ts';
import { options, setOptions } from './options.ts';

/** What this server converts, as `GET /formats` says. */

interface Formats {
  /** Names of types and extensions. */
  readonly input: readonly string[];
  readonly output: readonly OutputType[];
}

export const formats = signal<Formats | undefined>(undefined);

/** What a file picker is to offer: the server's types, and whatever else the system takes for an image. */
export const accepted = computed(() =>
  ['image/*', ...(formats.value?.input ?? []).map((name) => `.${name}`)].join(),
);

/** Milliseconds until the question is asked again, when the server does not say how many. */
const ASK_AGAIN_MS = 5_000;

/** Asks until there is an answer: a server that shuts down has none. */
export async function learnFormats(): Promise<void> {
  const answer = await queued((signal) => get('/formats', signal), new AbortController().signal).catch(
    ({ retryAfter }: Refusal) => {
      setTimeout(learnFormats, retryAfter * 1000 || ASK_AGAIN_MS);
    },
  );
  if (answer) await learn(answer);
}

async function learn(answer: Answer): Promise<void> {
  const learnt = JSON.parse(await answer.blob.text()) as Formats;
  formats.value = learnt;
  const [first] = learnt.output;
  if (first && !learnt.output.includes(options.value.format)) setOptions({ format: first });
}
