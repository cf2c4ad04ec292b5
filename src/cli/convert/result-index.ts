/**
 * @module The index of an output folder. It records the source of each result, to find results that are up to date.
 *
 * The index is a file of JSON lines in `.imagemill/` of the output folder. A run appends a line before it moves a
 * result into place, and another line afterwards. A process that is killed in between leaves a result that the index
 * knows but does not claim. Each shard has its own file, and every run reads all files. No link in the folder is followed:
 * it can lead to any file.
 */
import { constants } from 'node:fs';
import { appendFile, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeInstanceFolder, readInstanceFolder, removeStaleWorkspaces } from '../../files/stale.ts';
import { createFolders } from '../../files/system.ts';
import type { VerifyMode } from '../../regress/verifiable.ts';
import { OWN_PREFIX } from './find-images.ts';
import type { Shard } from './options.ts';

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
  /** How `--verify` has verified the result. */
  readonly verified?: VerifyMode | undefined;
  /** Size of the result in bytes. */
  readonly bytes: number;
  /** Time of the result's last change, in ms since the epoch. */
  readonly made: number;
  /** Only a {@link Mark} has one. */
  readonly state?: undefined;
}

/** Any record but that of a complete result. */
interface Mark {
  /**
   * `started`: the result can be incomplete. `removed`: its entry was removed. `withdrawn`: the last start wrote nothing, so that
   * the record before it counts.
   */
  readonly state: 'started' | 'removed' | 'withdrawn';
  /** Time of the mark, in ms since the epoch. */
  readonly made: number;
}

/** What is known of a result. */
type ResultRecord = IndexEntry | Mark;

/** The record of a result. A mark `started` has the one before it, for a later `withdrawn`. */
interface State {
  readonly now: ResultRecord;
  readonly before?: State | undefined;
}
type States = Map<string, State>;

/** A line of the file. */
type Line =
  | ({ readonly result: string } & ResultRecord)
  | { readonly tools: string; readonly versions: string };

/** The index of an output folder. Paths of results are relative to that folder. */
export type ResultIndex = Awaited<ReturnType<typeof openResultIndex>>;

/** Number of superseded lines from which the file is rewritten, if they are also half of the file. */
const MIN_SUPERSEDED = 1000;

/**
 * Opens the index of an output folder. Creates the folder if it does not exist.
 *
 * @param dryRun whether nothing will be recorded. Then nothing is created or removed either.
 * @throws {Error} with the code of the failed system call
 */
