import { realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Command } from '../command.ts';
import type { Confine } from '../launch.ts';
import type { ResourceLimits, SandboxLayers, SandboxOptions } from './types.ts';

/** The ways to shut a tool in: limits of its process, or a program and arguments that are put in front of it. */

/** One way to shut in, as a part of the command line. */
export interface SandboxLayer {
  readonly provides: Partial<SandboxLayers>;
  readonly confine: Confine;
}

/** By the shell's own ulimit, which is there already, instead of prlimit(1), which would be one more program to start. */
export function rlimitLayer({ memoryBytes, fileBytes }: ResourceLimits): SandboxLayer {
  return {
    provides: { limits: 'ulimit' },
    confine: ({ timeoutMs, memoryBytes: less }: Command) => ({
      limits: [
        `-v ${Math.floor(Math.min(less ?? memoryBytes, memoryBytes) / 1024)}`,
        // At its soft limit a process gets SIGXCPU, which names the cause; at its hard limit SIGKILL, which does not.
        `-St ${Math.ceil(timeoutMs / 1000) + 1}`,
        `-Ht ${Math.ceil(timeoutMs / 1000) + 2}`,
        `-f ${Math.ceil(fileBytes / 512)}`,
        '-n 64',
        '-c 0',
      ],
    }),
  };
}

const NO_PRIVILEGES = ['--no-new-privs', '--pdeathsig', 'KILL'];

export function noNewPrivsLayer(setpriv: string): SandboxLayer {
  return { provides: { privileges: 'setpriv' }, confine: () => ({ words: [setpriv, ...NO_PRIVILEGES] }) };
}

/** What programs read besides their own: configuration that is nobody's secret. Not all of it is everywhere. */
const CONFIGURATION = [
  ...['/etc/ImageMagick-6', '/etc/ImageMagick-7', '/etc/fonts', '/etc/ld.so.cache', '/etc/ld.so.conf'],
  ...['/etc/ld.so.conf.d', '/etc/alternatives', '/var/cache/fontconfig'],
  '/sys/kernel/mm/transparent_hugepage', // glibc asks it whether there are large pages: see environment.ts
];
const LIBRARIES = ['/usr/lib', '/usr/lib64', '/usr/local/lib', '/usr/share', '/usr/local/share'];
/** Without it no program starts that is not linked statically; on other systems it has other names. */
const LOADERS = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];

/** A filter of system calls: the tools may make those of a list and no others, or all but those of a list. */
export interface CallFilter {
  readonly list: 'allow-list' | 'deny-list';
  /** A program of classic BPF for this machine's architecture. */
  readonly path: string;
}

/** The filters of this machine's architecture in a folder, the strictest first; none for an architecture without any. */
export async function findFilters(folder: string): Promise<CallFilter[]> {
  const filters = (['allow-list', 'deny-list'] as const).map((list) => ({
    list,
    path: join(folder, `${list}.${process.arch}.bpf`),
  }));
  const there = await statExisting(filters.map(({ path }) => path));
  return filters.filter(({ path }) => there.some(({ given }) => given === path));
}

const filteredBy = ({ list }: CallFilter): Partial<SandboxLayers> => ({ network: 'seccomp', syscalls: list });

/** The kernel's Landlock, by util-linux 2.40 or newer, and a filter of system calls. */
export async function landlockLayer(
  setpriv: string,
  { readable, tools }: SandboxOptions,
  filter?: CallFilter,
): Promise<SandboxLayer> {
  const rule = (rights: string, path: string): string[] => [
    '--landlock-rule',
    `path-beneath:${rights}:${path}`,
  ];
  const shared = await statExisting([
    ...LIBRARIES,
    ...CONFIGURATION,
    ...readable,
    ...siblingDirs(tools),
    '/dev/null',
  ]);
  const loaders = await statExisting(LOADERS);
  const fixed = [
    ...shared.flatMap(({ path, isFolder }) => rule(isFolder ? 'read-file,read-dir' : 'read-file', path)),
    ...loaders.flatMap(({ path }) => rule('execute,read-file', path)),
    ...(filter ? ['--seccomp-filter', filter.path] : []),
  ];
  return {
    provides: { privileges: 'setpriv', files: 'landlock', ...(filter && filteredBy(filter)) },
    confine: ({ file, cwd }) => ({
      words: [
        ...[setpriv, ...NO_PRIVILEGES, '--landlock-access', 'fs', ...fixed],
        ...rule('execute,read-file', file),
        ...rule('read-file,write-file,read-dir,make-reg,remove-file,truncate', cwd),
      ],
      // Both filters refuse fork(2), so a tool starts no process that could outlive it.
      endsDescendants: filter !== undefined,
    }),
  };
}

/** The number of the descriptor that bubblewrap reads the filter from. */
const FILTER_FD = 7;
/** Processes and threads of one tool where no filter forbids new processes: some libraries start a thread a processor. */
const MAX_PROCESSES = 512;

export interface BubblewrapOptions {
  /** Without one the tools have a network of their own, which takes 1.2 of 7 ms; not every kernel takes a filter. */
  readonly filter?: CallFilter;
  /** Whether no more user namespaces can be made inside: bubblewrap 0.8 or newer, 0.2 ms. */
  readonly lockNamespaces: boolean;
  /** Path of prlimit(1), which limits the number of processes where no filter forbids them. */
  readonly prlimit?: string | undefined;
}

/** A file system and process numbers of its own by bubblewrap, with little more in it than the tool and its libraries. */
export async function bubblewrapLayer(
  bwrap: string,
  { readable, tools }: SandboxOptions,
  { filter, lockNamespaces, prlimit }: BubblewrapOptions,
): Promise<SandboxLayer> {
  const shared = await statExisting([...LIBRARIES, ...CONFIGURATION, ...readable, ...siblingDirs(tools)]);
  const visible = shared.flatMap(({ given }) => ['--ro-bind-try', given, given]);
  const links = ['lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const network = filter ? ['--share-net', '--seccomp', String(FILTER_FD)] : [];
  const namespaces = lockNamespaces ? ['--unshare-user', '--disable-userns'] : [];
  return {
    // It denies new privileges by itself: bubblewrap.c, main().
    provides: {
      privileges: 'bwrap',
      files: 'bwrap',
      network: 'bwrap',
      processes: 'namespace',
      ...(filter && filteredBy(filter)),
    },
    confine: ({ file, cwd }) => ({
      words: [
        ...[bwrap, '--unshare-all', ...namespaces, ...network, '--die-with-parent', '--cap-drop', 'ALL'],
        ...[...visible, ...links, '--dev-bind', '/dev/null', '/dev/null'],
        ...(prlimit ? ['--ro-bind', prlimit, prlimit] : []),
        ...['--ro-bind', file, file, '--bind', cwd, cwd],
        // What bubblewrap makes up itself is memory, and to be written no more than the machine's.
        ...['--remount-ro', '/', '--chdir', cwd, '--'],
        // From inside, since the kernel counts processes of a user in each user namespace: setrlimit(2), since Linux 5.14.
        ...(prlimit ? [prlimit, `--nproc=${MAX_PROCESSES}`] : []),
      ],
      ...(filter && { opened: { [FILTER_FD]: filter.path } }),
      endsDescendants: true,
    }),
  };
}

/** Of tools that are installed elsewhere, as in /opt/imagemagick/bin: what belongs to them there. */
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
  /** Without the links in it. */
  readonly path: string;
  readonly isFolder: boolean;
}

/** Those of the paths that exist and may be reached. Landlock's rules are about what is at the end of links. */
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
