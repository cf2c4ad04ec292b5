/** @module Reads the processor time of conversions from the benchmark's report. */

/** A kind of conversion, as the benchmark measured it. */
export interface ServiceTime {
  readonly image: string;
  readonly format: string;
  /** `full`, or the maximum side of the result, such as `300 px`. */
  readonly size: string;
  /** Processor time of the machine per conversion, without the clients, in ms. */
  readonly cpuMs: number;
  /** Peak private memory of the server and the tools at 8 clients, in MB. */
  readonly memoryMb: number;
  /** Size of the result in bytes. */
  readonly bytes: number;
}

/** Number of clients of the rows that are used: with 8, both processors of the machine are busy. */
const CLIENTS = '8';

/**
 * Parses the table of a report, such as `bench/report.md`.
 *
 * @throws {Error} if the table lacks a column
 */
export function parseServiceTimes(report: string): ServiceTime[] {
  const table = report.split('\n').filter((line) => line.startsWith('| '));
  const [head = [], , ...rows] = table.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const column = (name: string): number => {
    const at = head.indexOf(name);
    if (at < 0) throw new Error(`the report has no column "${name}"`);
    return at;
  };
  const [image, format, size, clients] = ['image', 'to', 'size', 'clients'].map(column) as [
    ...[number, number, number, number],
  ];
  const [cpu, memory, bytes] = ['CPU ms', 'tree MiB', 'bytes'].map(column) as [number, number, number];
  return rows
    .filter((row) => row[clients] === CLIENTS)
    .map((row) => ({
      image: row[image] ?? '',
      format: row[format] ?? '',
      size: row[size] ?? '',
      cpuMs: Number(row[cpu]),
      memoryMb: Math.round((Number(row[memory]) * 1024 ** 2) / 1e6),
      bytes: Number(row[bytes]),
    }));
}

/** Formats a kind of conversion, such as "photo 3 MP → webp 300 px". */
export const labelOf = ({ image, format, size }: ServiceTime): string =>
  `${image} → ${format}${size === 'full' ? '' : ` ${size}`}`;
