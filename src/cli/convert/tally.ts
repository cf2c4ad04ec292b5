/** @module Counts what a command has done, and formats the summary. */

import { formatBytes, formatChange, plural, sanitizeForDisplay } from '../../base/text.ts';
import { NOTES } from '../../tables/notes.ts';
import type { ConvertedFile } from './converter.ts';

/** What a command has done so far. */
export class Tally {
  readonly counts = { converted: 0, upToDate: 0, deleted: 0, bytesBefore: 0, bytesAfter: 0 };
  readonly #notes = new Map<string, number>();
  readonly #failures = new Map<string, number>();

  addResult(result: Pick<ConvertedFile, 'bytesBefore' | 'bytesAfter' | 'notes'>): void {
    this.counts.converted += 1;
    this.counts.bytesBefore += result.bytesBefore;
    this.counts.bytesAfter += result.bytesAfter;
    for (const note of result.notes) increment(this.#notes, note);
  }

  addFailure(code: string): void {
    increment(this.#failures, code);
  }

  get failed(): number {
    return [...this.#failures.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Number of files, without deleted results. */
  get total(): number {
    return this.counts.converted + this.counts.upToDate + this.failed;
  }

  toJson(): object {
    return {
      ...this.counts,
      notes: Object.fromEntries(this.#notes),
      failed: Object.fromEntries(this.#failures),
    };
  }

  formatResults(dryRun: boolean): string {
    const { converted, upToDate, deleted, bytesBefore, bytesAfter } = this.counts;
    const done = dryRun
      ? `${converted} to convert`
      : `${converted} converted: ${formatSizes(bytesBefore, bytesAfter)}`;
    const parts = [
      converted > 0 ? done : dryRun ? 'none to convert' : 'none converted',
      ...(upToDate > 0 ? [`${upToDate} up to date`] : []),
      ...(deleted > 0 ? [`${deleted} ${dryRun ? 'to delete' : 'deleted'}`] : []),
    ];
    const notes = [...this.#notes].map(([note, count]) => `${plural(count, 'result')}: ${formatNote(note)}`);
    return [parts.join(', '), ...notes].join('\n');
  }

  /** Returns the advice for results that exist; undefined if none do. */
  formatExisting(canUpdate: boolean): string | undefined {
    const count = this.#failures.get('OUTPUT_EXISTS') ?? 0;
    if (count === 0) return undefined;
    const exist = `${plural(count, 'result')} ${count === 1 ? 'exists' : 'exist'}`;
    const update = canUpdate ? '--update converts what changed, from its first run on, and ' : '';
    return `${exist}: ${update}--force replaces all.`;
  }

  /** Formats the failures: most frequent first, then by name, because files end in any order. */
  formatFailures(): string {
    const reasons = [...this.#failures]
      .sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
      .map(([code, count]) => `${count} ${formatCode(code)}`);
    return `${this.failed} of ${this.total} files not converted: ${reasons.join(', ')}.`;
  }
}

function increment(numbers: Map<string, number>, name: string): void {
  numbers.set(name, (numbers.get(name) ?? 0) + 1);
}

/** Returns the sentence of a note. An instance of another version can have other notes. */
export const formatNote = (note: string): string =>
  (NOTES as Readonly<Record<string, { readonly page: string }>>)[note]?.page ??
  `${sanitizeForDisplay(note)}.`;

/** Formats sizes before and after, such as "139 kB → 76 kB (−45%)". */
export const formatSizes = (before: number, after: number): string =>
  `${formatBytes(before)} → ${formatBytes(after)} (${formatChange(before, after)})`;

/** Words for the error codes that are not plain English themselves, after any number of files. */
const REASONS: Readonly<Record<string, string>> = {
  CORRUPT_IMAGE: 'damaged',
  EMPTY_FILE: 'empty',
  NAME_NOT_UTF8: 'name not UTF-8',
  OUTPUT_EXISTS: 'with an existing result',
  OUTPUT_FULL: 'disk full',
  OUTPUT_IS_SOURCE: 'with itself as the result',
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
