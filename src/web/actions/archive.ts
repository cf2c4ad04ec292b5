/** @module Downloads all results as ZIP archives, with as many files each as `POST /batch` accepts. */

import { computed, signal } from '@preact/signals';
import { post } from '../client/api.ts';
import { queued } from '../client/queue.ts';
import { loadMaxFiles } from '../state/batch-size.ts';
import { announcement, done } from '../state/items.ts';
import { createForm, describeFailure } from './convert.ts';

/** One archive. */
export interface Part {
  /** File name of the archive. */
  readonly name: string;
  readonly files: readonly File[];
  /** Conversion options as a query string. */
  readonly query: string;
  readonly at: 'waiting' | 'uploading' | 'converting' | 'done' | 'failed';
  /** Progress of the upload, 0 to 1. */
  readonly share: number;
  /** Error message, if it failed. */
  readonly message: string;
  /** Object URL of the archive, if it is done. */
  readonly url: string;
}

/** The archives of the last {@link pack}. */
export const parts = signal<readonly Part[]>([]);
/** Whether any archive is unfinished. */
export const packing = computed(() => parts.value.some(({ at }) => at !== 'done' && at !== 'failed'));

let controller = new AbortController();

/** Requests archives of all converted files, with the options of their conversion, and saves them. */
export async function pack(): Promise<void> {
  forgetArchives();
  announcement.value = 'Creating the ZIP archive.';
  const { signal } = controller;
  const maxFiles = done.value.length > 1 ? await loadMaxFiles() : 1;
  if (signal.aborted) return;
  parts.value = toParts(groupFiles(maxFiles));
  await Promise.all(parts.value.map((_, at) => packPart(at, signal)));
}

/** Cancels unfinished archives and revokes the object URLs of all others. */
export function forgetArchives(): void {
  controller.abort();
  controller = new AbortController();
  for (const { url } of parts.value) URL.revokeObjectURL(url);
  parts.value = [];
}

/** Requests one archive and saves it. */
async function packPart(at: number, signal: AbortSignal): Promise<void> {
  const part = parts.value[at] as Part;
  const update = (changed: Partial<Part>): void => {
    parts.value = parts.value.map((one, index) => (index === at ? { ...one, ...changed } : one));
  };
  try {
    const { blob } = await queued(() => {
      update({ at: 'uploading', share: 0 });
      const onUpload = (share: number) => update({ at: share < 1 ? 'uploading' : 'converting', share });
      return post('/batch', createForm(part.query, 'files', part.files), signal, onUpload).catch((error) => {
        if (!signal.aborted) update({ at: 'waiting' });
        throw error;
      });
    }, signal);
    const url = URL.createObjectURL(blob);
    update({ at: 'done', url });
    save(url, part.name);
    announcement.value = `${part.name} is ready.`;
  } catch (error) {
    const message = await describeFailure(error, part.files);
    if (signal.aborted) return;
    update({ at: 'failed', message });
    announcement.value = `${part.name}: ${message}`;
  }
}

type FileGroup = Pick<Part, 'files' | 'query'>;

/** Groups converted files by their options, with at most `maxFiles` per request. */
function groupFiles(maxFiles: number): FileGroup[] {
  const byQuery = Map.groupBy(done.value, ({ query }) => query);
  return [...byQuery].flatMap(([query, results]) => {
    const files = results.map(({ file }) => file);
    return chunk(files, maxFiles).map((part) => ({ query, files: part }));
  });
}

/** Splits a list into chunks of at most `size` items. */
export function chunk<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size);
  return Array.from({ length: count }, (_, at) => all.slice(at * size, (at + 1) * size));
}

/** Returns the file name of an archive, by its index and the number of archives. */
export const archiveName = (at: number, count: number): string =>
  count === 1 ? 'converted.zip' : `converted-${at + 1}-of-${count}.zip`;

function toParts(all: readonly FileGroup[]): Part[] {
  return all.map((one, at) => ({
    ...one,
    name: archiveName(at, all.length),
    at: 'waiting',
    share: 0,
    message: '',
    url: '',
  }));
}

function save(url: string, name: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
}
