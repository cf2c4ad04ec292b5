/**
 * @module Measures `POST /batch` on a separate server process and prints the measurements in bench/README.md: `npm run
 * build && node scripts/measure-batch.ts [folder of images]`.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';

const MIB = 1024 * 1024;
const RUNS = 5;
/** Clock ticks per second in /proc: 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;

const folder = process.argv[2] ?? new URL('../fixtures/images', import.meta.url).pathname;
const tempDir = mkdtempSync(join(tmpdir(), 'measure-batch-'));
const main = new URL('../dist/main.js', import.meta.url).pathname;
const server = spawn(process.execPath, [main], {
  env: {
    ...process.env,
    PORT: '0',
    HOST: '127.0.0.1',
    RATE_LIMIT_PER_MINUTE: '0',
    CONCURRENCY: '2',
    TEMP_DIR: tempDir,
  },
});

try {
  const base = await listening();
  const large = await largePhoto();
  await send(base, Array(20).fill(large), 'bmp');
  console.log(`20 × 10 MiB JPEG to bmp: peak RSS of the server ${(peakRss() / MIB).toFixed(0)} MiB`);

  const images = readdirSync(folder)
    .sort()
    .slice(0, 20)
    .map((name) => readFileSync(join(folder, name)));
  const ratios: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const [before, ownCpuBefore] = [cpuSeconds('children'), cpuSeconds('own')];
    const started = performance.now();
    const bytes = await send(base, images, 'webp');
    const wall = (performance.now() - started) / 1000;
    const cpu = cpuSeconds('children') - before;
    const own = cpuSeconds('own') - ownCpuBefore;
    ratios.push(wall / (cpu / 2));
    console.log(
      `${images.length} images of ${folder} to webp, ${bytes} bytes: wall ${wall.toFixed(2)} s, ` +
        `conversions ${cpu.toFixed(2)} s of CPU time (the server ${own.toFixed(2)} s), wall / (CPU time / 2) = ${ratios.at(-1)?.toFixed(3)}`,
    );
  }
  console.log(
    `median ratio of ${RUNS} runs: ${ratios.sort((a, b) => a - b)[Math.floor(RUNS / 2)]?.toFixed(3)}`,
  );
} finally {
  server.kill('SIGTERM');
  await new Promise((resolve) => server.once('exit', resolve));
  rmSync(tempDir, { recursive: true, force: true });
}

/** Resolves to the base URL of the API once the server has printed its address. */
function listening(): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    server.stdout.on('data', (data) => {
      output += data;
      const address = /listening on (http:\/\/[\d.]+:\d+)/.exec(output)?.[1];
      if (address) resolve(`${address}/api/v1`);
    });
    server.once('exit', () => reject(new Error(output)));
  });
}

/** Creates a 3 MP JPEG of noise, which compresses badly, padded to exactly 10 MiB after its end marker. */
async function largePhoto(): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 50 } as const;
  const jpeg = await sharp({ create: { width: 2000, height: 1500, channels: 3, background: 'grey', noise } })
    .jpeg({ quality: 95 })
    .toBuffer();
  return Buffer.concat([jpeg, Buffer.alloc(10 * MIB)], 10 * MIB);
}

/**
 * Sends a batch and reads the whole response.
 *
 * @returns the size of the response in bytes
 */
async function send(base: string, files: readonly Buffer[], format: string): Promise<number> {
  const form = new FormData();
  form.append('format', format);
  form.append('on_error', 'skip');
  files.forEach((file, at) => void form.append('files', new Blob([new Uint8Array(file)]), `${at}`));
  const response = await fetch(`${base}/batch`, { method: 'POST', body: form });
  if (response.status !== 200 || !response.body)
    throw new Error(`${response.status} ${await response.text()}`);
  let bytes = 0;
  for await (const chunk of response.body) bytes += chunk.length;
  return bytes;
}

/** Returns the peak resident memory of the server in bytes (`VmHWM`). */
function peakRss(): number {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

/** Returns the CPU time in seconds of the server itself, or of its terminated children: fields 14 to 17 of proc(5). */
function cpuSeconds(whose: 'own' | 'children'): number {
  const stat = readFileSync(`/proc/${server.pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const at = whose === 'own' ? 11 : 13;
  return (Number(fields[at]) + Number(fields[at + 1])) / TICKS_PER_SECOND;
}
