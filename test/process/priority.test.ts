// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { REMOVE_WORKER, SVG_WORKER } from '../../src/folders.ts';
import { NICENESS } from '../../src/process/priority.ts';
import { createRunner } from '../../src/process/runner.ts';
import { confinedRunner, SEARCH, startForkServers } from '../helpers/fork-servers.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { requires } from '../helpers/skips.ts';
import { processesWhere } from '../helpers/util.ts';

const SH = '/bin/sh';
/** Time until a job whose priority stays too high is killed, in ms. */
const LIMIT_MS = 20_000;

/** Returns the process group and the session of a process: fields 5 and 6 of proc(5). */
const groupsOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ').slice(2, 4) ?? [];

describe('priority', () => {
  before(function () {
    requires(this, 'proc', process.platform === 'linux');
  });

  for (const program of [REMOVE_WORKER, SVG_WORKER])
    it(`is lowered in the thread of ${program.pathname.split('/').at(-1)}, and nowhere else`, async () => {
      const code = `import('${program.href}').then(() =>
        require('node:worker_threads').parentPort.postMessage(require('node:os').getPriority()));`;
      const before = getPriority();
      const thread = new Worker(code, { eval: true, workerData: await makeTempDir('folder') });
      const [priority] = await once(thread, 'message');
      await thread.terminate();
      expect([priority, getPriority()]).to.deep.equal([Math.max(NICENESS, before), before]);
    });

  describe('of a tool', () => {
    const servers = startForkServers([SH], { env: { PATH: '/usr/bin:/bin', IMAGEMILL_MARKER: 'priority' } });
    after(async () => (await servers).close());

    for (const [mode, makeRunner] of Object.entries({
      'without confinement': () => createRunner(SEARCH),
      'by single starts': () => confinedRunner(),
      'in a fork server': async () => confinedRunner(await servers),
    }))
      it(`is lowered ${mode}`, async () => {
        const run = await makeRunner();
        // A program that is started for one job can begin before its priority is lowered.
        const args = ['-c', `until [ $(nice) -ge ${NICENESS} ]; do sleep 0.01; done; echo lowered`];
        const { stdout } = await run({ file: SH, args, cwd: '/tmp', timeoutMs: LIMIT_MS });
        expect(stdout).to.equal('lowered\n');
      });

    it('counts against the service: fork servers share its session, but not its process group', async () => {
      await servers;
      const found = processesWhere('environ', (text) => text.includes('IMAGEMILL_MARKER=priority'));
      expect(found).to.not.have.lengthOf(0);
      const [group, session] = groupsOf(process.pid);
      for (const pid of found) {
        const [ofServer, sessionOfServer] = groupsOf(pid);
        expect(sessionOfServer).to.equal(session);
        expect(ofServer).to.not.equal(group); // the terminal sends Ctrl+C to a group
      }
    });

    it('counts against the service where a program has a session of its own', async function () {
      // Without privileges, the kernel permits few changes a second, and tests run side by side.
      requires(this, 'mounts', spawnSync('unshare', ['--mount', 'true']).status === 0);
      const file = '/proc/self/autogroup'; // missing in a kernel without autogroup scheduling
      requires(this, 'proc', existsSync(file));
      const args = ['-c', `until grep -q 'nice ${NICENESS}' ${file}; do sleep 0.01; done`];
      await createRunner(SEARCH)({ file: SH, args, cwd: '/tmp', timeoutMs: LIMIT_MS });
    });
  });
});
