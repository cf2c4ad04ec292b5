/** @module Compares uploads as forms with images as bodies: `--bodies`. */
import { type Image, makeImages } from './images.ts';
import { type Job, measure } from './load.ts';
import { spread } from './report.ts';
import { startService } from './servers.ts';

/** Conversions to measure: from the one that takes least to a large upload. */
const JOBS = [
  ['photo 320×240', 'jpg', undefined],
  ['photo 0.75 MP', 'webp', undefined],
  ['photo 3 MP', 'jpg', 300],
] as const;
const CLIENTS = 8;

/**
 * Measures one service with both kinds of requests in turns.
 *
 * @param folder where the images are written
 * @param seconds duration of a measurement
 * @returns a table of conversions per second, and of the ratio in each round: median, minimum and maximum
 */
export async function measureBodies(folder: string, rounds: number, seconds: number): Promise<string> {
  const images = await makeImages(folder);
  const server = await startService();
  const rows: string[] = [];
  for (const [name, format, side] of JOBS) {
    const job: Job = { image: images.find((image) => image.name === name) as Image, format, side };
    const perSecond = async (asBody: boolean): Promise<number> =>
      (await measure(server, { ...job, asBody }, CLIENTS, { seconds }))?.perSecond ?? Number.NaN;
    const forms: number[] = [];
    const bodies: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      forms.push(await perSecond(false));
      bodies.push(await perSecond(true));
    }
    const { median, least, most } = spread(bodies.map((body, round) => body / (forms[round] as number)));
    const cells = [spread(forms).median.toFixed(1), spread(bodies).median.toFixed(1)];
    const ratio = `${median.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
    rows.push(`| ${name} → ${format}${side ? ` ${side}` : ''} | ${cells.join(' | ')} | ${ratio} |`);
  }
  await server.end();
  return ['| Conversion | Form | Body | Body, relative to form |', '|---|---|---|---|', ...rows].join('\n');
}
