import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { programEnvironment } from '../helpers/process.ts';

describe('scripts/measure-request.ts', () => {
  it('shows that a conversion is planned once, for its key and its commands', () => {
    const args = ['scripts/measure-request.ts', '--settle-ms', '0'];
    const output = execFileSync(process.execPath, args, { env: programEnvironment(), encoding: 'utf8' });
    expect(output).to.match(/^conversion\/plan\/index.ts: \d+ functions, \d+ calls$/m);
    expect(output).to.match(/^planned 1 times$/m);
  });
});
