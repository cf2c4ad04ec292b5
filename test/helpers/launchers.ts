import { createLaunchers, type Launchers } from '../../src/process/launcher/pool.ts';
import { makeTempDir } from './hooks.ts';

let current: Launchers | undefined;

/** The launchers that tests of the process layer share. After they are closed, the next program starts new ones. */
export const launchers: Launchers = {
  spawn(...program) {
    current ??= createLaunchers(() => makeTempDir('launchers'));
    return current.spawn(...program);
  },
  async close() {
    await current?.close();
    current = undefined;
  },
};
