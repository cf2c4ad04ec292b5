/** @module Prints results to standard output and errors to standard error, or both as JSON lines. Writes the table of `--report`. */
import { type FileHandle, open } from 'node:fs/promises';
import { isReplaceable, systemReason } from '../../files/system.ts';
import { formatBytes, formatChange, sanitizeForDisplay, truncate } from '../../text.ts';
import { CliError } from '../context.ts';
import { createProgress } from '../progress.ts';
import { type ConvertedFile, type FileErrorCode, MAX_LABEL_LENGTH, type OutputJob } from './converter.ts';

type Done = Pick<ConvertedFile, 'bytesBefore' | 'bytesAfter' | 'ms' | 'notes' | 'quality' | 'verification'>;

/** SHA-256 in hex of a source, unless it is standard input, and of its result. */
export interface Digests {
  readonly source: string | undefined;
  readonly result: string;
}

export type Report = ReturnType<typeof createReport>;

export interface ReportOptions {
  readonly json: boolean;
  /** Print errors only. */
  readonly quiet: boolean;
  /** Print a line for each result, also beside the progress bar of a terminal. */
  readonly verbose: boolean;
  /** Nothing is converted: print what would be. */
  readonly dryRun: boolean;
  /** The file of `--report`. */
  readonly csv?: CsvReport | undefined;
}

/** Creates a report that prints one line per file, and a summary. */
export function createReport({ json, quiet, verbose, dryRun, csv }: ReportOptions) {
  const progress = quiet ? undefined : createProgress();
  const { isTTY, columns } = process.stdout;
  const showsResults = !quiet && (verbose || !isTTY || !progress);
  const width = isTTY ? columns || 80 : undefined;
  const counts = { converted: 0, upToDate: 0, deleted: 0, bytesBefore: 0, bytesAfter: 0 };
  /** Number of results by note. */
  const notes = new Map<string, number>();
  /** Number of failures by error code. */
  const failures = new Map<string, number>();
  const count = (numbers: Map<string, number>, name: string): void =>
    void numbers.set(name, (numbers.get(name) ?? 0) + 1);
  let isComplete = true;
  let ended: Promise<boolean> | undefined;
  const print = (stream: NodeJS.WriteStream, line: string): void => {
    progress?.clear();
    stream.write(`${line}\n`);
  };
  const printJson = (value: object): void => print(process.stdout, JSON.stringify(value));
  const record = (row: ReportRow, text: string | false = false): void => {
    csv?.write(row);
    if (json) printJson(toJson(row));
    else if (text) print(process.stdout, text);
  };
  const printError = (text: string): void =>
    print(process.stderr, `imagemill: ${sanitizeForDisplay(text, MAX_LABEL_LENGTH)}`);

  const failed = (): number => [...failures.values()].reduce((sum, count) => sum + count, 0);
  const printSummary = (): void => {
    progress?.end();
    const total = counts.converted + counts.upToDate + failed();
    const numbers = { notes: Object.fromEntries(notes), failed: Object.fromEntries(failures) };
    if (json) printJson({ summary: { ...counts, ...numbers } });
    else {
      if (!quiet && total + counts.deleted > 1) print(process.stdout, formatSummary(counts, notes, dryRun));
      if (failed() > 0 && total > 1)
        printError(`${failed()} of ${total} files not converted: ${formatCounts(failures, formatCode)}.`);
    }
  };
  const finish = async (): Promise<boolean> => {
    printSummary();
    const problem = await csv?.end();
    if (problem) printError(problem);
    return isComplete && failures.size === 0 && !problem;
  };

  return {
    /** Number of files so far. */
    counts: counts as Counts,
    /** Sets the number of files, when it is known; undefined if the report does not show it. */
    setTotal: progress?.setTotal,
    /** Records the start of a conversion. */
    starts: (input: string) => progress?.starts(input),
    /** Prints a result. */
    done({ input, output }: OutputJob, converted: Done, sha256?: Digests): void {
      const { bytesBefore, bytesAfter, ms, notes: own, quality, verification } = converted;
      counts.converted += 1;
      counts.bytesBefore += bytesBefore;
      counts.bytesAfter += bytesAfter;
      for (const note of own) count(notes, note);
      const row = { input, output, bytesBefore, bytesAfter, ms, notes: own, quality, sha256, verification };
      record({ status: 'converted', ...row }, showsResults && formatResult(row, width));
      progress?.ended(input);
    },
    /** Prints a file that would be converted. */
    planned({ input, output }: OutputJob): void {
      counts.converted += 1;
      record({ input, output, status: 'to convert' }, !quiet && namesOf(input, output).join(' → '));
      progress?.ended(input);
    },
    /** Records a result that is up to date. */
    upToDate({ input, output }: OutputJob): void {
      counts.upToDate += 1;
      record({ input, output, status: 'up to date' });
      progress?.ended(input);
    },
    /** Prints that a result was deleted. */
    deleted({ input, output }: Pick<OutputJob, 'input' | 'output'>): void {
      counts.deleted += 1;
      const status = dryRun ? 'to delete' : 'deleted';
      record({ input, output, status }, !quiet && `${namesOf(input, output)[1]} ${status}`);
    },
    failed(input: string, { code, message }: FileErrorCode): void {
      count(failures, code);
      record({ input, status: 'failed', code, message });
      if (!json) printError(message);
      progress?.failed(input);
    },
    /** Prints a message that is not an error. */
    notice(text: string): void {
      if (!quiet) printError(text);
    },
    /** Prints why the command ends early. */
    stopped(text: string): void {
      isComplete = false;
      printError(text);
    },
    /**
     * Prints the summary, and completes the file of `--report`. Further calls only wait for the first.
     *
     * @returns whether all files were converted
     */
    end(): Promise<boolean> {
      ended ??= finish();
      return ended;
    },
  };
}

