/**
 * @module A constant load of conversions from many clients, with the outcomes of the requests
 * during each event.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { type ConvertOptions, createClient, ImagemillError } from '../../src/client/library/index.ts';
import { fixture } from '../helpers/client.ts';

/** Mean time between the response to a client and its next request, in milliseconds. */
const THINK_MS = 3000;

/**
 * Time limit of a request of the plain client, in milliseconds: more than nginx needs to try three
 * instances.
 */
const PLAIN_TIMEOUT_MS = 180_000;

/** An image, and the options of its conversion. The results of equal ones are equal. */
export interface Conversion {
  readonly image: Buffer;
  readonly options: ConvertOptions;
  result?: Buffer;
}

/** Requests that started during an event. */
export interface Event {
  readonly name: string;
  requests: number;
  /** Number of failed requests by kind of client and failure. */
  readonly failures: Map<string, number>;
  worstMs: number;
  running: number;
}

/** How a client converts an image. */
type Convert = (url: string, key: string, conversion: Conversion) => Promise<Buffer>;

/**
 * Converts an image with a new connection, like curl. Throws an error with the status and reason of
 * another response than 200.
 */
export const convertPlain: Convert = async (url, key, { image, options }) => {
  const query = new URLSearchParams(options as Record<string, string>);
  const headers = { authorization: `Bearer ${key}`, 'content-length': image.length };
  const signal = AbortSignal.timeout(PLAIN_TIMEOUT_MS);
  const sent = request(`${url}/api/v1/convert?${query}`, { method: 'POST', agent: false, headers, signal });
  sent.end(image);
  const [response] = await once(sent, 'response');
  const body = await buffer(response);
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${reasonIn(body)}`);
  return body;
};

/**
 * The kinds of clients: the library repeats requests after 429 and 503, the other one repeats
 * nothing.
 */
const CLIENTS: Readonly<Record<string, Convert>> = {
  async library(url, key, { image, options }) {
    const result = await createClient(url, { key }).convert(new Uint8Array(image), options);
    return Buffer.from(await result.response.arrayBuffer());
  },
  plain: convertPlain,
};

const reasonIn = (body: Buffer): string => /"reason":"(\w+)"/.exec(body.toString())?.[1] ?? '';

/** Returns what kind of failure an error is, such as `503 overloaded` or `ECONNRESET`. */
function kindOf(error: unknown): string {
  if (error instanceof ImagemillError) return `${error.status} ${error.reason}`;
  const { code, cause, message } = error as NodeJS.ErrnoException & { cause?: { code?: string } };
  return code ?? cause?.code ?? message;
}

/** Starts a client for each URL, alternately of both kinds. */
export async function startLoad(urls: readonly string[], key: string) {
  const conversions = await makeConversions();
  const stop = new AbortController();
  let current = newEvent('start');
  const events: Event[] = [];

  const convert = async (kind: string, url: string): Promise<void> => {
    const event = current;
    const conversion = conversions[Math.floor(Math.random() * conversions.length)] as Conversion;
    const started = performance.now();
    event.requests += 1;
    event.running += 1;
    try {
      const result = await (CLIENTS[kind] as Convert)(url, key, conversion);
      conversion.result ??= result;
      if (!result.equals(conversion.result)) throw new Error('another result');
    } catch (error) {
      const failure = `${kind}: ${kindOf(error)}`;
      event.failures.set(failure, (event.failures.get(failure) ?? 0) + 1);
    }
    event.running -= 1;
    event.worstMs = Math.max(event.worstMs, performance.now() - started);
  };
  const runClient = async (kind: string, url: string): Promise<void> => {
    while (!stop.signal.aborted) {
      await sleep(THINK_MS * 2 * Math.random(), undefined, { signal: stop.signal }).catch(() => {});
      if (!stop.signal.aborted) await convert(kind, url);
    }
  };
  const kinds = Object.keys(CLIENTS);
  const clients = urls.map((url, at) => runClient(kinds[at % kinds.length] as string, url));
  return {
    events: events as readonly Event[],
    /** Runs an action, and returns what became of the requests that started meanwhile. */
    async during(name: string, action: () => Promise<unknown>): Promise<Event> {
      const event = newEvent(name);
      events.push(event);
      current = event;
      await action();
      current = newEvent('between');
      while (event.running > 0) await sleep(50);
      return event;
    },
    async stop(): Promise<void> {
      stop.abort();
      await Promise.all(clients);
    },
  };
}

const newEvent = (name: string): Event => ({
  name,
  requests: 0,
  failures: new Map(),
  worstMs: 0,
  running: 0,
});

/** Makes the conversions of the load: photos of one megapixel, and small images of other kinds. */
export async function makeConversions(): Promise<Conversion[]> {
  const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const;
  const create = { width: 1200, height: 900, channels: 3, background: '#888', noise } as const;
  const photo = await sharp({ create }).jpeg().toBuffer();
  return [
    { image: photo, options: { format: 'webp' } },
    { image: photo, options: { format: 'jpg', width: 300 } },
    { image: await fixture('scene.jpg'), options: { preset: 'card' } },
    { image: await fixture('scene.png'), options: { format: 'jpg' } },
    { image: await fixture('scene.svg'), options: { format: 'png', width: 200 } },
    { image: await fixture('scene.tiff'), options: { format: 'webp' } },
    { image: await fixture('scene.bmp'), options: { format: 'png' } },
    { image: await fixture('scene.webp'), options: { format: 'gif' } },
  ];
}
