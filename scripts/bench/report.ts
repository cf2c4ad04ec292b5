/** @module Formats the measurements as a Markdown table. */
import type { Measured } from './load.ts';

/** All rounds of one conversion (image, format and size) with one number of clients. */
export interface Row {
  readonly image: string;
  readonly pixels: number;
  readonly format: string;
  readonly side?: number | undefined;
  /** Number of requests at a time. */
  readonly clients: number;
  /** Whether each request came from a different address. */
  readonly crowd?: boolean | undefined;
  readonly imagemill: readonly Measured[];
  /** Empty if sharp does not support the conversion. */
  readonly sharp: readonly Measured[];
  readonly echo: readonly Measured[];
  /** Median wall time in ms of one command after another, for each round. Only with one client. */
  readonly commandLineMs: readonly number[];
  /** Conversions per second with `xargs -P`, for each round. Only with 8 clients. */
  readonly xargsPerSecond: readonly number[];
}

/** Median, minimum and maximum. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** Divides the values of each round. Only values of the same round are comparable. */
function ratios(imagemill: readonly number[], others: readonly number[]): Spread | undefined {
  const ratiosByRound = imagemill.flatMap((value, round) => {
    const other = others[round];
    return other === undefined ? [] : [value / other];
  });
  return ratiosByRound.length === 0 ? undefined : spread(ratiosByRound);
}

/** Returns median, minimum and maximum of the values, of which there must be at least one. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    median: sorted[sorted.length >> 1] as number,
    least: sorted[0] as number,
    most: sorted.at(-1) as number,
  };
}

const perSecond = (rounds: readonly Measured[]): number[] => rounds.map((round) => round.perSecond);

/** Returns the conversions per second relative to the sharp server. */
export const overSharp = ({ imagemill, sharp }: Row): Spread | undefined =>
  ratios(perSecond(imagemill), perSecond(sharp));

/** Returns the median latency relative to the command line. */
export const overCommandLine = ({ imagemill, commandLineMs }: Row): Spread | undefined =>
  ratios(
    imagemill.map(({ medianMs }) => medianMs),
    commandLineMs,
  );

/** Returns the geometric mean of positive values. */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

const HEAD = [
  ...['image', 'to', 'size', 'clients', 'median ms', 'p99 ms', 'per second', 'CPU ms', 'tree MiB', 'bytes'],
  ...[
    'sharp: median ms',
    'p99 ms',
    'per second',
    'CPU ms',
    'tree MiB',
    'bytes',
    'echo ms',
    'command line ms',
  ],
  ...[
    '**per second, relative to sharp** (spread)',
    '**median, relative to command line** (spread)',
    'per second, relative to xargs -P',
  ],
];

/** Formats the rows as a Markdown table with a header. */
export function table(rows: readonly Row[]): string {
  const lines = [HEAD, HEAD.map(() => '---'), ...rows.map(cells)];
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}

function cells(row: Row): string[] {
  return [
    ...[
      row.image,
      row.format,
      row.side ? `${row.side} px` : 'full',
      `${row.clients}${row.crowd ? ', a new one per request' : ''}`,
    ],
    ...columns(row.imagemill),
    ...columns(row.sharp),
    number(formatMedian(row.echo.map(({ medianMs }) => medianMs))),
    number(formatMedian(row.commandLineMs)),
    withSpread(overSharp(row)),
    withSpread(overCommandLine(row)),
    withSpread(ratios(perSecond(row.imagemill), row.xargsPerSecond)),
  ];
}

function columns(rounds: readonly Measured[]): string[] {
  const of = (pick: (round: Measured) => number): number | undefined => formatMedian(rounds.map(pick));
  return [
    ...[of((r) => r.medianMs), of((r) => r.p99Ms), of((r) => r.perSecond), of((r) => r.cpuMs)].map(number),
    ...[of((r) => r.memoryBytes / 1024 ** 2), of((r) => r.bytes)].map((value) => number(value, 0)),
  ];
}

function formatMedian(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : spread(values).median;
}

function number(value: number | undefined, digits = 1): string {
  return value === undefined ? '–' : value.toFixed(digits);
}

function withSpread(ratio: Spread | undefined): string {
  if (!ratio) return '–';
  return `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)})`;
}
