/** @module Thread that removes the folder in `workerData`, file by file, in constant memory. */
import { opendirSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { lowerThreadPriority } from '../process/priority.ts';

function remove(folder: string): void {
  const entries = opendirSync(folder);
  try {
    for (let entry = entries.readSync(); entry; entry = entries.readSync()) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) remove(path);
      else unlinkSync(path);
    }
  } finally {
    entries.closeSync();
  }
  rmdirSync(folder);
}

lowerThreadPriority();
remove(workerData);
