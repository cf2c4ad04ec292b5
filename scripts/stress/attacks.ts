/** @module Attacks of one client on the service, each on a separate server, and their effect on other clients. */
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { ONE_PIXEL } from '../../src/process/policy.ts';
import { formWith, readBody, sendFrom } from '../../test/helpers/from-address.ts';
import { doublingSvg } from '../../test/helpers/hostile-files.ts';
import { memoryOf, slowness } from '../processes/usage.ts';
import { median, percentile } from '../statistics.ts';
import { count, emptyTally } from './clients.ts';
import { type FaultParts, finish, type Outcome, turnProblems } from './fault.ts';
import { noise, noisyPhoto } from './requests.ts';
import { listLeftovers, type Server, startServer } from './server.ts';

/** An attack by many connections. */
interface Attack {
  /** Starts the attack and returns its connections. */
  readonly start: (port: number) => readonly Socket[];
  /** Maximum growth of the server's resident memory during the attack, in bytes. */
  readonly maxGrowthBytes: number;
  /** Maximum growth that is left a minute later, in bytes. malloc keeps some memory of what is no longer used. */
  readonly maxKeptBytes: number;
}

/** Limits of attacks with requests that have no body. */
const REQUESTS = { maxGrowthBytes: 60e6, maxKeptBytes: 30e6 };
/** Limits of attacks with bodies. Node.js reads into buffers of 64 KiB, and collects them as garbage when they take 64 MB. */
const BODIES = { maxGrowthBytes: 200e6, maxKeptBytes: 200e6 };
/** Maximum memory in use that a second attack adds to what the first one left, in bytes. The first one loads code. */
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
/** Sends these chunks on four connections: to a route that reads them, and to one that discards them. */
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

/** Slow requests of one client while another converts small images. */
interface SlowRequests {
  readonly path: string;
  readonly requests: number;
  readonly atOnce: number;
  readonly form: () => Promise<FormData>;
  /** Expected statuses of the slow requests. */
  readonly expected: readonly number[];
  /** Whether to wait for the responses, beyond the time of the fault. */
  readonly untilAnswered: boolean;
  /** Whether a second client sends these requests, too, one at a time. */
  readonly hasSecondClient?: boolean;
  /** Whether turns of the event loop must be short, and the median time of another client's conversion at most {@link MAX_SLOWDOWN}. */
  readonly mustStayQuick?: boolean;
}

/**
 * Maximum time in the queue of another client's conversion, in ms. With two attackers, it can wait for the end of a conversion: the
 * default of CONVERT_TIMEOUT_MS, and the end of the process on a busy machine.
 */
const MAX_QUEUE_MS = 35_000;
/** Maximum median time of another client's conversion, relative to the median without the slow requests, and added to it. */
const [MAX_SLOWDOWN, MAX_ADDED_MS] = [4, 500];
/** Conversions of another client to time without the slow requests. */
const TIMED = 20;
const [ATTACKER, SECOND_CLIENT, OTHER_CLIENT] = ['127.0.0.5', '127.0.0.6', '127.0.0.9'];

const TURBULENCE = '<feTurbulence baseFrequency="0.05" numOctaves="9"/><feGaussianBlur stdDeviation="9"/>';
const turbulentSvg = Buffer.from(
  `<svg xmlns="http://www.w3.org/2000/svg" width="7000" height="7000"><filter id="f">${TURBULENCE.repeat(50)}</filter><rect width="7000" height="7000" filter="url(#f)"/></svg>`,
);

/** Creates a batch of 20 different photos of 1.5 megapixels, to be converted to BMP. */
async function bmpBatch(): Promise<FormData> {
  const photo = await noisyPhoto(1500, 1000, 20);
  const files = Array.from({ length: 20 }, (_, at) => Buffer.concat([photo, Buffer.from(`${at}`)]));
  return formWith(files, 'files', { format: 'bmp' });
}

/** Creates a request to convert an AVIF of 14 megapixels and about 500 kB without loss. */
async function largeAvif(): Promise<FormData> {
  const avif = await noise(4320, 3240, 16).avif({ quality: 42, effort: 0 }).toBuffer();
  return formWith(avif, 'file', { lossless: 'true' });
}

const tenSvgs = {
  ...{ path: '/convert', requests: 10, atOnce: 4, form: async () => formWith(turbulentSvg) },
  ...{ expected: [200, 413, 503], untilAnswered: false },
} satisfies SlowRequests;

/** Slow requests by the name that the report prints. */
const SLOW_REQUESTS: Readonly<Record<string, SlowRequests>> = {
  'ten SVGs of 49 megapixels with 50 turbulences and blurs, four at a time': tenSvgs,
  'SVGs of 49 megapixels of two clients': { ...tenSvgs, hasSecondClient: true },
  'AVIFs of 14 megapixels of two clients': {
    ...{ path: '/convert', requests: 6, atOnce: 4, form: largeAvif, expected: [200, 413, 503] },
    ...{ untilAnswered: false, hasSecondClient: true },
  },
  'four batches of 20 BMP results': {
    ...{ path: '/batch', requests: 4, atOnce: 4, form: bmpBatch, expected: [200], untilAnswered: true },
  },
  'ten batches of SVGs with doubling custom properties': {
    form: async () => formWith(Array.from({ length: 20 }, doublingSvg), 'files'),
    ...{ path: '/batch', requests: 10, atOnce: 10, expected: [200] },
    ...{ untilAnswered: true, mustStayQuick: true },
  },
};

