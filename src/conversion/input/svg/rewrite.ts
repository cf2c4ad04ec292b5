/** @module Rewrites the file of an SVG in a thread, because parsing its CSS can take 0.3 s. */

import { readFile, stat, writeFile } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { serviceErrorFrom } from '../../../errors.ts';
import { SVG_WORKER } from '../../../folders.ts';
import { MARKERS } from './rewrite-text.ts';

/** Maximum size of an SVG to rewrite, in bytes. Larger ones are not changed. */
const MAX_BYTES = 1024 ** 2;

/** An SVG with entity declarations is not rewritten, because entities can contain any markup. */
const ENTITIES = '<!ENTITY';

/** Rewrites the SVG at `path` in place. An SVG in another encoding than UTF-8 is not changed. */
export async function rewriteSvg(path: string): Promise<void> {
  if ((await stat(path)).size > MAX_BYTES) return;
  const bytes = await readFile(path);
  if (bytes.includes(ENTITIES) || !MARKERS.some((marker) => bytes.includes(marker))) return;
  const text = decodeUtf8(bytes);
  if (text === undefined) return;
  const rewritten = await rewriteInThread(text);
  if (rewritten !== text) await writeFile(path, rewritten);
}

function decodeUtf8(bytes: Buffer): string | undefined {
  const declared = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)/.exec(bytes.toString('latin1', 0, 200))?.[1];
  if (declared && !/^(?:utf-?8|us-ascii)$/i.test(declared)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

let thread: Worker | undefined;
/** Texts in the thread, which answers in order. */
const waiting: PromiseWithResolvers<string>[] = [];

/**
 * Rewrites a text in the thread, which starts with the first text, and stays. The process can end while the thread waits.
 *
 * @throws {ServiceError} OVERLOADED if the thread cannot start, or ends, because files or memory are exhausted
 */
function rewriteInThread(text: string): Promise<string> {
  thread ??= startThread();
  thread.ref();
  const answer = Promise.withResolvers<string>();
  waiting.push(answer);
  thread.postMessage(text);
  return answer.promise;
}

function startThread(): Worker {
  const worker = new Worker(SVG_WORKER, { execArgv: [] });
  const fail = (error: Error): void => {
    if (thread === worker) thread = undefined;
    for (const { reject } of waiting.splice(0)) reject(serviceErrorFrom(error, 'OVERLOADED'));
  };
  worker.on('message', (answer: string | Error) => {
    const { resolve, reject } = waiting.shift() as PromiseWithResolvers<string>;
    if (typeof answer === 'string') resolve(answer);
    else reject(answer);
    if (waiting.length === 0) worker.unref();
  });
  worker.once('error', fail);
  worker.once('exit', (status) => fail(new Error(`The thread for SVGs ended with status ${status}.`)));
  return worker;
}
