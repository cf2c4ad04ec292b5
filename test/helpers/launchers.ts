import { createLaunchers } from '../../src/process/launcher/pool.ts';
import { makeTempDir } from './hooks.ts';

/** What starts programs for the tests of the engine. */
export const launchers = createLaunchers(() => makeTempDir('launchers'));
