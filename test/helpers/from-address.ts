/**
 * @module Sends requests from loopback addresses (127.0.0.1 to 127.255.255.254), so that each
 * counts as a different client.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type Fields, formOf } from './client.ts';

/** Response headers of a request; the body is not read yet. */
export interface Sent {
  readonly status: number;
  readonly response: IncomingMessage;
}

/** A client: an address, or the name that an application at 127.0.0.1 gives it. */
export type Sender = string | { readonly id: string };

/** Sends a form from a client and waits for the response headers. */
export async function sendFrom(
  sender: Sender,
  url: string,
  form: FormData,
  signal?: AbortSignal,
): Promise<Sent> {
  const encoded = new Response(form);
  const body = Buffer.from(await encoded.arrayBuffer());
  const upload = request(url, {
    method: 'POST',
    localAddress: typeof sender === 'string' ? sender : '127.0.0.1',
    agent: false,
    headers: {
      'content-type': encoded.headers.get('content-type') ?? '',
      'content-length': body.length,
      ...(typeof sender !== 'string' && { 'x-client-id': sender.id }),
    },
    ...(signal && { signal }),
  });
  upload.end(body);
  const [response] = (await once(upload, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, response };
}

/** Creates a form with text fields and one or several files, whose names do not matter. */
export const formWith = (
  files: Uint8Array | readonly Uint8Array[],
  part = 'file',
  fields: Fields = {},
): FormData =>
  formOf(
    fields,
    (files instanceof Uint8Array ? [files] : files).map((file, at) => [`${at}.bin`, file]),
    part,
  );

export async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Controls a slow reader. */
export interface SlowReader {
  /**
   * Reads the rest at full speed.
   *
   * @returns true if the response is complete
   */
  readRest(): Promise<boolean>;
}

/** Reads a response at a limited rate. */
export function readSlowly(response: IncomingMessage, bytesPerSecond: number): SlowReader {
  response.on('error', () => {}); // reported by readRest()
  const timer = setInterval(() => response.read(Math.ceil(bytesPerSecond / 10)), 100);
  response.once('close', () => clearInterval(timer));
  return {
    async readRest() {
      clearInterval(timer);
      response.resume();
      if (!response.closed) await new Promise((resolve) => response.once('close', resolve));
      return response.complete;
    },
  };
}
