/** @module Creates the tables of docs/sizing.md. */
import { labelOf, type ServiceTime } from './service-times.ts';
import { type SimulationOptions, type SimulationResult, simulate } from './simulate.ts';

/** Share of their time for which processors should work, so that waiting times stay short. */
export const TARGET_UTILIZATION = 0.7;

/** Kinds of conversions whose processor time is the distribution of service times in the simulation. */
const MIXES: Readonly<Record<string, (time: ServiceTime) => boolean>> = {
  thumbnails: ({ image, size }) => image.startsWith('photo') && size !== 'full',
  'photos to WebP': ({ image, format, size }) =>
    image.startsWith('photo') && format === 'webp' && size === 'full',
  everything: () => true,
};

/** Sizes of a cluster: instances and processors of each. */
const CLUSTERS = [
  [1, 2],
  [3, 2],
  [10, 2],
  [1, 64],
  [100, 4],
  [1000, 2],
  [1000, 64],
] as const;

/** Shares of the processors' time that arrivals ask for. */
const LOADS = [0.5, 0.7, 0.9, 1.1];

const BURSTS = { factor: 5, everyS: 30, lengthS: 2 };

/** Creates the tables by name. */
export function tables(times: readonly ServiceTime[]): {
  readonly conversions: string;
  readonly mixes: string;
} {
  return { conversions: conversionsTable(times), mixes: mixesTable(times) };
}

function conversionsTable(times: readonly ServiceTime[]): string {
  const rows = times.map((time) => {
    const processors = (100 * time.cpuMs) / 1000 / TARGET_UTILIZATION;
    return [
      labelOf(time),
      time.cpuMs.toFixed(time.cpuMs < 10 ? 1 : 0),
      (1000 / time.cpuMs).toFixed(time.cpuMs > 100 ? 1 : 0),
      processors.toFixed(processors < 10 ? 1 : 0),
      ((100 * time.bytes * 8) / 1e6).toFixed(0),
      String(time.memoryMib),
    ];
  });
  const head = [
    ...['Conversion', 'Processor time, ms', 'Per processor and second', 'Processors for 100 per second'],
    ...['Results of 100 per second, Mbit/s', 'Memory of 2 at a time, MiB'],
  ];
  return markdown(head, rows);
}

function mixesTable(times: readonly ServiceTime[]): string {
  const rows = Object.entries(MIXES).map(([name, select]) => {
    const cpu = times.filter(select).map(({ cpuMs }) => cpuMs);
    const mean = cpu.reduce((sum, ms) => sum + ms, 0) / cpu.length;
    return [
      name,
      String(cpu.length),
      Math.min(...cpu).toFixed(0),
      mean.toFixed(0),
      Math.max(...cpu).toFixed(0),
    ];
  });
  return markdown(['Mix', 'Kinds', 'Least, ms', 'Mean, ms', 'Most, ms'], rows);
}

/** Simulates clusters of all sizes under all loads. */
export function simulateAll(times: readonly ServiceTime[], requests: number): SimulationRow[] {
  return Object.entries(MIXES).flatMap(([mix, select]) => {
    const serviceMs = times.filter(select).map(({ cpuMs }) => cpuMs);
    const mean = serviceMs.reduce((sum, ms) => sum + ms, 0) / serviceMs.length;
    return CLUSTERS.flatMap(([instances, processors]) =>
      LOADS.map((load) => {
        const perSecond = (load * instances * processors * 1000) / mean;
        const options: SimulationOptions = {
          ...{ instances, processors, perSecond, serviceMs, requests, queueLimit: 200, tries: 3, seed: 1 },
          ...{ balance: 'random', bursts: BURSTS },
        };
        return { mix, load, options, result: simulate(options) };
      }),
    );
  });
}

/** A simulated cluster. */
export interface SimulationRow {
  readonly mix: string;
  readonly load: number;
  readonly options: SimulationOptions;
  readonly result: SimulationResult;
}

/** Formats the waiting times and refusals of one mix: a row per cluster, a column per load. */
export function simulationTable(rows: readonly SimulationRow[], mix: string): string {
  const cells = CLUSTERS.map(([instances, processors]) => {
    const own = rows.filter(
      (row) =>
        row.mix === mix && row.options.instances === instances && row.options.processors === processors,
    );
    return [
      `${instances} × ${processors}`,
      ...own.map(({ result: { wait, refused } }) => {
        const share = refused === 0 ? '' : `; ${(refused * 100).toFixed(refused < 0.01 ? 2 : 0)}% refused`;
        return `${formatMs(wait.p50)}, ${formatMs(wait.p99)}${share}`;
      }),
    ];
  });
  return markdown(['Instances × processors', ...LOADS.map((load) => `${load * 100}% load`)], cells);
}

const formatMs = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    line(head),
    `|${head.map((_, at) => (at === 0 ? '---|' : '--:|')).join('')}`,
    ...rows.map(line),
  ].join('\n');
}
