/**
 * @module Measures `POST /batch` on a separate server process and prints the measurements in bench/README.md. CPU time of
 * conversions is that of the machine without the server, so nothing else should run: `npm run build && node scripts/measure-batch.ts [folder of images]`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BUILT_PROGRAM, SERVICE_ENVIRONMENT, startServerProcess } from './processes/start.ts';
import { cpuMsOf, othersCpuMs, peakResidentBytes } from './processes/usage.ts';
import { noisyPhoto } from './stress/requests.ts';

const MIB = 1024 * 1024;
const RUNS = 5;

const folder = process.argv[2] ?? new URL('../fixtures/images', import.meta.url).pathname;
const tempDir = mkdtempSync(join(tmpdir(), 'measure-batch-'));
const server = await startServerProcess([process.execPath, BUILT_PROGRAM], {
  ...{ ...SERVICE_ENVIRONMENT, CONCURRENCY: '2', TEMP_DIR: tempDir },
});

try {
  const base = `http://127.0.0.1:${server.port}/api/v1`;
  const large = await largePhoto();
  await send(base, Array(20).fill(large), 'bmp');
  console.log(
    `20 × 10 MiB JPEG to bmp: peak RSS of the server ${(peakResidentBytes(server.pid) / MIB).toFixed(0)} MiB`,
  );

  const images = readdirSync(folder)
    .sort()
    .slice(0, 20)
    .map((name) => readFileSync(join(folder, name)));
  const ratios: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const [allBefore, ownBefore] = [othersCpuMs(), cpuMsOf(server.pid)];
    const started = performance.now();
    const bytes = await send(base, images, 'webp');
    const wall = (performance.now() - started) / 1000;
    const own = (cpuMsOf(server.pid) - ownBefore) / 1000;
    const cpu = (othersCpuMs() - allBefore) / 1000 - own;
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
  await server.end();
  rmSync(tempDir, { recursive: true, force: true });
}

/** Creates a 3 MP JPEG of noise, which compresses badly, padded to exactly 10 MiB after its end marker. */
async function largePhoto(): Promise<Buffer> {
  const jpeg = await noisyPhoto(2000, 1500, 50, 95);
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
