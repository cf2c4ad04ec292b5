/**
 * @module Measures the memory of `imagemill convert --update` with many small files, and the time of a second run that
 * finds everything up to date: `npm run build && node scripts/measure-bulk.ts [files] [options of imagemill convert]`.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import sharp from 'sharp';
import { BUILT_PROGRAM } from './processes/start.ts';
import { peakResidentBytes } from './processes/usage.ts';

const [fileCount = '100000', ...options] = process.argv.slice(2);
const FILES_PER_FOLDER = 1000;
/** Sampling interval, in ms. The kernel keeps the peak, so a late sample loses nothing. */
const SAMPLE_MS = 200;
const MIB = 1024 ** 2;

const folder = mkdtempSync(join(tmpdir(), 'measure-bulk-'));
const source = join(folder, 'source');
const results = join(folder, 'results');

try {
  const count = Number(fileCount);
  await makeImages(count);
  for (const run of ['first run', 'second run']) {
    const { seconds, peakMib, summary } = await convertAll();
    const found = readdirSync(results, { recursive: true }).filter((name) => String(name).endsWith('.webp'));
    console.log(`${run}: ${seconds.toFixed(1)} s, peak resident memory ${peakMib} MiB, ${summary}`);
    if (found.length !== count) throw new Error(`${found.length} of ${count} results exist`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Creates copies of a small image. */
async function makeImages(count: number): Promise<void> {
  const background = { r: 200, g: 80, b: 20 };
  const image = await sharp({ create: { width: 16, height: 16, channels: 3, background } })
    .png()
    .toBuffer();
  for (let index = 0; index < count; index += 1) {
    const parent = join(source, `folder-${Math.floor(index / FILES_PER_FOLDER)}`);
    if (index % FILES_PER_FOLDER === 0) mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, `image-${index}.png`), image);
  }
}

/** Converts the folder, and measures the peak of the resident memory. */
async function convertAll(): Promise<{ seconds: number; peakMib: number; summary: string }> {
  const started = performance.now();
  const args = ['--optimize-for-size', BUILT_PROGRAM, 'convert', source, '-o', results, '--update', '--json'];
  const child = spawn(process.execPath, [...args, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  let tail = '';
  child.stdout.on('data', (chunk: Buffer) => {
    tail = `${tail}${chunk}`.slice(-1000);
  });
  let peakMib = 0;
  while (child.exitCode === null && child.signalCode === null) {
    peakMib = Math.max(peakMib, Math.round(peakResidentBytes(child.pid ?? 0) / MIB));
    await wait(SAMPLE_MS);
  }
  await ended;
  if (child.exitCode !== 0) throw new Error(`the command ended with ${child.exitCode ?? child.signalCode}`);
  const summary = tail.trim().split('\n').at(-1) ?? '';
  return { seconds: (performance.now() - started) / 1000, peakMib, summary };
}
