/**
 * @module The layers of a sandbox: resource limits of the process, or wrapper programs that precede the command line.
 */

import { realpath, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { Command } from '../command.ts';
import type { Confine } from '../runner.ts';
import type { ResourceLimits, SandboxLayers, SandboxOptions } from './types.ts';

/** One layer of a sandbox. */
export interface SandboxLayer {
  /** Protections that this layer adds. */
  readonly provides: Partial<SandboxLayers>;
  readonly confine: Confine;
}

/** Combines layers. The programs of the first layer precede those of the next. */
export function composeLayers(layers: readonly SandboxLayer[]): Confine {
  return (command) => {
    const parts = layers.map(({ confine }) => confine(command));
    return {
      limits: parts.flatMap(({ limits = [] }) => limits),
      argvPrefix: parts.flatMap(({ argvPrefix = [] }) => argvPrefix),
      fds: Object.assign({}, ...parts.map(({ fds }) => fds)),
      endsDescendants: parts.some(({ endsDescendants }) => endsDescendants),
    };
  };
}

/** Maximum number of files that a tool can have open. The limit of this process must not be lower (setrlimit(2)). */
export const TOOL_OPEN_FILES = 64;

/** Sets resource limits with the `ulimit` of the shell. prlimit(1) would be one more program to start. */
export function rlimitLayer({ memoryBytes, fileBytes }: ResourceLimits): SandboxLayer {
  return {
    provides: { limits: 'ulimit' },
    confine({ timeoutMs, memoryBytes: requested }: Command) {
      // The kernel counts the time of all threads.
      const cpuSeconds = Math.ceil(timeoutMs / 1000) * availableParallelism();
      return {
        limits: [
          `-v ${Math.floor(Math.min(requested ?? memoryBytes, memoryBytes) / 1024)}`,
          // A process gets SIGXCPU at the soft limit, which identifies the cause, and SIGKILL at the hard limit.
          `-St ${cpuSeconds + 1}`,
          `-Ht ${cpuSeconds + 2}`,
          `-f ${Math.ceil(fileBytes / 512)}`,
          `-n ${TOOL_OPEN_FILES}`,
          '-c 0',
        ],
      };
    },
  };
}

const NO_PRIVILEGES = ['--no-new-privs', '--pdeathsig', 'KILL'];

/** Denies new privileges with setpriv(1), and kills the tool when its parent ends. */
export function noNewPrivsLayer(setpriv: string): SandboxLayer {
  return {
    provides: { privileges: 'setpriv' },
    confine: () => ({ argvPrefix: [setpriv, ...NO_PRIVILEGES] }),
  };
}

/**
 * Files and folders that all tools read, if they exist. {@link ToolToConfine.reads} lists those of a single tool.
 * Harmless files that a tool does not need are listed, too: an access that Landlock denies is slower than reading the
 * file (`bench/README.md`).
 */
const SHARED = [
  ...['/usr/lib', '/usr/lib64', '/usr/local/lib', '/etc/ld.so.cache', '/etc/alternatives'],
  ...['/etc/localtime', '/sys/devices/system/cpu/possible'],
  '/sys/kernel/mm/transparent_hugepage', // glibc reads it to find out whether huge pages are enabled: see runner.ts
];
/** Dynamic loaders of x86-64 and ARM64. Every program that is not statically linked needs its loader. */
const LOADERS = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];

/** A seccomp filter, which permits only the system calls of an allow-list, or all except those of a deny-list. */
export interface CallFilter {
  readonly list: 'allow-list' | 'deny-list';
  /** Path of a classic BPF program for this CPU architecture. */
  readonly path: string;
}

/** Returns the filters in a folder for this CPU architecture, the strictest first. */
export async function findFilters(folder: string): Promise<CallFilter[]> {
  const filters = (['allow-list', 'deny-list'] as const).map((list) => ({
    list,
    path: join(folder, `${list}.${process.arch}.bpf`),
  }));
  const existing = await statExisting(filters.map(({ path }) => path));
  return filters.filter(({ path }) => existing.some(({ given }) => given === path));
}

const filteredBy = ({ list }: CallFilter): Partial<SandboxLayers> => ({ network: 'seccomp', syscalls: list });

/** Restricts file access with Landlock, through setpriv of util-linux 2.40 or later, and system calls with a filter. */
export async function landlockLayer(
  setpriv: string,
  { readable, tools }: SandboxOptions,
  filter?: CallFilter,
): Promise<SandboxLayer> {
  const rule = (rights: string, path: string): string[] => [
    '--landlock-rule',
    `path-beneath:${rights}:${path}`,
  ];
  const readRules = async (paths: readonly string[]): Promise<string[]> =>
    (await statExisting(paths)).flatMap(({ path, isFolder }) =>
      rule(isFolder ? 'read-file,read-dir' : 'read-file', path),
    );
  const own = await perTool(tools, readRules);
  const loaders = await statExisting(LOADERS);
  const fixed = [
    ...(await readRules([...SHARED, ...readable, ...siblingDirs(tools), '/dev/null'])),
    ...loaders.flatMap(({ path }) => rule('execute,read-file', path)),
    ...(filter ? ['--seccomp-filter', filter.path] : []),
  ];
  return {
    provides: { privileges: 'setpriv', files: 'landlock', ...(filter && filteredBy(filter)) },
    confine: ({ file, cwd }) => ({
      argvPrefix: [
        ...[setpriv, ...NO_PRIVILEGES, '--landlock-access', 'fs', ...fixed, ...(own.get(file) ?? [])],
        ...rule('execute,read-file', file),
        ...rule('read-file,write-file,read-dir,make-reg,remove-file,truncate', cwd),
      ],
      // Both filters forbid fork(2), so a tool cannot start a process that outlives it.
      endsDescendants: filter !== undefined,
    }),
  };
}