export async function openResultIndex(output: string, shard: Shard | undefined, dryRun = false) {
  const folder = join(output, OWN_PREFIX);
  const label = shard ? `-${shard.number}-of-${shard.count}` : '';
  const name = `index${label}.jsonl`;
  const path = join(folder, name);
  let temporary = '';
  if (!dryRun) {
    await createFolders(output);
    await makeRealFolder(folder);
    await removeStaleWorkspaces(folder);
    temporary = await makeInstanceFolder(folder);
  }

  const toolVersions = new Map<string, string>();
  const own: States = new Map();
  const others: States = new Map();
  let lines = 0;
  /** Offset in the own file up to which it was read. */
  let position = 0;
  const readNew = async (): Promise<void> => {
    position = await readLines(path, position, (line) => {
      lines += 1;
      addLine(line, own, toolVersions);
    });
  };
  let reading: Promise<void> = Promise.resolve();
  // One at a time, so that each line is added once: a second `withdrawn` would remove the mark of another command.
  const refresh = (): Promise<void> => {
    reading = reading.then(readNew, readNew);
    return reading;
  };
  await refresh();
  let isShared = false;
  const files = await readdir(folder).catch((error) => {
    if (dryRun && error.code === 'ENOENT') return [];
    throw error;
  });
  for (const file of files) {
    const other = join(folder, file);
    isShared ||= other !== temporary && (await readInstanceFolder(other)) !== undefined;
    if (file === name || !/^index.*\.jsonl$/.test(file)) continue;
    const states: States = new Map();
    await readLines(other, 0, (line) => addLine(line, states, toolVersions));
    for (const [result, state] of states)
      if ((others.get(result)?.now.made ?? 0) <= state.now.made) others.set(result, state);
  }
  // Another command can append to the file at any time.
  if (!dryRun && !isShared && lines - own.size > Math.max(MIN_SUPERSEDED, own.size)) {
    await rewrite(path, join(temporary, name), linesOf(own, others, toolVersions));
    position = 0;
  }

  const append = (line: Line): Promise<void> =>
    // The line break comes first, in case a crash or a full disk has truncated the previous line.
    appendFile(path, `\n${JSON.stringify(line)}`, { flag: APPEND });
  const record = async (result: string, value: ResultRecord): Promise<void> => {
    const line = { result, ...value };
    await append(line);
    addLine(line, own, toolVersions);
  };
  const mark = (result: string, state: Mark['state']) => record(result, { state, made: Date.now() });
  const find = (result: string): ResultRecord | undefined => {
    const [mine, other] = [own.get(result)?.now, others.get(result)?.now];
    return other && (!mine || other.made > mine.made) ? other : mine;
  };
  const get = (result: string): IndexEntry | undefined => {
    const value = find(result);
    return value?.state === undefined ? value : undefined;
  };

  return {
    /** Folder for incomplete results of this run, on the disk of the output folder. */
    temporary,
    /** Reads what other commands for the same shard have recorded since. */
    refresh,
    /** Removes `temporary`. */
    close: async () => (dryRun ? undefined : rm(temporary, { recursive: true, force: true })),
    /** Returns the entry of a complete result. */
    get,
    /** Returns whether an earlier run wrote this result, or may have written it. */
    owns(result: string): boolean {
      const value = find(result);
      return value !== undefined && value.state !== 'removed';
    },
    /** Records that a result is about to be moved into place. */
    start: (result: string) => mark(result, 'started'),
    /** Takes back the last `start` of a result that was not written. Keeps what another command has recorded. */
    withdraw: (result: string) => mark(result, 'withdrawn'),
    /** Records that a result is in place. */
    finish: (result: string, entry: IndexEntry) => record(result, entry),
    /** Removes an entry. */
    remove: (result: string) => mark(result, 'removed'),
    /** Yields the entries of all complete results. */
    *entries(): Generator<readonly [string, IndexEntry]> {
      for (const result of new Set([...own.keys(), ...others.keys()])) {
        const entry = get(result);
        if (entry) yield [result, entry];
      }
    },
    /** Returns the versions of the tools with this fingerprint, if an earlier run recorded them. */
    toolVersionsOf: (fingerprint: string): string | undefined => toolVersions.get(fingerprint),
    /** Records the versions of the tools with this fingerprint. */
    async setToolVersions(fingerprint: string, versions: string): Promise<void> {
      if (dryRun || toolVersions.get(fingerprint) === versions) return;
      toolVersions.set(fingerprint, versions);
      await append({ tools: fingerprint, versions });
    },
  };
}

/** Adds the record of a line. In one file, later lines supersede earlier ones. */
function addLine(line: Line, states: States, toolVersions: Map<string, string>): void {
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

/**
 * Creates a folder, unless it exists.
 *
 * @throws {Error} also if it is a link
 */
async function makeRealFolder(path: string): Promise<void> {
  const error = await mkdir(path).catch((reason: NodeJS.ErrnoException) => reason);
  if (error && (error.code !== 'EEXIST' || !(await lstat(path)).isDirectory()))
    throw error.code === 'EEXIST' ? new Error(`${path} is a link or a file`) : error;
}

/**
 * Reads the complete lines of a file; none if the file does not exist.
 *
 * @param start offset of the first line in bytes. If the file is shorter, it was rewritten, and is read from its start.
 * @returns the offset of what follows; of the last line if that is incomplete
 */
async function readLines(path: string, start: number, use: (line: Line) => void): Promise<number> {
  const file = await open(path, READ).catch((error) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!file) return 0;
  const { size } = await file.stat();
  const from = start <= size ? start : 0;
  if (from === size) {
    await file.close();
    return size;
  }
  let incomplete = '';
  for await (const text of file.readLines({ start: from, end: size - 1 })) {
    const line = parseLine(text);
    if (line) use(line);
    incomplete = line ? '' : text;
  }
  return size - Buffer.byteLength(incomplete);
}

/** Parses a line. A truncated or empty line is never valid JSON, and one that was written by hand can be anything. */
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

/** Returns whether a JSON value is a line. The path of a result must not lead out of the output folder. */
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
function* linesOf(
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
async function rewrite(path: string, temporary: string, lines: Iterable<string>): Promise<void> {
  const file = await open(temporary, 'wx');
  try {
    await file.writeFile(lines);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
