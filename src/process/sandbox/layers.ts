/** @module Finds the protections that work on this machine, by running the tools under them. */

import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { RunCommand } from '../command.ts';
import { type Confine, createConfine } from '../runner.ts';
import { isScript } from '../toolchain.ts';
import { runTrial, type TestedTool } from './self-test.ts';

/** Layers of a sandbox. Each property names the mechanism that provides the protection. */
export interface SandboxLayers {
  /** Limits address space, CPU time, file size and open files, and disables core dumps. */
  readonly limits: 'setrlimit' | 'none';
  /** Denies new privileges, drops capabilities, and kills a tool when the server ends. */
  readonly privileges: 'no-new-privs' | 'none';
  /** Permits writing in the job's folder only, reading only the tool's dependencies, and executing nothing. */
  readonly files: 'landlock' | 'none';
  /** Denies network access. */
  readonly network: 'seccomp' | 'none';
  /**
   * System calls that a tool can make: `allow-list` permits those that the tools are known to need; `deny-list` permits
   * all except those that reach other processes, other files or the kernel.
   */
  readonly syscalls: 'allow-list' | 'deny-list' | 'none';
  /** Hides other processes from a tool, and kills its descendants when the fork server ends. */
  readonly processes: 'namespace' | 'none';
}

/** The layers of a service without a sandbox. */
export const NO_LAYERS: SandboxLayers = {
  limits: 'none',
  privileges: 'none',
  files: 'none',
  network: 'none',
  syscalls: 'none',
  processes: 'none',
};

export interface SandboxOptions {
  readonly tools: readonly TestedTool[];
  /** Folders and files of the service that the tools can read. */
  readonly readable: readonly string[];
  /** Maximum address space, and maximum size of each file that a tool writes, in bytes. */
  readonly limits: { readonly memoryBytes: number; readonly fileBytes: number };
  /** Folder with two seccomp filters per CPU architecture. */
  readonly filters: string;
  /** An empty folder, for testing the tools. */
  readonly folder: string;
  /** Creates a {@link RunCommand} that uses a sandbox, for testing it. */
  readonly createTrialRunner: (confine: Confine | undefined) => RunCommand;
}

/** The sandbox that all tools run in. */
export interface Sandbox {
  /** Undefined if the tools cannot be confined. */
  readonly confine: Confine | undefined;
  /** Active layers, for the log and for health checks. */
  readonly layers: SandboxLayers;
}

const LIMITS_ONLY: SandboxLayers = { ...NO_LAYERS, limits: 'setrlimit', privileges: 'no-new-privs' };

/** Layers to try, strongest first. The last are for kernels without Landlock. */
const CANDIDATES: readonly SandboxLayers[] = [
  ...(['allow-list', 'deny-list'] as const).map(
    (syscalls): SandboxLayers => ({ ...LIMITS_ONLY, files: 'landlock', network: 'seccomp', syscalls }),
  ),
  LIMITS_ONLY,
];

/** Finds the strongest layers under which every tool converts an image. */
export async function findSandbox(options: SandboxOptions): Promise<Sandbox> {
  const readable = await listReadable(options);
  // The interpreter of a script would have to start other programs.
  const scripts = await Promise.all(options.tools.map(({ path }) => isScript(path)));
  for (const layers of scripts.includes(true) ? [LIMITS_ONLY] : CANDIDATES) {
    const filter = join(options.filters, `${layers.syscalls}.${process.arch}.bpf`);
    const confine = createConfine({
      ...options.limits,
      readable: layers.files === 'landlock' ? readable : 'all',
      ...(layers.syscalls !== 'none' && { filter }),
    });
    if (await toolsStillRun(confine, options, layers !== LIMITS_ONLY)) return { confine, layers };
  }
  return { confine: undefined, layers: NO_LAYERS };
}

/**
 * Checks whether every tool converts an image. Only a conversion shows whether a tool makes system calls that the filter
 * denies. A tool that also fails without a sandbox, for example because a library is missing, does not count if it prints
 * its version. Resource limits alone require only that each tool prints its version.
 */
async function toolsStillRun(
  confine: Confine,
  { tools, folder, createTrialRunner }: SandboxOptions,
  needsTrial: boolean,
): Promise<boolean> {
  const [run, runUnconfined] = [createTrialRunner(confine), createTrialRunner(undefined)];
  const passes = async ({ path, trial, versionProbe: { args, pattern } }: TestedTool): Promise<boolean> => {
    if (needsTrial && (await runTrial(path, trial, run, folder))) return true;
    const { stdout, stderr } = await run({ file: path, args, cwd: folder, timeoutMs: 10_000 }).catch(() => ({
      stdout: '',
      stderr: '',
    }));
    if (!pattern.test(stdout + stderr)) return false;
    return !needsTrial || !(await runTrial(path, trial, runUnconfined, folder));
  };
  return (await Promise.all(tools.map(passes))).every(Boolean);
}

/**
 * Files and folders that all tools read, if they exist. {@link TestedTool.reads} lists those of a single tool.
 * Harmless files that a tool does not need are listed, too: an access that Landlock denies is slower than reading the
 * file (`bench/README.md`).
 */
const SHARED = [
  ...['/usr/lib', '/usr/lib64', '/usr/local/lib', '/etc/ld.so.cache', '/etc/alternatives'],
  ...['/etc/localtime', '/sys/devices/system/cpu/possible', '/dev/null'],
  '/sys/kernel/mm/transparent_hugepage', // glibc reads it to find out whether huge pages are enabled: see runner.ts
];

/** Returns the files and folders that each tool can read, without links, since Landlock applies to their targets. */
async function listReadable({
  tools,
  readable,
}: SandboxOptions): Promise<ReadonlyMap<string, readonly string[]>> {
  const shared = await existingPaths([...SHARED, ...readable, ...siblingDirs(tools)]);
  const entries = tools.map(
    async ({ path, reads = [] }) => [path, [...shared, ...(await existingPaths(reads))]] as const,
  );
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

async function existingPaths(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(paths.map((path) => realpath(path).catch(() => [])));
  return found.flat();
}