/** {@link ATTACKS} and {@link SLOW_REQUESTS} as faults of the stress test. */
export const ATTACK_FAULTS = Object.fromEntries([
  ...Object.entries(ATTACKS).map(([name, attack]) => [name, withServer(runAttack, attack)] as const),
  ...Object.entries(SLOW_REQUESTS).map(([name, slow]) => [name, withServer(runSlowRequests, slow)] as const),
]);

function withServer<T>(run: (attack: T, server: Server, parts: FaultParts) => Promise<Outcome>, attack: T) {
  return async (parts: FaultParts) => run(attack, await startServer(), parts);
}

async function runSlowRequests(attack: SlowRequests, server: Server, parts: FaultParts): Promise<Outcome> {
  const tally = emptyTally();
  const send = async (
    address: string,
    path: string,
    form: FormData,
    expected: readonly number[],
    signal?: AbortSignal,
  ) => {
    const began = performance.now();
    const { status, response } = await sendFrom(address, server.base + path, form, signal);
    await readBody(response);
    tally.requests += 1;
    count(tally, status);
    if (!expected.includes(status)) tally.wrong.push(`${path} from ${address}: ${status}`);
    const queueMs = Number(/queue;dur=([\d.]+)/.exec(String(response.headers['server-timing']))?.[1] ?? 0);
    return { ms: performance.now() - began, queueMs };
  };
  const convertPixel = () => send(OTHER_CLIENT, '/convert', formWith(ONE_PIXEL), [200]);
  for (let count = 0; count < 5; count += 1) await convertPixel(); // so that the tools are in the cache
  const alone: number[] = [];
  while (alone.length < TIMED) alone.push((await convertPixel()).ms);
  await server.measure();

  const forms = await Promise.all(Array.from({ length: attack.requests }, attack.form));
  const stop = new AbortController();
  const began = performance.now();
  let lastAnswerMs = 0;
  const addresses = Array.from({ length: attack.atOnce }, () => ATTACKER);
  const attackers = [...addresses, ...(attack.hasSecondClient ? [SECOND_CLIENT] : [])].map(
    async (address) => {
      for (let form = forms.pop(); form && !stop.signal.aborted; form = forms.pop()) {
        try {
          await send(address, attack.path, form, attack.expected, stop.signal);
          lastAnswerMs = performance.now() - began;
        } catch (error) {
          if (!stop.signal.aborted) tally.wrong.push(`${attack.path}: no response (${error})`);
        }
      }
    },
  );
  let isAnswered = false;
  const answered = Promise.all(attackers).then(() => {
    isAnswered = true;
  });
  const others: { ms: number; queueMs: number }[] = [];
  const isOver = () => !attack.untilAnswered && performance.now() - began > parts.seconds * 1000;
  while (!isAnswered && !isOver()) {
    others.push(await convertPixel());
    await pause(50);
  }
  stop.abort();
  await answered;
  const { longestTurnMs } = await server.measure();
  const times = others.map(({ ms }) => ms);
  const queueMs = Math.max(...others.map((other) => other.queueMs));
  if (queueMs > MAX_QUEUE_MS)
    tally.wrong.push(`another client waited for ${queueMs.toFixed(0)} ms in the queue`);
  if (attack.mustStayQuick) {
    tally.wrong.push(...turnProblems(longestTurnMs));
    if (median(times) > MAX_SLOWDOWN * median(alone) + MAX_ADDED_MS * slowness())
      tally.wrong.push(`another client waited for ${median(times).toFixed(0)} ms`);
  }
  const [before, usual, most] = [median(alone), median(times), Math.max(...times)].map(
    (ms) => `${ms.toFixed(0)} ms`,
  );
  const figures = `${times.length} conversions of another client: median ${usual} (${before} before), at most ${most}, in the queue at most ${queueMs.toFixed(0)} ms; longest turn ${longestTurnMs.toFixed(1)} ms of CPU time; last response of the attack after ${(lastAnswerMs / 1000).toFixed(1)} s`;
  return { ...(await finish(parts, server, tally)), figures };
}

async function runAttack(attack: Attack, server: Server, { seconds }: FaultParts): Promise<Outcome> {
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
   * Attacks once, waits until the memory is free and no longer shrinks, {@link FREE_MS} at most, and returns the memory in use.
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
  const status = await server.end();
  const livezMs = percentile(durations, 0.99);
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
  const wrong = [
    ...turnProblems(longestTurnMs),
    ...(growth > attack.maxGrowthBytes ? [`memory grew by ${mb(growth)}`] : []),
    ...(kept > attack.maxKeptBytes ? [`${mb(kept)} were not freed`] : []),
    ...(leaked > MAX_LEAKED_BYTES ? [`a second attack added ${mb(leaked)} in use`] : []),
    ...(status === 0 ? [] : [`ended with ${status}`]),
  ];
  const figures = `/livez: 99% within ${livezMs.toFixed(1)} ms; longest turn ${longestTurnMs.toFixed(1)} ms of CPU time; memory ${mb(growth)} above before, ${mb(kept)} afterwards, ${mb(leaked)} more in use after a second attack`;
  const tally = { requests: durations.length, answers: { 200: durations.length }, right: 0, wrong };
  return { tally, figures, left: await listLeftovers(server) };
}
