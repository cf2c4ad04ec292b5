import { access, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Command, Confine, Run } from './run.ts';
import { findProgram, type Question } from './toolchain.ts';

/** What every tool is shut in with: as much of it as this machine can do, found out by trying it on the tools. */

export interface Bounds {
  /** Of address space, for one process. */
  readonly memoryBytes: number;
  /** The largest file that may be written. */
  readonly fileBytes: number;
}

export interface SandboxParts {
  /** As in PATH. */
  readonly searchPath: string;
  /** The tools that will run, by their absolute paths, and how each is asked who it is. */
  readonly tools: readonly { readonly path: string; readonly question: Question }[];
  /** Folders and files of ours that they read. */
  readonly readable: readonly string[];
  readonly bounds: Bounds;
  /** A folder of seccomp filters, one an architecture. */
  readonly filters: string;
  /** An empty folder, to try the tools in. */
  readonly folder: string;
  /** Makes a {@link Run} that confines so, for trying it. */
  readonly tryOut: (confine: Confine) => Run;
}

export interface Sandbox {
  readonly confine: Confine;
  /** What is on, for the log and for probes. */
  readonly layers: Layers;
}

export interface Layers {
  /** Address space, processor time, sizes of files, open files, no core dumps. */
  readonly limits: 'prlimit' | 'none';
  /** No new privileges, and an end with the server's. */
  readonly privileges: 'setpriv' | 'bwrap' | 'none';
  /** Nothing but the job's folder is written; nothing but the tool and what it needs is read or run. */
  readonly files: 'landlock' | 'bwrap' | 'none';
  readonly network: 'seccomp' | 'bwrap' | 'none';
}

export const NO_LAYERS: Layers = { limits: 'none', privileges: 'none', files: 'none', network: 'none' };

/** One way to shut in, as a part of the command line. */
interface Way {
  readonly gives: Partial<Layers>;
  readonly confine: Confine;
}

/**
 * Tries, strongest first, what holds the tools and still lets them run: every layer is on by
 * itself when it works, and of the ways to hide files the first that does.
 */
export async function findSandbox(parts: SandboxParts): Promise<Sandbox> {
  const [prlimit, setpriv, bwrap] = await Promise.all(
    ['prlimit', 'setpriv', 'bwrap'].map((name) => findProgram(name, parts.searchPath)),
  );
  const limits = prlimit ? limitsBy(prlimit, parts.bounds) : undefined;
  const holding = [
    ...(setpriv ? [await landlock(setpriv, parts)] : []),
    ...(bwrap ? [hidden(bwrap, setpriv, parts)] : []),
    ...(setpriv ? [unprivileged(setpriv)] : []),
  ];
  const chosen: Way[] = [];
  if (limits && (await works([limits], parts))) chosen.push(limits);
  for (const way of holding) {
    if (await works([...chosen, way], parts)) {
      chosen.push(way);
      break;
    }
  }
  return {
    confine: together(chosen),
    layers: Object.assign({ ...NO_LAYERS }, ...chosen.map(({ gives }) => gives)),
  };
}

function together(ways: readonly Way[]): Confine {
  return (command) => ways.flatMap(({ confine }) => confine(command));
}

/** Whether every tool still says who it is. */
async function works(ways: readonly Way[], { tools, folder, tryOut }: SandboxParts): Promise<boolean> {
  const run = tryOut(together(ways));
  const answers = tools.map(async ({ path, question: { args, answer } }) => {
    const { stdout, stderr } = await run({ file: path, args, cwd: folder, timeoutMs: 10_000 });
    return answer.test(stdout + stderr);
  });
  return (await Promise.all(answers.map((asked) => asked.catch(() => false)))).every(Boolean);
}

function limitsBy(prlimit: string, { memoryBytes, fileBytes }: Bounds): Way {
  return {
    gives: { limits: 'prlimit' },
    confine: ({ timeoutMs, memoryBytes: less }: Command) => [
      prlimit,
      `--as=${Math.min(less ?? memoryBytes, memoryBytes)}`,
      `--cpu=${Math.ceil(timeoutMs / 1000) + 1}`,
      `--fsize=${fileBytes}`,
      '--nofile=64',
      '--core=0',
    ],
  };
}

const NO_PRIVILEGES = ['--no-new-privs', '--pdeathsig', 'KILL'];

