/**
 * @module Process that runs one job in a fork server, for a test that kills this process meanwhile.
 */
import { confinedRunner, startForkServers } from './fork-servers.ts';

const [cwd = ''] = process.argv.slice(2);
const run = confinedRunner(await startForkServers(['/bin/sh']));
const script = 'read pid rest < /proc/self/stat; echo $pid > pid; sleep 60';
await run({ file: '/bin/sh', args: ['-c', script], cwd, timeoutMs: 60_000 });
