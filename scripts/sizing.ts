/**
 * @module Creates the tables and the plot of docs/sizing.md from bench/report.md, with simulated clusters:
 * `node scripts/sizing.ts`
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { barChart } from './bar-chart.ts';
import { conversionsTable, parseServiceTimes, simulationTable } from './sizing/tables.ts';

const path = (name: string): string => new URL(`../${name}`, import.meta.url).pathname;
const times = parseServiceTimes(readFileSync(path('bench/report.md'), 'utf8'));
const parts = { conversions: conversionsTable(times), simulation: simulationTable(times) };
let document = readFileSync(path('docs/sizing.md'), 'utf8');
for (const [name, table] of Object.entries(parts)) {
  const marker = new RegExp(`(<!-- ${name} -->)[^]*?(<!-- end -->)`);
  if (!marker.test(document)) throw new Error(`docs/sizing.md has no place for ${name}`);
  document = document.replace(marker, (_, start: string, end: string) => `${start}\n\n${table}\n\n${end}`);
}
writeFileSync(path('docs/sizing.md'), document);

const bars = times
  .toSorted((one, other) => one.cpuMs - other.cpuMs)
  .map(({ label, cpuMs }) => {
    const text = cpuMs.toFixed(cpuMs < 10 ? 1 : 0);
    return { label, text, from: 1, to: cpuMs, colour: '#2a6f97' };
  });
const chart = barChart('Processor time per conversion', bars, [1, 2000], [1, 10, 100, 1000], ' ms');
mkdirSync(path('docs/sizing'), { recursive: true });
writeFileSync(path('docs/sizing/conversions.svg'), chart);
