/** @module Removes folders without blocking the event loop, however many files they have. */
import { existsSync } from 'node:fs';
import { opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { REMOVE_WORKER } from '../folders.ts';

/** Number of entries from which on a folder is removed in a thread. A thread takes 13 MB. */
const MANY_NAMES = 1000;

/** The removal of the last folder with many entries. They are removed one by one. */
let lastRemoval: Promise<unknown> = Promise.resolve();

/**
 * Removes a folder with its contents, if it exists. `rm` of Node.js lists all names first, for
 * which the event loop would stand still: 32 s for 1.5 million files.
 *
 * @throws {Error} with the code of the failed system call
 */
export async function removeTree(path: string): Promise<void> {
  if (await hasManyNames(path)) {
    const removal = lastRemoval.then(() => removeInThread(path));
    lastRemoval = removal.catch(() => {});
    await removal;
  }
  // Also removes what a tool has written during the removal.
  if (existsSync(path)) await rm(path, { recursive: true, force: true, maxRetries: 3 });
}

/** Resolves when the thread has ended, whether it has removed everything or not. */
async function removeInThread(path: string): Promise<void> {
  const worker = new Worker(REMOVE_WORKER, { workerData: path, execArgv: [] });
  worker.on('error', () => {}); // the caller removes the rest, and gets the error
  await new Promise((resolve) => worker.once('exit', resolve));
}

async function hasManyNames(path: string): Promise<boolean> {
  const folders = [path];
  let names = 0;
  try {
    for (const folder of folders)
      for await (const entry of await opendir(folder)) {
        names += 1;
        if (names > MANY_NAMES) return true;
        if (entry.isDirectory()) folders.push(join(folder, entry.name));
      }
  } catch {
    // The folder is missing or unreadable. The removal reports an error.
  }
  return false;
}
