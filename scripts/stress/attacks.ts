/**
 * @module Attacks by many connections, each on a separate server, and the memory that they take and
 * leave.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryOf } from '../processes/usage.ts';
import { percentile } from '../statistics.ts';
import { endServer, type Fault, type FaultParts, type Outcome, turnProblems } from './fault.ts';
import { startServer } from './server.ts';

/** An attack by many connections. */
interface Attack {
  /** Starts the attack and returns its connections. */
  readonly start: (port: number) => readonly Socket[];
  /** Maximum growth of the server's resident memory during the attack, in bytes. */
  readonly maxGrowthBytes: number;
  /**
   * Maximum growth that is left a minute later, in bytes. malloc keeps some memory of what is no
   * longer used.
   */
  readonly maxKeptBytes: number;
}

/** Limits of attacks with requests that have no body. */
const REQUESTS = { maxGrowthBytes: 60e6, maxKeptBytes: 30e6 };
/**
 * Limits of attacks with bodies. Node.js reads into buffers of 64 KiB, and collects them as garbage
 * when they take 64 MB.
 */
const BODIES = { maxGrowthBytes: 200e6, maxKeptBytes: 200e6 };
/**
 * Maximum memory in use that a second attack adds to what the first one left, in bytes. The first
 * one loads code.
 */
const MAX_LEAKED_BYTES = 3e6;
/** Time after an attack in which the memory has to be freed, in milliseconds. */
const FREE_MS = 60_000;

const open = (port: number, count: number, text: string): Socket[] =>
  Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}); // the server may close the connection
    socket.pause().write(text, 'latin1');
    return socket;
  });

const GET = 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
const GET_1_0 = 'GET /api/v1/openapi.json HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n';
const formHead = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\n`;
const REFUSED = `${formHead('/api/v1/convert?quality=80')}Content-Length: 5\r\n\r\nhello`;
/**
 * Sends these chunks on four connections: to a route that reads them, and to one that discards
 * them.
 */
const openBodies = (port: number, chunks: string): Socket[] =>
  ['/api/v1/convert', '/nothing'].flatMap((path) =>
    open(port, 2, `${formHead(path)}Transfer-Encoding: chunked\r\n\r\n${chunks}`),
  );

const MANY = '20 connections with 3000 unread pipelined requests';

/** Attacks by the name that the report prints. */
const ATTACKS: Readonly<Record<string, Attack>> = {
  [MANY]: { start: (port) => open(port, 20, GET.repeat(3000)), ...REQUESTS },
  [`${MANY} in HTTP/1.0`]: { start: (port) => open(port, 20, GET_1_0.repeat(3000)), ...REQUESTS },
  [`${MANY} after a refused upload`]: {
    start: (port) => open(port, 20, `${REFUSED}${GET.repeat(3000)}`),
    ...REQUESTS,
  },
  'bodies in chunks of one byte': {
    start: (port) => openBodies(port, '1\r\n-\r\n'.repeat(5e6)),
    ...BODIES,
  },
  'bodies in chunks of 64 bytes': {
    start: (port) => openBodies(port, `40\r\n${'-'.repeat(64)}\r\n`.repeat(10e6 / 64)),
    ...BODIES,
  },
};

/** {@link ATTACKS} as faults of the stress test. */
export const ATTACK_FAULTS: Readonly<Record<string, Fault>> = Object.fromEntries(
  Object.entries(ATTACKS).map(([name, attack]) => [name, (parts) => runAttack(attack, parts)]),
);

async function runAttack(attack: Attack, { seconds }: FaultParts): Promise<Outcome> {
  const server = await startServer();
  const { origin, port } = new URL(server.base);
  const durations: number[] = [];
  const probe = async (): Promise<void> => {
    const began = performance.now();
    await (await fetch(`${origin}/livez`)).text();
    durations.push(performance.now() - began);
  };
  for (let count = 0; count < 100; count += 1) await probe();
  durations.length = 0;
  await server.measure();
  const before = memoryOf(server.pid).resident;
  const grownBytes = (): number => memoryOf(server.pid).resident - before;
  let [growth, longestTurnMs] = [0, 0];

  /**
   * Attacks once, waits until the memory is free and no longer shrinks, {@link FREE_MS} at most,
   * and returns the memory in use.
   *
   * @param mostBytes memory in use from which on it counts as free
   */
  async function runOnce(mostBytes = Number.POSITIVE_INFINITY): Promise<number> {
    const sockets = attack.start(Number(port));
    const deadline = performance.now() + (seconds * 1000) / 2;
    while (performance.now() < deadline) {
      await probe();
      growth = Math.max(growth, grownBytes());
      await pause(5);
    }
    for (const socket of sockets) socket.destroy();
    const ended = performance.now();
    for (let before = Number.POSITIVE_INFINITY; ; ) {
      await pause(500);
      const measured = await server.measure();
      longestTurnMs = Math.max(longestTurnMs, measured.longestTurnMs);
      const { usedBytes } = measured;
      const isFree = grownBytes() <= attack.maxKeptBytes && usedBytes <= mostBytes;
      const shrinks = before - usedBytes > MAX_LEAKED_BYTES;
      if ((isFree && !shrinks) || performance.now() - ended > FREE_MS) return usedBytes;
      before = usedBytes;
    }
  }
  const first = await runOnce();
  const leaked = (await runOnce(first + MAX_LEAKED_BYTES)) - first;
  const kept = grownBytes();
  const livezMs = percentile(durations, 0.99);
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const wrong = [
    ...turnProblems(longestTurnMs),
    ...(growth > attack.maxGrowthBytes ? [`memory grew by ${mb(growth)}`] : []),
    ...(kept > attack.maxKeptBytes ? [`${mb(kept)} were not freed`] : []),
    ...(leaked > MAX_LEAKED_BYTES ? [`a second attack added ${mb(leaked)} in use`] : []),
  ];
  const figures = `/livez: 99% within ${livezMs.toFixed(1)} ms; longest turn ${longestTurnMs.toFixed(1)} ms of CPU time; memory ${mb(growth)} above before, ${mb(kept)} afterwards, ${mb(leaked)} more in use after a second attack`;
  const tally = { requests: durations.length, answers: { 200: durations.length }, right: 0, wrong };
  return { tally, figures, left: await endServer(server, wrong) };
}
