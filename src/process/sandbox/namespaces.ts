/** @module Isolates launchers in namespaces, for sandbox layers that do not isolate processes. */

import type { RunCommand } from '../command.ts';
import { createLaunchers, type Launchers } from '../launcher/launcher.ts';
import { type Toolchain, VERSION_PROBES } from '../toolchain.ts';

/**
 * Creates launchers in separate PID and IPC namespaces, for a sandbox without process namespaces.
 *
 * @param home returns the folder of the launchers
 * @param folder an empty folder, for testing the tools
 * @param createRun creates a function that runs a tool with these launchers, in its sandbox
 * @returns `undefined` if the kernel does not permit namespaces, as in most containers, or if a tool fails in them
 */
export async function isolateLaunchers(
  home: () => Promise<string>,
  folder: string,
  toolchain: Toolchain,
  createRun: (launchers: Launchers) => RunCommand,
): Promise<Launchers | undefined> {
  const launchers = createLaunchers(home, 'namespace');
  const run = createRun(launchers);
  try {
    for (const [name, tool] of Object.entries(toolchain)) {
      if (tool) await assertResponds(run, tool.path, name as keyof Toolchain, folder);
    }
    return launchers;
  } catch {
    await launchers.close();
    return undefined;
  }
}

async function assertResponds(
  run: RunCommand,
  file: string,
  name: keyof Toolchain,
  cwd: string,
): Promise<void> {
  const { args, pattern } = VERSION_PROBES[name];
  const { stdout, stderr } = await run({ file, args, cwd, timeoutMs: 10_000 });
  if (!pattern.test(stdout + stderr)) throw new Error(`${file} does not respond`);
}
