/** @module Prints results to standard output and errors to standard error, or both as JSON lines. */
import type { Note } from '../../conversion/plan/types.ts';
import { sanitizeForDisplay } from '../../text.ts';
import type { FileErrorCode } from './file-errors.ts';
import { createProgress } from './progress.ts';
import type { Job } from './targets.ts';

/** The result of one conversion. */
export interface Done {
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  readonly ms: number;
  readonly notes: readonly Note[];
  /** Quality of the result, if `--max-bytes` limited its size. */
  readonly quality?: number;
}

/** Prints one line per file. */
export interface Report {
  /** Records the start of a conversion. */
  starts(input: string): void;
  /** Prints a result. */
  done(job: Job, done: Done): void;
  /** Prints an error. */
  failed(input: string, why: FileErrorCode): void;
  /** Prints a summary of the failures. @returns the number of failed files */
  end(): number;
}

/** Options of {@link createReport}. */
export interface ReportOptions {
  readonly json: boolean;
  /** Print no results and no progress. */
  readonly quiet: boolean;
}

/** Creates a report for `total` files. */
export function createReport(total: number, { json, quiet }: ReportOptions): Report {
  const progress = quiet ? undefined : createProgress(total);
  let failures = 0;
  const print = (stream: NodeJS.WriteStream, line: string): void => {
    progress?.clear();
    stream.write(`${line}\n`);
  };
  const printJson = (value: object): void => print(process.stdout, JSON.stringify(value));

  return {
    starts: (input) => progress?.starts(input),
    done({ input, output }, done) {
      if (json) printJson({ input, output, ...done });
      else if (!quiet) print(process.stdout, formatResult(input, output, done));
      progress?.ended(input);
    },
    failed(input, { code, message }) {
      failures += 1;
      if (json) printJson({ input, error: { code, message } });
      else print(process.stderr, `imagemill: ${sanitizeForDisplay(message, MAX_LABEL_LENGTH)}`);
      progress?.ended(input);
    },
    end() {
      progress?.clear();
      if (failures > 0 && total > 1 && !json)
        print(process.stderr, `imagemill: ${failures} of ${total} were not converted.`);
      return failures;
    },
  };
}

/** Maximum length of a file name in a message, in UTF-16 code units. A path has at most 4096 bytes. */
export const MAX_LABEL_LENGTH = 5000;

function formatResult(input: string, output: string, { bytesBefore, bytesAfter, notes }: Done): string {
  const names = [input, output].map((name) => sanitizeForDisplay(name, MAX_LABEL_LENGTH)).join(' → ');
  const sizes = `${formatSize(bytesBefore)} → ${formatSize(bytesAfter)} (${formatChange(bytesBefore, bytesAfter)})`;
  return [names, sizes, ...(notes.length > 0 ? [notes.join(', ')] : [])].join('  ');
}

const UNITS = ['B', 'kB', 'MB', 'GB'];

/** Formats a number of bytes with two or three significant digits, in units of 1000. */
function formatSize(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power > 0 && value < 9.95 ? 1 : 0)} ${UNITS[power]}`;
}

/** Formats a change of size, in whole percent. */
function formatChange(before: number, after: number): string {
  const percent = Math.round((after / before - 1) * 100);
  if (percent === 0) return '±0%';
  return percent > 0 ? `+${percent}%` : `−${-percent}%`;
}
