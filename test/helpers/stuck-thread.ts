/** @module Thread that returns each text, except `stuck`, `broken` and `gone`: it loops, fails or ends. */
import { parentPort } from 'node:worker_threads';

parentPort?.on('message', (text: string) => {
  while (text === 'stuck');
  if (text === 'broken') throw new Error('no memory');
  if (text === 'gone') process.exit(0);
  parentPort?.postMessage(text === 'invalid' ? new TypeError(text) : `rewritten ${text}`);
});
