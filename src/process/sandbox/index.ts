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
 * layers that hide files that works. Tests both together first: on most machines, the strongest combination works.
 */
export async function findSandbox(options: SandboxOptions): Promise<Sandbox> {
  const limits = rlimitLayer(options.limits);
  const hiding = [...(await hidingLayers(options)).map((layer) => [layer]), []];
  let chosen: readonly SandboxLayer[] = [];
  for (const layers of [...hiding.map((others) => [limits, ...others]), ...hiding]) {
    if (await toolsStillRun(layers, options)) {
      chosen = layers;
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
  const landlocks = setpriv !== undefined && (await supportsLandlock(setpriv, options));
  const lockNamespaces = bwrap !== undefined && (await canLockNamespaces(bwrap, options));
  const bubblewraps = [
    ...filters.map((filter) => ({ filter, lockNamespaces })),
    ...(prlimit ? [{ lockNamespaces, prlimit }] : []),
    { lockNamespaces },
  ];
  return Promise.all([
    ...(landlocks ? filters.map((filter) => landlockLayer(setpriv, options, filter)) : []),
    ...(bwrap ? bubblewraps.map((variant) => bubblewrapLayer(bwrap, options, variant)) : []),
    // Without a filter, Landlock hides files but not processes, so bubblewrap is stronger.
    ...(landlocks ? [landlockLayer(setpriv, options)] : []),
    ...(setpriv ? [noNewPrivsLayer(setpriv)] : []),
  ]);
}

/** Checks whether setpriv can restrict file access with Landlock: from util-linux 2.40. */
async function supportsLandlock(
  setpriv: string,
  { folder, createTrialRunner }: SandboxOptions,
): Promise<boolean> {
  const help = { file: setpriv, args: ['--help'], cwd: folder, timeoutMs: 10_000 };
  return createTrialRunner(() => ({}))(help).then(
    ({ stdout }) => stdout.includes('--landlock-access'),
    () => false,
  );
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
 * Checks whether every tool still runs: whether it converts an image under the allow-list, and prints its version under
 * other layers. Only a conversion shows whether a tool makes system calls that are not on the list. A tool that also
 * fails to convert without a sandbox, for example because a library is missing, does not count against the list if it
 * prints its version.
 */
async function toolsStillRun(
  layers: readonly SandboxLayer[],
  { tools, folder, createTrialRunner }: SandboxOptions,
): Promise<boolean> {
  const [run, runUnconfined] = [createTrialRunner(composeLayers(layers)), createTrialRunner(() => ({}))];
  const printsVersion = ({ path, versionProbe: { args, pattern } }: ToolToConfine): Promise<boolean> =>
    run({ file: path, args, cwd: folder, timeoutMs: 10_000 }).then(
      ({ stdout, stderr }) => pattern.test(stdout + stderr),
      () => false,
    );
  const converts = ({ path, trial }: ToolToConfine): Promise<boolean> => runTrial(path, trial, run, folder);
  const cannotConvert = async ({ path, trial }: ToolToConfine): Promise<boolean> =>
    !(await runTrial(path, trial, runUnconfined, folder));
  const needsTrial = layers.some(({ provides }) => provides.syscalls === 'allow-list');
  const tried = await Promise.all(
    tools.map(async (tool) =>
      needsTrial
        ? (await converts(tool)) || ((await printsVersion(tool)) && (await cannotConvert(tool)))
        : printsVersion(tool),
    ),
  );
  return tried.every(Boolean);
}
