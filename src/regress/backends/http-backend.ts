import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { OUTPUTS } from '../../formats.ts';
import type { Case } from '../matrix.ts';
import { type Attempt, type Backend, BackendError, type Image } from './backend.ts';
import { shellWords } from './shell.ts';

/** Converts by asking a server, so that two images of the service can be compared. */

const CONCURRENCY = 2;
/** A server that is busy, or counts requests, is asked again after the time that it names; so many times. */
const MAX_ATTEMPTS = 20;
const DEFAULT_RETRY_S = 5;
const RESPONSE_TIMEOUT_MS = 120_000;

/**
 * @param url of the server, with or without /api/v1
 * @throws NoConverter when nothing of ours answers there
 */
export async function createHttpBackend(url: string): Promise<Backend> {
  const base = `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
  const version = await versionOf(base);
  return {
    tools: { server: base, imagemill: version },
    concurrency: CONCURRENCY,
    convert: (image, how, signal) => convertOne(base, image, how, signal),
    async close() {},
  };
}

async function versionOf(base: string): Promise<string> {
  try {
    const answer = await fetch(`${base}/health`, { signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    const { version } = (await answer.json()) as { version?: string };
    if (answer.ok && version) return version;
    throw new Error(`status ${answer.status}`);
  } catch (cause) {
    const { message, cause: deeper } = cause as Error & { cause?: Error };
    throw new BackendError(`no imagemill answers at ${base}: ${deeper?.message || message}`, { cause });
  }
}

async function convertOne(base: string, image: Image, how: Case, stop: AbortSignal): Promise<Attempt> {
  const commands = [curl(base, image, how)];
  for (let tries = 1; ; tries += 1) {
    const { ok, status, headers, body } = await send(base, image, how, stop);
    if (ok) {
      const notes = (headers.get('x-conversion-notes') ?? '').split(/,\s*/).filter(Boolean);
      const ms = Math.round(
        Number(/convert;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1] ?? 0),
      );
      return { made: { bytes: body, ms, notes }, commands };
    }
    const message = sentenceOf(body.toString());
    if (status !== 429 && status !== 503) return { refused: { status, message }, commands };
    // That says nothing of the picture.
    if (tries === MAX_ATTEMPTS) {
      throw new BackendError(`${base} was asked ${tries} times, and is still busy: ${status} ${message}`);
    }
    await wait((Number(headers.get('retry-after')) || DEFAULT_RETRY_S) * 1000, undefined, { signal: stop });
  }
}

/** @throws NoConverter when the server is gone */
async function send(base: string, { path, name }: Image, { fields }: Case, stop: AbortSignal) {
  const form = new FormData();
  for (const [field, value] of fields) form.append(field, value);
  form.append('file', await openAsBlob(path), basename(name));
  const signal = AbortSignal.any([AbortSignal.timeout(RESPONSE_TIMEOUT_MS), stop]);
  try {
    const answer = await fetch(`${base}/convert`, { method: 'POST', body: form, signal });
    const { ok, status, headers } = answer;
    return { ok, status, headers, body: Buffer.from(await answer.arrayBuffer()) };
  } catch (cause) {
    stop.throwIfAborted();
    const { message, cause: deeper } = cause as Error & { cause?: Error };
    throw new BackendError(`${base} does not answer any more: ${deeper?.message || message}`, { cause });
  }
}

function sentenceOf(text: string): string {
  try {
    return (JSON.parse(text) as { error: { message: string } }).error.message;
  } catch {
    return text.slice(0, 200);
  }
}

function curl(base: string, { name }: Image, { name: result, fields, options }: Case): string {
  const form = [...fields.map(([field, value]) => `${field}=${value}`), `file=@${curlName(name)}`];
  const output = `${result}.${OUTPUTS[options.format].extension}`;
  return shellWords(['curl', ...form.flatMap((part) => ['-F', part]), `${base}/convert`, '-o', output]);
}

/** Curl takes some characters of a name for its own, unless it is in quotes. */
function curlName(name: string): string {
  return /[;,"\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
}
