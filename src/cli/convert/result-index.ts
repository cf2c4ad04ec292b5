/**
 * @module The index of an output folder records the source of each result, to find results that are
 * up to date. It is a file of JSON lines in `.imagemill/` of the folder. A run appends a line
 * before it moves a result into place, and another line afterwards. A process that is killed in
 * between leaves a result that the index knows but does not claim. Each shard has its own file, and
 * every run reads all files. No link in the folder is followed: it can lead to any file.
 */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeInstanceFolder, readInstanceFolder, removeStaleWorkspaces } from '../../files/stale.ts';
import { createFolders } from '../../files/system.ts';
import type { Shard } from './bulk-options.ts';
import { OWN_PREFIX } from './find-images.ts';
import {
  addLine,
  appendLine,
  type IndexEntry,
  linesOf,
  type Mark,
  type ResultRecord,
  readLines,
  rewrite,
  type States,
} from './index-file.ts';

/** Number of superseded lines from which the file is rewritten, if they are half of it, too. */
const MIN_SUPERSEDED = 1000;

/** The index of an output folder. Paths of results are relative to that folder. */
export class ResultIndex {
  /** Folder for incomplete results of this run, on the output's disk. Empty if none are kept. */
  readonly temporary: string;
  readonly #path: string;
  readonly #toolVersions = new Map<string, string>();
  /** Records of the own file, and the latest ones of the other files. */
  readonly #own: States = new Map();
  readonly #others: States = new Map();
  #lines = 0;
  /** Offset in the own file up to which it was read. */
  #position = 0;
  #reading: Promise<void> = Promise.resolve();

  private constructor(path: string, temporary: string) {
    this.#path = path;
    this.temporary = temporary;
  }

  /**
   * Opens the index of an output folder. Creates the folder if it does not exist.
   *
   * @param dryRun whether nothing will be recorded. Then nothing is created or removed either.
   * @throws {Error} with the code of the failed system call
   */
  static async open(output: string, shard: Shard | undefined, dryRun = false): Promise<ResultIndex> {
    const folder = join(output, OWN_PREFIX);
    let temporary = '';
    if (!dryRun) {
      await createFolders(output);
      await makeRealFolder(folder);
      await removeStaleWorkspaces(folder);
      temporary = await makeInstanceFolder(folder);
    }
    const label = shard ? `-${shard.number}-of-${shard.count}` : '';
    const index = new ResultIndex(join(folder, `index${label}.jsonl`), temporary);
    await index.refresh();
    const files = await readdir(folder).catch((error) => {
      if (dryRun && error.code === 'ENOENT') return [];
      throw error;
    });
    const isShared = await index.#readOthers(files.map((file) => join(folder, file)));
    // Another command can append to the file at any time.
    if (!dryRun && !isShared) await index.#compact();
    return index;
  }

  /** Reads what other commands for the same shard have recorded since. */
  refresh(): Promise<void> {
    const readNew = async (): Promise<void> => {
      this.#position = await readLines(this.#path, this.#position, (line) => {
        this.#lines += 1;
        addLine(line, this.#own, this.#toolVersions);
      });
    };
    // One at a time: if a line was added twice, `withdrawn` would remove another command's mark.
    this.#reading = this.#reading.then(readNew, readNew);
    return this.#reading;
  }

  /**
   * Reads the files of the other shards.
   *
   * @returns whether another command uses the folder, too
   */
  async #readOthers(paths: readonly string[]): Promise<boolean> {
    let isShared = false;
    for (const path of paths) {
      isShared ||= path !== this.temporary && (await readInstanceFolder(path)) !== undefined;
      if (path === this.#path || !/^index.*\.jsonl$/.test(basename(path))) continue;
      const states: States = new Map();
      await readLines(path, 0, (line) => addLine(line, states, this.#toolVersions));
      for (const [result, state] of states)
        if ((this.#others.get(result)?.now.made ?? 0) <= state.now.made) this.#others.set(result, state);
    }
    return isShared;
  }

  /** Rewrites the own file if most of its lines are superseded. */
  async #compact(): Promise<void> {
    if (this.#lines - this.#own.size <= Math.max(MIN_SUPERSEDED, this.#own.size)) return;
    const lines = linesOf(this.#own, this.#others, this.#toolVersions);
    await rewrite(this.#path, join(this.temporary, basename(this.#path)), lines);
    this.#position = 0;
  }

  /** Removes `temporary`. */
  async close(): Promise<void> {
    if (this.temporary !== '') await rm(this.temporary, { recursive: true, force: true });
  }

  get(result: string): IndexEntry | undefined {
    const value = this.#find(result);
    return value?.state === undefined ? value : undefined;
  }

  /** Returns whether an earlier run wrote this result, or may have written it. */
  owns(result: string): boolean {
    const value = this.#find(result);
    return value !== undefined && value.state !== 'removed';
  }

  *entries(): Generator<readonly [string, IndexEntry]> {
    for (const result of new Set([...this.#own.keys(), ...this.#others.keys()])) {
      const entry = this.get(result);
      if (entry) yield [result, entry];
    }
  }

  /** Records a {@link Mark}. `withdrawn` keeps what another command has recorded. */
  mark(result: string, state: Mark['state']): Promise<void> {
    return this.record(result, { state, made: Date.now() });
  }

  /** Records the entry of a result that is in place, or a mark. */
  async record(result: string, value: ResultRecord): Promise<void> {
    const line = { result, ...value };
    await appendLine(this.#path, line);
    addLine(line, this.#own, this.#toolVersions);
  }

  /** Returns the versions of the tools with this fingerprint, if an earlier run recorded them. */
  toolVersionsOf(fingerprint: string): string | undefined {
    return this.#toolVersions.get(fingerprint);
  }

  async setToolVersions(fingerprint: string, versions: string): Promise<void> {
    if (this.temporary === '' || this.#toolVersions.get(fingerprint) === versions) return;
    this.#toolVersions.set(fingerprint, versions);
    await appendLine(this.#path, { tools: fingerprint, versions });
  }

  #find(result: string): ResultRecord | undefined {
    const [mine, other] = [this.#own.get(result)?.now, this.#others.get(result)?.now];
    return other && (!mine || other.made > mine.made) ? other : mine;
  }
}

/** @throws {Error} also if a link has this name */
async function makeRealFolder(path: string): Promise<void> {
  const error = await mkdir(path).catch((reason: NodeJS.ErrnoException) => reason);
  if (error && (error.code !== 'EEXIST' || !(await lstat(path)).isDirectory()))
    throw error.code === 'EEXIST' ? new Error(`${path} is a link or a file`) : error;
}
