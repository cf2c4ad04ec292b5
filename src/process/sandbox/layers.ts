/** @module Finds the protections that work on this machine, by running the tools under them. */
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PROBE_TIMEOUT_MS, type RunCommand } from '../command.ts';
import { type Confine, createConfine } from '../runner.ts';
import { isScript } from '../toolchain.ts';
import { runTrial, type TestedTool } from './self-test.ts';

/** Layers of a sandbox. Each property names the mechanism that provides the protection. */
export interface SandboxLayers {
  /** Limits address space, CPU time, file size and open files, and disables core dumps. */
  readonly limits: 'setrlimit' | 'none';
  /** Denies new privileges, drops capabilities, and kills a tool when the server ends. */
  readonly privileges: 'no-new-privs' | 'none';
  /** Permits writing in the job's folder, reading what the tool needs, and executing nothing. */
  readonly files: 'landlock' | 'none';
  /** Denies network access. */
  readonly network: 'seccomp' | 'none';
  /**
   * System calls that a tool can make: `allow-list` permits those that the tools are known to need;
   * `deny-list` permits all except those that reach other processes, other files or the kernel.
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
  /** Whether all tools have passed their trials under the strongest layers before. */
  readonly proven?: boolean;
  /** Creates a {@link RunCommand} that uses a sandbox, for testing it. */
  readonly createTrialRunner: (confine: Confine | undefined) => RunCommand;
}

/** The sandbox that all tools run in. */
export interface Sandbox {
  /** Undefined if the tools cannot be confined. */
  readonly confine: Confine | undefined;
  /** Active layers of the least confined tool, for the log and for health checks. */
  readonly layers: SandboxLayers;
  /** Paths of tools that cannot be confined here, while others are. They must not run. */
  readonly refused: readonly string[];
}

const LIMITS_ONLY: SandboxLayers = { ...NO_LAYERS, limits: 'setrlimit', privileges: 'no-new-privs' };

/** Layers with each list of system calls, strongest first. */
const [ALLOW_LIST, DENY_LIST] = (['allow-list', 'deny-list'] as const).map(
  (syscalls): SandboxLayers => ({ ...LIMITS_ONLY, files: 'landlock', network: 'seccomp', syscalls }),
) as [SandboxLayers, SandboxLayers];

/**
 * Finds the strongest layers under which the tools convert an image. Where the kernel can confine
 * programs, a tool that runs under none of them is refused: it is linked statically, uses another C
 * library, or needs other files. A script gets limits only, because its interpreter would have to
 * start other programs.
 */
export async function findSandbox(options: SandboxOptions): Promise<Sandbox> {
  const readable = await listReadable(options);
  const confineBy = ({ files, syscalls }: SandboxLayers): Confine => {
    const filter = syscalls === 'none' ? undefined : `${options.filters}/${syscalls}.${process.arch}.bpf`;
    return createConfine({ ...options.limits, readable: files === 'landlock' ? readable : 'all', filter });
  };
  const findRunning = async (tools: readonly TestedTool[], layers: SandboxLayers): Promise<string[]> => {
    const confine = confineBy(layers);
    const running = tools.map(async (tool) =>
      (await stillRuns(tool, confine, options, layers !== LIMITS_ONLY)) ? [tool.path] : [],
    );
    return (await Promise.all(running)).flat();
  };
  const isInterpreted = await Promise.all(options.tools.map(({ path }) => isScript(path)));
  const [scripts, programs] = [true, false].map((kind) =>
    options.tools.filter((_, at) => isInterpreted[at] === kind),
  ) as [TestedTool[], TestedTool[]];
  const strict = options.proven ? programs.map(({ path }) => path) : await findRunning(programs, ALLOW_LIST);
  const lenient = strict.length < programs.length ? await findRunning(programs, DENY_LIST) : [];
  const [layers, confined] = lenient.length > strict.length ? [DENY_LIST, lenient] : [ALLOW_LIST, strict];
  if (confined.length > 0 || (await canConfine(confineBy(DENY_LIST), options))) {
    const limited = await findRunning(scripts, LIMITS_ONLY);
    const [confine, limit] = [confineBy(layers), confineBy(LIMITS_ONLY)];
    return {
      confine: (command) => (limited.includes(command.file) ? limit : confine)(command),
      layers: scripts.length > 0 ? LIMITS_ONLY : layers,
      refused: options.tools
        .map(({ path }) => path)
        .filter((path) => ![...confined, ...limited].includes(path)),
    };
  }
  const limited = await findRunning(options.tools, LIMITS_ONLY);
  return limited.length === options.tools.length
    ? { confine: confineBy(LIMITS_ONLY), layers: LIMITS_ONLY, refused: [] }
    : { confine: undefined, layers: NO_LAYERS, refused: [] };
}

/** Returns whether the kernel can confine a program that is linked dynamically. */
function canConfine(confine: Confine, { createTrialRunner, folder: cwd }: SandboxOptions): Promise<boolean> {
  const command = { file: '/bin/sh', args: ['-c', ':'], cwd, timeoutMs: PROBE_TIMEOUT_MS };
  return createTrialRunner(confine)(command)
    .then(() => true)
    .catch(() => false);
}

/**
 * Checks whether a tool converts an image. Only a conversion shows whether it makes system calls
 * that the filter denies. A tool that also fails without a sandbox, for example because a library
 * is missing, does not count if it prints its version. Resource limits alone require only that the
 * tool prints its version.
 */
async function stillRuns(
  { path, trial, versionProbe: { args, pattern } }: TestedTool,
  confine: Confine,
  { folder, createTrialRunner }: SandboxOptions,
  needsTrial: boolean,
): Promise<boolean> {
  const run = createTrialRunner(confine);
  if (needsTrial && (await runTrial(path, trial, run, folder))) return true;
  const probe = { file: path, args, cwd: folder, timeoutMs: PROBE_TIMEOUT_MS };
  const { stdout, stderr } = await run(probe).catch(() => ({ stdout: '', stderr: '' }));
  if (!pattern.test(stdout + stderr)) return false;
  return !needsTrial || !(await runTrial(path, trial, createTrialRunner(undefined), folder));
}

/**
 * Files and folders that all tools read, if they exist. {@link TestedTool.reads} lists those of a
 * single tool. Harmless files that a tool does not need are listed, too: an access that Landlock
 * denies is slower than reading the file (`bench/README.md`).
 */
const SHARED = [
  '/usr/lib',
  '/usr/lib64',
  '/usr/local/lib',
  '/etc/ld.so.cache',
  '/etc/alternatives',
  '/etc/localtime',
  '/sys/devices/system/cpu/possible',
  '/dev/null',
  '/sys/kernel/mm/transparent_hugepage', // glibc reads it to find out whether huge pages are enabled: see runner.ts
];

/** Returns what each tool can read, without links, since Landlock applies to their targets. */
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

/** Returns folders beside the `bin` of tools outside /usr: /opt/NAME/lib for /opt/NAME/bin. */
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
