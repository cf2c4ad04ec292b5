/** @module Prints results and errors, as text or JSON lines, and writes the table of `--report`. */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { escapeControls, sanitizeForDisplay, toSafeJson, truncate } from '../../base/text.ts';
import { isReplaceable, openRegular, systemReason } from '../../files/system.ts';
import { describeKinds } from '../../images/revealed/fields-table.ts';
import { CliError } from '../context.ts';
import { createProgress } from '../progress.ts';
import { type ConvertedFile, type FileErrorCode, MAX_LABEL_LENGTH, type OutputJob } from './converter.ts';
import { formatNote, formatSizes, Tally } from './tally.ts';

/** Properties of a result that a row has as they are. */
type Shown = Pick<ConvertedFile, 'bytesBefore' | 'bytesAfter' | 'ms' | 'notes' | 'quality' | 'verification'>;

/** SHA-256 in hex of a source, unless it is standard input, and of its result. */
export interface Digests {
  readonly source: string | undefined;
  readonly result: string;
}

/** A file of the report: a row of CSV, where missing values are empty, or an object of `--json`. */
interface ReportRow extends Partial<Shown & FileErrorCode> {
  readonly input: string;
  readonly output?: string;
  readonly metadata?: Pick<ConvertedFile, 'removed' | 'kept'> | undefined;
  readonly sha256?: Digests | undefined;
  readonly status: 'converted' | 'to convert' | 'up to date' | 'failed' | 'deleted' | 'to delete';
}

export type Report = ReturnType<typeof createReport>;

interface ReportOptions {
  readonly json: boolean;
  /** Print errors only, with {@link json} also the summary. */
  readonly quiet: boolean;
  readonly verbose: boolean;
  /** Print one line for all results that exist, instead of one for each. */
  readonly countsExisting: boolean;
  /** Whether `--update` is possible with the names of the results. */
  readonly canUpdate: boolean;
  /** Nothing is converted: print what would be. */
  readonly dryRun: boolean;
  readonly csv?: Awaited<ReturnType<typeof createCsvReport>> | undefined;
}

/** Creates functions that print lines beside the progress bar. */
function createPrinter({ json, quiet, csv }: ReportOptions, progress: ReturnType<typeof createProgress>) {
  const print = (stream: NodeJS.WriteStream, line: string): void => {
    progress?.clear();
    stream.write(`${line}\n`);
  };
  const printLine = (line: string): void => print(process.stdout, line);
  return {
    printLine,
    printError: (text: string): void =>
      print(process.stderr, `imagemill: ${sanitizeForDisplay(text, MAX_LABEL_LENGTH)}`),
    /** Prints a file as JSON, or the text if there is one, and adds it to the table. */
    record(row: ReportRow, text: string | false = false): void {
      csv?.write(row);
      if (json && quiet && row.status !== 'failed') return;
      if (json) printLine(toSafeJson(toJson(row)));
      else if (text) printLine(text);
    },
  };
}

/** Creates a report that prints one line per file, and a summary. */
export function createReport(options: ReportOptions) {
  const { json, quiet, verbose, countsExisting, dryRun, csv } = options;
  const progress = quiet ? undefined : createProgress();
  const { isTTY, columns } = process.stdout;
  const showsResults = !quiet && (verbose || !isTTY || !progress);
  const width = isTTY ? columns || 80 : undefined;
  const tally = new Tally();
  let isComplete = true;
  let ended: Promise<boolean> | undefined;
  const printer = createPrinter(options, progress);
  const { printError, record } = printer;
  const finish = async (): Promise<boolean> => {
    progress?.end();
    const { failed } = tally;
    printSummary(tally, options, printer);
    const problem = await csv?.end();
    if (problem) printError(problem);
    return isComplete && failed === 0 && !problem;
  };

  return {
    counts: tally.counts as Readonly<Tally['counts']>,
    /** Sets the number of files, when it is known; undefined if the report does not show it. */
    setTotal: progress?.setTotal,
    starts: (input: string) => progress?.starts(input),
    done({ input, output }: OutputJob, converted: ConvertedFile, sha256?: Digests): void {
      const { bytesBefore, bytesAfter, ms, notes, quality, verification } = converted;
      tally.addResult(converted);
      const about = { ms, notes, metadata: describeKinds(converted), quality, sha256, verification };
      const row = { input, output, bytesBefore, bytesAfter, ...about };
      record({ status: 'converted', ...row }, showsResults && formatResult(row, width));
      progress?.ended(input);
    },
    planned({ input, output }: OutputJob): void {
      tally.counts.converted += 1;
      record({ input, output, status: 'to convert' }, !quiet && namesOf(input, output).join(' → '));
      progress?.ended(input);
    },
    upToDate({ input, output }: OutputJob): void {
      tally.counts.upToDate += 1;
      record({ input, output, status: 'up to date' });
      progress?.ended(input);
    },
    deleted({ input, output }: Pick<OutputJob, 'input' | 'output'>): void {
      tally.counts.deleted += 1;
      const status = dryRun ? 'to delete' : 'deleted';
      record({ input, output, status }, !quiet && `${namesOf(input, output)[1]} ${status}`);
    },
    failed(input: string, { code, message }: FileErrorCode): void {
      tally.addFailure(code);
      record({ input, status: 'failed', code, message });
      if (!json && !(countsExisting && code === 'OUTPUT_EXISTS')) printError(message);
      progress?.failed(input);
    },
    /** Prints a message that is not an error. */
    notice(text: string): void {
      if (!quiet) printError(text);
    },
    stopped(text: string): void {
      isComplete = false;
      printError(text);
    },
    /**
     * Prints the summary, and completes the file of `--report`. Further calls only wait for the
     * first.
     *
     * @returns whether all files were converted
     */
    end(): Promise<boolean> {
      ended ??= finish();
      return ended;
    },
  };
}

