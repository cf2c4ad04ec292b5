/** @module Sends files to running instances, and retries requests that an instance cannot accept at the moment. */
import { setTimeout as wait } from 'node:timers/promises';
import { type ImagemillError, toError } from './library/error.ts';
import { createServers, type Server, type Servers } from './servers.ts';
import { streamFile, TruncatedFileError } from './streamed-file.ts';

/** Statuses of an instance that cannot accept a request at the moment. */
const BUSY_STATUSES = [429, 503];
/** Statuses of a proxy that cannot reach an instance. */
const GATEWAY_STATUSES = [502, 504];
/** Maximum number of responses 429 or 503 per file and instance. */
const MAX_BUSY_RESPONSES = 20;
/** Media types of results. A proxy can respond with 200 and a page, for example to log in. */
const RESULT_TYPE = /^(?:image\/|application\/pdf)/;
/** Media type of several results, if a preset of the instance has variants. */
const ARCHIVE_TYPE = 'application/zip';
const ARCHIVE_MESSAGE =
  'The preset has several results. With --presets instead of --url, all of them are written.';
/** Delay before a repetition if the response has no Retry-After, in s. */
const DEFAULT_RETRY_S = 5;
/** Characters that a header of a part must not contain. FormData escapes only line breaks. */
const CONTROL_CHARACTERS = /\p{Cc}/gu;
/** Time limit of a request with its response, in ms. */
const RESPONSE_TIMEOUT_MS = 120_000;

/** A file to convert. */
export interface ConversionRequest {
  /** Path in the file system. */
  readonly path: string;
  /** Name that the instance receives. */
  readonly name: string;
  /** Form fields. */
  readonly fields: readonly (readonly [string, string])[];
  /** Key of a result that exists. The instance responds with 304 if the result would have it. */
  readonly known?: string | undefined;
}

/** A failed conversion: the error of a response. */
type Refusal = Pick<ImagemillError, 'status' | 'message'> & Partial<ImagemillError>;

/** A successful conversion. */
interface Received<T> {
  readonly received: T;
  /** See `conversionKey`. */
  readonly key?: string | undefined;
  /** Conversion time in ms, without the time in the queue. */
  readonly ms: number;
  readonly notes: readonly string[];
  /** Quality of the result, if `max_bytes` limited its size. */
  readonly quality?: number;
}

/** A response 429 or 503. */
export interface Busy {
  /** Base URL of the instance. */
  readonly base: string;
  readonly status: number;
  /** Time in s for which the instance gets no requests. */
  readonly waitS: number;
}

/** An instance: its base URL and its version. */
interface Instance {
  readonly base: string;
  readonly version: string;
}

/** Sends files to instances. */
export interface ServiceClient {
  /** The instances that responded at the start. */
  readonly instances: readonly Instance[];
  /**
   * Converts a file.
   *
   * @param receive reads the body of a successful response. It is called again if the connection fails meanwhile.
   * @throws {UnavailableError} if no instance can accept the file
   * @throws the signal's reason if it aborts, the error of a file that cannot be read, and file system errors of
   *   `receive`
   */
  convert<T>(
    request: ConversionRequest,
    receive: (response: Response) => Promise<T>,
    signal: AbortSignal,
  ): Promise<Received<T> | Refusal>;
  /** Returns whether any instance responds. */
  isAlive(): Promise<boolean>;
}

/** No instance can accept a file. The message names an instance and the cause. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
}

/** How to connect to instances. */
export interface ServiceOptions {
  /** Maximum number of failed connections per file. */
  readonly maxFailures: number;
  /** API key of the requests. */
  readonly key?: string | undefined;
  /** Called when an instance cannot take a request. */
  readonly onBusy?: (busy: Busy) => void;
}

/**
 * Connects to the instances that respond.
 *
 * @param urls URLs of the instances, with or without /api/v1
 * @throws {UnavailableError} if none responds
 */
