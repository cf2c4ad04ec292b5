/**
 * @module Thread that returns each text, except `stuck`, `broken` and `gone`: it loops, fails or
 * ends. It counts its texts for `count`.
 */
import { parentPort } from 'node:worker_threads';

let texts = 0;

parentPort?.on('message', (text: string) => {
  texts += 1;
  while (text === 'stuck');
  if (text === 'broken') throw new Error('no memory');
  if (text === 'gone') process.exit(0);
  const answer = text === 'count' ? String(texts) : `rewritten ${text}`;
  parentPort?.postMessage(text === 'invalid' ? new TypeError(text) : answer);
});
