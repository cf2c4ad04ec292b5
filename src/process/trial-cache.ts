/**
 * @module Remembers that the tools passed all trials under the strongest sandbox, so that the next
 * command of this user need not try them again. It only spares trials: each process is confined in
 * the same way, and one that cannot be confined does not run.
 */
import { hash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { release, version } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { bootId } from '../files/stale.ts';
import { readCached, writeCached } from '../files/user-cache.ts';
import { ASSETS_DIR, FORK_SERVER_LIBRARY, VERSION } from '../folders.ts';
import type { Config } from '../tables/config.ts';
import { TOOLS, type ToolName } from '../tables/tools.ts';
import { CommandError, type RunCommand } from './command.ts';
import { signatureOf } from './fork-server/servers.ts';
import { magickLimits, maxToolFileBytes } from './sandbox/configure.ts';
import { fingerprintTools, searchedTools, type Toolchain, type ToolSearch } from './toolchain.ts';

interface Proven {
  readonly toolchain: Toolchain;
  /** Paths of the tools that can be fork servers. */
  readonly served: readonly string[];
}

/** Number of circumstances that the file remembers, such as other limits or formats. */
const MAX_ENTRIES = 16;

const path = z.string().startsWith('/');
const tool = z.object({ path, version: z.string() });
const coders = z.array(z.string()).transform((names): ReadonlySet<string> => new Set(names));
const magick = tool.extend({
  major: z.literal([6, 7]),
  reads: coders,
  writes: coders,
  libheif: z.string().optional(),
});
const names = Object.keys(TOOLS).filter((name) => name !== 'magick') as Exclude<ToolName, 'magick'>[];
const entry = z.object({
  key: z.string(),
  toolchain: z.object({ magick }).and(z.partialRecord(z.enum(names), tool)),
  served: z.array(path),
});
const file = z.array(entry);

/** Databases of packages. A new package can add a format to a tool without changing it. */
const PACKAGES = [
  '/var/lib/dpkg/status',
  '/var/lib/rpm/rpmdb.sqlite',
  '/var/lib/pacman/local',
  '/lib/apk/db/installed',
];

/** Opens the results of earlier trials, in the cache folder of the user, if there is one. */
export async function openTrialCache(folder: string | undefined, config: Config, search: ToolSearch) {
  if (folder === undefined) return undefined;
  const path = join(folder, 'tools.json');
  const key = await keyOf(config, search);
  return {
    /** Results of the trials of an earlier run under the same circumstances. */
    proven: parse(readCached(path)).find((known) => known.key === key) as Proven | undefined,
    save({ toolchain, served }: Proven): void {
      const others = parse(readCached(path)).filter((known) => known.key !== key);
      const entries = [{ key, toolchain, served }, ...others].slice(0, MAX_ENTRIES);
      writeCached(
        path,
        JSON.stringify(entries, (_, value) => (value instanceof Set ? [...value] : value)),
      );
    },
    /** Removes all results when a tool does not start: the next run tries the tools again. */
    forgetOnFailure:
      (run: RunCommand): RunCommand =>
      (command) =>
        run(command).catch((error) => {
          if (error instanceof CommandError && error.reason === 'spawn-failed') rmSync(path, { force: true });
          throw error;
        }),
  };
}

/** Parses the file. A file that is malformed has no entries. */
function parse(text: string | undefined) {
  try {
    return file.parse(JSON.parse(text ?? '[]'));
  } catch {
    return [];
  }
}

/** Returns a digest of tools, files, sandbox, settings, kernel and the rights of this process. */
async function keyOf(config: Config, search: ToolSearch): Promise<string> {
  const { PATH, SANDBOX, FORK_SERVER, EXTRA_INPUTS, EXTRA_OUTPUTS, CONVERT_TIMEOUT_MS } = config;
  const limits = [magickLimits(config), maxToolFileBytes(config), CONVERT_TIMEOUT_MS];
  const settings = [VERSION, PATH, SANDBOX, FORK_SERVER, EXTRA_INPUTS, EXTRA_OUTPUTS, ...limits];
  const reads = searchedTools(search).flatMap((name) => TOOLS[name].reads ?? []);
  const policies = reads.map((folder) => `${folder}/policy.xml`);
  const files = [FORK_SERVER_LIBRARY, '/etc/ld.so.cache', ...PACKAGES, ...reads, ...policies];
  const read = (name: string) => readFile(name, 'utf8').catch(() => '');
  const parts = await Promise.all([
    fingerprintTools(search),
    signatureOf(files),
    bootId(),
    read('/proc/self/limits'),
    read('/proc/self/attr/current'),
    read('/proc/self/status').then(rightsOf),
    read(join(ASSETS_DIR, 'SHA256SUMS')),
  ]);
  return hash('sha256', JSON.stringify([release(), version(), process.arch, ...parts, ...settings]));
}

/** Returns the lines of proc(5) about the rights and system call filters of this process. */
const rightsOf = (status: string): string =>
  status
    .split('\n')
    .filter((line) => /^(?:Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp\w*):/.test(line))
    .join('\n');
