/**
 * @module Load generator: a number of clients, each sending the same upload again once it has its
 * response.
 */

import { Agent, request } from 'node:http';
import { formWith } from '../../test/helpers/from-address.ts';
import type { ServerProcess } from '../processes/start.ts';
import { cpuMsOfTree, memoryOfTree, othersCpuMs } from '../processes/usage.ts';
import { percentile } from '../statistics.ts';
import type { Image } from './images.ts';
import { QUALITY } from './settings.ts';

/** A conversion to measure. */
export interface Job {
  readonly image: Image;
  readonly format: string;
  /** Maximum width and height in px; undefined keeps the original size. */
  readonly side?: number | undefined;
  /**
   * Whether each request comes from a different address, so that the service counts it as another
   * client.
   */
  readonly crowd?: boolean | undefined;
}

/** Formats a conversion, such as `photo 3 MP → jpg 300`. */
export const nameOf = ({ image, format, side }: Job): string =>
  `${image.name} → ${format}${side ? ` ${side}` : ''}`;

/** Result of a measurement. */
export interface Measured {
  readonly medianMs: number;
  readonly perSecond: number;
  /** CPU time of the machine per conversion in ms, without the clients. */
  readonly cpuMs: number;
  /** CPU time of the server's own process, and of its descendants, per conversion in ms. */
  readonly serverMs: number;
  readonly toolsMs: number;
  /** Size of a result, in bytes. */
  readonly bytes: number;
  /** Peak private memory of the server and its descendants, in bytes. */
  readonly memoryBytes: number;
}

const SAMPLE_MS = 200;

/**
 * Measures a conversion with a number of concurrent clients. The first response of each client is a
 * warm-up.
 *
 * @returns undefined if the server does not support the conversion
 * @throws {Error} if a response after the warm-up is not 200
 */
export async function measure(
  { pid, base }: Pick<ServerProcess, 'pid' | 'base'>,
  job: Job,
  clients: number,
  seconds: number,
): Promise<Measured | undefined> {
  // A crowd needs a connection per request, since an address belongs to a connection.
  const agent = new Agent({ keepAlive: !job.crowd, maxSockets: clients });
  const upload = await encode(job);
  const send = (): Promise<Answer> => post(agent, base, upload, job.crowd ? nextAddress() : undefined);
  try {
    const first = await Promise.all(Array.from({ length: clients }, send));
    const [firstAnswer] = first;
    if (!firstAnswer || first.some(({ status }) => status !== 200)) return undefined;

    let memoryBytes = 0;
    const sampling = setInterval(() => {
      memoryBytes = Math.max(memoryBytes, memoryOfTree(pid).private);
    }, SAMPLE_MS);
    const latencies: number[] = [];
    const cpuBefore = othersCpuMs();
    const before = cpuMsOfTree(pid);
    const started = performance.now();
    const client = async (): Promise<void> => {
      do {
        const sent = performance.now();
        const { status } = await send();
        if (status !== 200) throw new Error(`${status} for ${job.image.name} to ${job.format}`);
        latencies.push(performance.now() - sent);
      } while (performance.now() - started < seconds * 1000);
    };
    await Promise.all(Array.from({ length: clients }, client));
    const elapsed = performance.now() - started;
    clearInterval(sampling);
    const cpuMs = (othersCpuMs() - cpuBefore) / latencies.length;
    const after = cpuMsOfTree(pid);
    return {
      medianMs: percentile(latencies, 0.5),
      perSecond: (latencies.length / elapsed) * 1000,
      cpuMs,
      serverMs: (after.own - before.own) / latencies.length,
      toolsMs: (after.descendants - before.descendants) / latencies.length,
      bytes: firstAnswer.bytes,
      memoryBytes: Math.max(memoryBytes, memoryOfTree(pid).private),
    };
  } finally {
    agent.destroy();
  }
}

/** A request: the type of its body, and its body. */
interface Upload {
  readonly type: string;
  readonly body: Buffer;
}

/** Encodes a request once for all clients. */
async function encode({ image, format, side }: Job): Promise<Upload> {
  const size = side && { width: String(side), height: String(side) };
  const fields = { output_format: format, quality: String(QUALITY), ...size };
  const form = new Response(formWith(image.bytes, 'file', fields));
  const type = form.headers.get('content-type') ?? '';
  return { type, body: Buffer.from(await form.arrayBuffer()) };
}

interface Answer {
  readonly status: number;
  readonly bytes: number;
}

let lastAddress = 0;

/**
 * Returns a loopback address that no earlier request came from: 127.1.0.0 and up, for 16 million
 * requests.
 */
function nextAddress(): string {
  lastAddress += 1;
  return `127.${1 + (lastAddress >> 16)}.${(lastAddress >> 8) & 255}.${lastAddress & 255}`;
}

function post(agent: Agent, base: string, { type, body }: Upload, localAddress?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': type, 'Content-Length': body.length };
    const options = { agent, method: 'POST', headers, localAddress };
    const sent = request(`${base}/convert`, options, (res) => {
      let bytes = 0;
      res.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      res.once('end', () => resolve({ status: res.statusCode ?? 0, bytes }));
      res.once('error', reject);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
