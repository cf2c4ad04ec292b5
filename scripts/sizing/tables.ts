/** @module Creates the tables of docs/sizing.md. */
import { labelOf, type ServiceTime } from './service-times.ts';
import { type SimulationOptions, type SimulationResult, simulate } from './simulate.ts';

/** Target utilization of processors, at which waiting times stay short. */
const TARGET_UTILIZATION = 0.7;

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

/** Offered load, as a share of the processors' time. */
const LOADS = [0.5, 0.7, 0.9, 1.1];

const BURSTS = { factor: 5, everyS: 30, lengthS: 2 };

/** Creates the table of conversions. */
export function conversionsTable(times: readonly ServiceTime[]): string {
  const rows = times.map((time) => {
    const processors = (100 * time.cpuMs) / 1000 / TARGET_UTILIZATION;
    return [
      labelOf(time),
      time.cpuMs.toFixed(time.cpuMs < 10 ? 1 : 0),
      (1000 / time.cpuMs).toFixed(time.cpuMs > 100 ? 1 : 0),
      processors.toFixed(processors < 10 ? 1 : 0),
      ((100 * time.bytes * 8) / 1e6).toFixed(0),
      String(time.memoryMb),
    ];
  });
  const head = [
    ...['Conversion', 'Processor time, ms', 'Per processor and second', 'Processors for 100 per second'],
    ...['Results of 100 per second, Mbit/s', 'Memory of 2 at a time, MB'],
  ];
  return markdown(head, rows);
}

/** Requests of a simulation, unless one cycle of {@link BURSTS} has more. */
const MAX_REQUESTS = 300_000;

/** Simulates clusters of all sizes under all loads, for whole cycles of calm and burst. */
export function simulateClusters(times: readonly ServiceTime[]): SimulationRow[] {
  const serviceMs = times.map(({ cpuMs }) => cpuMs);
  const mean = serviceMs.reduce((sum, ms) => sum + ms, 0) / serviceMs.length;
  return CLUSTERS.flatMap(([instances, processors]) =>
    LOADS.map((load) => {
      const perSecond = (load * instances * processors * 1000) / mean;
      const perCycle = perSecond * (BURSTS.everyS + BURSTS.lengthS);
      const options: SimulationOptions = {
        instances,
        processors,
        perSecond,
        serviceMs,
        queueLimit: 200,
        tries: 3,
        seed: 1,
        balance: 'random',
        bursts: BURSTS,
        requests: Math.round(perCycle * Math.max(1, Math.floor(MAX_REQUESTS / perCycle))),
      };
      return { load, options, result: simulate(options) };
    }),
  );
}

/** A simulated cluster. */
export interface SimulationRow {
  readonly load: number;
  readonly options: SimulationOptions;
  readonly result: SimulationResult;
}

/** Formats the waiting times and the shares of rejected requests: a row per cluster, a column per load. */
export function simulationTable(rows: readonly SimulationRow[]): string {
  const cells = CLUSTERS.map(([instances, processors]) => {
    const own = rows.filter(
      (row) => row.options.instances === instances && row.options.processors === processors,
    );
    return [
      `${instances} × ${processors}`,
      ...own.map(({ result: { wait, refused } }) => {
        const share = refused === 0 ? '' : `; ${(refused * 100).toFixed(refused < 0.01 ? 2 : 0)}% rejected`;
        return `${formatMs(wait.p50)}, ${formatMs(wait.p99)}${share}`;
      }),
    ];
  });
  return markdown(
    ['Instances × processors', ...LOADS.map((load) => `${Math.round(load * 100)}% load`)],
    cells,
  );
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
