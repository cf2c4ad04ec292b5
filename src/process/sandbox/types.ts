/** @module Options and layers of a sandbox. */

import type { RunCommand } from '../command.ts';
import type { Confine } from '../runner.ts';
import type { VersionProbe } from '../toolchain.ts';
import type { Trial } from './self-test.ts';

/** Resource limits of a process. */
export interface ResourceLimits {
  /** Address space, in bytes. */
  readonly memoryBytes: number;
  /** Size of each file that the process writes, in bytes. */
  readonly fileBytes: number;
}

/** A tool that the sandbox must support. */
export interface ToolToConfine {
  /** Absolute path. */
  readonly path: string;
  /** Files and folders that only this tool reads, if they exist. Every path takes time when the tool starts. */
  readonly reads?: readonly string[];
  /** The tool must pass this probe under every layer. */
  readonly versionProbe: VersionProbe;
  /** The tool must pass this trial under the allow-list of system calls. */
  readonly trial: Trial;
}

/** Options for finding a sandbox. */
export interface SandboxOptions {
  /** Folders to search for setpriv, bwrap and prlimit, separated as in `PATH`. */
  readonly searchPath: string;
  readonly tools: readonly ToolToConfine[];
  /** Folders and files of the service that the tools can read. */
  readonly readable: readonly string[];
  readonly limits: ResourceLimits;
  /** Folder with two seccomp filters per CPU architecture. */
  readonly filters: string;
  /** An empty folder, for testing the tools. */
  readonly folder: string;
  /** Creates a {@link RunCommand} that uses a sandbox, for testing it. */
  readonly createTrialRunner: (confine: Confine) => RunCommand;
}

/** Layers of a sandbox. Each property names the mechanism that provides the protection. */
export interface SandboxLayers {
  /** Limits address space, CPU time, file size and open files, and disables core dumps. */
  readonly limits: 'ulimit' | 'none';
  /** Denies new privileges, and kills a tool when the server ends. */
  readonly privileges: 'setpriv' | 'bwrap' | 'none';
  /** Permits writing in the job's folder only, and reading and executing only the tool and its dependencies. */
  readonly files: 'landlock' | 'bwrap' | 'none';
  /** Denies network access. */
  readonly network: 'seccomp' | 'bwrap' | 'none';
  /**
   * System calls that a tool can make: `allow-list` permits those that the tools are known to need; `deny-list` permits
   * all except those that reach other processes, other files or the kernel.
   */
  readonly syscalls: 'allow-list' | 'deny-list' | 'none';
  /** Hides other processes from a tool, and kills its descendants when it ends. */
  readonly processes: 'namespace' | 'none';
}
