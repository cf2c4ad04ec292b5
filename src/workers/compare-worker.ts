/**
 * @module Thread that compares pictures: responds to the paths of two files of samples with their
 * likeness, or with an error.
 */
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
