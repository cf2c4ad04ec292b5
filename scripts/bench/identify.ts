/** @module Compares `/identify` with what `/convert` does before its tools start: `--identify`. */
import { makeImages } from './images.ts';
import { spread } from './report.ts';
import { startService } from './servers.ts';

const IMAGES = ['photo 320×240', 'photo 0.75 MP', 'photo 3 MP', 'png screen'];
const OPTIONS = 'output_format=webp&width=300';

/**
 * Sends both requests in turns, one at a time, with the same options. The time of `/convert` before its tools is the whole time
 * without the conversion, which `Server-Timing` states.
 *
 * @param folder where the images are written
 * @param rounds number of pairs of requests, without one of each as a warm-up
 * @returns a table of milliseconds: medians, and the difference of each pair with minimum and maximum
 */
export async function measureIdentify(folder: string, rounds: number): Promise<string> {
  const images = (await makeImages(folder)).filter(({ name }) => IMAGES.includes(name));
  const server = await startService();
  const send = async (path: string, body: Uint8Array): Promise<number> => {
    const start = performance.now();
    const url = `http://127.0.0.1:${server.port}/api/v1/${path}?${OPTIONS}`;
    const headers = { 'content-type': 'application/octet-stream' };
    const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    const converted = /convert;dur=([\d.]+)/.exec(response.headers.get('server-timing') ?? '')?.[1] ?? 0;
    return performance.now() - start - Number(converted);
  };
  const rows: string[] = [];
  for (const { name, bytes } of images) {
    const pairs: { readonly identify: number; readonly plan: number }[] = [];
    for (let round = 0; round <= rounds; round += 1)
      pairs.push({ identify: await send('identify', bytes), plan: await send('convert', bytes) });
    const [, ...measured] = pairs;
    const { median, least, most } = spread(measured.map(({ identify, plan }) => identify - plan));
    const medians = [measured.map(({ plan }) => plan), measured.map(({ identify }) => identify)].map((all) =>
      spread(all).median.toFixed(1),
    );
    rows.push(
      `| ${name} | ${medians.join(' | ')} | ${median.toFixed(1)} (${least.toFixed(1)}–${most.toFixed(1)}) |`,
    );
  }
  await server.end();
  const head = '| Image | `/convert` without the conversion, ms | `/identify`, ms | Difference of a pair |';
  return [head, '|---|---|---|---|', ...rows].join('\n');
}
