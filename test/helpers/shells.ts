import { createShells } from '../../src/engine/shells.ts';
import { scratch } from './hooks.ts';

/** What starts programs for the tests of the engine. */
export const shells = createShells(() => scratch('shells'));
