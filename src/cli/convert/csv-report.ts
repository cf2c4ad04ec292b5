/** @module Writes the table of `--report`. */
import { type FileHandle, open } from 'node:fs/promises';
import { isReplaceable, systemReason } from '../../files/system.ts';
import { CliError } from '../context.ts';
import type { ConvertedFile, FileErrorCode } from './converter.ts';

/** What a report says of a result. */
export type Done = Pick<
  ConvertedFile,
  'bytesBefore' | 'bytesAfter' | 'ms' | 'notes' | 'quality' | 'verification'
>;

/** SHA-256 in hex of a source, unless it is standard input, and of its result. */
export interface Digests {
  readonly source: string | undefined;
  readonly result: string;
}

/** A file of the report: a row of CSV, in which missing values are empty cells, or an object of `--json`. */
export interface ReportRow extends Partial<Done & FileErrorCode> {
  readonly input: string;
  readonly output?: string;
  readonly sha256?: Digests | undefined;
  readonly status: 'converted' | 'to convert' | 'up to date' | 'failed' | 'deleted' | 'to delete';
}

const COLUMNS = [
  ...(['input', 'output', 'status', 'bytesBefore', 'bytesAfter', 'ms', 'notes', 'code', 'message'] as const),
];

export type CsvReport = Awaited<ReturnType<typeof createCsvReport>>;

/** Start of every report, also if later versions add columns. */
const START = COLUMNS.slice(0, 3).join(',');

/**
 * Creates the file, or replaces an earlier report. Another file can be an image that the user named by mistake.
 *
 * @throws {CliError} if the file cannot be written or is not a report
 */
export async function createCsvReport(path: string) {
  const file = await openReport(path).catch((error) => {
    throw new CliError(`--report ${path} cannot be written: ${systemReason(error)}.`);
  });
  const stream = file.createWriteStream();
  const problem = new Promise<string>((resolve) =>
    stream.once('error', (error) => resolve(`${path} is incomplete: ${systemReason(error)}.`)),
  );
  stream.write(`${COLUMNS.join(',')}\r\n`);
  return {
    write(row: ReportRow): void {
      stream.write(`${COLUMNS.map((column) => quoteCsv(row[column])).join(',')}\r\n`);
    },
    /** Waits until all rows are written, and returns the cause if some could not be. */
    end: () => Promise.race([problem, new Promise<undefined>((done) => stream.end(() => done(undefined)))]),
  };
}

/** @throws {Error} if the file cannot be written or is not a report */
async function openReport(path: string): Promise<FileHandle> {
  if (await isReplaceable(path, START)) return open(path, 'w');
  throw new Error('the file exists, and is not a report');
}

function quoteCsv(value: ReportRow[(typeof COLUMNS)[number]]): string {
  const text = typeof value === 'object' ? value.join(' ') : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