function printSummary(
  tally: Tally,
  { json, quiet, countsExisting, canUpdate, dryRun }: ReportOptions,
  { printLine, printError }: ReturnType<typeof createPrinter>,
): void {
  if (json) {
    printLine(toSafeJson({ summary: tally.toJson() }));
    return;
  }
  const { total, failed, counts } = tally;
  if (!quiet && total + counts.deleted > 1) printLine(tally.formatResults(dryRun));
  if (failed > 0 && total > 1) printError(tally.formatFailures());
  const existing = countsExisting && tally.formatExisting(canUpdate);
  if (existing) printError(existing);
}

const namesOf = (input: string, output: string): [string, string] => [
  sanitizeForDisplay(input, MAX_LABEL_LENGTH),
  sanitizeForDisplay(output, MAX_LABEL_LENGTH),
];

/** Minimum length of a shortened path in UTF-16 code units. */
const MIN_PATH_LENGTH = 20;

/**
 * @param width columns of the terminal. If the line is longer, it has only the path of the result,
 *   shortened in the middle.
 */
function formatResult(
  { input, output, bytesBefore, bytesAfter, notes }: Pick<OutputJob, 'input' | 'output'> & Shown,
  width: number | undefined,
): string {
  const [from, to] = namesOf(input, output);
  const named = notes.length > 0 ? `  ${notes.map(formatNote).join(' ')}` : '';
  const rest = `  ${formatSizes(bytesBefore, bytesAfter)}${named}`;
  const line = `${from} → ${to}${rest}`;
  if (width === undefined || line.length <= width) return line;
  const short = shortenPath(to, Math.max(MIN_PATH_LENGTH, width - rest.length));
  return sanitizeForDisplay(`${short}${rest}`, width - 1);
}

/** Replaces the middle of a path by an ellipsis. The end, with the file name, is longer. */
function shortenPath(path: string, length: number): string {
  if (path.length <= length) return path;
  const start = truncate(path, Math.floor((length - 1) / 3));
  return `${start}…${path.slice(path.length - (length - 1 - start.length)).toWellFormed()}`;
}

/** Returns the object of `--json` for a row. The status `to convert` is `toConvert: true`. */
function toJson({ status, code, message, ...row }: ReportRow): object {
  if (status === 'converted') return row;
  if (status === 'failed') return { ...row, error: { code, message } };
  return { ...row, [status.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase())]: true };
}

const COLUMNS = [
  'input',
  'output',
  'status',
  'bytesBefore',
  'bytesAfter',
  'ms',
  'notes',
  'code',
  'message',
] as const;

/** Start of every report, also if later versions add columns. */
const START = COLUMNS.slice(0, 3).join(',');

/**
 * Creates the file, or replaces an earlier report. Another file can be an image that the user named
 * by mistake.
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
      stream.write(`${COLUMNS.map((column) => formatCell(row[column])).join(',')}\r\n`);
    },
    /** Waits until all rows are written, and returns the cause if some could not be. */
    end: () => Promise.race([problem, new Promise<undefined>((done) => stream.end(() => done(undefined)))]),
  };
}

/** @throws {Error} if the file cannot be written or is not a report */
async function openReport(path: string): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_TRUNC } = constants;
  if (await isReplaceable(path, START)) return openRegular(path, O_WRONLY | O_CREAT | O_TRUNC);
  throw new Error('the file exists, and is not a report');
}

/** Start of a cell that a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@＝＋－＠]/;

/** Formats a cell. An apostrophe in front of a formula makes it a text; each row is one line. */
function formatCell(value: ReportRow[(typeof COLUMNS)[number]]): string {
  const plain = escapeControls(typeof value === 'object' ? value.join(' ') : String(value ?? ''));
  const text = FORMULA.test(plain) ? `'${plain}` : plain;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
