/** @module Sends a Poisson process of requests to three real instances behind nginx, and simulates the same. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { cpuMsOf } from '../bench/process-tree.ts';
import { startService } from '../bench/servers.ts';
import { seeded } from '../stress/random.ts';
import { percentile, type SimulationOptions, type SimulationResult, simulate } from './simulate.ts';

const INSTANCES = 3;
/** Conversions that may wait in each instance. */
const QUEUE_LIMIT = 20;
const BURSTS = { factor: 4, everyS: 15, lengthS: 2 };
/** Number of conversions that determine the service times in advance. */
const WARM_UP = 30;

interface Sample {
  /** Time of the request, in ms on the clock of `performance`. */
  readonly atMs: number;
  readonly status: number;
  readonly queueMs: number;
  readonly convertMs: number;
}

/**
 * Runs the instances, prints what was measured and what the simulation says for the measured service times.
 *
 * @param seconds duration
 * @param load share of the time for which the instances should work
 */
export async function checkSimulation(seconds: number, load: number): Promise<void> {
  const settings = { CONCURRENCY: '1', QUEUE_LIMIT: String(QUEUE_LIMIT), TRUST_PROXY: '1' };
  const instances = await Promise.all(Array.from({ length: INSTANCES }, () => startService(settings)));
  const proxy = await startProxy(instances.map(({ port }) => port));
  const photo = readFileSync(new URL('../../fixtures/images/scene.jpg', import.meta.url));
  try {
    const send = (): Promise<Sample> => convert(proxy.port, photo);
    const first: Sample[] = [];
    for (let at = 0; at < WARM_UP; at += 1) first.push(...(await Promise.all([send(), send(), send()])));
    const mean = average(first.map(({ convertMs }) => convertMs));
    const perSecond = (load * INSTANCES * 1000) / mean;
    const [before, began] = [cpuMsOf(proxy.pid), performance.now()];
    const samples = await sendPoisson(send, perSecond, seconds);
    const proxyMs = (cpuMsOf(proxy.pid) - before) / samples.length;
    const rate = (samples.length / (performance.now() - began)) * 1000;

    const done = samples.filter(({ status }) => status === 200);
    const waits = done.map(({ queueMs }) => queueMs).sort((a, b) => a - b);
    const serviceMs = done.map(({ convertMs }) => convertMs);
    const measured: SimulationResult = {
      wait: {
        mean: average(waits),
        ...{ p50: percentile(waits, 0.5), p95: percentile(waits, 0.95), p99: percentile(waits, 0.99) },
      },
      refused: 1 - done.length / samples.length,
      utilization: (average(serviceMs) * rate) / 1000 / INSTANCES,
    };
    const options: SimulationOptions = {
      ...{ instances: INSTANCES, processors: 1, queueLimit: QUEUE_LIMIT, tries: 3, balance: 'round-robin' },
      ...{ perSecond: rate, bursts: BURSTS, serviceMs, requests: 500_000, seed: 2 },
    };
    const replayed = simulate({ ...options, trace: toTrace(samples) });
    const simulated = simulate(options);
    console.log(
      `${samples.length} requests, ${rate.toFixed(1)} per second, service ${average(serviceMs).toFixed(1)} ms`,
    );
    for (const [name, result] of Object.entries({ measured, replayed, simulated }))
      console.log(name, format(result));
    console.log(`nginx: ${proxyMs.toFixed(2)} ms of processor time per request of ${photo.length} bytes`);
  } finally {
    for (const instance of instances) instance.end();
    proxy.end();
  }
}

/** Returns the arrivals with their service times. A refused request has that of the one before. */
function toTrace(samples: readonly Sample[]): { atMs: number; serviceMs: number }[] {
  let serviceMs = 0;
  return samples.map(({ atMs, status, convertMs }) => {
    if (status === 200) serviceMs = convertMs;
    return { atMs: atMs - (samples[0]?.atMs ?? 0), serviceMs };
  });
}

/** Sends requests at random times, whether earlier ones have ended or not. */
async function sendPoisson(
  send: () => Promise<Sample>,
  perSecond: number,
  seconds: number,
): Promise<Sample[]> {
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

async function convert(port: number, photo: Buffer): Promise<Sample> {
  const atMs = performance.now();
  const body = new FormData();
  body.append('file', new Blob([new Uint8Array(photo)]), 'a.jpg');
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
  return `wait mean ${ms[0]}, median ${ms[1]}, p95 ${ms[2]}, p99 ${ms[3]} ms; refused ${(refused * 100).toFixed(1)}%; utilization ${utilization.toFixed(2)}`;
}

const average = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
