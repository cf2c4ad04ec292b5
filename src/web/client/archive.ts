import { computed, signal } from '@preact/signals';
import { mostFiles } from '../state/batch-size.ts';
import { announcement, done } from '../state/items.ts';
import { post } from './api.ts';
import { formOf } from './convert.ts';
import { queued } from './queue.ts';

/** All results as ZIP archives, of as many files each as `POST /batch` takes. */

export interface Part {
  /** What its archive is called when it is saved. */
  readonly name: string;
  readonly files: readonly File[];
  readonly query: string;
  readonly at: 'waiting' | 'uploading' | 'converting' | 'done' | 'failed';
  /** Of the upload, 0 to 1. */
  readonly share: number;
  /** Why it failed. */
  readonly message: string;
  /** The address of the archive, when it is done. */
  readonly url: string;
}

export const parts = signal<readonly Part[]>([]);
export const packing = computed(() => parts.value.some(({ at }) => at !== 'done' && at !== 'failed'));

let controller = new AbortController();

/** Has everything that is converted packed, with the choices it was converted with, and saves the archives. */
export async function pack(): Promise<void> {
  forgetArchives();
  announcement.value = 'Making the ZIP.';
  const { signal } = controller;
  const most = done.value.length > 1 ? await mostFiles() : 1;
  if (signal.aborted) return;
  parts.value = named(planned(most));
  await Promise.all(parts.value.map((_, at) => packPart(at, signal)));
}

/** Stops what is being packed, and gives back the memory of what was. */
export function forgetArchives(): void {
  controller.abort();
  controller = new AbortController();
  for (const { url } of parts.value) URL.revokeObjectURL(url);
  parts.value = [];
}

async function packPart(at: number, signal: AbortSignal): Promise<void> {
  const part = parts.value[at] as Part;
  const update = (changed: Partial<Part>): void => {
    parts.value = parts.value.map((one, place) => (place === at ? { ...one, ...changed } : one));
  };
  try {
    const { blob } = await queued(() => {
      update({ at: 'uploading', share: 0 });
      const onUpload = (share: number) => update({ at: share < 1 ? 'uploading' : 'converting', share });
      return post('/batch', formOf(part.query, 'files', part.files), signal, onUpload).catch((error) => {
        if (!signal.aborted) update({ at: 'waiting' });
        throw error;
      });
    }, signal);
    const url = URL.createObjectURL(blob);
    update({ at: 'done', url });
    save(url, part.name);
    announcement.value = `${part.name} is ready.`;
  } catch (error) {
    if (signal.aborted) return;
    const { message } = error as Error;
    update({ at: 'failed', message });
    announcement.value = `${part.name}: ${message}`;
  }
}

type Planned = Pick<Part, 'files' | 'query'>;

/** Files of the same choices together, as many as one request may have. */
function planned(most: number): Planned[] {
  const byQuery = Map.groupBy(done.value, ({ query }) => query);
  return [...byQuery].flatMap(([query, results]) => {
    const files = results.map(({ file }) => file);
    return inParts(files, most).map((part) => ({ query, files: part }));
  });
}

/** A list as several, of at most so many each. */
export function inParts<T>(all: readonly T[], most: number): T[][] {
  const count = Math.ceil(all.length / most);
  return Array.from({ length: count }, (_, at) => all.slice(at * most, (at + 1) * most));
}

/** What the archive at a place is called, of so many. */
export const nameOfArchive = (at: number, count: number): string =>
  count === 1 ? 'converted.zip' : `converted-${at + 1}-of-${count}.zip`;

function named(all: readonly Planned[]): Part[] {
  return all.map((one, at) => ({
    ...one,
    name: nameOfArchive(at, all.length),
    ...{ at: 'waiting', share: 0, message: '', url: '' },
  }));
}

function save(url: string, name: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
}
