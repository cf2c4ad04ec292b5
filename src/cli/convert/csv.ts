/** @module Writes the file of `--report`: CSV as in RFC 4180, one row per file. */
import { type FileHandle, open } from 'node:fs/promises';
import { isReplaceable } from '../../files/replaceable.ts';
import { systemReason } from '../../files/system-reason.ts';
import { CliError } from '../context.ts';

/** A row of the report. Missing values are empty cells. */
interface ReportRow {
  readonly input: string;
  readonly output?: string;
  readonly status: 'converted' | 'up to date' | 'failed' | 'deleted';
  readonly bytesBefore?: number;
  readonly bytesAfter?: number;
  readonly ms?: number;
  readonly notes?: readonly string[];
  readonly code?: string;
  readonly message?: string;
}

const COLUMNS: readonly (keyof ReportRow)[] = [
  ...(['input', 'output', 'status', 'bytesBefore', 'bytesAfter', 'ms', 'notes', 'code', 'message'] as const),
];

/** Writes rows. */
export interface CsvReport {
  write(row: ReportRow): void;
  /**
   * Waits until all rows are written.
   *
   * @returns the cause if some could not be written
   */
  end(): Promise<string | undefined>;
}

/** Start of every report, also if later versions add columns. */
const START = COLUMNS.slice(0, 3).join(',');

/**
 * Creates the file, or replaces an earlier report. Another file can be an image that the user named by mistake.
 *
 * @throws {CliError} with status 2, if the file cannot be written or is not a report
 */
export async function createCsvReport(path: string): Promise<CsvReport> {
  const file = await openReport(path).catch((error) => {
    throw new CliError(`--report ${path} cannot be written: ${systemReason(error)}.`, 2);
  });
  const stream = file.createWriteStream();
  const problem = new Promise<string>((resolve) =>
    stream.once('error', (error) => resolve(`${path} is incomplete: ${systemReason(error)}.`)),
  );
  stream.write(`${COLUMNS.join(',')}\r\n`);
  return {
    write(row) {
      stream.write(`${COLUMNS.map((column) => quote(row[column])).join(',')}\r\n`);
    },
    end: () => Promise.race([problem, new Promise<undefined>((done) => stream.end(() => done(undefined)))]),
  };
}

/** @throws {Error} if the file cannot be written or is not a report */
async function openReport(path: string): Promise<FileHandle> {
  if (await isReplaceable(path, START)) return open(path, 'w');
  throw new Error('the file exists, and is not a report');
}

function quote(value: ReportRow[keyof ReportRow]): string {
  const text = typeof value === 'object' ? value.join(' ') : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
