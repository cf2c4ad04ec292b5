/** @module HTTP client for tests, and the requests that most tests send. */
import { readFile } from 'node:fs/promises';

/** A response, read completely. */
export interface ClientResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  /** The message of an error response. */
  readonly message: string;
}

/** Returns the path of a file in `fixtures/images/`. */
export const fixturePath = (name: string): string =>
  new URL(`../../fixtures/images/${name}`, import.meta.url).pathname;
/** Returns the path of a file in `fixtures/traps/`. */
export const edgeCasePath = (name: string): string =>
  new URL(`../../fixtures/traps/${name}`, import.meta.url).pathname;
/** Reads a file in `fixtures/traps/`. */
export const edgeCase = (name: string): Promise<Buffer> => readFile(edgeCasePath(name));
/** Reads a file in `fixtures/images/`. */
export const fixture = (name: string): Promise<Buffer> => readFile(fixturePath(name));

/** Sends a request and reads the whole response. */
export async function sendForm(url: string, init: RequestInit = {}): Promise<ClientResponse> {
  const response = await fetch(url, init);
  const body = Buffer.from(await response.arrayBuffer());
  const isJson =
    body.length > 0 && (response.headers.get('content-type')?.startsWith('application/json') ?? false);
  const message = isJson
    ? (JSON.parse(body.toString()) as { error?: { message: string } }).error?.message
    : '';
  return { status: response.status, headers: response.headers, body, message: message ?? '' };
}

/** Sends `POST /convert` with one file and text fields. */
export function convert(
  base: string,
  file: Uint8Array,
  fields: Readonly<Record<string, string>> = {},
  name = 'photo.bin',
): Promise<ClientResponse> {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append('file', new Blob([new Uint8Array(file)]), name);
  return sendForm(`${base}/convert`, { method: 'POST', body: form });
}

/** Sends `POST /convert` with a hand-written multipart body, encoded as Latin-1. */
export function convertRaw(
  base: string,
  parts: readonly string[],
  boundary = 'xyz',
): Promise<ClientResponse> {
  return sendForm(`${base}/convert`, {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: Buffer.from(parts.join(''), 'latin1'),
  });
}

/** Returns the number of conversions that wait in the queue, from the metrics of the service. */
export async function conversionsWaiting(base: string): Promise<number> {
  const { body } = await sendForm(new URL('/metrics', base).href);
  return Number(/^imagemill_conversions_waiting (\d+)/m.exec(body.toString())?.[1]);
}
