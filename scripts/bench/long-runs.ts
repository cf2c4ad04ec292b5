/** @module Long-running measurements: memory growth and rare slow conversions. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpuMsOf, privateBytes, residentBytes } from '../processes/usage.ts';
import type { Image } from './images.ts';
import { convertOnce, measure, percentile } from './load.ts';
import { startService } from './servers.ts';

const MIB = 1024 ** 2;

/**
 * Converts a small photo `conversions` times with 8 clients.
 *
 * @returns a sentence with the CPU time per conversion, and the resident memory, with its private part in parentheses, of the Node.js process at each tenth of the run
 */
export async function measureMemory(image: Image, conversions: number): Promise<string> {
  const server = await startService();
  const samples: string[] = [];
  let done = 0;
  const before = cpuMsOf(server.pid);
  while (done < conversions) {
    const measured = await measure(server, { image, format: 'jpg' }, 8, { count: conversions / 10 });
    if (!measured) throw new Error('a conversion of the memory measurement failed');
    done += measured.count;
    samples.push(
      `${(residentBytes(server.pid) / MIB).toFixed(0)} (${(privateBytes(server.pid) / MIB).toFixed(0)})`,
    );
  }
  const cpuMsEach = (cpuMsOf(server.pid) - before) / done;
  await server.end();
  return `${cpuMsEach.toFixed(2)} ms of CPU time of the Node.js process per conversion. Resident memory of the Node.js process, and its private part in parentheses, at each tenth of ${done} conversions: ${samples.join(', ')} MiB.`;
}

/**
 * Converts the images of a folder to WebP, one after another and repeatedly, until `conversions` are done.
 *
 * @returns a sentence with the share below one second, median, p99 and maximum
 */
export async function measurePhotos(folder: string, conversions: number): Promise<string> {
  const images = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(jpe?g|png|tiff?|webp|avif)$/i.test(entry.name))
    .map(({ name }) => ({ name, file: name, bytes: readFileSync(join(folder, name)), pixels: 0 })); // no result depends on `pixels`
  const server = await startService();
  const times: number[] = [];
  for (let at = 0; at < conversions; at += 1) {
    const image = images[at % images.length] as Image;
    const started = performance.now();
    const { status } = await convertOnce(server, { image, format: 'webp' });
    if (status === 200) times.push(performance.now() - started);
  }
  await server.end();
  times.sort((a, b) => a - b);
  const fast = times.filter((ms) => ms < 1000).length;
  return `${times.length} conversions of ${images.length} real images to webp (${conversions - times.length} failed): ${((fast / times.length) * 100).toFixed(1)}% under one second, median ${percentile(times, 0.5).toFixed(0)} ms, p99 ${percentile(times, 0.99).toFixed(0)} ms, longest ${times.at(-1)?.toFixed(0)} ms.`;
}
