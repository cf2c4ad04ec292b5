/**
 * @module The package `imagemill/client`: converts images with a running service, in Node.js and in browsers. It imports only
 * its own files, so that applications can copy its folder.
 */
import { toError } from './error.ts';
import type {
  BatchOptions,
  ConvertOptions,
  Formats,
  Health,
  IdentifyOptions,
  ImageDescription,
  Note,
} from './types.ts';

export { ImagemillError } from './error.ts';
export type * from './types.ts';

/** Longest delay before a repetition, in s. If the service asks for a longer one, the request fails. */
const MAX_RETRY_S = 120;
/** Repetitions of a request by default. */
const DEFAULT_RETRIES = 4;
/** Media types of results. A proxy can respond with 200 and a page, for example to log in. */
const RESULT_TYPE = /^(?:image\/|application\/(?:pdf|zip)|multipart\/mixed)/;
const JSON_TYPE = /^application\/json/;

/** An image: a `File` or other `Blob`, its bytes, or a stream of them. A stream can be sent only once, without repetitions. */
export type Image = Blob | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array>;

/** What `fetch` sends. */
type Body = NonNullable<RequestInit['body']>;

/** The file that a request returns. */
export interface Result {
  /** File name, which the service derives from that of the image. */
  readonly name: string;
  /** Media type. */
  readonly type: string;
  /** Size in pixels. Undefined for PDF files and archives. */
  readonly width: number | undefined;
  readonly height: number | undefined;
  readonly notes: readonly Note[];
  /** Quality of the result, if `max_bytes` limited its size. */
  readonly quality: number | undefined;
  /** SHA-256 of the file, in Base64. Undefined for archives. */
  readonly digest: string | undefined;
  /** `X-Conversion-Key`: equal keys mean equal results. With `If-None-Match: "KEY"`, the service sends only another result. */
  readonly key: string | undefined;
  /** Time of the conversion in ms, without the time in the queue. */
  readonly ms: number;
  /** The response, whose body is the file: `response.body` is a stream, `response.blob()` reads it. */
  readonly response: Response;
}

/** Settings of a client. */
export interface ClientSettings {
  /** API key, if the service wants one. */
  readonly key?: string | undefined;
  /** How often a request is repeated after 429 or 503. Default: 4. */
  readonly retries?: number | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** Settings of one request. */
export interface RequestSettings {
  /** Aborts the request, its repetitions and its response. The service then stops the conversion. */
  readonly signal?: AbortSignal | undefined;
  /** More headers, such as `Accept` or `X-Client-Id`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** File name of the image. Default: that of a `File`. */
  readonly name?: string | undefined;
  /** Whether the image is sent in a form, which versions up to 0.2.0 need. Default: false. */
  readonly form?: boolean | undefined;
}

/** Settings of a request without an image. */
type PlainSettings = Pick<RequestSettings, 'signal' | 'headers'>;

/**
 * Sends requests to a service, and repeats those that it cannot accept at the moment. All functions throw an {@link ImagemillError}
 * for a response with an error, the reason of the signal if it aborts, and the error of `fetch` if the connection fails.
 */
export interface Client {
  /** Address of the API, with `/api/v1`. */
  readonly base: string;
  /** Converts an image. */
  convert(image: Image, options?: ConvertOptions, settings?: RequestSettings): Promise<Result>;
  /** Converts several images, or ZIP archives of images, and returns a ZIP archive. Names are those of `File`s. */
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
 * @param url address of the service, with or without `/api/v1`. Empty in a page of the service itself.
 */
export function createClient(url: string, settings: ClientSettings = {}): Client {
  const base = `${url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;

  /** Sends a request until the service accepts it. */
  async function send(
    path: string,
    accepted: RegExp,
    { signal, headers }: PlainSettings,
    body?: Image | FormData,
  ): Promise<Response> {
    const { key, retries = DEFAULT_RETRIES, fetch = globalThis.fetch } = settings;
    const init = {
      ...{ method: body ? 'POST' : 'GET', body: (body ?? null) as Body },
      headers: { ...(key && { Authorization: `Bearer ${key}` }), ...headers },
      ...{ signal: signal ?? null, duplex: 'half' as const }, // fetch requires `duplex` for streams
    };
    for (let repeated = 0; ; repeated += 1) {
      const response = await fetch(base + path, init);
      if (response.ok && accepted.test(response.headers.get('content-type') ?? '')) return response;
      const { status, headers: stated } = response;
      const error = toError(status, await response.text(), stated.get('retry-after'));
      const { retryDelayS = Number.POSITIVE_INFINITY } = error;
      const isStream = body !== undefined && 'getReader' in body;
      if (repeated >= retries || retryDelayS > MAX_RETRY_S || isStream) throw error;
      await wait(retryDelayS * 1000, signal);
    }
  }

  /** Sends an image as the body, or in a form. */
  async function sendImage(
    path: string,
    image: Image,
    options: ConvertOptions,
    accepted: RegExp,
    settings: RequestSettings,
  ): Promise<Response> {
    if (settings.form) {
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
      const response = await sendImage('/identify', image, options, JSON_TYPE, settings);
      return (await response.json()) as ImageDescription;
    },
    async formats(settings = {}) {
      return (await (await send('/formats', JSON_TYPE, settings)).json()) as Formats;
    },
    async health(settings = {}) {
      return (await (await send('/health', JSON_TYPE, settings)).json()) as Health;
    },
  };
}

/** Creates a form with the options before the images, so that the service knows them while it receives the images. */
function toForm(options: BatchOptions, field: string, images: Iterable<Blob>): FormData {
  const form = new FormData();
  for (const [name, value] of toFields(options)) form.append(name, value);
  for (const image of images) form.append(field, image);
  return form;
}

/** Returns options as text fields. */
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

/** Returns the file name in `Content-Disposition` (RFC 6266). The encoded one has all characters. */
function nameIn(disposition: string): string {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  if (encoded !== undefined) return decodeURIComponent(encoded);
  const [, quoted, token = ''] = /filename=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition) ?? [];
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? token;
}

/** Returns what the headers of a response state. */
function toResult(response: Response): Result {
  const header = (name: string): string => response.headers.get(name) ?? '';
  const number = (name: string): number | undefined => Number(header(name)) || undefined;
  return {
    name: nameIn(header('content-disposition')),
    type: header('content-type').replace(/;.*/, ''),
    width: number('x-image-width'),
    height: number('x-image-height'),
    notes: [...header('x-conversion-notes').matchAll(/(?:^|, )([a-z-]+)/g)].map(([, note]) => note as Note),
    quality: number('x-conversion-quality'),
    digest: /sha-256=:([^:]+):/.exec(header('repr-digest'))?.[1],
    key: header('x-conversion-key') || undefined,
    ms: Math.round(Number(/convert;dur=([\d.]+)/.exec(header('server-timing'))?.[1] ?? 0)),
    response,
  };
}

/** Waits, unless a signal aborts. */
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
