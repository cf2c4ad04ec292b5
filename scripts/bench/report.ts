/** @module Formats the measurements as a Markdown table. */
import { formatSpread, markdownTable, median, type Spread, spread } from '../statistics.ts';
import type { Job, Measured } from './load.ts';

/** All rounds of one conversion (image, format and size) with one number of clients. */
export interface Row extends Omit<Job, 'image'> {
  readonly image: string;
  readonly pixels: number;
  /** Number of requests at a time. */
  readonly clients: number;
  readonly imagemill: readonly Measured[];
  /** Empty if sharp does not support the conversion. */
  readonly sharp: readonly Measured[];
  readonly echo: readonly Measured[];
  /** Median wall time in ms of one command after another, for each round. Only with one client. */
  readonly commandLineMs: readonly number[];
}

/** Divides the values of each round. Only values of the same round are comparable. */
function ratios(imagemill: readonly number[], others: readonly number[]): Spread | undefined {
  const ratiosByRound = imagemill.flatMap((value, round) => {
    const other = others[round];
    return other === undefined ? [] : [value / other];
  });
  return ratiosByRound.length === 0 ? undefined : spread(ratiosByRound);
}

const valuesOf = (rounds: readonly Measured[], name: keyof Measured): number[] =>
  rounds.map((round) => round[name]);

/** Returns the conversions per second relative to the sharp server. */
export const overSharp = ({ imagemill, sharp }: Row): Spread | undefined =>
  ratios(valuesOf(imagemill, 'perSecond'), valuesOf(sharp, 'perSecond'));

/** Returns the median latency relative to the command line. */
export const overCommandLine = ({ imagemill, commandLineMs }: Row): Spread | undefined =>
  ratios(valuesOf(imagemill, 'medianMs'), commandLineMs);

/** Formats the conversion of a row, such as `photo 3 MP → jpg 300 px`. */
export const labelOf = ({ image, format, side }: Row): string =>
  `${image} → ${format}${side ? ` ${side} px` : ''}`;

/** A cell without a measurement. */
const NOTHING = '–';

const HEAD = [
  'conversion',
  'clients',
  'median ms',
  'per second',
  'CPU ms',
  'tree MiB',
  'bytes',
  'sharp: median ms',
  'per second',
  'CPU ms',
  'tree MiB',
  'bytes',
  'echo ms',
  'command line ms',
  '**per second, relative to sharp** (spread)',
  '**median, relative to command line** (spread)',
];

/**
 * Formats the rows as a Markdown table with a header, without columns in which nothing was
 * measured.
 */
export function table(rows: readonly Row[]): string {
  const all = rows.map(cells);
  const keep = (line: readonly string[]): string[] =>
    line.filter((_, column) => all.some((row) => row[column] !== NOTHING));
  return markdownTable(keep(HEAD), all.map(keep));
}

function cells(row: Row): string[] {
  const { clients, crowd, imagemill, sharp, echo, commandLineMs } = row;
  return [
    labelOf(row),
    `${clients}${crowd ? ', a new one per request' : ''}`,
    ...columns(imagemill),
    ...columns(sharp),
    number(valuesOf(echo, 'medianMs')),
    number(commandLineMs),
    formatRatio(overSharp(row)),
    formatRatio(overCommandLine(row)),
  ];
}

const formatRatio = (ratio: Spread | undefined): string => (ratio ? formatSpread(ratio) : NOTHING);

const columns = (rounds: readonly Measured[]): string[] => [
  ...(['medianMs', 'perSecond', 'cpuMs'] as const).map((name) => number(valuesOf(rounds, name))),
  number(
    rounds.map(({ memoryBytes }) => memoryBytes / 1024 ** 2),
    0,
  ),
  number(valuesOf(rounds, 'bytes'), 0),
];

/** Formats the median. */
const number = (values: readonly number[], digits = 1): string =>
  values.length === 0 ? NOTHING : median(values).toFixed(digits);