export async function createServiceClient(
  urls: readonly string[],
  { maxFailures, key, onBusy = () => {} }: ServiceOptions,
): Promise<ServiceClient> {
  const authorization = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const find = (base: string): Promise<Instance> => findInstance(base, authorization);
  const bases = urls.map((url) => `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`);
  const answers = await Promise.allSettled(bases.map(find));
  const instances = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  if (instances.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
  const servers = createServers(
    answers.map((answer, at) => (answer.status === 'fulfilled' ? answer.value.base : (bases[at] as string))),
  );
  return {
    instances,
    convert: (request, receive, signal) =>
      sendWithRetries(servers, request, receive, {
        ...{ signal, authorization, maxFailures },
        onBusy,
        maxBusy: MAX_BUSY_RESPONSES * bases.length,
      }),
    isAlive: () =>
      Promise.any(bases.map(find)).then(
        () => true,
        () => false,
      ),
  };
}

/**
 * Finds an instance, for example behind a redirect from http to https. `fetch` would follow it for files, too, but with GET.
 *
 * @throws {UnavailableError} if no instance responds
 */
async function findInstance(base: string, headers: Authorization): Promise<Instance> {
  try {
    const response = await fetch(`${base}/health`, {
      headers,
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    });
    const { version } = (await response.json()) as { version?: string };
    if (response.ok && version) return { base: response.url.replace(/\/health$/, ''), version };
    const how = headers.Authorization ? 'does not accept' : 'needs';
    const { status } = response;
    throw new Error(status === 401 ? `it ${how} the API key in IMAGEMILL_API_KEY` : `status ${status}`);
  } catch (cause) {
    throw new UnavailableError(`no imagemill server responds at ${base}: ${reasonOf(cause)}`, { cause });
  }
}

/** The header with the API key, if there is one. */
type Authorization = Readonly<Record<string, string>>;

interface SendOptions {
  readonly signal: AbortSignal;
  readonly authorization: Authorization;
  readonly maxFailures: number;
  readonly maxBusy: number;
  readonly onBusy: (busy: Busy) => void;
}

async function sendWithRetries<T>(
  servers: Servers,
  request: ConversionRequest,
  receive: (response: Response) => Promise<T>,
  { signal, authorization, maxFailures, maxBusy, onBusy }: SendOptions,
): Promise<Received<T> | Refusal> {
  let busy = 0;
  let failures = 0;
  for (;;) {
    const server = await nextServer(servers, signal);
    const outcome = await send(server, request, receive, { signal, authorization });
    if ('received' in outcome) {
      server.succeeded();
      return outcome;
    }
    if ('failure' in outcome) {
      failures += 1;
      server.failed();
      if (failures >= maxFailures) {
        const { failure: cause } = outcome;
        throw new UnavailableError(`${server.base} no longer responds: ${reasonOf(cause)}`, { cause });
      }
      continue;
    }
    const { status, message, retryAfter } = outcome;
    if (!BUSY_STATUSES.includes(status)) {
      server.succeeded();
      return outcome;
    }
    busy += 1;
    const waitS = retryAfter || DEFAULT_RETRY_S;
    server.busy(waitS * 1000);
    onBusy({ base: server.base, status, waitS });
    if (busy >= maxBusy)
      throw new UnavailableError(`${server.base} is still busy after ${busy} requests: ${status} ${message}`);
  }
}

/** Waits until an instance can receive a request. */
async function nextServer(servers: Servers, signal: AbortSignal): Promise<Server> {
  for (;;) {
    signal.throwIfAborted();
    const { server, waitMs } = servers.next();
    if (server) return server;
    await wait(waitMs, undefined, { signal });
  }
}

type Outcome<T> = Received<T> | Refusal | { readonly failure: unknown };

/** Sends one request. A failed connection is an outcome; see {@link ServiceClient.convert} for the errors. */
async function send<T>(
  server: Server,
  { path, name, fields, known }: ConversionRequest,
  receive: (response: Response) => Promise<T>,
  { signal: cancel, authorization }: Pick<SendOptions, 'signal' | 'authorization'>,
): Promise<Outcome<T>> {
  const limit = limitTime(cancel, RESPONSE_TIMEOUT_MS);
  const { signal } = limit;
  const release = server.acquire();
  try {
    const form = new FormData();
    for (const [field, value] of fields) form.append(field, value);
    form.append('file', await streamFile(path, name.replace(CONTROL_CHARACTERS, '_'), limit.abort));
    const response = await fetch(`${server.base}/convert`, {
      ...{ method: 'POST', body: form, signal },
      headers: { ...authorization, ...(known !== undefined && { 'If-None-Match': `"${known}"` }) },
    });
    const { ok, status, headers } = response;
    if (GATEWAY_STATUSES.includes(status)) return { failure: new Error(`status ${status}`) };
    const type = headers.get('content-type') ?? '';
    if (ok && type === ARCHIVE_TYPE) return { status, message: ARCHIVE_MESSAGE };
    if (!ok || !RESULT_TYPE.test(type))
      return toError(status, await response.text(), headers.get('retry-after'));
    return { received: await receive(response), ...parseResultHeaders(headers) };
  } catch (error) {
    cancel.throwIfAborted();
    if (isLocal(error)) throw error;
    return { failure: error };
  } finally {
    release();
    limit.clear();
  }
}

/** See {@link limitTime}. */
interface TimeLimit {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  clear(): void;
}

/**
 * Creates a signal that aborts after a time, with another signal, or by `abort`. `AbortSignal.timeout` would keep a timer for each
 * request until its time is over, also after the response.
 */
function limitTime(cancel: AbortSignal, ms: number): TimeLimit {
  const controller = new AbortController();
  const abort = (reason: unknown): void => controller.abort(reason);
  const cancelled = (): void => abort(cancel.reason);
  const timer = setTimeout(() => abort(new Error(`no response in ${ms / 1000} s`)), ms);
  cancel.addEventListener('abort', cancelled, { once: true });
  return {
    signal: controller.signal,
    abort,
    clear() {
      clearTimeout(timer);
      cancel.removeEventListener('abort', cancelled);
    },
  };
}

function parseResultHeaders(headers: Headers): Omit<Received<never>, 'received'> {
  const notes = (headers.get('x-conversion-notes') ?? '').split(/,\s*/).filter(Boolean);
  const duration = /convert;dur=([\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1];
  const quality = headers.get('x-conversion-quality');
  const key = headers.get('x-conversion-key') ?? undefined;
  return { key, ms: Math.round(Number(duration ?? 0)), notes, ...(quality && { quality: Number(quality) }) };
}

/** Returns whether an error concerns this machine's files and not the connection. `fetch` wraps errors of sockets. */
function isLocal(error: unknown): boolean {
  return error instanceof TruncatedFileError || (error as NodeJS.ErrnoException).syscall !== undefined;
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error };
  return cause?.message || message;
}
