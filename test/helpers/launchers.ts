import { createLaunchers } from '../../src/engine/launcher/launchers.ts';
import { makeTempDir } from './hooks.ts';

/** What starts programs for the tests of the engine. */
export const launchers = createLaunchers(() => makeTempDir('launchers'));
