/** @module Watches folders (`--watch`). A change that the system reports leads to a search. */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { SourceState } from './converter.ts';
import type { Input } from './find-images.ts';

/** Time for which a file must not have changed until it counts as complete, in ms. */
const SETTLE_MS = 2000;
/** Interval between two checks for reported changes, in ms. A search can take longer. */
const TICK_MS = 1000;
/** Interval of searches for changes that the system did not report, as on network disks, in ms. */
const RESCAN_MS = 60_000;

/** @param notice reports that a folder cannot be watched */
export function createWatcher(notice: (text: string) => void) {
  const watchers = new Map<string, FSWatcher>();
  const failures = new Map<string, string>();
  let isLimited = false;
  let searchAt = performance.now() + RESCAN_MS;
  const searchWithin = (ms: number): void => {
    searchAt = Math.min(searchAt, performance.now() + ms);
  };

  return {
    /** Watches a folder, but not its sub-folders, which the next search adds. */
    addFolder(folder: string): void {
      if (watchers.has(folder)) return;
      const path = resolve(folder);
      const remove = (): void => {
        watchers.get(folder)?.close();
        watchers.delete(folder);
      };
      try {
        const watcher = watch(path, (event, name) => {
          searchWithin(0);
          // Another folder can have the path of one that was deleted or moved. (Or a new file in
          // it has its name.)
          if (event === 'rename' && name === basename(path)) remove();
        });
        watcher.on('error', remove);
        watchers.set(folder, watcher);
      } catch {
        // The limit of watched folders is reached, or the folder does not exist or is not readable.
        if (!isLimited)
          notice(`Changes in ${folder} are found only once a minute (see fs.inotify.max_user_watches).`);
        isLimited = true;
      }
    },
    /** Yields the inputs that are complete. A later search finds the others. */
    async *complete(found: AsyncIterable<Input>): AsyncGenerator<Input> {
      for await (const input of found) {
        if (!('relativeDir' in input)) {
          // A folder can be empty at the moment. Errors are reported once, not with each search.
          const isNews = !failures.has(input.path) && !('error' in input && input.error.code === 'NO_IMAGES');
          if (isNews) yield input;
          if (isNews) failures.set(input.path, '');
          continue;
        }
        const info = await stat(input.path).catch(() => undefined);
        if (info && failures.get(input.path) === formatState(info)) continue;
        const settledInMs = info ? info.mtimeMs + SETTLE_MS - Date.now() : 0;
        if (settledInMs > 0) searchWithin(settledInMs);
        else yield input;
      }
    },
    /** Records a file that could not be converted. It is retried only after it has changed. */
    async failed(path: string): Promise<void> {
      const info = await stat(path).catch(() => undefined);
      if (info) failures.set(path, formatState(info));
    },
    /** @throws {Error} if the signal aborts */
    async nextSearch(signal: AbortSignal): Promise<void> {
      do await wait(TICK_MS, undefined, { signal });
      while (performance.now() < searchAt);
      searchAt = performance.now() + RESCAN_MS;
    },
    close(): void {
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

const formatState = ({ size, mtimeMs }: SourceState): string => `${size} ${mtimeMs}`;
