/**
 * @module Converts damaged copies of every image of a folder:
 * `npm run fuzz -- FOLDER [--count 2000] [--seed 1] [--save DIR]`. `--count` is the number of
 * copies per type. Each copy must be converted, or rejected with 400, 413 or 415. Where sharp and
 * Pillow still show the image of the undamaged file, so must the result. Prints the findings and
 * saves their files. At the end, and on SIGINT, prints a row of counts per type. Exits with 1 if
 * there are findings.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pLimit from 'p-limit';
import type { InputType } from '../src/tables/formats.ts';
import { startEngine } from './engine.ts';
import { check, KINDS, loadSource, type Outcome, type Source } from './fuzz/check.ts';
import { mutate } from './fuzz/mutate.ts';
import { seeded } from './stress/random.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    save: { type: 'string', default: 'fuzz-findings' },
  },
});
const [folder] = positionals;
if (!folder) {
  console.error('usage: npm run fuzz -- FOLDER [--count 2000] [--seed 1] [--save DIR]');
  process.exit(2);
}
/** Copies that are checked at once. */
const LANES = 2;

const count = Number(values.count);
await using engine = await startEngine('fatal');
const { below } = seeded(Number(values.seed));
const outcomes = new Map<InputType, Outcome[]>();
let stopped = false;
process.once('SIGINT', () => {
  stopped = true;
});

/** Checks `count` damaged copies per type, one of each type in turn, until SIGINT. */
async function fuzz(sources: ReadonlyMap<InputType, readonly Source[]>): Promise<void> {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const copies = numbers.flatMap((number) => [...sources].map((ofType) => [number, ...ofType] as const));
  await pLimit(LANES).map(copies, async ([number, type, ofType]) => {
    if (stopped) return;
    const source = ofType[number % ofType.length] as Source;
    const bytes = mutate(source.bytes, below);
    const outcome = await check(engine, source, bytes);
    outcomes.get(type)?.push(outcome);
    if (outcome.finding) save(`${number}-${source.name}`, outcome.finding, bytes);
  });
}

/** Saves a file with a finding, and prints the finding. */
function save(label: string, finding: string, bytes: Buffer): void {
  mkdirSync(values.save, { recursive: true });
  writeFileSync(join(values.save, label), bytes);
  console.log(`${label}: ${finding}`);
}

const sources = new Map<InputType, Source[]>();
for (const name of readdirSync(folder).sort()) {
  const source = await loadSource(engine, name, readFileSync(join(folder, name)));
  if (source) sources.set(source.type, [...(sources.get(source.type) ?? []), source]);
}
for (const type of sources.keys()) outcomes.set(type, []);
const started = performance.now();
await fuzz(sources);
const seconds = (performance.now() - started) / 1000;
for (const [type, all] of outcomes) console.log(`${type}: ${formatCounts(all, sources.get(type) ?? [])}`);
const all = [...outcomes.values()].flat();
const findings = all.filter(({ finding }) => finding).length;
const { version } = engine.toolchain.magick ?? { version: 'none' };
const rate = (all.length / seconds).toFixed(1);
console.log(`ImageMagick ${version}: ${all.length} copies, ${findings} findings, ${rate} copies a second`);
process.exitCode = findings > 0 ? 1 : 0;

/** Formats how many outcomes of each kind there are, and how many files they come from. */
function formatCounts(outcomes: readonly Outcome[], from: readonly Source[]): string {
  const counts = KINDS.map((kind) => `${kind} ${outcomes.filter((one) => one.kind === kind).length}`);
  const compared = outcomes.filter((one) => one.compared).length;
  const known = from.filter(({ image }) => image).length;
  return `${counts.join(', ')}, compared ${compared}; from ${from.length} files, ${known} with a known image`;
}
