import type { Confine } from '../launch.ts';
import { findProgram } from '../toolchain.ts';
import {
  bubblewrapLayer,
  findFilters,
  landlockLayer,
  noNewPrivsLayer,
  rlimitLayer,
  type SandboxLayer,
} from './layers.ts';
import { passes } from './self-test.ts';
import type { SandboxLayers, SandboxOptions, ToolToConfine } from './types.ts';

/** What every tool is shut in with: as much of it as this machine can do, found out by trying it on the tools. */

export interface Sandbox {
  readonly confine: Confine;
  /** What is on, for the log and for probes. */
  readonly layers: SandboxLayers;
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
async function canLockNamespaces(
  bwrap: string,
  { folder, createTrialRunner: tryOut }: SandboxOptions,
): Promise<boolean> {
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
async function toolsStillRun(
  ways: readonly SandboxLayer[],
  { tools, folder, createTrialRunner: tryOut }: SandboxOptions,
): Promise<boolean> {
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
