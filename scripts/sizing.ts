/**
 * @module Creates the tables and the plot of docs/sizing.md, and checks the simulation against real instances.
 *
 *   node scripts/sizing.ts              tables and plot from bench/report.md, with simulated clusters
 *   node scripts/sizing.ts --check 60   runs three instances for 60 s, and simulates the same
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { checkSimulation } from './sizing/check.ts';
import { plot } from './sizing/plot.ts';
import { parseServiceTimes } from './sizing/service-times.ts';
import { conversionsTable, simulateClusters, simulationTable } from './sizing/tables.ts';

const path = (name: string): string => new URL(`../${name}`, import.meta.url).pathname;
const { values } = parseArgs({
  options: { check: { type: 'string' }, load: { type: 'string', default: '0.7' } },
});

if (values.check) await checkSimulation(Number(values.check), Number(values.load));
else createDocument();

/** Replaces the tables between the markers in docs/sizing.md, and the plot. */
function createDocument(): void {
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
}
