/**
 * @module Converts every image of a folder to several results, and compares the processor time with
 * that of sharp in one process.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import type { OutputType } from '../../src/tables/formats.ts';
import { convertWith, type EngineInput, typeOf } from '../../test/helpers/engine.ts';
import { startEngine } from '../engine.ts';
import { cpuMsOf } from '../processes/usage.ts';
import { geometricMean, markdownTable, median } from '../statistics.ts';
import { QUALITY, withSharp } from './settings.ts';

const FORMATS: readonly OutputType[] = ['jpg', 'webp', 'png'];
/** Longer sides of results in pixels; undefined for the full size. */
const SIDES = [300, 1200, undefined] as const;
/**
 * Minimum longer side of a source in pixels. The time of smaller ones is that of starting a
 * process.
 */
const MIN_SIDE = 300;
/** Ratio from which on a row is listed. */
const SLOW = 4;
/** Minimum processor time of one measurement in ms. That of tools is known in units of 10 ms. */
const MEASURED_MS = 200;

interface Pair {
  readonly name: string;
  readonly format: OutputType;
  readonly side: number | undefined;
  /** Medians, in ms. */
  readonly imagemillMs: number;
  readonly sharpMs: number;
}

/**
 * Measures in turns. Leaves out small files, those that one of both cannot read, and results that
 * are not smaller than their source.
 *
 * @param only selects pairs by name, such as "scan.tiff → png 300"
 * @returns a report in Markdown
 */
export async function sweep(folder: string, rounds: number, only: string): Promise<string> {
  sharp.concurrency(1);
  sharp.cache(false);
  await using engine = await startEngine('error');
  const pairs: Pair[] = [];
  for (const name of readdirSync(folder).sort())
    for (const pair of await measureFile(engine, join(folder, name), name, rounds, only)) {
      pairs.push(pair);
      process.stderr.write(`${cells(pair).join('  ')}\n`);
    }
  return report(pairs);
}

async function measureFile(
  engine: ConversionEngine,
  path: string,
  name: string,
  rounds: number,
  only: string,
): Promise<Pair[]> {
  const bytes = readFileSync(path);
  const type = await typeOf(bytes);
  const { width = 0, height = 0 } = await sharp(bytes)
    .metadata()
    .catch(() => ({}) as { width?: number; height?: number });
  if (!type || Math.max(width, height) < MIN_SIDE) return [];
  const pairs: Pair[] = [];
  for (const side of SIDES)
    for (const format of FORMATS) {
      if (side && side >= Math.max(width, height)) continue;
      if (!nameOf({ name, format, side }).match(only)) continue;
      const pair = await measurePair(engine, { type, bytes }, format, side, rounds).catch(() => undefined);
      if (pair) pairs.push({ name, format, side, ...pair });
    }
  return pairs;
}

async function measurePair(
  engine: ConversionEngine,
  input: EngineInput,
  format: OutputType,
  side: number | undefined,
  rounds: number,
): Promise<Pick<Pair, 'imagemillMs' | 'sharpMs'>> {
  const options = { format, quality: QUALITY, metadata: 'none', width: side, height: side } as const;
  const ways = {
    imagemill: () => convertWith(engine, input, options, async () => {}),
    sharp: () => withSharp(Buffer.from(input.bytes), format, side).toBuffer(),
  };
  const times: Record<keyof typeof ways, number[]> = { imagemill: [], sharp: [] };
  for (let round = 0; round < rounds; round += 1)
    for (const way of ['imagemill', 'sharp'] as const) times[way].push(await measureMs(ways[way]));
  return { imagemillMs: median(times.imagemill), sharpMs: median(times.sharp) };
}

/**
 * Returns the processor time of one call in ms, from as many calls as a measurement takes, also on
 * a busy machine.
 */
async function measureMs(convert: () => Promise<unknown>): Promise<number> {
  let [cpuMs, calls] = [0, 0];
  while (cpuMs < MEASURED_MS) {
    const more = Math.max(1, calls); // reading the time takes as long as a small conversion
    cpuMs += await cpuMsOf(async () => {
      for (let call = 0; call < more; call += 1) await convert();
    });
    calls += more;
  }
  return cpuMs / calls;
}

const ratioOf = ({ imagemillMs, sharpMs }: Pair): number => imagemillMs / sharpMs;

const nameOf = ({ name, format, side }: Pick<Pair, 'name' | 'format' | 'side'>): string =>
  `${name} → ${format}${side ? ` ${side}` : ''}`;

const cells = (pair: Pair): string[] => [
  nameOf(pair),
  pair.imagemillMs.toFixed(1),
  pair.sharpMs.toFixed(1),
  ratioOf(pair).toFixed(2),
];

function report(pairs: readonly Pair[]): string {
  const groups: [string, readonly Pair[]][] = [
    ['all', pairs],
    ...FORMATS.map((format): [string, Pair[]] => [format, pairs.filter((pair) => pair.format === format)]),
    ...SIDES.map((side): [string, Pair[]] => [
      side ? `${side} pixels` : 'full size',
      pairs.filter((pair) => pair.side === side),
    ]),
  ];
  const slow = pairs.filter((pair) => ratioOf(pair) > SLOW).sort((a, b) => ratioOf(b) - ratioOf(a));
  const means = groups
    .filter(([, group]) => group.length > 0)
    .map(([name, group]) => [name, String(group.length), geometricMean(group.map(ratioOf)).toFixed(2)]);
  return [
    markdownTable(['Results', 'Pairs', 'Geometric mean of the ratios'], means),
    `Pairs above ${SLOW}: ${slow.length}`,
    markdownTable(['Conversion', 'imagemill, ms', 'sharp, ms', 'Ratio'], slow.map(cells)),
  ].join('\n\n');
}
