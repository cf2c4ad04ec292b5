import type { Note } from '../../conversion/plan/types.ts';
import { sanitizeForDisplay } from '../../text.ts';
import type { FileErrorCode } from './file-errors.ts';
import { createProgress } from './progress.ts';
import type { Job } from './targets.ts';

/** What is said of each file: results on standard output, troubles on standard error; or all of it as JSON lines. */

export interface Done {
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  readonly ms: number;
  readonly notes: readonly Note[];
  /** The quality that was used, when the bytes were limited. */
  readonly quality?: number;
}

export interface Report {
  starts(input: string): void;
  done(job: Job, done: Done): void;
  failed(input: string, why: FileErrorCode): void;
  /** How many failed. */
  end(): number;
}

export interface ReportOptions {
  readonly json: boolean;
  /** Results are not told of, and no progress is shown. */
  readonly quiet: boolean;
}

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
      else if (!quiet) print(process.stdout, resultLine(input, output, done));
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

/** No name is longer: a path has at most 4096 bytes. */
export const MAX_LABEL_LENGTH = 5000;

function resultLine(input: string, output: string, { bytesBefore, bytesAfter, notes }: Done): string {
  const names = [input, output].map((name) => sanitizeForDisplay(name, MAX_LABEL_LENGTH)).join(' → ');
  const sizes = `${formatSize(bytesBefore)} → ${formatSize(bytesAfter)} (${formatChange(bytesBefore, bytesAfter)})`;
  return [names, sizes, ...(notes.length > 0 ? [notes.join(', ')] : [])].join('  ');
}

const UNITS = ['B', 'kB', 'MB', 'GB'];

/** Bytes with two or three digits that count, in units of 1000. */
function formatSize(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power > 0 && value < 9.95 ? 1 : 0)} ${UNITS[power]}`;
}

/** In whole per cent. */
function formatChange(before: number, after: number): string {
  const percent = Math.round((after / before - 1) * 100);
  if (percent === 0) return '±0%';
  return percent > 0 ? `+${percent}%` : `−${-percent}%`;
}
