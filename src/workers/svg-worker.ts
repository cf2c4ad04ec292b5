/**
 * @module Thread that rewrites texts of SVGs: responds to each text with the rewritten one, or with
 * an error.
 */
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
