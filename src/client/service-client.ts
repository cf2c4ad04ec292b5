/** @module Sends files to running instances, each to another one if an instance is busy. */
import { setTimeout as wait } from 'node:timers/promises';
import { type ConvertOptions, createClient, ImagemillError, type Result } from './library/index.ts';
import { backoffAfter, obstacleOf } from './library/retry.ts';
import { fetchStreamed, streamFile, TruncatedFileError } from './streamed-file.ts';

/** Maximum number of responses 429 or 503 per file and instance. */
const MAX_BUSY_RESPONSES = 20;
/** Media type of several results, if a preset of the instance has variants. */
const ARCHIVE_TYPE = 'application/zip';
const ARCHIVE_MESSAGE =
  'The preset has several results. With --presets instead of --url, all of them are written.';
/** Characters that a part's header must not contain. Forms encode only line breaks. */
const CONTROL_CHARACTERS = /\p{Cc}/gu;
/** Time limit of a request with its response, in ms. */
const RESPONSE_TIMEOUT_MS = 120_000;

interface ConversionRequest {
  readonly path: string;
  /** Name that the instance receives. */
  readonly name: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly watermark?: string | undefined;
  /** Key of a result that exists. The instance responds with 304 if the result would have it. */
  readonly known?: string | undefined;
}

/** A result, and what {@link ServiceClient.convert} has read of its body. */
type Received<T> = Result & { readonly received: T };

/** A response 429 or 503. */
export interface Busy {
  readonly base: string;
  readonly status: number;
  /** Time in s for which the instance gets no requests. */
  readonly waitS: number;
}

/** The result is larger than the command accepts. */
export class ResultTooLargeError extends Error {
  override readonly name = 'ResultTooLargeError';
}

/** No instance can accept a file. The message names an instance and the cause. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
}

interface ConnectionOptions {
  /** Maximum number of failed connections per file. */
  readonly maxFailures: number;
  readonly key?: string | undefined;
  /** Called when an instance cannot take a request. */
  readonly onBusy?: (busy: Busy) => void;
}

export type ServiceClient = Awaited<ReturnType<typeof createServiceClient>>;

/**
 * Connects to the instances that respond.
 *
 * @param urls URLs of the instances, with or without /api/v1
 * @throws {UnavailableError} if none responds
 */
export async function createServiceClient(urls: readonly string[], options: ConnectionOptions) {
  const bases = urls.map((url) => createClient(url).base);
  const findAll = () => bases.map((base) => findInstance(base, options.key));
  const answers = await Promise.allSettled(findAll());
  const instances = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (instances.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
  const servers = answers.map(
    (answer, at) => new Server(answer.status === 'fulfilled' ? answer.value.base : (bases[at] as string)),
  );
  return {
    /** The instances that responded at the start. */
    instances,
    /**
     * @param receive reads the body of a successful response. It is called again if the connection
     *   fails meanwhile.
     * @throws {ImagemillError} if an instance responds with another status than 200, or with
     *   several results
     * @throws {UnavailableError} if no instance can accept the file
     * @throws the signal's reason if it aborts, the error of a file that cannot be read, and file
     *   system errors and {@link ResultTooLargeError} of `receive`
     */
    convert: <T>(
      request: ConversionRequest,
      receive: (response: Response) => Promise<T>,
      signal: AbortSignal,
    ): Promise<Received<T>> => sendWithRetries(servers, request, receive, signal, options),
    isAlive: (): Promise<boolean> =>
      Promise.any(findAll()).then(
        () => true,
        () => false,
      ),
  };
}

/**
 * Finds an instance, for example behind a redirect from http to https on the same host.
 *
 * @throws {UnavailableError} if no instance responds
 */
async function findInstance(base: string, key: string | undefined) {
  let url = '';
  const follow: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    ({ url } = response);
    return response;
  };
  try {
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    const { version } = await createClient(base, { key, retries: 0, fetch: follow }).health({ signal });
    if (!version) throw new ImagemillError(200);
    return { base: url.replace(/\/health$/, ''), version };
  } catch (cause) {
    const how = key === undefined ? 'needs' : 'does not accept';
    const isKeyMissing = cause instanceof ImagemillError && cause.status === 401;
    const reason = isKeyMissing ? `it ${how} the API key in IMAGEMILL_API_KEY` : reasonOf(cause);
    throw new UnavailableError(`no imagemill server responds at ${base}: ${reason}`, { cause });
  }
}

