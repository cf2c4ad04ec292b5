/** @module Thread that compares two files of samples: responds with their likeness, or an error. */
import { parentPort } from 'node:worker_threads';
import { type Comparison, compareFiles } from '../images/likeness.ts';
import { lowerThreadPriority } from '../process/priority.ts';

lowerThreadPriority();

parentPort?.on('message', (comparison: Comparison) => {
  try {
    parentPort?.postMessage(compareFiles(comparison));
  } catch (error) {
    parentPort?.postMessage(error);
  }
});
