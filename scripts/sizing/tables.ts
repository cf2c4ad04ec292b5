/** @module Creates the tables of docs/sizing.md from the report of the benchmark and from simulated clusters. */
import { tableRows } from '../../test/helpers/markdown.ts';
import { markdownTable } from '../statistics.ts';
import { type SimulationOptions, simulate } from './simulate.ts';

/** A kind of conversion, as the benchmark measured it at 8 clients, which keep both processors of the machine busy. */
export interface ServiceTime {
  /** Such as `photo 3 MP → webp 300 px`. */
  readonly label: string;
  /** Processor time of the machine per conversion, without the clients, in ms. */
  readonly cpuMs: number;
  /** Peak private memory of the server and the tools, in MB. */
  readonly memoryMb: number;
  /** Size of the result in bytes. */
  readonly bytes: number;
}

/**
 * Parses the table of a report, such as `bench/report.md`.
 *
 * @throws {Error} if the table lacks a column
 */
export function parseServiceTimes(report: string): ServiceTime[] {
  const [head = [], ...rows] = tableRows(report);
  const column = (name: string): ((row: readonly string[]) => string) => {
    const at = head.indexOf(name);
    if (at < 0) throw new Error(`the report has no column "${name}"`);
    return (row) => row[at] ?? '';
  };
  const [image, format, size, bytes] = [column('image'), column('to'), column('size'), column('bytes')];
  const [clients, cpu, memory] = [column('clients'), column('CPU ms'), column('tree MiB')];
  return rows
    .filter((row) => clients(row) === '8')
    .map((row) => ({
      label: `${image(row)} → ${format(row)}${size(row) === 'full' ? '' : ` ${size(row)}`}`,
      cpuMs: Number(cpu(row)),
      memoryMb: Math.round((Number(memory(row)) * 1024 ** 2) / 1e6),
      bytes: Number(bytes(row)),
    }));
}

/** Target utilization of processors, at which waiting times stay short. */
const TARGET_UTILIZATION = 0.7;

/** Creates the table of conversions. */
export function conversionsTable(times: readonly ServiceTime[]): string {
  const head = [
    ...['Conversion', 'Processor time, ms', 'Per processor and second', 'Processors for 100 per second'],
    ...['Results of 100 per second, Mbit/s', 'Memory of 2 at a time, MB'],
  ];
  const rows = times.map(({ label, cpuMs, memoryMb, bytes }) => {
    const processors = (100 * cpuMs) / 1000 / TARGET_UTILIZATION;
    return [
      ...[label, cpuMs.toFixed(cpuMs < 10 ? 1 : 0), (1000 / cpuMs).toFixed(cpuMs > 100 ? 1 : 0)],
      ...[processors.toFixed(processors < 10 ? 1 : 0), ((100 * bytes * 8) / 1e6).toFixed(0), `${memoryMb}`],
    ];
  });
  return markdownTable(head, rows, true);
}

/** Sizes of a cluster: instances × processors of each. */
const CLUSTERS = ['1 × 2', '3 × 2', '10 × 2', '1 × 64', '100 × 4', '1000 × 2', '1000 × 64'];
/** Offered load, as a share of the processors' time. */
const LOADS = [0.5, 0.7, 0.9, 1.1];
const BURSTS = { factor: 5, everyS: 30, lengthS: 2 };
/** Requests of a simulation, unless one cycle of {@link BURSTS} has more. */
const MAX_REQUESTS = 300_000;

/**
 * Simulates clusters of all sizes under all loads, for whole cycles of calm and burst. Creates a table of the waiting times and
 * the shares of rejected requests: a row per cluster, a column per load.
 */
export function simulationTable(times: readonly ServiceTime[]): string {
  const serviceMs = times.map(({ cpuMs }) => cpuMs);
  const mean = serviceMs.reduce((sum, ms) => sum + ms, 0) / serviceMs.length;
  const cell = (instances: number, processors: number, load: number): string => {
    const perSecond = (load * instances * processors * 1000) / mean;
    const perCycle = perSecond * (BURSTS.everyS + BURSTS.lengthS);
    const options: SimulationOptions = {
      ...{ instances, processors, perSecond, serviceMs, bursts: BURSTS },
      ...{ queueLimit: 200, tries: 3, seed: 1, balance: 'random' },
      requests: Math.round(perCycle * Math.max(1, Math.floor(MAX_REQUESTS / perCycle))),
    };
    const { wait, refused } = simulate(options);
    const share = refused === 0 ? '' : `; ${(refused * 100).toFixed(refused < 0.01 ? 2 : 0)}% rejected`;
    return `${formatMs(wait.p50)}, ${formatMs(wait.p99)}${share}`;
  };
  return markdownTable(
    ['Instances × processors', ...LOADS.map((load) => `${Math.round(load * 100)}% load`)],
    CLUSTERS.map((cluster) => {
      const [instances = 0, processors = 0] = cluster.split(' × ').map(Number);
      return [cluster, ...LOADS.map((load) => cell(instances, processors, load))];
    }),
    true,
  );
}

const formatMs = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