function unprivileged(setpriv: string): Way {
  return { gives: { privileges: 'setpriv' }, confine: () => [setpriv, ...NO_PRIVILEGES] };
}

/** What programs read besides their own: configuration that is nobody's secret. Not all of it is everywhere. */
const CONFIGURATION = [
  ...['/etc/ImageMagick-6', '/etc/ImageMagick-7', '/etc/fonts', '/etc/ld.so.cache', '/etc/ld.so.conf'],
  ...['/etc/ld.so.conf.d', '/etc/alternatives', '/var/cache/fontconfig'],
];
const LIBRARIES = ['/usr/lib', '/usr/lib64', '/usr/local/lib', '/usr/share', '/usr/local/share'];
/** Without it no program starts that is not linked statically; on other systems it has other names. */
const LOADERS = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'];

/** The kernel's Landlock by util-linux 2.40 or newer, and the filter that denies sockets. */
async function landlock(setpriv: string, { readable, filters, tools }: SandboxParts): Promise<Way> {
  const filter = join(filters, `${process.arch}.bpf`);
  const filtered = await access(filter).then(
    () => true,
    () => false, // an architecture whose numbers nobody has looked up
  );
  const rule = (rights: string, path: string): string[] => [
    '--landlock-rule',
    `path-beneath:${rights}:${path}`,
  ];
  const shared = await existing([...LIBRARIES, ...CONFIGURATION, ...readable, ...beside(tools), '/dev/null']);
  const loaders = await existing(LOADERS);
  const fixed = [
    ...shared.flatMap(({ path, isFolder }) => rule(isFolder ? 'read-file,read-dir' : 'read-file', path)),
    ...loaders.flatMap(({ path }) => rule('execute,read-file', path)),
    ...(filtered ? ['--seccomp-filter', filter] : []),
  ];
  return {
    gives: { privileges: 'setpriv', files: 'landlock', ...(filtered && { network: 'seccomp' }) },
    confine: ({ file, cwd }) => [
      ...[setpriv, ...NO_PRIVILEGES, '--landlock-access', 'fs', ...fixed],
      ...rule('execute,read-file', file),
      ...rule('read-file,write-file,read-dir,make-reg,remove-file,truncate', cwd),
    ],
  };
}

/** A file system of its own by bubblewrap, with little more in it than the tool and its libraries. */
function hidden(bwrap: string, setpriv: string | undefined, { readable, tools }: SandboxParts): Way {
  const visible = [...LIBRARIES, ...CONFIGURATION, ...readable, ...beside(tools)].flatMap((path) => [
    '--ro-bind-try',
    path,
    path,
  ]);
  const links = ['lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  return {
    gives: { privileges: setpriv ? 'setpriv' : 'bwrap', files: 'bwrap', network: 'bwrap' },
    confine: ({ file, cwd }) => [
      ...(setpriv ? [setpriv, ...NO_PRIVILEGES] : []),
      ...[bwrap, '--unshare-all', '--die-with-parent', '--cap-drop', 'ALL'],
      ...[
        ...visible,
        ...links,
        '--dev',
        '/dev',
        '--ro-bind',
        file,
        file,
        '--bind',
        cwd,
        cwd,
        '--chdir',
        cwd,
        '--',
      ],
    ],
  };
}

/** Of tools that are installed elsewhere, as in /opt/imagemagick/bin: what belongs to them there. */
function beside(tools: SandboxParts['tools']): string[] {
  const prefixes = tools
    .map(({ path }) => dirname(dirname(path)))
    .filter((prefix) => !['/', '/usr', '/usr/local'].includes(prefix));
  return [...new Set(prefixes)].flatMap((prefix) =>
    ['lib', 'lib64', 'share', 'etc'].map((name) => join(prefix, name)),
  );
}

interface Found {
  readonly path: string;
  readonly isFolder: boolean;
}

/** Those of the paths that exist, without the links in them: Landlock's rules are about what is at their end. */
async function existing(paths: readonly string[]): Promise<Found[]> {
  const found = await Promise.all(
    paths.map(async (given) => {
      try {
        const path = await realpath(given);
        return [{ path, isFolder: (await stat(path)).isDirectory() }];
      } catch {
        return [];
      }
    }),
  );
  return found.flat();
}
