import { FORK_SERVER_LIBRARY } from '../../src/folders.ts';
import type { Confinement } from '../../src/process/fork-server/messages.ts';
import { ForkServers, type ForkServersOptions } from '../../src/process/fork-server/servers.ts';
import { createRunner, environmentOf, type RunnerDeps } from '../../src/process/runner.ts';

/** Environment of the tests' programs. */
export const SEARCH = { searchPath: '/usr/bin:/bin', policyFolder: '/policy' };

/** Generous limits, without restrictions of files and system calls. */
export const LIMITS: Confinement = {
  memoryBytes: 2 * 1024 ** 3,
  cpuSeconds: 60,
  fileBytes: 64 * 1024 ** 2,
  files: 64,
  readable: 'all',
};

/** Starts fork servers of programs that need no preparation. */
export async function startForkServers(
  files: readonly string[],
  more: Partial<ForkServersOptions> = {},
): Promise<ForkServers> {
  const servers = new ForkServers({
    library: FORK_SERVER_LIBRARY,
    env: environmentOf(SEARCH, { cwd: '/nonexistent', timeoutMs: 60_000 }),
    tools: files.map((file) => ({ file, prepare: '', dependencies: [file] })),
    concurrency: 100,
    ...more,
  });
  await servers.start();
  return servers;
}

/**
 * Creates a runner that confines programs with generous limits: in fork servers, or by single
 * starts without them.
 */
export const confinedRunner = (servers?: ForkServers, more: Partial<RunnerDeps> = {}) =>
  createRunner({ ...SEARCH, library: FORK_SERVER_LIBRARY, confine: () => LIMITS, servers, ...more });
