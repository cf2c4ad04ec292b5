/**
 * @module The package `imagemill-client`, and `imagemill/client` of the program: converts images
 * with a running service, in Node.js and in browsers. It imports only its own files, so that
 * applications can copy its folder.
 */
import { ImagemillError, toError } from './error.ts';
import { fetchFromHost, isClosed, readText } from './transport.ts';
import type {
  BatchOptions,
  ConvertOptions,
  Formats,
  Health,
  IdentifyOptions,
  ImageDescription,
  Note,
  RevealedKind,
} from './types.ts';

export { ImagemillError } from './error.ts';
export type * from './types.ts';

/** Maximum time that a request waits for its repetitions by default, in ms. */
const MAX_WAIT_MS = 120_000;
/** Maximum size of an error or JSON read as text, in bytes. A longer error has no message. */
const MAX_ERROR_BYTES = 64 * 1024;
const MAX_JSON_BYTES = 16 * 1024 ** 2;
const DEFAULT_RETRIES = 4;
/** Media types of results. A proxy can respond with 200 and a page, for example to log in. */
const RESULT_TYPE = /^(?:image\/|application\/(?:pdf|zip))/;
const JSON_TYPE = /^application\/json/;

/**
 * An image: a `File` or other `Blob`, its bytes, or a stream of them. A stream can be sent only
 * once, without repetitions.
 */
export type Image = Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array>;

type Body = NonNullable<RequestInit['body']>;

/** The file that a request returns. */
export interface Result {
  /** File name, which the service derives from that of the image. Has no folders. */
  readonly name: string;
  /** Media type. */
  readonly type: string;
  /** Size in pixels. Undefined for PDF files and archives. */
  readonly width: number | undefined;
  readonly height: number | undefined;
  readonly notes: readonly Note[];
  /** Kinds of what the images' metadata gives away and the result does not have, or still has. */
  readonly removed: readonly RevealedKind[];
  readonly kept: readonly RevealedKind[];
  /** Quality of the result, if `max_bytes` limited its size. */
  readonly quality: number | undefined;
  /** Positions of the images that `on_error: 'skip'` has left out of a combined file, from 0. */
  readonly skipped: readonly number[];
  /** SHA-256 of the file, in Base64. Undefined for archives. */
  readonly digest: string | undefined;
  /**
   * `X-Conversion-Key`: equal keys mean equal results. With `If-None-Match: "KEY"`, the service
   * sends only another result.
   */
  readonly key: string | undefined;
  /** Time of the conversion in ms, without the time in the queue. */
  readonly ms: number;
  /** The response. Its body is the file: `response.body` streams, `response.blob()` reads it. */
  readonly response: Response;
}

