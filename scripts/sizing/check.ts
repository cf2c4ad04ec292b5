/** @module Sends a Poisson process of requests to three real instances behind nginx, and simulates the same. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { photo } from '../bench/images.ts';
import { cpuMsOf } from '../bench/process-tree.ts';
import { startService } from '../bench/servers.ts';
import { seeded } from '../stress/random.ts';
import { simulateSharedMachine } from './shared-machine.ts';
import { type SimulationResult, summarizeWaits } from './simulate.ts';

const INSTANCES = 3;
/** Conversions that may wait in each instance. */
const QUEUE_LIMIT = 20;
const BURSTS = { factor: 4, everyS: 15, lengthS: 2 };
/** Number of conversions, one at a time, that determine the service times. */
const ALONE = 40;
/** Duration of the measurement of the capacity, in ms. */
const CAPACITY_MS = 10_000;
/** Number of concurrent requests during that measurement: each instance always has one that waits. */
const CAPACITY_CLIENTS = 2 * INSTANCES;
/** Number of simulations with different random service times. */
const SIMULATIONS = 20;

interface Sample {
  /** Time of the request, in ms on the clock of `performance`. */
  readonly atMs: number;
  readonly status: number;
  readonly queueMs: number;
  readonly convertMs: number;
}

type Send = () => Promise<Sample>;

/**
 * Runs the instances, and prints the measurement, and the result of a simulation of the same arrivals.
 *
 * @param seconds duration
 * @param load requests relative to those that the machine can convert
 */
export async function checkSimulation(seconds: number, load: number): Promise<void> {
  const settings = { CONCURRENCY: '1', QUEUE_LIMIT: String(QUEUE_LIMIT), TRUST_PROXY: '1' };
  const instances = await Promise.all(Array.from({ length: INSTANCES }, () => startService(settings)));
  const proxy = await startProxy(instances.map(({ port }) => port));
  const image = await (await photo(1000, 750)).jpeg({ quality: 90 }).toBuffer();
  const send: Send = () => convert(proxy.port, image);
  try {
    const processors = availableParallelism();
    const alone = await sendOneByOne(send);
    const capacity = await measureCapacity(send);
    const workMs = (processors * 1000) / capacity;
    const proxyBefore = cpuMsOf(proxy.pid);
    const samples = await sendPoisson(send, load * capacity, seconds);
    const proxyMs = (cpuMsOf(proxy.pid) - proxyBefore) / samples.length;

    console.log(
      `${samples.length} requests; alone ${average(alone).toFixed(0)} ms; ${capacity.toFixed(1)} per second at most, ` +
        `so ${workMs.toFixed(0)} ms of ${processors} processors each`,
    );
    console.log('measured ', format(summarize(samples, workMs / processors)));
    const scale = workMs / average(alone);
    const options = { instances: INSTANCES, concurrency: 1, processors, queueLimit: QUEUE_LIMIT, tries: 3 };
    const results = Array.from({ length: SIMULATIONS }, (_, seed) => {
      const random = seeded(seed);
      const arrivals = samples.map(({ atMs }) => ({
        atMs: atMs - (samples[0] as Sample).atMs,
        workMs: random.pick(alone) * scale,
      }));
      return simulateSharedMachine({ ...options, arrivals });
    });
    console.log('simulated', format(averageOf(results)));
    console.log(`nginx: ${proxyMs.toFixed(2)} ms of processor time per request of ${image.length} bytes`);
  } finally {
    for (const instance of instances) instance.end();
    proxy.end();
  }
}

/** Returns the conversion times in ms of requests that follow each other, without the first one of each instance. */
async function sendOneByOne(send: Send): Promise<number[]> {
  const times: number[] = [];
  for (let at = 0; at < ALONE + INSTANCES; at += 1) times.push((await send()).convertMs);
  return times.slice(INSTANCES);
}

/** Returns the number of conversions per second when no instance is ever idle. */
async function measureCapacity(send: Send): Promise<number> {
  const began = performance.now();
  let count = 0;
  const client = async (): Promise<void> => {
    while (performance.now() - began < CAPACITY_MS) {
      await send();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: CAPACITY_CLIENTS }, client));
  return (count / (performance.now() - began)) * 1000;
}

