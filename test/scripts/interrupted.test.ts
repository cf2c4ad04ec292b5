import { expect } from 'chai';
import { runNode } from '../helpers/command-line.ts';
import { writeTempFile } from '../helpers/hooks.ts';

const MOCHA = new URL('../../node_modules/mocha/bin/mocha.js', import.meta.url).pathname;

/** A test file that interrupts the main process of mocha, and never ends. */
const INTERRUPTING = `it('interrupts', (done) => {
  process.kill(process.ppid, 'SIGINT');
  setInterval(() => {}, 1000);
});`;

describe('mocha with the configuration of this project', () => {
  it('ends with a status other than 0 after SIGINT, so that npm test does not report success', async () => {
    const file = await writeTempFile('interrupting.test.ts', INTERRUPTING);
    expect((await runNode([MOCHA, '--jobs', '2', file])).status).to.equal(1);
  });
});
