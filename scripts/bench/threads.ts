/** @module Measures one request at a time on idle processors, with one thread and with a thread per processor. */

import { availableParallelism } from 'node:os';
import type { ServerProcess } from '../processes/start.ts';
import { type Image, makeImages, photo } from './images.ts';
import { type Job, measure, percentile } from './load.ts';
import { startService } from './servers.ts';

const THREADS = [1, availableParallelism()] as const;
/** Limit on an upload, in bytes: more than the PNG of 12 megapixels. */
const MAX_FILE_BYTES = '100000000';

/**
 * Converts large images one at a time. Two services take turns: `CONCURRENCY` limits the threads of a conversion.
 *
 * @param folder where the images are written
 * @param rounds number of measured conversions of each service
 * @returns a table of the median times, with minimum and maximum, in milliseconds
 */
export async function measureThreads(folder: string, rounds: number): Promise<string> {
  const jobs = await makeJobs(folder);
  const servers = await Promise.all(
    THREADS.map((threads) => startService({ CONCURRENCY: String(threads), MAX_FILE_BYTES })),
  );
  const rows: string[] = [];
  for (const job of jobs)
    rows.push(`| ${nameOf(job)} | ${(await compare(job, servers, rounds)).join(' | ')} |`);
  await Promise.all(servers.map((server) => server.end()));
  const head = `| conversion | ${THREADS.map((threads) => `${threads} ${threads === 1 ? 'thread' : 'threads'}`).join(' | ')} | change |`;
  return [head, '|---|---|---|---|', ...rows].join('\n');
}

async function makeJobs(folder: string): Promise<Job[]> {
  const images = await makeImages(folder);
  const find = (name: string): Image => images.find((image) => image.name === name) as Image;
  const bytes = await (await photo(4000, 3000)).png().toBuffer();
  const png: Image = { name: 'PNG of 12 MP', file: 'photo-12.png', bytes, pixels: 4000 * 3000 };
  const drawing = { ...find('svg'), name: 'SVG' };
  return [
    { image: { ...find('photo 3 MP'), name: 'JPEG of 3 MP' }, format: 'webp' },
    ...['webp', 'jpg'].map((format) => ({ image: png, format, side: 2000 })),
    ...['webp', 'png'].map((format) => ({ image: drawing, format, side: 4000 })),
  ];
}

const nameOf = ({ image, format, side }: Job): string =>
  `${image.name} to ${format}${side ? `, ${side} px` : ''}`;

/** Returns the times of each server, and the change of the median from the first to the last. */
async function compare(job: Job, servers: readonly ServerProcess[], rounds: number): Promise<string[]> {
  const times = servers.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [at, server] of servers.entries()) {
      const measured = await measure(server, job, 1, { count: 1 });
      if (!measured) throw new Error(`the service does not convert ${nameOf(job)}`);
      times[at]?.push(measured.medianMs);
    }
  }
  for (const list of times) list.sort((a, b) => a - b);
  const [first = Number.NaN, last = Number.NaN] = times.map((list) => percentile(list, 0.5));
  const cells = times.map(
    (list) => `${percentile(list, 0.5).toFixed(0)} (${list[0]?.toFixed(0)}–${list.at(-1)?.toFixed(0)})`,
  );
  return [...cells, `${((last / first - 1) * 100).toFixed(0)}%`];
}
