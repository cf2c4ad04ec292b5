/** @module Thread that rewrites SVGs: responds to each text with the new one, or an error. */
import { parentPort } from 'node:worker_threads';
import { rewriteText } from '../images/svg/rewrite-text.ts';
import { lowerThreadPriority } from '../process/priority.ts';

lowerThreadPriority();

parentPort?.on('message', (text: string) => {
  try {
    parentPort?.postMessage(rewriteText(text));
  } catch (error) {
    parentPort?.postMessage(error);
  }
});
