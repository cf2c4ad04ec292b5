/**
 * @module Compares two backends to start a program: through a launcher, and with execa from the server itself. Prints
 * the tables in bench/README.md: `node scripts/bench/starts/measure.ts`. Alternates between the two, so that load on
 * the machine affects both.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { createLaunchers, type Launchers } from '../../../src/process/launcher/launcher.ts';
import * as direct from './direct.ts';

const MIB = 1024 ** 2;
const STARTS = 200;
const ROUNDS = 5;
const ROUND_MS = 1_000;
const folder = mkdtempSync(join(tmpdir(), 'imagemill-starts-'));

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/**
 * Starts `/bin/true` repeatedly with both backends, with this process at the given resident size. Prints wall time and
 * CPU time of this process in ms: median and minimum.
 */
async function startPrograms(residentMib: number): Promise<void> {
  const ballast: Buffer[] = [];
  while (process.memoryUsage().rss < residentMib * MIB) ballast.push(Buffer.alloc(MIB, 1));
  const backends: readonly (readonly [string, Launchers])[] = [
    ['launcher', createLaunchers(async () => folder)],
    ['execa', direct.createLaunchers()],
  ];
  const options = { cwd: '/', env: {}, stdin: '/dev/null', endsDescendants: true };
  const timings = new Map(backends.map(([name]) => [name, { wall: [] as number[], cpu: [] as number[] }]));
  for (let at = 0; at < STARTS; at += 1) {
    for (const [name, launchers] of backends) {
      const cpuBefore = process.cpuUsage();
      const started = performance.now();
      const { stdout, stderr, exit } = await launchers.spawn('/bin/true', [], options);
      stdout.resume();
      stderr.resume();
      await exit;
      const { user, system } = process.cpuUsage(cpuBefore);
      timings.get(name)?.wall.push(performance.now() - started);
      timings.get(name)?.cpu.push((user + system) / 1000);
    }
  }
  for (const [name, { wall, cpu }] of timings) {
    const figures = [median(wall), Math.min(...wall), median(cpu), Math.min(...cpu)];
    console.log(`| ${residentMib} MiB | ${name} | ${figures.map((ms) => ms.toFixed(2)).join(' | ')} |`);
  }
  for (const [, launchers] of backends) await launchers.close();
  ballast.length = 0;
}

interface Server {
  readonly port: number;
  end(): Promise<void>;
}

/**
 * Starts the service and waits until it listens.
 *
 * @throws {Error} if it exits first
 */
async function startServer(nodeArgs: readonly string[], reuse: number): Promise<Server> {
  const main = new URL('../../../src/main.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, ['--optimize-for-size', ...nodeArgs, main], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      HOST: '127.0.0.1',
      RATE_LIMIT_PER_MINUTE: '0',
      TEMP_DIR: folder,
      WORKER_REUSE: String(reuse),
      LOG_LEVEL: 'info',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let printed = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      printed = (printed + chunk).slice(-10_000);
      const found = /listening on http:\/\/[\d.]+:(\d+)/.exec(printed);
      if (found) resolve(Number(found[1]));
    });
    child.once('exit', () => reject(new Error(`the server exited: ${printed}`)));
  });
  return {
    port,
    async end() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/**
 * Sends conversions to the server for one round.
 *
 * @param addresses true gives each client its own address, so the server sees many clients
 * @returns conversions per second
 */
async function load(port: number, body: Buffer, clients: number, addresses: boolean): Promise<number> {
  let done = 0;
  const started = performance.now();
  const client = async (number: number): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const localAddress = addresses ? `127.0.1.${number + 1}` : '127.0.0.1';
    while (performance.now() - started < ROUND_MS) {
      const sent = request({
        port,
        host: '127.0.0.1',
        path: '/api/v1/convert',
        method: 'POST',
        agent,
        localAddress,
        headers: HEADERS,
      });
      sent.end(body);
      const [answer] = await once(sent, 'response');
      for await (const _ of answer);
      if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
      done += 1;
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  return (done * 1000) / (performance.now() - started);
}

const BOUNDARY = 'imagemill-bench';
const HEADERS = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

/** Builds the multipart body: a noisy 320×240 JPEG to convert to JPEG. */
async function upload(): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 40 } as const;
  const photo = await sharp({ create: { width: 320, height: 240, channels: 3, background: '#888', noise } })
    .blur(2)
    .jpeg()
    .toBuffer();
  return Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="output_format"\r\n\r\njpg\r\n`),
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="photo.jpg"\r\n\r\n`),
    photo,
    Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  ]);
}

/**
 * Measures conversions per second of both backends, with and without worker reuse, and prints a table row for each
 * case.
 */
async function convert(): Promise<void> {
  const body = await upload();
  const hook = new URL('./use-direct.ts', import.meta.url).pathname;
  for (const reuse of [50, 1]) {
    const servers = [await startServer([], reuse), await startServer(['--import', hook], reuse)] as const;
    for (const clients of [1, 8]) {
      for (const addresses of clients === 1 ? [false] : [false, true]) {
        const timings: [number[], number[]] = [[], []];
        for (let round = 0; round < ROUNDS; round += 1) {
          for (const [at, { port }] of servers.entries())
            timings[at]?.push(await load(port, body, clients, addresses));
        }
        const [launcher, execa] = timings.map(median) as [number, number];
        const [best, bestExeca] = timings.map((values) => Math.max(...values)) as [number, number];
        const figures = [launcher, execa, best, bestExeca].map((perSecond) => perSecond.toFixed(1));
        const where = addresses ? 'many' : 'one';
        console.log(
          `| ${reuse} | ${clients} | ${where} | ${figures.join(' | ')} | ${(launcher / execa).toFixed(2)} |`,
        );
      }
    }
    for (const server of servers) await server.end();
  }
}

try {
  console.log(
    '| server | by | wall, median | minimum | CPU time of the server, median | minimum |\n|---|---|---|---|---|---|',
  );
  for (const residentMib of [110, 170]) await startPrograms(residentMib);
  console.log(
    '\n| WORKER_REUSE | clients | addresses | launcher, median | execa | launcher, best | execa | ratio of medians |\n|---|---|---|---|---|---|---|---|',
  );
  await convert();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
