/** @module A backend that sends images to a server, to compare two versions of the service. */

import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { OUTPUTS } from '../../formats.ts';
import type { Case } from '../matrix.ts';
import { type Attempt, type Backend, BackendError, type Image } from './backend.ts';
import { shellWords } from './shell.ts';

const CONCURRENCY = 2;
/** Maximum number of requests per conversion while the server responds 429 or 503. */
const MAX_ATTEMPTS = 20;
/** Delay before a retry if the response has no Retry-After, in s. */
const DEFAULT_RETRY_S = 5;
const RESPONSE_TIMEOUT_MS = 120_000;

/**
 * Creates a backend that sends images to a server.
 *
 * @param url URL of the server, with or without /api/v1
 * @throws BackendError if no imagemill server responds
 */
export async function createHttpBackend(url: string): Promise<Backend> {
  const base = `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
  const version = await fetchVersion(base);
  return {
    tools: { server: base, imagemill: version },
    concurrency: CONCURRENCY,
    convert: (image, testCase, signal) => convertOne(base, image, testCase, signal),
    async close() {},
  };
}

async function fetchVersion(base: string): Promise<string> {
  try {
    const response = await fetch(`${base}/health`, { signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    const { version } = (await response.json()) as { version?: string };
    if (response.ok && version) return version;
    throw new Error(`status ${response.status}`);
  } catch (cause) {
    const { message, cause: deeper } = cause as Error & { cause?: Error };
    throw new BackendError(`no imagemill server responds at ${base}: ${deeper?.message || message}`, {
      cause,
    });
  }
}

async function convertOne(base: string, image: Image, testCase: Case, cancel: AbortSignal): Promise<Attempt> {
  const commands = [curl(base, image, testCase)];
  for (let attempt = 1; ; attempt += 1) {
    const { ok, status, headers, body } = await send(base, image, testCase, cancel);
    if (ok) {
      const notes = (headers.get('x-conversion-notes') ?? '').split(/,\s*/).filter(Boolean);
      const ms = Math.round(
        Number(/convert;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1] ?? 0),
      );
      return { made: { bytes: body, ms, notes }, commands };
    }
    const message = parseErrorMessage(body.toString());
    if (status !== 429 && status !== 503) return { refused: { status, message }, commands };
    // An overloaded server is not a result of the image, so the run fails.
    if (attempt === MAX_ATTEMPTS) {
      throw new BackendError(`${base} is still busy after ${attempt} requests: ${status} ${message}`);
    }
    await wait((Number(headers.get('retry-after')) || DEFAULT_RETRY_S) * 1000, undefined, { signal: cancel });
  }
}

/**
 * Sends one request.
 *
 * @throws BackendError if the connection fails
 * @throws the reason of `cancel` if it aborts
 */
async function send(base: string, { path, name }: Image, { fields }: Case, cancel: AbortSignal) {
  const form = new FormData();
  for (const [field, value] of fields) form.append(field, value);
  form.append('file', await openAsBlob(path), basename(name));
  const signal = AbortSignal.any([AbortSignal.timeout(RESPONSE_TIMEOUT_MS), cancel]);
  try {
    const response = await fetch(`${base}/convert`, { method: 'POST', body: form, signal });
    const { ok, status, headers } = response;
    return { ok, status, headers, body: Buffer.from(await response.arrayBuffer()) };
  } catch (cause) {
    cancel.throwIfAborted();
    const { message, cause: deeper } = cause as Error & { cause?: Error };
    throw new BackendError(`${base} no longer responds: ${deeper?.message || message}`, { cause });
  }
}

function parseErrorMessage(text: string): string {
  try {
    return (JSON.parse(text) as { error: { message: string } }).error.message;
  } catch {
    return text.slice(0, 200);
  }
}

/** Formats the curl command that repeats a conversion. */
function curl(base: string, { name }: Image, { name: caseName, fields, options }: Case): string {
  const form = [...fields.map(([field, value]) => `${field}=${value}`), `file=@${curlName(name)}`];
  const output = `${caseName}.${OUTPUTS[options.format].extension}`;
  return shellWords(['curl', ...form.flatMap((part) => ['-F', part]), `${base}/convert`, '-o', output]);
}

/** Quotes a file name in which curl would interpret `;`, `,`, `"` or `\`. */
function curlName(name: string): string {
  return /[;,"\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
}
