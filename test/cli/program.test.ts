import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { runInProcess } from '../helpers/in-process.ts';

describe('imagemill on an old version of Node.js', () => {
  for (const args of [
    [],
    ['doctor'],
    ['convert', 'a.png', '-o', 'b.png'],
    ['regress', 'compare', 'a', 'b'],
  ]) {
    it(`exits with 2 and names the version that it needs: imagemill ${args.join(' ')}`, async () => {
      const message = 'imagemill: Node.js 22.17 or later is needed, and this is 20.19.2: https://nodejs.org';
      const { status, lines, complaints } = await runInProcess(args, { nodeVersion: '20.19.2' });
      expect({ status, lines, complaints }).to.deep.equal({ status: 2, lines: [], complaints: [message] });
    });
  }

  it('compares the numbers of a version, and needs the version of package.json', async () => {
    const needed = JSON.parse(await readFile('package.json', 'utf8')).engines.node.replace('>=', '');
    const complaintsOf = async (nodeVersion: string) =>
      (await runInProcess(['completion', 'bash'], { nodeVersion })).complaints.join();
    for (const version of [`${needed}.0`, '22.20.1', '24.0.0', '100.1.0'])
      expect(await complaintsOf(version), version).to.equal('');
    for (const version of ['18.20.1', '22.2.0', '22.16.9', '9.9.9'])
      expect(await complaintsOf(version)).to.include(`Node.js ${needed} or later is needed`);
  });
});

describe('imagemill key', () => {
  for (const args of [['a b'], ['a:b'], ['x'.repeat(65)], ['shop', '--limit', '1.5']]) {
    it(`exits with 2 for ${args.join(' ').slice(0, 20)}, which cannot be in the file`, async () => {
      const { status, lines, complaints } = await runInProcess(['key', ...args]);
      expect([status, lines]).to.deep.equal([2, []]);
      expect(complaints[0]).to.match(/^imagemill: Expected a name of 1 to 64 letters/);
    });
  }
});
