/** @module Finds the sandbox layers that work on this machine, by running the tools in them. */

import type { Confine } from '../runner.ts';
import { findProgram } from '../toolchain.ts';
import {
  bubblewrapLayer,
  composeLayers,
  findFilters,
  landlockLayer,
  noNewPrivsLayer,
  rlimitLayer,
  type SandboxLayer,
} from './layers.ts';
import { runTrial } from './self-test.ts';
import type { SandboxLayers, SandboxOptions, ToolToConfine } from './types.ts';

/** The sandbox that all tools run in. */
export interface Sandbox {
  readonly confine: Confine;
  /** Active layers, for the log and for health checks. */
  readonly layers: SandboxLayers;
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

/**
 * Finds the strongest sandbox in which all tools still run: the resource limits if they work, and the first of the
 * layers that hide files that works.
 */
export async function findSandbox(options: SandboxOptions): Promise<Sandbox> {
  const limits = rlimitLayer(options.limits);
  const chosen: SandboxLayer[] = [];
  if (await toolsStillRun([limits], options)) chosen.push(limits);
  for (const layer of await hidingLayers(options)) {
    if (await toolsStillRun([...chosen, layer], options)) {
      chosen.push(layer);
      break;
    }
  }
  return {
    confine: composeLayers(chosen),
    layers: Object.assign({ ...NO_LAYERS }, ...chosen.map(({ provides }) => provides)),
  };
}

/**
 * Returns the layers that hide files from the tools, strongest first, and last a layer that only denies new privileges.
 */
async function hidingLayers(options: SandboxOptions): Promise<SandboxLayer[]> {
  const [setpriv, bwrap, prlimit] = await Promise.all(
    ['setpriv', 'bwrap', 'prlimit'].map((name) => findProgram(name, options.searchPath)),
  );
  const filters = await findFilters(options.filters);
  const lockNamespaces = bwrap !== undefined && (await canLockNamespaces(bwrap, options));
  const bubblewraps = [
    ...filters.map((filter) => ({ filter, lockNamespaces })),
    ...(prlimit ? [{ lockNamespaces, prlimit }] : []),
    { lockNamespaces },
  ];
  return Promise.all([
    ...(setpriv ? filters.map((filter) => landlockLayer(setpriv, options, filter)) : []),
    ...(bwrap ? bubblewraps.map((variant) => bubblewrapLayer(bwrap, options, variant)) : []),
    // Without a filter, Landlock hides files but not processes, so bubblewrap is stronger.
    ...(setpriv ? [landlockLayer(setpriv, options), noNewPrivsLayer(setpriv)] : []),
  ]);
}

/** Checks whether bubblewrap can forbid new user namespaces: from version 0.8, if /proc/sys is writable. */
async function canLockNamespaces(
  bwrap: string,
  { folder, createTrialRunner }: SandboxOptions,
): Promise<boolean> {
  const args = ['--unshare-user', '--disable-userns', '--ro-bind', '/', '/', bwrap, '--version'];
  return createTrialRunner(() => ({}))({ file: bwrap, args, cwd: folder, timeoutMs: 10_000 }).then(
    () => true,
    () => false,
  );
}

/**
 * Checks whether every tool still prints its version and, under the allow-list, converts an image. Only a conversion
 * shows whether a tool makes system calls that are not on the list. A tool that also fails to convert without a
 * sandbox, for example because a library is missing, does not count against the list.
 */
async function toolsStillRun(
  layers: readonly SandboxLayer[],
  { tools, folder, createTrialRunner }: SandboxOptions,
): Promise<boolean> {
  const [run, runUnconfined] = [createTrialRunner(composeLayers(layers)), createTrialRunner(() => ({}))];
  const printsVersion = async ({ path, versionProbe }: ToolToConfine): Promise<boolean> => {
    const { stdout, stderr } = await run({
      file: path,
      args: versionProbe.args,
      cwd: folder,
      timeoutMs: 10_000,
    });
    return versionProbe.pattern.test(stdout + stderr);
  };
  const converts = async ({ path, trial }: ToolToConfine): Promise<boolean> =>
    (await runTrial(path, trial, run, folder)) || !(await runTrial(path, trial, runUnconfined, folder));
  const needsTrial = layers.some(({ provides }) => provides.syscalls === 'allow-list');
  const tried = await Promise.all(
    tools.map(
      async (tool) => (await printsVersion(tool).catch(() => false)) && (!needsTrial || converts(tool)),
    ),
  );
  return tried.every(Boolean);
}