/** Settings of a client. */
export interface ClientSettings {
  /** API key, if the service requires one. */
  readonly key?: string | undefined;
  /**
   * How often a request is repeated after 429 or 503, and once of these if the connection closes
   * before a response. Default: 4.
   */
  readonly retries?: number | undefined;
  /**
   * Maximum time that a request waits for its repetitions, in ms. If `Retry-After` states more, the
   * request fails with its error. Default: 120 000.
   */
  readonly maxWaitMs?: number | undefined;
  /** Called before a request waits, with the error of its response and the time in ms. */
  readonly onRetry?: ((error: ImagemillError, waitMs: number) => void) | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** Settings of one request. */
export interface RequestSettings {
  /** Aborts the request, its repetitions and its response. The service stops the conversion. */
  readonly signal?: AbortSignal | undefined;
  /** More headers, such as `Accept` or `X-Client-Id`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** File name of the image. Default: that of a `File`. */
  readonly name?: string | undefined;
  /** Whether the image is sent in a form, which versions up to 0.2.0 need. Default: false. */
  readonly form?: boolean | undefined;
}

type PlainSettings = Pick<RequestSettings, 'signal' | 'headers'>;

/**
 * Sends requests to a service, and repeats those that it cannot accept at the moment. All functions
 * throw an {@link ImagemillError} for a response with an error, the reason of the signal if it
 * aborts, a `TypeError` that names the address if the connection fails, and an `Error` if the
 * service redirects to another host.
 */
export interface Client {
  /** Address of the API, with `/api/v1`. */
  readonly base: string;
  /** Converts an image. */
  convert(image: Image, options?: ConvertOptions, settings?: RequestSettings): Promise<Result>;
  /**
   * Converts several images, or ZIP archives of images, and returns a ZIP archive, or with
   * `combine` one file. Names are those of `File`s.
   */
  batch(images: Iterable<Blob>, options?: BatchOptions, settings?: PlainSettings): Promise<Result>;
  /** Describes an image and, with any option, what its conversion would result in. */
  identify(image: Image, options?: IdentifyOptions, settings?: RequestSettings): Promise<ImageDescription>;
  /** Returns the formats and limits of the service. */
  formats(settings?: PlainSettings): Promise<Formats>;
  /** Returns the version of the service. */
  health(settings?: PlainSettings): Promise<Health>;
}

/**
 * Creates a client of a service.
 *
 * @param url address of the service, with or without `/api/v1`. Empty in a page of the service
 *   itself.
 */
export function createClient(url: string, settings: ClientSettings = {}): Client {
  const base = `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
  const send = createSender(base, settings);

  async function sendImage(
    path: string,
    image: Image,
    options: ConvertOptions,
    accepted: RegExp,
    settings: RequestSettings,
  ): Promise<Response> {
    if (settings.form || options.watermark) {
      const file = await toFile(image, settings.name);
      return send(path, accepted, settings, toForm(options, 'file', [file]));
    }
    const { name = image instanceof Blob ? (image as Partial<File>).name : undefined } = settings;
    const headers = {
      'Content-Type': 'application/octet-stream', // The service detects the type.
      ...(name && { 'Content-Disposition': `attachment; filename*=UTF-8''${encodeName(name)}` }),
      ...settings.headers,
    };
    const query = new URLSearchParams(toFields(options)).toString();
    return send(`${path}${query && `?${query}`}`, accepted, { ...settings, headers }, image);
  }

  return {
    base,
    async convert(image, options = {}, settings = {}) {
      return toResult(await sendImage('/convert', image, options, RESULT_TYPE, settings));
    },
    async batch(images, options = {}, settings = {}) {
      return toResult(await send('/batch', RESULT_TYPE, settings, toForm(options, 'files', images)));
    },
    async identify(image, options = {}, settings = {}) {
      return parse(await sendImage('/identify', image, options, JSON_TYPE, settings));
    },
    async formats(settings = {}) {
      return parse(await send('/formats', JSON_TYPE, settings));
    },
    async health(settings = {}) {
      return parse(await send('/health', JSON_TYPE, settings));
    },
  };
}

/** Creates a function that sends a request until the service accepts it. */
function createSender(base: string, settings: ClientSettings) {
  return async (
    path: string,
    accepted: RegExp,
    { signal, headers }: PlainSettings,
    body?: Image | FormData,
  ): Promise<Response> => {
    const { key, retries = DEFAULT_RETRIES, maxWaitMs = MAX_WAIT_MS, onRetry } = settings;
    const init = {
      method: body ? 'POST' : 'GET',
      body: (body ?? null) as Body,
      headers: { ...(key && { Authorization: `Bearer ${key}` }), ...headers },
      signal: signal ?? null,
      duplex: 'half' as const, // fetch requires `duplex` for streams
    };
    const isStream = body !== undefined && 'getReader' in body;
    let canReconnect = retries > 0 && !isStream;
    let waitedMs = 0;
    for (let repeated = 0; ; repeated += 1) {
      const sent = fetchFromHost(settings.fetch ?? globalThis.fetch, base, path, init);
      const response = await sent.catch((error) => {
        if (!canReconnect || !isClosed(error)) throw error;
        canReconnect = false;
      });
      if (!response) continue;
      if (response.ok && accepted.test(response.headers.get('content-type') ?? '')) return response;
      const { status, headers: stated } = response;
      const text = (await readText(response, MAX_ERROR_BYTES)) ?? '';
      const error = toError(status, text, stated.get('retry-after'), body && sizeOf(body));
      const waitMs = (error.retryDelayS ?? Number.POSITIVE_INFINITY) * 1000;
      if (repeated >= retries || waitedMs + waitMs > maxWaitMs || isStream) throw error;
      onRetry?.(error, waitMs);
      await wait(waitMs, signal);
      waitedMs += waitMs;
    }
  };
}

/** Creates a form, options first: the service knows them while it receives the images. */
function toForm(options: BatchOptions, field: string, images: Iterable<Blob>): FormData {
  const form = new FormData();
  const { watermark, ...others } = options;
  for (const [name, value] of toFields(others)) form.append(name, value);
  if (watermark) form.append('watermark', watermark);
  for (const image of images) form.append(field, image);
  return form;
}

/** Returns the bytes of a body, without the headers of a form's parts. Undefined for a stream. */
function sizeOf(body: Image | FormData): number | undefined {
  if (body instanceof FormData) {
    const sizes = [...body.values()].map((part) => (part instanceof Blob ? part.size : part.length));
    return sizes.reduce((sum, size) => sum + size, 0);
  }
  if (body instanceof Blob) return body.size;
  return 'byteLength' in body ? body.byteLength : undefined;
}

function toFields(options: BatchOptions): [string, string][] {
  return Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, typeof value === 'object' ? JSON.stringify(value) : String(value)]],
  );
}

/** Returns an image as a part of a form. A `File` keeps its name, unless another is given. */
async function toFile(image: Image, name: string | undefined): Promise<Blob> {
  const blob = image instanceof Blob ? image : await new Response(image as Body).blob();
  return name === undefined ? blob : new File([blob], name);
}

/** Encodes a file name for a header (RFC 8187). */
const encodeName = (name: string): string =>
  encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );

/** Returns the last component of the file name in `Content-Disposition`; empty without one. */
function nameIn(disposition: string): string {
  const name = statedName(disposition).split(/[/\\]/).at(-1) ?? '';
  return name === '.' || name === '..' ? '' : name;
}

/** Returns the file name in `Content-Disposition` (RFC 6266). The encoded one is complete. */
function statedName(disposition: string): string {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  try {
    if (encoded !== undefined) return decodeURIComponent(encoded);
  } catch {
    // The encoding is invalid.
  }
  const [, quoted, token = ''] = /filename=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition) ?? [];
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? token;
}

async function parse<T>(response: Response): Promise<T> {
  const text = await readText(response, MAX_JSON_BYTES);
  if (text === undefined) throw new ImagemillError(response.status);
  return JSON.parse(text) as T;
}

function toResult(response: Response): Result {
  const header = (name: string): string => response.headers.get(name) ?? '';
  const number = (name: string): number | undefined => Number(header(name)) || undefined;
  const words = (name: string): string[] =>
    [...header(name).matchAll(/(?:^|, )([a-z-]+)/g)].map(([, word = '']) => word);
  return {
    name: nameIn(header('content-disposition')),
    type: header('content-type').replace(/;.*/, ''),
    width: number('x-image-width'),
    height: number('x-image-height'),
    notes: words('x-conversion-notes') as Note[],
    removed: words('x-removed-metadata') as RevealedKind[],
    kept: words('x-kept-metadata') as RevealedKind[],
    quality: number('x-image-quality') ?? number('x-conversion-quality'),
    skipped: (header('x-skipped-files').match(/\d+/g) ?? []).map(Number),
    digest: /sha-256=:([^:]+):/.exec(header('repr-digest'))?.[1],
    key: header('x-conversion-key') || undefined,
    ms: Math.round(Number(/convert;dur=([\d.]+)/.exec(header('server-timing'))?.[1] ?? 0)),
    response,
  };
}

/** @throws the reason of the signal if it aborts */
function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
