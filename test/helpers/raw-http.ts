/** @module Sends raw HTTP, including requests that no HTTP client sends. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Type and start of a form whose file is an image. */
export const FORM_TYPE = 'Content-Type: multipart/form-data; boundary=xyz\r\n';
const FILE_PART = '--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n';

export const formBody = (file: Buffer): Buffer =>
  Buffer.concat([Buffer.from(FILE_PART), file, Buffer.from('\r\n--xyz--\r\n')]);

/** Formats the head of a conversion with a form of this length. */
export const formHead = (length: number): string =>
  `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\n${FORM_TYPE}Content-Length: ${length}\r\n\r\n`;

const BATCH_START = FILE_PART.replace('name="file"', 'name="files"');

/**
 * Returns the start of a batch of one file, whose rest is missing.
 *
 * @param length the number of bytes that it announces; none for a body in chunks
 * @param headers more headers, each with its line break
 */
export function startOfBatch(file: Buffer, length?: number, headers = ''): Buffer {
  const body = Buffer.concat([Buffer.from(BATCH_START), file, Buffer.alloc(50_000)]);
  const framing =
    length === undefined
      ? `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`
      : `Content-Length: ${length}\r\n\r\n`;
  const head = `POST /api/v1/batch HTTP/1.1\r\nHost: x\r\n${headers}${FORM_TYPE}${framing}`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** Formats a conversion of an image, as Latin-1. */
export function conversionRequest(file: Buffer): string {
  const body = formBody(file);
  return formHead(body.length) + body.toString('latin1');
}

/** Connects to the server at `base`, from the local address `from` if given. */
export async function dial(base: string, from?: string): Promise<Socket> {
  const { hostname, port } = new URL(base);
  const socket = connect({ port: Number(port), host: hostname, ...(from && { localAddress: from }) });
  socket.on('error', () => {}); // tests check the data that was read
  await once(socket, 'connect');
  return socket;
}

/** Reads until the server closes the connection. */
export async function readAll(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (data) => {
    text += data.toString('latin1');
  });
  await closed(socket);
  return text;
}

/** Resolves when a connection is closed, also after an error. */
export const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()));

/** Sends `text` on a new connection and returns everything received until the server closes it. */
export async function exchange(base: string, text: string): Promise<string> {
  const socket = await dial(base);
  socket.write(text, 'latin1');
  return readAll(socket);
}

/** A parsed response. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Everything after the headers, including further responses. */
  readonly rest: string;
}

/** Parses the first response in `text`. */
export function parseAnswer(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(/: (.*)/).slice(0, 2) as [string, string]));
  return { status: Number(first.split(' ')[1]), headers, rest: rest.join('\r\n\r\n') };
}

/** Returns the statuses of all responses in `text`, in order. */
export const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
