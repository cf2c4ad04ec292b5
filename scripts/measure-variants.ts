/**
 * @module Measures `variants` on a separate server process, for bench/README.md: the time of six variants of a photo of 12 megapixels
 * beside six conversions, alternately, and the peak memory of the largest tool with one result and with twelve of a photo of 50 megapixels.
 * `npm run build && node scripts/measure-variants.ts`
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { photo } from './bench/images.ts';
import { BUILT_PROGRAM, SERVICE_ENVIRONMENT, startServerProcess } from './processes/start.ts';

const ROUNDS = 9;
const WIDTHS = ['160', '320', '640'];
const SIX = WIDTHS.flatMap((width) => ['webp', 'jpg'].map((format) => ({ width, format })));
const TWELVE = Array.from({ length: 12 }, (_, at) => ({ width: String(200 + 100 * at), format: 'jpg' }));
/** Of 74 megapixels together: `MAX_TOTAL_PIXELS` is 75 by default. */
const TWELVE_LARGE = TWELVE.map((_, at) => ({
  width: String(2240 + 100 * at),
  format: at % 2 ? 'jpg' : 'webp',
}));
/** Time between two readings of the memory, in milliseconds. The kernel keeps the peak of each process. */
const SAMPLE_MS = 10;

const tempDir = mkdtempSync(join(tmpdir(), 'measure-variants-'));
const server = await startServerProcess([process.execPath, BUILT_PROGRAM], {
  ...{
    ...SERVICE_ENVIRONMENT,
    CONCURRENCY: '2',
    TEMP_DIR: tempDir,
    MAX_FILE_BYTES: '200000000',
    CONVERT_TIMEOUT_MS: '300000',
  },
});
const url = `http://127.0.0.1:${server.port}/api/v1/convert`;

try {
  const medium = await jpeg(4000, 3000);
  const single: number[] = [];
  const together: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    single.push(await time(() => convertEach(medium, SIX)));
    together.push(await time(() => convertTogether(medium, SIX)));
  }
  const [one, all] = [median(single), median(together)];
  console.log(
    `12 MP JPEG to ${WIDTHS.join(', ')} pixels as WebP and JPEG, medians of ${ROUNDS} rounds: six conversions ${one.toFixed(0)} ms, ` +
      `six variants ${all.toFixed(0)} ms, ratio ${(all / one).toFixed(2)}`,
  );

  const large = await (await photo(8000, 6250)).png({ compressionLevel: 1 }).toBuffer();
  const before = await peakOf(() => convertEach(large, TWELVE.slice(-1)));
  const after = await peakOf(() => convertTogether(large, TWELVE));
  console.log(
    `50 MP PNG, peak memory of the largest tool: one result ${before} MiB, twelve variants ${after} MiB`,
  );
  const whole = await peakOf(() => convertEach(large, [{ format: 'jpg' }]));
  const wholeWebp = await peakOf(() => convertEach(large, [{ format: 'webp' }]));
  const many = await peakOf(() => convertTogether(large, TWELVE_LARGE));
  console.log(
    `Results of the same size: JPEG ${whole} MiB, WebP ${wholeWebp} MiB; twelve variants of 74 MP together: ${many} MiB`,
  );
} finally {
  await server.end();
  rmSync(tempDir, { recursive: true, force: true });
}

async function jpeg(width: number, height: number): Promise<Buffer> {
  return (await photo(width, height)).jpeg({ quality: 90 }).toBuffer();
}

async function convertEach(file: Buffer, all: readonly Readonly<Record<string, string>>[]): Promise<void> {
  for (const fields of all) await send(file, fields);
}

async function convertTogether(file: Buffer, all: readonly object[]): Promise<void> {
  await send(file, { variants: JSON.stringify(all.map((options, at) => ({ name: `v${at}`, ...options }))) });
}

async function send(file: Buffer, fields: Readonly<Record<string, string>>): Promise<void> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append('file', new Blob([new Uint8Array(file)]), 'photo.jpg');
  const response = await fetch(url, { method: 'POST', body: form });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  await response.arrayBuffer();
}

async function time(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Returns the peak memory of a process that the server has started, in MiB. */
async function peakOf(work: () => Promise<void>): Promise<number> {
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, ...descendants(server.pid).map(peakMiB));
  }, SAMPLE_MS);
  await work().finally(() => clearInterval(timer));
  return peak;
}

/** Returns the processes that a process has started, directly or not. */
function descendants(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    const parent = Number(/^PPid:\s+(\d+)/m.exec(statusOf(Number(name)))?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const of = (one: number): number[] => (children.get(one) ?? []).flatMap((child) => [child, ...of(child)]);
  return of(pid);
}

function peakMiB(pid: number): number {
  return Math.round(Number(/^VmHWM:\s+(\d+) kB/m.exec(statusOf(pid))?.[1] ?? 0) / 1024);
}

/** Returns what the kernel states about a process; nothing if it has ended. */
function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
