/** @module Process that runs one program through a launcher, for a test that kills this process meanwhile. */

import { createLaunchers } from '../../src/process/launcher/launcher.ts';
import type { Isolation } from '../../src/process/launcher/shell.ts';
import { createRunner } from '../../src/process/runner.ts';

const [isolation, home = '', file = ''] = process.argv.slice(2);
const launchers = createLaunchers(async () => home, isolation as Isolation);
const confine = () => ({ argvPrefix: ['/usr/bin/setpriv', '--no-new-privs', '--pdeathsig', 'KILL'] });
const run = createRunner({ launchers, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent', confine });
await run({ file, args: [], cwd: home, timeoutMs: 60_000 });
