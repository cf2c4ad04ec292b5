/**
 * @module Reads `bench/reference`: the commit with which `npm run bench:guard` compares, and rows
 * that may be slower.
 */

/** Maximum processor time of a row, relative to the commit before. */
export const MAX_RATIO = 1.15;

/** Contents of `bench/reference`. */
export interface Reference {
  readonly commit: string;
  /** Maximum ratio of each row that may be slower, by its name. */
  readonly accepted: ReadonlyMap<string, number>;
}

/**
 * Parses the file: a commit in the first line, and for each row that may be slower its name, the
 * maximum ratio and the reason, such as `svg → png 300: 1.4, fonts are embedded`.
 *
 * @param rows names of all rows
 * @throws {Error} if a line has another form, or names no row
 */
export function parseReference(text: string, rows: readonly string[]): Reference {
  const [commit = '', ...lines] = text.trimEnd().split('\n');
  if (!/^[0-9a-f]{40}$/.test(commit)) throw new Error('bench/reference must begin with a commit');
  const accepted = lines.map((line): [string, number] => {
    const [, row = '', ratio] = /^(.+): (\d+\.\d+), .+$/.exec(line) ?? [];
    if (!rows.includes(row)) throw new Error(`bench/reference: expected "ROW: RATIO, REASON", not "${line}"`);
    return [row, Number(ratio)];
  });
  return { commit, accepted: new Map(accepted) };
}
