/** @module Limits what a running command writes in its folder: an attacker who controls a tool could fill the disk, or make millions of files. */
import { lstatSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from './command.ts';

/** Minimum time between two checks, in ms. */
const INTERVAL_MS = 200;
/** Number of files after which a check waits for the next turn of the event loop. Each takes 6 µs. */
const NAMES_PER_TURN = 64;

/**
 * Checks the folder of a command repeatedly, and calls `onExceeded` if it has too many files or bytes. A check ends at the first
 * file that is too much, and the time between two checks grows with the files, so that they take about 3% of the time at most.
 *
 * @returns a function that ends the checks
 */
export function enforceQuota(
  { cwd, maxBytes, maxNames }: Pick<Command, 'cwd' | 'maxBytes' | 'maxNames'>,
  onExceeded: () => void,
): () => void {
  if (maxBytes === undefined || maxNames === undefined) return () => {};
  const limits = { maxBytes, maxNames };
  let isOver = false;
  let timer: NodeJS.Timeout;
  const check = async (): Promise<void> => {
    const names = await countNames(cwd, limits);
    if (isOver) return;
    if (names > limits.maxNames) onExceeded();
    else timer = setTimeout(check, Math.max(INTERVAL_MS, names / 5));
  };
  timer = setTimeout(check, INTERVAL_MS);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Returns the number of files in a folder, or infinity if they have too many bytes. Stops when a limit is exceeded. */
async function countNames(
  folder: string,
  { maxBytes, maxNames }: { readonly maxBytes: number; readonly maxNames: number },
): Promise<number> {
  let [names, bytes] = [0, 0];
  try {
    for await (const { name } of await opendir(folder, { bufferSize: NAMES_PER_TURN })) {
      names += 1;
      // A file that disappears meanwhile has no size.
      bytes += lstatSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > maxBytes) return Number.POSITIVE_INFINITY;
      if (names > maxNames) break;
    }
  } catch {
    // The folder cannot be read at the moment. The next check tries again.
  }
  return names;
}
