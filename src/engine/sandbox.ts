import type { Run } from './command.ts';
import { hidden, landlock, limited, unprivileged, type Way } from './confine.ts';
import type { Confine } from './launch.ts';
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
  readonly limits: 'ulimit' | 'none';
  /** No new privileges, and an end with the server's. */
  readonly privileges: 'setpriv' | 'bwrap' | 'none';
  /** Nothing but the job's folder is written; nothing but the tool and what it needs is read or run. */
  readonly files: 'landlock' | 'bwrap' | 'none';
  readonly network: 'seccomp' | 'bwrap' | 'none';
  /** The tools see no process but their own, and none of theirs outlives them. */
  readonly processes: 'namespace' | 'none';
}

export const NO_LAYERS: Layers = {
  limits: 'none',
  privileges: 'none',
  files: 'none',
  network: 'none',
  processes: 'none',
};

/**
 * Tries, strongest first, what holds the tools and still lets them run: every layer is on by
 * itself when it works, and of the ways to hide files the first that does.
 */
export async function findSandbox(parts: SandboxParts): Promise<Sandbox> {
  const [setpriv, bwrap] = await Promise.all(
    ['setpriv', 'bwrap'].map((name) => findProgram(name, parts.searchPath)),
  );
  const limits = limited(parts.bounds);
  const holding = [
    ...(setpriv ? [await landlock(setpriv, parts)] : []),
    ...(bwrap ? [await hidden(bwrap, parts, true), await hidden(bwrap, parts, false)] : []),
    ...(setpriv ? [unprivileged(setpriv)] : []),
  ];
  const chosen: Way[] = [];
  if (await works([limits], parts)) chosen.push(limits);
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

/** Whether every tool still says who it is. */
async function works(ways: readonly Way[], { tools, folder, tryOut }: SandboxParts): Promise<boolean> {
  const run = tryOut(together(ways));
  const answers = tools.map(async ({ path, question: { args, answer } }) => {
    const { stdout, stderr } = await run({ file: path, args, cwd: folder, timeoutMs: 10_000 });
    return answer.test(stdout + stderr);
  });
  return (await Promise.all(answers.map((asked) => asked.catch(() => false)))).every(Boolean);
}
