/** @module Attacks of one client on the service, each on a separate server, and their effect on other clients. */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Outcome } from './faults.ts';
import { filesLeft, memoryOf, processesLeft, type Server, startServer } from './server.ts';

/** An attack, and the maximum effect that it may have. */
interface Attack {
  /** Starts the attack and returns its connections. */
  readonly start: (port: number) => readonly Socket[];
  /** Maximum growth of the server's resident memory, in bytes. */
  readonly maxGrowthBytes: number;
}

/** 99th percentile of the duration of `/livez` for another client, in milliseconds. */
const MAX_LIVEZ_MS = 50;
const MB = 1e6;

const open = (port: number, count: number, text: string): Socket[] =>
  Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}); // the server may close the connection
    socket.pause().write(text, 'latin1');
    return socket;
  });

/** Attacks by the name that the report prints. */
const ATTACKS: Readonly<Record<string, Attack>> = {
  '20 connections with 3000 unread pipelined requests': {
    start: (port) => open(port, 20, 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3000)),
    maxGrowthBytes: 60 * MB,
  },
  'bodies in chunks of one byte': {
    start: (port) =>
      ['/api/v1/convert', '/nothing'].flatMap((path) =>
        open(
          port,
          2,
          `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n-\r\n'.repeat(5e6)}`,
        ),
      ),
    maxGrowthBytes: 60 * MB,
  },
};

/** {@link ATTACKS} as faults of the stress test. */
export const ATTACK_FAULTS = Object.fromEntries(
  Object.entries(ATTACKS).map(([name, attack]) => [
    name,
    async ({ seconds }: { readonly seconds: number }) => runAttack(attack, await startServer(), seconds),
  ]),
);

async function runAttack(attack: Attack, server: Server, seconds: number): Promise<Outcome> {
  const { origin, port } = new URL(server.base);
  const durations: number[] = [];
  const probe = async (): Promise<void> => {
    const began = performance.now();
    await (await fetch(`${origin}/livez`)).text();
    durations.push(performance.now() - began);
  };
  for (let count = 0; count < 100; count += 1) await probe();
  durations.length = 0;
  const before = memoryOf(server.pid).own;
  let growth = 0;
  const sockets = attack.start(Number(port));
  const deadline = performance.now() + seconds * 1000;
  while (performance.now() < deadline) {
    await probe();
    growth = Math.max(growth, memoryOf(server.pid).own - before);
    await pause(5);
  }
  for (const socket of sockets) socket.destroy();
  const { code } = await server.end('SIGTERM');
  const livezMs = durations.sort((a, b) => a - b)[Math.floor(durations.length * 0.99)] ?? 0;
  const wrong = [
    ...(livezMs > MAX_LIVEZ_MS ? [`99% of /livez take up to ${livezMs.toFixed(0)} ms`] : []),
    ...(growth > attack.maxGrowthBytes ? [`memory grew by ${(growth / MB).toFixed(0)} MB`] : []),
    ...(code === 0 ? [] : [`ended with status ${code}`]),
  ];
  const answers = {
    '/livez': durations.length,
    'ms at the 99th percentile': Math.round(livezMs),
    'MB of growth': Math.round(growth / MB),
  };
  const left = [
    ...filesLeft(server.tempDir),
    ...processesLeft(server.tempDir).map((pid) => `process ${pid}`),
  ];
  return { tally: { requests: durations.length, answers, right: 0, wrong }, left };
}
