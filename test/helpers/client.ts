/** @module HTTP client for tests, and the requests that most tests send. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';

/** A response, read completely. */
export interface ClientResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  readonly message: string;
  /** The status, and the message of an error: `400 The file is empty (0 bytes).` */
  readonly outcome: string;
  /** The notes on a conversion; null without any. */
  readonly notes: string | null;
}

/** Text fields of a form, or headers. */
export type Fields = Readonly<Record<string, string>>;

/** A file of a form: its name, its content, and the name of its part. */
export type FormFile = readonly [name: string, content: Uint8Array, part?: string];

export const fixturePath = (name: string): string =>
  new URL(`../../fixtures/images/${name}`, import.meta.url).pathname;
export const edgeCasePath = (name: string): string =>
  new URL(`../../fixtures/traps/${name}`, import.meta.url).pathname;
export const edgeCase = (name: string): Promise<Buffer> => readFile(edgeCasePath(name));
export const fixture = (name: string): Promise<Buffer> => readFile(fixturePath(name));

export async function sendForm(url: string, init: RequestInit = {}): Promise<ClientResponse> {
  const response = await fetch(url, init);
  const { status, headers } = response;
  const body = Buffer.from(await response.arrayBuffer());
  const isJson = body.length > 0 && headers.get('content-type')?.startsWith('application/json');
  const message = isJson ? (jsonOf({ body }).error?.message ?? '') : '';
  const outcome = `${status} ${message}`.trim();
  return { status, headers, body, message, outcome, notes: headers.get('x-conversion-notes') };
}

export const jsonOf = ({ body }: Pick<ClientResponse, 'body'>) => JSON.parse(body.toString());

/** Creates a form of text fields, followed by files. */
export function formOf(fields: Fields, files: readonly FormFile[] = [], part = 'file'): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const [name, content, ownPart = part] of files)
    form.append(ownPart, new Blob([new Uint8Array(content)]), name);
  return form;
}

/** Returns copies of a file that differ in their last bytes, for {@link formOf}. */
export const distinctFiles = (file: Uint8Array, count: number): FormFile[] =>
  Array.from({ length: count }, (_, at) => [`${at}.jpg`, Buffer.concat([file, Buffer.from(`${at}`)])]);

export const postForm = (url: string, body: FormData, headers: Fields = {}): Promise<ClientResponse> =>
  sendForm(url, { method: 'POST', body, headers });

export const postImage = (url: string, image: Uint8Array, headers: Fields = {}): Promise<ClientResponse> =>
  sendForm(url, { method: 'POST', headers, body: new Uint8Array(image) });

/** Sends `POST /convert` with one file and text fields. */
export const convert = (
  base: string,
  file: Uint8Array,
  fields: Fields = {},
  name = 'photo.bin',
  headers: Fields = {},
): Promise<ClientResponse> => postForm(`${base}/convert`, formOf(fields, [[name, file]]), headers);

/** Sends `POST /batch` with files and text fields. */
export const sendBatch = (
  base: string,
  files: readonly FormFile[],
  fields: Fields = {},
  headers: Fields = {},
): Promise<ClientResponse> => postForm(`${base}/batch`, formOf(fields, files, 'files'), headers);

/** Describes a file with `POST /identify`. */
export const identify = async (base: string, file: Uint8Array, fields: Fields = {}, name = 'photo.bin') =>
  jsonOf(await expectSuccess(postForm(`${base}/identify`, formOf(fields, [[name, file]]))));

/** Sends what {@link convert} sends, and expects a result. */
export const converted = (...request: Parameters<typeof convert>): Promise<ClientResponse> =>
  expectSuccess(convert(...request));

export async function expectSuccess(sent: ClientResponse | Promise<ClientResponse>): Promise<ClientResponse> {
  const answer = await sent;
  expect(answer.outcome).to.equal('200');
  return answer;
}

/**
 * Sends `POST /convert` with a hand-written multipart body with the boundary `xyz`, encoded as
 * Latin-1.
 */
export function convertRaw(base: string, parts: readonly string[]): Promise<ClientResponse> {
  return sendForm(`${base}/convert`, {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=xyz' },
    body: Buffer.from(parts.join(''), 'latin1'),
  });
}

/** Returns the number of conversions that wait in the queue, from the metrics of the service. */
export async function conversionsWaiting(base: string): Promise<number> {
  const { body } = await sendForm(new URL('/metrics', base).href);
  return Number(/^imagemill_conversions_waiting (\d+)/m.exec(body.toString())?.[1]);
}
