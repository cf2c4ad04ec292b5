// @unit
import { expect } from 'chai';
import { describeBatch } from '../../src/conversion/batch.ts';

describe('describing the files of a request', () => {
  const { signal } = new AbortController();
  const files = Array.from({ length: 9 }, (_, at) => at);
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it('works on four files at once, and returns the descriptions in the order of the files', async () => {
    const atOnce: number[] = [];
    let running = 0;
    const described = await describeBatch(files, signal, async (file) => {
      running += 1;
      atOnce.push(running);
      for (let left = files.length - file; left > 0; left -= 1) await turn();
      running -= 1;
      return `file ${file}`;
    });
    expect(Math.max(...atOnce)).to.equal(4);
    expect(described).to.deep.equal(files.map((file) => `file ${file}`));
  });

  it('throws the first error when all files have ended, of which it aborts the others', async () => {
    const ended: string[] = [];
    const failure = await describeBatch(files, signal, async (file, stop) => {
      if (file === 1) throw new Error('the second file');
      while (!stop.aborted) await turn();
      ended.push(`file ${file}`);
      throw new Error('aborted');
    }).catch((error: Error) => error);
    expect(failure).to.have.property('message', 'the second file');
    expect(ended).to.have.length(files.length - 1);
  });
});
