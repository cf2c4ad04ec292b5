/**
 * @module Creates the tables and the plot of docs/sizing.md from bench/report.md, with simulated clusters:
 * `node scripts/sizing.ts`
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { plot } from './sizing/plot.ts';
import { parseServiceTimes } from './sizing/service-times.ts';
import { conversionsTable, simulateClusters, simulationTable } from './sizing/tables.ts';

const path = (name: string): string => new URL(`../${name}`, import.meta.url).pathname;
const times = parseServiceTimes(readFileSync(path('bench/report.md'), 'utf8'));
const parts: Record<string, string> = {
  conversions: conversionsTable(times),
  simulation: simulationTable(simulateClusters(times)),
};
let document = readFileSync(path('docs/sizing.md'), 'utf8');
for (const [name, table] of Object.entries(parts)) {
  const marker = new RegExp(`(<!-- ${name} -->)[^]*?(<!-- end -->)`);
  if (!marker.test(document)) throw new Error(`docs/sizing.md has no place for ${name}`);
  document = document.replace(marker, (_, start: string, end: string) => `${start}\n\n${table}\n\n${end}`);
}
writeFileSync(path('docs/sizing.md'), document);
mkdirSync(path('docs/sizing'), { recursive: true });
writeFileSync(path('docs/sizing/conversions.svg'), plot(times, 'Processor time per conversion'));
