import type { RunCommand } from '../command.ts';
import type { Confine } from '../launch.ts';
import type { VersionProbe } from '../toolchain.ts';
import type { Trial } from './self-test.ts';

/** @module What a sandbox is made from, and what it consists of. */

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
