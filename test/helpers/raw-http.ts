import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** HTTP as bytes, for what no HTTP client sends. */

/** Connects to the server at `base`, if `from` is given from that address of this machine. */
export async function dial(base: string, from?: string): Promise<Socket> {
  const { hostname, port } = new URL(base);
  const socket = connect({ port: Number(port), host: hostname, ...(from && { localAddress: from }) });
  socket.on('error', () => {}); // a test looks at what was read
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

/** Resolves when a connection is closed, also by an error. */
export const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()));

/** Sends `text` on a connection of its own and returns all that comes back until the server closes it. */
export async function exchange(base: string, text: string): Promise<string> {
  const socket = await dial(base);
  socket.write(text, 'latin1');
  return readAll(socket);
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** What follows the head, other answers included. */
  readonly rest: string;
}

/** The first answer in `text`. */
export function parseAnswer(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(/: (.*)/).slice(0, 2) as [string, string]));
  return { status: Number(first.split(' ')[1]), headers, rest: rest.join('\r\n\r\n') };
}

/** The statuses of all answers in `text`, in order. */
export const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
