import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';

/** Requests from addresses of this machine's own, 127.0.0.1 to 127.255.255.254, each of which is another client. */

export interface Sent {
  readonly status: number;
  readonly response: IncomingMessage;
}

/** Sends a form from `address`, and waits for the head of the answer. */
export async function sendFrom(
  address: string,
  url: string,
  form: FormData,
  signal?: AbortSignal,
): Promise<Sent> {
  const encoded = new Response(form);
  const body = Buffer.from(await encoded.arrayBuffer());
  const upload = request(url, {
    method: 'POST',
    localAddress: address,
    agent: false,
    headers: { 'content-type': encoded.headers.get('content-type') ?? '', 'content-length': body.length },
    ...(signal && { signal }),
  });
  upload.end(body);
  const [response] = (await once(upload, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, response };
}

/** A form with one file. */
export function formWith(
  file: Uint8Array,
  field = 'file',
  fields: Readonly<Record<string, string>> = {},
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append(field, new Blob([new Uint8Array(file)]), 'image.bin');
  return form;
}

/** The bytes of an answer. */
export async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export interface SlowReader {
  /** Reads what remains as fast as it comes, and tells whether the answer was whole. */
  readRest(): Promise<boolean>;
}

/** Reads an answer slowly. */
export function readSlowly(response: IncomingMessage, bytesPerSecond: number): SlowReader {
  response.on('error', () => {}); // told by what it lacks
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
