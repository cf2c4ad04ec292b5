import type { RunCommand } from '../command.ts';
import { createLaunchers, type Launchers } from '../launcher/pool.ts';
import { type Toolchain, VERSION_PROBES } from '../toolchain.ts';

/**
 * Makes launchers in PID and IPC namespaces of their own, for confinements that bring none.
 *
 * @param home returns the folder of the launchers
 * @param folder an empty folder to try the tools in
 * @param createRun makes what runs a tool by these launchers, confined as it will be
 * @returns nothing where the kernel gives no namespaces, as in most containers, or a tool does not work in them
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
      if (tool) await ask(run, tool.path, name as keyof Toolchain, folder);
    }
    return launchers;
  } catch {
    await launchers.close();
    return undefined;
  }
}

async function ask(run: RunCommand, file: string, name: keyof Toolchain, cwd: string): Promise<void> {
  const { args, pattern: answer } = VERSION_PROBES[name];
  const { stdout, stderr } = await run({ file, args, cwd, timeoutMs: 10_000 });
  if (!answer.test(stdout + stderr)) throw new Error(`${file} does not answer`);
}
