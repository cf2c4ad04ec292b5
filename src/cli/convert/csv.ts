/** @module Writes the file of `--report`: CSV as in RFC 4180, one row per file. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CliError } from '../context.ts';
import { systemReason } from './file-errors.ts';

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

/**
 * Opens the file, and removes the content of an earlier report.
 *
 * @throws {Error} if the file is not a report
 */
async function openReport(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT);
  try {
    const info = await file.stat();
    // For a pipe or a terminal, there is nothing to lose.
    if (info.isFile() && info.size > 0) {
      const { buffer } = await file.read(Buffer.alloc(START.length), 0, START.length, 0);
      if (buffer.toString() !== START) throw new Error('the file exists, and is not a report');
      await file.truncate();
    }
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function quote(value: ReportRow[keyof ReportRow]): string {
  const text = typeof value === 'object' ? value.join(' ') : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
