// @unit
import { expect } from 'chai';
import { shellWords } from '../../src/base/shell.ts';

describe('shellWords', () => {
  it('quotes only the words that a shell would change', () => {
    expect(shellWords(['curl', '-F', 'file=@a b.jpg', "it's", '', '$HOME', 'http://x:1/a_b%20c'])).to.equal(
      `curl -F 'file=@a b.jpg' 'it'\\''s' '' '$HOME' http://x:1/a_b%20c`,
    );
  });

  it('connects standard input and output to files', () => {
    expect(shellWords(['a'], 'in', 'out')).to.equal('a < in > out');
    expect([shellWords(['a'], 'in'), shellWords(['a'], undefined, 'out')]).to.deep.equal([
      'a < in',
      'a > out',
    ]);
  });
});
