/** @module Watches folders for new and changed files (`--watch`). */
import { type FSWatcher, watch } from 'node:fs';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isInside } from '../../files/system.ts';
import type { SourceState } from './converter.ts';
import { type Input, walkImages } from './find-images.ts';
import type { Inputs } from './inputs.ts';

/** Time for which size and time of change must stay the same until a file counts as complete, in ms. */
const SETTLE_MS = 2000;
/** Interval between two checks of the files that change, in ms. */
const TICK_MS = 500;
/** Interval between two searches for changes that the system did not report, as on network file systems, in ms. */
const RESCAN_MS = 60_000;

export type Watcher = ReturnType<typeof createWatcher>;

export interface WatchOptions {
  readonly inputs: Pick<Inputs, 'isOutput' | 'test'>;
  /** Reports that a folder cannot be watched. */
  readonly notice: (text: string) => void;
  readonly rescanMs?: number;
}

/** A file that changes. */
interface Pending {
  /** Folder of the argument that it belongs to. */
  readonly root: string;
  state: string;
  /** Time since which the state is the same, in ms on the clock of `performance`. */
  since: number;
}

/** Creates a watcher without folders. */
export function createWatcher({ inputs, notice, rescanMs = RESCAN_MS }: WatchOptions) {
  const watchers = new Map<string, FSWatcher>();
  const pending = new Map<string, Pending>();
  /** State of each file that could not be converted. */
  const failures = new Map<string, string>();
  let isLimited = false;
  let rescanAt = performance.now() + rescanMs;

  const changed = (path: string, root: string): void => {
    pending.set(path, pending.get(path) ?? { root, state: '', since: performance.now() });
  };
  /** Stops watching a folder and its sub-folders. */
  const removeFolder = (folder: string): void => {
    for (const [path, watcher] of watchers) {
      if (!isInside(resolve(path), resolve(folder))) continue;
      watcher.close();
      watchers.delete(path);
    }
  };
  /** Watches a folder, but not its sub-folders. */
  const addFolder = (folder: string, root: string): void => {
    if (watchers.has(folder)) return;
    const absolute = resolve(folder);
    try {
      const watcher = watch(absolute, (event, name) => {
        if (name === null) return;
        changed(join(folder, name), root);
        if (event !== 'rename' || name !== basename(absolute)) return;
        // The folder was deleted or moved, and another folder can have its path. (Or it has a new file of its own name.)
        removeFolder(folder);
        changed(folder, root);
      });
      watcher.on('error', () => removeFolder(folder));
      watchers.set(folder, watcher);
    } catch {
      // The limit of watched folders is reached, or the folder does not exist or is not readable.
      if (!isLimited)
        notice(`Changes in ${folder} are found only once a minute (see fs.inotify.max_user_watches).`);
      isLimited = true;
    }
  };

  /** Checks the files that change, and removes and returns those that are complete. */
  const takeComplete = async (): Promise<Map<string, string>> => {
    const settled = new Map<string, string>();
    for (const [path, file] of [...pending]) {
      const info = await stat(path).catch(() => undefined);
      if (info?.isDirectory()) await addTree(path, file.root);
      if (!info?.isFile()) {
        pending.delete(path);
        continue;
      }
      const state = formatState(info);
      if (state !== file.state) Object.assign(file, { state, since: performance.now() });
      else if (performance.now() - file.since >= SETTLE_MS) settled.set(path, file.root);
    }
    for (const path of await filesBeingWritten(settled.keys())) settled.delete(path);
    for (const path of settled.keys()) pending.delete(path);
    return settled;
  };
  /** Adds a new folder with its contents. */
  const addTree = async (folder: string, root: string): Promise<void> => {
    if (watchers.has(folder) || (await inputs.isOutput(folder))) return;
    const { isOutput, test } = inputs;
    const found = walkImages(folder, { root, isOutput, test, onFolder: (each) => addFolder(each, root) });
    for await (const input of found) if ('relativeDir' in input) changed(input.path, root);
  };

  /** Yields the images among files, with conflicts between names in their folders. */
  async function* imagesAmong(files: ReadonlyMap<string, string>): AsyncGenerator<Input> {
    const folders = Map.groupBy(files, ([path]) => dirname(path));
    for (const [folder, entries] of folders) {
      const root = entries[0]?.[1] ?? folder;
      const only = new Set(entries.map(([path]) => basename(path)));
      yield* walkImages(folder, { root, ...inputs, only });
    }
  }

  return {
    addFolder,
    /** Yields inputs that are complete. `changes` yields the others later. */
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
        if (info && Date.now() - info.mtimeMs < SETTLE_MS)
          changed(input.path, rootOf(input.path, input.relativeDir));
        else yield input;
      }
    },
    /** Records a file that could not be converted, so that it is retried only after it has changed. */
    async failed(path: string): Promise<void> {
      const info = await stat(path).catch(() => undefined);
      if (info) failures.set(path, formatState(info));
    },
    /**
     * Waits for files that are complete, or for the time of the next search.
     *
     * @returns the files, or undefined to search all folders
     */
    async changes(signal: AbortSignal): Promise<AsyncIterable<Input> | undefined> {
      for (;;) {
        await wait(TICK_MS, undefined, { signal });
        if (performance.now() >= rescanAt) {
          rescanAt = performance.now() + rescanMs;
          return undefined;
        }
        const complete = await takeComplete();
        if (complete.size > 0) return imagesAmong(complete);
      }
    },
    close(): void {
      for (const watcher of watchers.values()) watcher.close();
    },
  };
}

const formatState = ({ size, mtimeMs }: SourceState): string => `${size} ${mtimeMs}`;

/** Returns the folder of the argument in which a file was found. */
function rootOf(path: string, relativeDir: string): string {
  const up = relativeDir === '' ? [] : relativeDir.split('/').map(() => '..');
  return join(dirname(path), ...up);
}

/** Access modes of open(2) in the flags of /proc/PID/fdinfo. */
const ACCESS_MODE = 0o3;

/**
 * Returns the files that a process has open for writing. Sees only processes of this user (or all, as root) on
 * this machine, and nothing without /proc.
 */
async function filesBeingWritten(paths: Iterable<string>): Promise<ReadonlySet<string>> {
  const byAbsolute = new Map([...paths].map((path) => [resolve(path), path]));
  const written = new Set<string>();
  if (byAbsolute.size === 0) return written;
  for (const pid of await list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    for (const fd of await list(`/proc/${pid}/fd`)) {
      const path = byAbsolute.get(await readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''));
      if (path !== undefined && (await isWritable(pid, fd))) written.add(path);
    }
  }
  return written;
}

async function isWritable(pid: string, fd: string): Promise<boolean> {
  const info = await readFile(`/proc/${pid}/fdinfo/${fd}`, 'latin1').catch(() => '');
  const flags = Number.parseInt(/^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? '0', 8);
  return (flags & ACCESS_MODE) !== 0;
}

/** Lists a folder; returns an empty list if it does not exist or is not readable. */
const list = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);