/** @param workMs time of the whole machine per conversion, in ms */
function summarize(samples: readonly Sample[], workMs: number): SimulationResult {
  const done = samples.filter(({ status }) => status === 200);
  const [first, last] = [samples[0] as Sample, samples.at(-1) as Sample];
  return {
    wait: summarizeWaits(done.map(({ queueMs }) => queueMs)),
    refused: 1 - done.length / samples.length,
    utilization: (done.length * workMs) / (last.atMs - first.atMs),
  };
}

function averageOf(results: readonly SimulationResult[]): SimulationResult {
  const of = (get: (result: SimulationResult) => number): number => average(results.map(get));
  return {
    wait: {
      mean: of(({ wait }) => wait.mean),
      p50: of(({ wait }) => wait.p50),
      p95: of(({ wait }) => wait.p95),
      p99: of(({ wait }) => wait.p99),
    },
    refused: of(({ refused }) => refused),
    utilization: of(({ utilization }) => utilization),
  };
}

/** Sends requests at random times, whether earlier ones have ended or not. */
async function sendPoisson(send: Send, perSecond: number, seconds: number): Promise<Sample[]> {
  const random = seeded(3);
  const exponential = (meanMs: number): number => -Math.log(1 - random.next()) * meanMs;
  const { factor, everyS, lengthS } = BURSTS;
  const base = (perSecond * (everyS + lengthS)) / (everyS + factor * lengthS);
  const pending: Promise<Sample>[] = [];
  const began = performance.now();
  let [isBurst, at, phaseEnd] = [false, 0, everyS * 1000];
  while (at < seconds * 1000) {
    const next = at + exponential(1000 / (isBurst ? base * factor : base));
    if (next > phaseEnd) {
      at = phaseEnd;
      isBurst = !isBurst;
      phaseEnd = at + (isBurst ? lengthS : everyS) * 1000;
      continue;
    }
    at = next;
    const delay = began + at - performance.now();
    if (delay > 0) await wait(delay);
    pending.push(send());
  }
  return Promise.all(pending);
}

async function convert(port: number, image: Buffer): Promise<Sample> {
  const atMs = performance.now();
  const body = new FormData();
  body.append('file', new Blob([new Uint8Array(image)]), 'a.jpg');
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/convert`, { method: 'POST', body });
  await response.arrayBuffer();
  const timing = response.headers.get('server-timing') ?? '';
  const duration = (name: string): number =>
    Number(new RegExp(`${name};dur=([\\d.]+)`).exec(timing)?.[1] ?? 0);
  return { atMs, status: response.status, queueMs: duration('queue'), convertMs: duration('convert') };
}

/** Starts nginx with the proxy settings of docker/nginx.conf that matter here. */
async function startProxy(ports: readonly number[]) {
  const folder = mkdtempSync(join(tmpdir(), 'imagemill-sizing-'));
  const port = await freePort();
  const servers = ports.map((each) => `server 127.0.0.1:${each} max_fails=0;`).join(' ');
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 4096; }
http { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream imagemill { ${servers} keepalive 64; }
  server { listen 127.0.0.1:${port}; client_max_body_size 211m; location / {
    proxy_pass http://imagemill; proxy_http_version 1.1; proxy_set_header Connection '';
    proxy_next_upstream error timeout http_502 http_503 non_idempotent; proxy_next_upstream_tries 3; } } }`,
  );
  const env = { PATH: `${process.env.PATH}:/usr/sbin` };
  const args = ['-p', folder, '-e', `${folder}/error.log`, '-c', join(folder, 'nginx.conf')];
  const child = spawn('nginx', args, { stdio: 'ignore', env });
  await once(child, 'spawn');
  return {
    pid: child.pid as number,
    port,
    end() {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

function format({ wait: { mean, p50, p95, p99 }, refused, utilization }: SimulationResult): string {
  const ms = [mean, p50, p95, p99].map((value) => value.toFixed(0));
  return `wait mean ${ms[0]}, median ${ms[1]}, p95 ${ms[2]}, p99 ${ms[3]} ms; rejected ${(refused * 100).toFixed(1)}%; utilization ${utilization.toFixed(2)}`;
}

const average = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
