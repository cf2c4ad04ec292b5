/** @module Unpacks an SVG, and rewrites it in one of two threads, because parsing its CSS can take 0.5 s. */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { gunzip } from 'node:zlib';
import { SVG_WORKER } from '../../folders.ts';
import { serviceErrorFrom } from '../../tables/errors.ts';
import { INPUTS } from '../../tables/formats.ts';
import { type RepairTarget, readAt } from '../containers/file.ts';
import { canRewrite } from './features.ts';
import { correctPictures } from './pictures.ts';

/**
 * Unpacks the SVG at `path` in place, and rewrites constructs that librsvg renders wrongly.
 *
 * @throws {ServiceError} FILE_TOO_LARGE, CORRUPT_IMAGE, CONVERSION_TIMEOUT, DISK_FULL, or OVERLOADED if files or memory are
 *   exhausted
 */
export async function repairSvg(target: RepairTarget): Promise<undefined> {
  await unpackSvg(target);
  await correctPictures(target.file);
  await rewriteSvg(target);
}

const unpack = promisify(gunzip);
const GZIP = Buffer.from([0x1f, 0x8b]);

/**
 * Unpacks the SVG at `path` in place, if it is compressed with gzip (`svgz`; SVG 1.1, appendix I).
 *
 * @throws {ServiceError} FILE_TOO_LARGE, CORRUPT_IMAGE or DISK_FULL
 */
async function unpackSvg({ path, file, label, maxBytes, store }: RepairTarget): Promise<void> {
  if (!(await readAt(file, 0, GZIP.length)).bytes.equals(GZIP)) return;
  const packed = await readFile(path);
  const text = await unpack(packed, { maxOutputLength: maxBytes }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ERR_BUFFER_TOO_LARGE'
      ? serviceErrorFrom(error, 'FILE_TOO_LARGE', label, maxBytes, true)
      : serviceErrorFrom(error, 'CORRUPT_IMAGE', label, INPUTS.svg.label);
  });
  await store(Math.max(0, text.length - packed.length));
  await writeFile(path, text);
}

/** Maximum size of an SVG to rewrite, in bytes. Larger ones are not changed. */
const MAX_BYTES = 1024 ** 2;

/** An SVG with entity declarations is not rewritten, because entities can contain any markup. */
const ENTITIES = '<!ENTITY';

/**
 * Rewrites the SVG at `path` in place. An SVG in another encoding than UTF-8 is not changed.
 *
 * @throws {ServiceError} CONVERSION_TIMEOUT, DISK_FULL, or OVERLOADED if files or memory are exhausted
 */
async function rewriteSvg({ path, file, label, store }: RepairTarget): Promise<void> {
  if ((await file.stat()).size > MAX_BYTES) return;
  const bytes = await readFile(path);
  const text = bytes.includes(ENTITIES) ? undefined : decodeUtf8(bytes);
  if (text === undefined || !(await canRewrite(text))) return;
  const rewritten = await rewriteInThread(text, label);
  if (rewritten === text) return;
  await store(Math.max(0, Buffer.byteLength(rewritten) - bytes.length));
  await writeFile(path, rewritten);
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

/** Number of threads: with the second one, the SVG of another client does not wait for a text that takes long. */
const THREADS = 2;

/** Time after the last text until a thread ends, in ms. */
const IDLE_MS = 20_000;

/** Rewrites the text of the SVG `label`. */
type Rewrite = (text: string, label: string) => Promise<string>;

/**
 * Creates a function that rewrites texts in {@link THREADS} threads, each in the one with the fewest texts. The callers decide on the
 * order: each thread takes its texts in the order of the calls.
 *
 * @param createRewrite creates the function of one thread
 */
export function shareThreads(createRewrite: () => Rewrite): Rewrite {
  const threads = Array.from({ length: THREADS }, () => ({ rewrite: createRewrite(), texts: 0 }));
  return (text, label) => {
    const thread = threads.reduce((least, each) => (each.texts < least.texts ? each : least));
    thread.texts += 1;
    return thread.rewrite(text, label).finally(() => {
      thread.texts -= 1;
    });
  };
}

/**
 * Creates a function that rewrites the text of the SVG `label` in a thread, one text after another. The thread starts with the
 * first text, and ends some time after the last one, since it keeps memory of large texts. The process can end while the thread waits.
 *
 * @param program program of the thread, which responds to each text with the rewritten one, or with an error
 * @returns a function that throws ServiceErrors: CONVERSION_TIMEOUT if a text takes longer than the limit, and OVERLOADED if the
 *   thread cannot start, or ends, because files or memory are exhausted
 */
export function createThreadRewriter(program: URL, timeoutMs: number): Rewrite {
  let thread: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  async function rewrite(text: string, label: string): Promise<string> {
    clearTimeout(idleTimer);
    thread ??= new Worker(program, { execArgv: [] });
    const worker = thread;
    const end = (): void => {
      thread = undefined;
      void worker.terminate();
    };
    worker.ref();
    const limit = AbortSignal.timeout(timeoutMs);
    const done = new AbortController();
    const signal = AbortSignal.any([limit, done.signal]);
    const ended = once(worker, 'exit', { signal }).then(([status]) => {
      throw new Error(`The thread for SVGs ended with status ${status}.`);
    });
    worker.postMessage(text);
    const [answer] = await Promise.race([once(worker, 'message', { signal }), ended])
      .catch((error) => {
        end();
        throw limit.aborted
          ? serviceErrorFrom(error, 'CONVERSION_TIMEOUT', label, { ms: timeoutMs, work: 'SVGs' })
          : serviceErrorFrom(error, 'OVERLOADED');
      })
      .finally(() => done.abort());
    worker.unref();
    idleTimer = setTimeout(end, IDLE_MS).unref();
    if (typeof answer === 'string') return answer;
    throw answer;
  }

  return (text, label) => {
    const result = turn.then(() => rewrite(text, label));
    turn = result.catch(() => {});
    return result;
  };
}

/** Maximum time for one text, in ms. Rewriting takes at most about 0.5 s of processor time. */
const REWRITE_TIMEOUT_MS = 10_000;

const rewriteInThread = shareThreads(() => createThreadRewriter(SVG_WORKER, REWRITE_TIMEOUT_MS));