/** Sends a file to one instance after the other. Errors: see {@link ServiceClient.convert}. */
async function sendWithRetries<T>(
  servers: readonly Server[],
  request: ConversionRequest,
  receive: (response: Response) => Promise<T>,
  signal: AbortSignal,
  { key, maxFailures, onBusy }: ConnectionOptions,
): Promise<Received<T>> {
  let busy = 0;
  let failures = 0;
  for (;;) {
    const server = await nextServer(servers, signal);
    try {
      const result = await send(server, request, receive, signal, key);
      server.failures = 0;
      return result;
    } catch (error) {
      signal.throwIfAborted();
      if (isLocal(error)) throw error;
      if (!(error instanceof ImagemillError) || obstacleOf(error.status) === 'unreachable') {
        failures += 1;
        server.pause(backoffAfter(server.failures));
        server.failures += 1;
        if (failures < maxFailures) continue;
        throw new UnavailableError(`${server.base} no longer responds: ${reasonOf(error)}`, { cause: error });
      }
      server.failures = 0;
      const { status, message, retryDelayS: waitS } = error;
      if (waitS === undefined) throw error;
      busy += 1;
      server.pause(waitS * 1000);
      onBusy?.({ base: server.base, status, waitS });
      if (busy >= MAX_BUSY_RESPONSES * servers.length)
        throw new UnavailableError(
          `${server.base} is still busy after ${busy} requests: ${status} ${message}`,
        );
    }
  }
}

class Server {
  /** URL of the API, including the version. */
  readonly base: string;
  requests = 0;
  /** Failed connections since the last response. */
  failures = 0;
  /** Time from which the instance can receive requests, in ms since the epoch. */
  #readyAt = 0;

  constructor(base: string) {
    this.base = base;
  }

  pause(ms: number): void {
    this.#readyAt = Math.max(this.#readyAt, Date.now() + ms);
  }

  /** Time for which the instance gets no requests, in ms. */
  get pauseMs(): number {
    return Math.max(0, this.#readyAt - Date.now());
  }
}

/**
 * Waits until an instance can accept a request, and returns the least busy one.
 *
 * @throws the signal's reason if it aborts
 */
async function nextServer(servers: readonly Server[], signal: AbortSignal): Promise<Server> {
  for (;;) {
    signal.throwIfAborted();
    const [best] = servers
      .filter(({ pauseMs }) => pauseMs === 0)
      .sort((one, other) => one.requests - other.requests);
    if (best) return best;
    const waitMs = Math.min(...servers.map(({ pauseMs }) => pauseMs));
    await wait(waitMs, undefined, { signal }).catch(() => {});
  }
}

/**
 * @throws {ImagemillError} if the response has another status than 200, or several results
 * @throws the errors of the file, of `receive` and of `fetch`
 */
async function send<T>(
  server: Server,
  { path, name, fields, watermark, known }: ConversionRequest,
  receive: (response: Response) => Promise<T>,
  signal: AbortSignal,
  key: string | undefined,
): Promise<Received<T>> {
  const stop = new AbortController();
  const abort = (reason: Error): void => stop.abort(reason);
  // `AbortSignal.timeout` would keep its timer after the response.
  const onTimeout = () => abort(new Error(`no response in ${RESPONSE_TIMEOUT_MS / 1000} s`));
  const timer = setTimeout(onTimeout, RESPONSE_TIMEOUT_MS);
  server.requests += 1;
  try {
    const file = await streamFile(path, name.replace(CONTROL_CHARACTERS, '_'), abort);
    const mark = watermark && (await streamFile(watermark, 'watermark', abort));
    const client = createClient(server.base, { key, retries: 0, fetch: fetchStreamed });
    const options = { ...Object.fromEntries(fields), watermark: mark || undefined } as ConvertOptions;
    const result = await client.convert(file, options, {
      form: true, // versions up to 0.2.0 accept only forms
      signal: AbortSignal.any([signal, stop.signal]),
      headers: known === undefined ? {} : { 'If-None-Match': `"${known}"` },
    });
    if (result.type === ARCHIVE_TYPE) {
      await result.response.body?.cancel();
      throw Object.assign(new ImagemillError(200), { message: ARCHIVE_MESSAGE });
    }
    return { ...result, received: await receive(result.response) };
  } finally {
    server.requests -= 1;
    clearTimeout(timer);
  }
}

/** Returns whether an error concerns a file, not the connection. `fetch` wraps socket errors. */
function isLocal(error: unknown): boolean {
  const isKnown = error instanceof TruncatedFileError || error instanceof ResultTooLargeError;
  return isKnown || (error as NodeJS.ErrnoException).syscall !== undefined;
}

function reasonOf(error: unknown): string {
  if (error instanceof ImagemillError) return `status ${error.status}`;
  const { message, cause } = error as Error & { cause?: Error };
  return cause?.message || message;
}