/** File descriptor from which bubblewrap reads the filter. */
const FILTER_FD = 7;
/** Maximum number of processes and threads of one tool without a filter. Some libraries start a thread per CPU. */
const MAX_PROCESSES = 512;

/** Options of {@link bubblewrapLayer}. */
export interface BubblewrapOptions {
  /**
   * Filter of system calls. Without a filter, which not every kernel accepts, the tools get a network namespace, which
   * takes 1.2 of 7 ms.
   */
  readonly filter?: CallFilter;
  /** Whether to forbid new user namespaces. Requires bubblewrap 0.8 or later, and takes 0.2 ms. */
  readonly lockNamespaces: boolean;
  /** Path of prlimit(1), which limits the number of processes if no filter forbids new ones. */
  readonly prlimit?: string | undefined;
}

/**
 * Gives each tool new namespaces with bubblewrap. The file system contains little more than the tool and its libraries.
 */
export async function bubblewrapLayer(
  bwrap: string,
  { readable, tools }: SandboxOptions,
  { filter, lockNamespaces, prlimit }: BubblewrapOptions,
): Promise<SandboxLayer> {
  const bind = async (paths: readonly string[]): Promise<string[]> =>
    (await statExisting(paths)).flatMap(({ given }) => ['--ro-bind-try', given, given]);
  const visible = await bind([...SHARED, ...readable, ...siblingDirs(tools)]);
  const own = await perTool(tools, bind);
  const links = ['lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const network = filter ? ['--share-net', '--seccomp', String(FILTER_FD)] : [];
  const namespaces = lockNamespaces ? ['--unshare-user', '--disable-userns'] : [];
  return {
    // bubblewrap always sets no_new_privs: bubblewrap.c, main().
    provides: {
      privileges: 'bwrap',
      files: 'bwrap',
      network: 'bwrap',
      processes: 'namespace',
      ...(filter && filteredBy(filter)),
    },
    confine: ({ file, cwd }) => ({
      argvPrefix: [
        ...[bwrap, '--unshare-all', ...namespaces, ...network, '--die-with-parent', '--cap-drop', 'ALL'],
        ...[...visible, ...(own.get(file) ?? []), ...links, '--dev-bind', '/dev/null', '/dev/null'],
        ...(prlimit ? ['--ro-bind', prlimit, prlimit] : []),
        ...['--ro-bind', file, file, '--bind', cwd, cwd],
        // The root that bubblewrap creates is a tmpfs: make it read-only too.
        ...['--remount-ro', '/', '--chdir', cwd, '--'],
        // prlimit runs inside: since Linux 5.14, the kernel counts the processes of a user per user namespace
        // (setrlimit(2)).
        ...(prlimit ? [prlimit, `--nproc=${MAX_PROCESSES}`] : []),
      ],
      ...(filter && { fds: { [FILTER_FD]: filter.path } }),
      endsDescendants: true,
    }),
  };
}

/** Returns the arguments for the files that only a single tool reads, by the path of the tool. */
async function perTool(
  tools: SandboxOptions['tools'],
  argumentsFor: (paths: readonly string[]) => Promise<string[]>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const entries = tools.map(async ({ path, reads = [] }) => [path, await argumentsFor(reads)] as const);
  return new Map(await Promise.all(entries));
}

/**
 * Returns the folders next to the `bin` of tools outside /usr, such as /opt/imagemagick/lib for /opt/imagemagick/bin.
 */
function siblingDirs(tools: SandboxOptions['tools']): string[] {
  const prefixes = tools
    .map(({ path }) => dirname(dirname(path)))
    .filter((prefix) => !['/', '/usr', '/usr/local'].includes(prefix));
  return [...new Set(prefixes)].flatMap((prefix) =>
    ['lib', 'lib64', 'share', 'etc'].map((name) => join(prefix, name)),
  );
}

interface ExistingPath {
  readonly given: string;
  /** Path without symbolic links. */
  readonly path: string;
  readonly isFolder: boolean;
}

/**
 * Returns the paths that exist and are accessible, and resolves their links, since Landlock rules apply to the targets.
 */
async function statExisting(paths: readonly string[]): Promise<ExistingPath[]> {
  const found = await Promise.all(
    paths.map(async (given) => {
      try {
        const path = await realpath(given);
        return [{ given, path, isFolder: (await stat(path)).isDirectory() }];
      } catch {
        return [];
      }
    }),
  );
  return found.flat();
}
