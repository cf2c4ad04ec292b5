import type { RunCommand } from './command.ts';
import { findFilters, bubblewrapLayer, landlockLayer, rlimitLayer, noNewPrivsLayer, type SandboxLayer } from './confine.ts';
import type { Confine } from './launch.ts';
import { findProgram, type VersionProbe } from './toolchain.ts';
import { passes, type Trial } from './trials.ts';

/** What every tool is shut in with: as much of it as this machine can do, found out by trying it on the tools. */

export interface ResourceLimits {
  /** Of address space, for one process. */
  readonly memoryBytes: number;
  /** The largest file that may be written. */
  readonly fileBytes: number;
}

/** A tool that will run. */
export interface ToolToConfine {
  /** Absolute path. */
  readonly path: string;
  /** How it is asked who it is. */
  readonly question: VersionProbe;
  /** What it must do under the allow-list of system calls. */
  readonly trial: Trial;
}

export interface SandboxOptions {
  /** As in PATH. */
  readonly searchPath: string;
  readonly tools: readonly ToolToConfine[];
  /** Folders and files of ours that they read. */
  readonly readable: readonly string[];
  readonly limits: ResourceLimits;
  /** A folder of seccomp filters, two an architecture. */
  readonly filters: string;
  /** An empty folder, to try the tools in. */
  readonly folder: string;
  /** Makes a {@link RunCommand} that confines so, for trying it. */
  readonly createTrialRunner: (confine: Confine) => RunCommand;
}

export interface Sandbox {
  readonly confine: Confine;
  /** What is on, for the log and for probes. */
  readonly layers: SandboxLayers;
}

export interface SandboxLayers {
  /** Address space, processor time, sizes of files, open files, no core dumps. */
  readonly limits: 'ulimit' | 'none';
  /** No new privileges, and an end with the server's. */
  readonly privileges: 'setpriv' | 'bwrap' | 'none';
  /** Nothing but the job's folder is written; nothing but the tool and what it needs is read or run. */
  readonly files: 'landlock' | 'bwrap' | 'none';
  readonly network: 'seccomp' | 'bwrap' | 'none';
  /**
   * Which system calls a tool may make: those that the tools are known to need; all but those that reach other processes,
   * other files or the kernel; or all.
   */
  readonly syscalls: 'allow-list' | 'deny-list' | 'none';
  /** The tools see no process but their own, and none of theirs outlives them. */
  readonly processes: 'namespace' | 'none';
}

export const NO_LAYERS: SandboxLayers = {
  limits: 'none',
  privileges: 'none',
  files: 'none',
  network: 'none',
  syscalls: 'none',
  processes: 'none',
};

/**
 * Tries, strongest first, what holds the tools and still lets them run: every layer is on by
 * itself when it works, and of the ways to hide files the first that does.
 */
export async function findSandbox(parts: SandboxOptions): Promise<Sandbox> {
  const limits = rlimitLayer(parts.limits);
  const chosen: SandboxLayer[] = [];
  if (await toolsStillRun([limits], parts)) chosen.push(limits);
  for (const way of await waysToHide(parts)) {
    if (await toolsStillRun([...chosen, way], parts)) {
      chosen.push(way);
      break;
    }
  }
  return {
    confine: composeLayers(chosen),
    layers: Object.assign({ ...NO_LAYERS }, ...chosen.map(({ provides: gives }) => gives)),
  };
}

/** The ways to hide files from the tools, strongest first, and the one that is left where none of them works. */
async function waysToHide(parts: SandboxOptions): Promise<SandboxLayer[]> {
  const [setpriv, bwrap, prlimit] = await Promise.all(
    ['setpriv', 'bwrap', 'prlimit'].map((name) => findProgram(name, parts.searchPath)),
  );
  const filters = await findFilters(parts.filters);
  const lockNamespaces = bwrap !== undefined && (await canLockNamespaces(bwrap, parts));
  const wrapped = [
    ...filters.map((filter) => ({ filter, lockNamespaces })),
    ...(prlimit ? [{ lockNamespaces, prlimit }] : []),
    { lockNamespaces },
  ];
  return Promise.all([
    ...(setpriv ? filters.map((filter) => landlockLayer(setpriv, parts, filter)) : []),
    ...(bwrap ? wrapped.map((options) => bubblewrapLayer(bwrap, parts, options)) : []),
    // Without a filter Landlock hides files and no processes: bubblewrap is stronger.
    ...(setpriv ? [landlockLayer(setpriv, parts), noNewPrivsLayer(setpriv)] : []),
  ]);
}

function composeLayers(ways: readonly SandboxLayer[]): Confine {
  return (command) => {
    const parts = ways.map(({ confine }) => confine(command));
    return {
      limits: parts.flatMap(({ limits = [] }) => limits),
      words: parts.flatMap(({ words = [] }) => words),
      opened: Object.assign({}, ...parts.map(({ opened }) => opened)),
      endsDescendants: parts.some(({ endsDescendants }) => endsDescendants),
    };
  };
}

/** Whether bubblewrap can forbid new user namespaces inside: from version 0.8, where /proc/sys can be written. */
async function canLockNamespaces(bwrap: string, { folder, createTrialRunner: tryOut }: SandboxOptions): Promise<boolean> {
  const args = ['--unshare-user', '--disable-userns', '--ro-bind', '/', '/', bwrap, '--version'];
  return tryOut(() => ({}))({ file: bwrap, args, cwd: folder, timeoutMs: 10_000 }).then(
    () => true,
    () => false,
  );
}

/**
 * Whether every tool still says who it is, and, under the allow-list, converts a picture: only that shows whether it makes
 * other calls. A tool that fails without any confinement as well, since a library is missing, says nothing about the list.
 */
async function toolsStillRun(ways: readonly SandboxLayer[], { tools, folder, createTrialRunner: tryOut }: SandboxOptions): Promise<boolean> {
  const [run, unconfined] = [tryOut(composeLayers(ways)), tryOut(() => ({}))];
  const answers = async ({ path, question }: ToolToConfine): Promise<boolean> => {
    const { stdout, stderr } = await run({ file: path, args: question.args, cwd: folder, timeoutMs: 10_000 });
    return question.pattern.test(stdout + stderr);
  };
  const converts = async ({ path, trial }: ToolToConfine): Promise<boolean> =>
    (await passes(path, trial, run, folder)) || !(await passes(path, trial, unconfined, folder));
  const needsTrial = ways.some(({ provides: gives }) => gives.syscalls === 'allow-list');
  const tried = await Promise.all(
    tools.map(async (tool) => (await answers(tool).catch(() => false)) && (!needsTrial || converts(tool))),
  );
  return tried.every(Boolean);
}