/** Returns the names of a source and of its result for messages. */
const namesOf = (input: string, output: string): [string, string] => [
  sanitizeForDisplay(input, MAX_LABEL_LENGTH),
  sanitizeForDisplay(output, MAX_LABEL_LENGTH),
];

/** Minimum length of a shortened path in UTF-16 code units. */
const MIN_PATH_LENGTH = 20;

/** @param width columns of the terminal. If the line is longer, it has only the path of the result, shortened in the middle. */
function formatResult(
  { input, output, bytesBefore, bytesAfter, notes }: Pick<OutputJob, 'input' | 'output'> & Done,
  width: number | undefined,
): string {
  const [from, to] = namesOf(input, output);
  const named = notes.length > 0 ? `  ${notes.join(', ')}` : '';
  const rest = `  ${formatSizes(bytesBefore, bytesAfter)}${named}`;
  const line = `${from} → ${to}${rest}`;
  if (width === undefined || line.length <= width) return line;
  const short = shortenPath(to, Math.max(MIN_PATH_LENGTH, width - rest.length));
  return sanitizeForDisplay(`${short}${rest}`, width - 1);
}

/** Replaces the middle of a path by an ellipsis. The end is longer, since it has the name of the file. */
function shortenPath(path: string, length: number): string {
  if (path.length <= length) return path;
  const start = truncate(path, Math.floor((length - 1) / 3));
  return `${start}…${path.slice(path.length - (length - 1 - start.length)).toWellFormed()}`;
}

type Counts = Readonly<Record<'converted' | 'upToDate' | 'deleted' | 'bytesBefore' | 'bytesAfter', number>>;

function formatSummary(
  { converted, upToDate, deleted, bytesBefore, bytesAfter }: Counts,
  notes: ReadonlyMap<string, number>,
  dryRun: boolean,
): string {
  const done = dryRun
    ? `${converted} to convert`
    : `${converted} converted: ${formatSizes(bytesBefore, bytesAfter)}`;
  const parts = [
    converted > 0 ? done : dryRun ? 'none to convert' : 'none converted',
    ...(notes.size > 0 ? [formatCounts(notes, (note) => `with ${note}`)] : []),
    ...(upToDate > 0 ? [`${upToDate} up to date`] : []),
    ...(deleted > 0 ? [`${deleted} ${dryRun ? 'to delete' : 'deleted'}`] : []),
  ];
  return parts.join(', ');
}

/** Formats numbers, the highest first. Equal ones are in the order of names, because files end in any order. */
const formatCounts = (counts: ReadonlyMap<string, number>, wordsOf: (name: string) => string): string =>
  [...counts]
    .sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
    .map(([name, count]) => `${count} ${wordsOf(name)}`)
    .join(', ');

/** Words for the error codes that are not plain English themselves, after any number of files. */
const REASONS: Readonly<Record<string, string>> = {
  CORRUPT_IMAGE: 'damaged',
  EMPTY_FILE: 'empty',
  NAME_NOT_UTF8: 'name not UTF-8',
  OUTPUT_EXISTS: 'with an existing result',
  OUTPUT_FULL: 'disk full',
  OUTPUT_UNWRITABLE: 'result not writable',
  PROXY_413: 'too large for a proxy',
  SAME_RESULT: 'with the same result name',
  SERVER_FAILED: 'no response from a server',
  SOURCE_CHANGED: 'changed while read',
  UNSUPPORTED_TYPE: 'of an unsupported type',
};

/** Formats an error code as words, such as "too many pixels" or "HTTP 413". */
function formatCode(code: string): string {
  const words = code.replaceAll('_', ' ');
  return REASONS[code] ?? (code.startsWith('HTTP_') ? words : words.toLowerCase());
}

/** A file of the report: a row of CSV, in which missing values are empty cells, or an object of `--json`. */
interface ReportRow extends Partial<Done & FileErrorCode> {
  readonly input: string;
  readonly output?: string;
  readonly sha256?: Digests | undefined;
  readonly status: 'converted' | 'to convert' | 'up to date' | 'failed' | 'deleted' | 'to delete';
}

/** Returns the object of `--json` for a row. The status `to convert` is `toConvert: true`. */
function toJson({ status, code, message, ...row }: ReportRow): object {
  if (status === 'converted') return row;
  if (status === 'failed') return { ...row, error: { code, message } };
  return { ...row, [status.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase())]: true };
}

const COLUMNS = [
  ...(['input', 'output', 'status', 'bytesBefore', 'bytesAfter', 'ms', 'notes', 'code', 'message'] as const),
];

type CsvReport = Awaited<ReturnType<typeof createCsvReport>>;

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

/** Formats sizes before and after, such as "139 kB → 76 kB (−45%)". */
const formatSizes = (before: number, after: number): string =>
  `${formatBytes(before)} → ${formatBytes(after)} (${formatChange(before, after)})`;
