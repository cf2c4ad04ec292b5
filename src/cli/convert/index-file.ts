/** @module The file of an index: its lines, and what they say of each result. Follows no link. */
import { constants } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { openRegular } from '../../files/system.ts';
import type { VerifyMode } from '../../regress/verifiable.ts';

/** Record of a complete result. */
export interface IndexEntry {
  /** Path of the source, relative to the output folder. */
  readonly source: string;
  /** Size of the source in bytes. */
  readonly size: number;
  /** Time of the source's last change, in ms since the epoch. */
  readonly mtime: number;
  /** Hash of the options and tools, see `hashOptions`. */
  readonly optionsHash: string;
  /** See `conversionKey`. */
  readonly key?: string | undefined;
  readonly verified?: VerifyMode | undefined;
  /** Size of the result in bytes. */
  readonly bytes: number;
  /** Time of the result's last change, in ms since the epoch. */
  readonly made: number;
  /** Only a {@link Mark} has one. */
  readonly state?: undefined;
}

/** Any record but that of a complete result. */
export interface Mark {
  /**
   * `started`: the result can be incomplete. `removed`: its entry was removed. `withdrawn`: the
   * last start wrote nothing, so that the record before it counts.
   */
  readonly state: 'started' | 'removed' | 'withdrawn';
  /** Time of the mark, in ms since the epoch. */
  readonly made: number;
}

export type ResultRecord = IndexEntry | Mark;

/** The record of a result. A mark `started` has the one before it, for a later `withdrawn`. */
interface State {
  readonly now: ResultRecord;
  readonly before?: State | undefined;
}
/** The records of all results of a file, by path. */
export type States = Map<string, State>;

type Line =
  | ({ readonly result: string } & ResultRecord)
  | { readonly tools: string; readonly versions: string };

/** Adds the record of a line. In one file, later lines supersede earlier ones. */
export function addLine(line: Line, states: States, toolVersions: Map<string, string>): void {
  if ('tools' in line) {
    toolVersions.set(line.tools, line.versions);
    return;
  }
  const { result, ...now } = line;
  const current = states.get(result);
  if (now.state === 'started') states.set(result, { now, before: current });
  else if (now.state !== 'withdrawn') states.set(result, { now });
  else if (current?.before) states.set(result, current.before);
  else if (current?.now.state === 'started') states.delete(result);
}

/** Flags of open(2) to read and to append. They make it fail with ELOOP for a link. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;

/** Maximum length of a line in bytes. Two paths of 4096 bytes have at most 48 kB in JSON. */
const MAX_LINE_BYTES = 128 * 1024;

/**
 * Reads the complete lines of a file; none if the file does not exist. What is longer than
 * {@link MAX_LINE_BYTES} is skipped.
 *
 * @param start offset of the first line in bytes. If the file is shorter, it was rewritten, and is
 *   read from its start.
 * @returns the offset of what follows; of the last line if that is incomplete
 * @throws {Error} also if the path is not a regular file
 */
export async function readLines(path: string, start: number, use: (line: Line) => void): Promise<number> {
  const file = await openRegular(path, READ).catch((error) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!file) return 0;
  const { size } = await file.stat();
  const from = start <= size ? start : 0;
  if (from === size) {
    await file.close();
    return size;
  }
  const useText = (text: string): boolean => {
    const line = parseLine(text);
    if (line) use(line);
    return line !== undefined;
  };
  /** The start of a line whose end is not read yet. */
  let rest = Buffer.alloc(0);
  for await (const chunk of file.createReadStream({ start: from, end: size - 1 })) {
    const bytes = Buffer.concat([rest, chunk as Buffer]);
    const end = bytes.lastIndexOf('\n') + 1;
    for (const text of bytes.toString('utf8', 0, end).split('\n')) useText(text);
    rest = bytes.length - end > MAX_LINE_BYTES ? Buffer.alloc(0) : bytes.subarray(end);
  }
  return useText(rest.toString()) ? size : size - rest.length;
}

/** Appends a line. Its break comes first, in case a crash or a full disk cut the previous one. */
export async function appendLine(path: string, line: Line): Promise<void> {
  await using file = await openRegular(path, APPEND);
  await file.appendFile(`\n${JSON.stringify(line)}`);
}

/** Parses a line. A truncated or empty one is never valid JSON; one by hand can be anything. */
function parseLine(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return isLine(line) ? line : undefined;
  } catch {
    return undefined;
  }
}

/** A path that is absolute, or could lead out of a folder. */
const OUTSIDE = /^\/|(?:^|\/)\.\.(?:\/|$)/;

/** Returns whether a JSON value is a line. A result's path must not leave the output folder. */
function isLine(value: unknown): value is Line {
  const { tools, versions, result, source, state, made } = Object(value);
  if (tools !== undefined) return typeof tools === 'string' && typeof versions === 'string';
  return (
    typeof result === 'string' &&
    !OUTSIDE.test(result) &&
    typeof made === 'number' &&
    typeof (state ?? source) === 'string'
  );
}

/** Yields the lines that are not superseded. */
export function* linesOf(
  own: Readonly<States>,
  others: Readonly<States>,
  toolVersions: ReadonlyMap<string, string>,
): Generator<string> {
  for (const [tools, versions] of toolVersions) yield `${JSON.stringify({ tools, versions })}\n`;
  for (const [result, { now }] of own) {
    const isNeeded = now.state !== 'removed' || others.has(result);
    if (isNeeded) yield `${JSON.stringify({ result, ...now })}\n`;
  }
}

/** Replaces a file. The file is complete at every moment, also if the machine loses power. */
export async function rewrite(path: string, temporary: string, lines: Iterable<string>): Promise<void> {
  await writeFile(temporary, lines, { flag: 'wx', flush: true });
  await rename(temporary, path);
}
