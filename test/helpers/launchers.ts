import { createLaunchers } from '../../src/engine/launcher/launchers.ts';
import { scratch } from './hooks.ts';

/** What starts programs for the tests of the engine. */
export const launchers = createLaunchers(() => scratch('launchers'));
