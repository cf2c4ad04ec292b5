/** @module Launchers for tests of the process layer. */
import { createLaunchers, type Launchers } from '../../src/process/launcher/launcher.ts';
import { makeTempDir } from './hooks.ts';

let current: Launchers | undefined;

/** Launchers shared by the tests of the process layer. After `close`, the next program starts new ones. */
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
