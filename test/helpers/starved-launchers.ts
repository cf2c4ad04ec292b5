/**
 * @module Process that starts a program for each line on stdin, both through launchers that are already running and
 * through launchers that it must start first. A test changes its limits meanwhile. Prints the folder of the latter
 * first, then the outcomes.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandError } from '../../src/process/command.ts';
import { createLaunchers, type Launchers } from '../../src/process/launcher/launcher.ts';
import { createRunner } from '../../src/process/runner.ts';

/** User to run as: RLIMIT_NPROC counts the processes of one user and does not apply to root. */
const user = Number(process.argv[2]);
if (process.getuid?.() === 0) {
  process.setgroups?.([]);
  process.setgid?.(user);
  process.setuid?.(user);
}

const home = await mkdtemp(join(tmpdir(), 'imagemill-starved-'));
const waiting = createLaunchers(async () => home);
const freshHome = join(home, 'fresh');
await mkdir(freshHome);
const fresh = createLaunchers(async () => freshHome);

async function outcome(launchers: Launchers): Promise<string> {
  const run = createRunner({ launchers, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' });
  const command = { file: '/bin/echo', args: [], cwd: home, timeoutMs: 10_000 };
  return run(command).then(
    () => 'ran',
    ({ reason, cause }: CommandError) => `${reason} ${(cause as NodeJS.ErrnoException | undefined)?.code}`,
  );
}

await outcome(waiting);
console.log(freshHome);
for (let round = 0; round < 2; round += 1) {
  await once(process.stdin, 'data');
  console.log(JSON.stringify([await outcome(waiting), await outcome(fresh)]));
}
await Promise.all([waiting.close(), fresh.close()]);
await rm(home, { recursive: true });
process.exit();
