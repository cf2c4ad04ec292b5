import { expect } from 'chai';
import fc from 'fast-check';
import { formatBytes, sanitizeForDisplay, shellWords, truncate } from '../src/text.ts';

describe('text of a client in a message', () => {
  it('is cut before a surrogate pair, never inside one', () => {
    expect(sanitizeForDisplay(`${'x'.repeat(39)}🎉🎉`)).to.equal(`${'x'.repeat(39)}…`);
    expect(sanitizeForDisplay(`${'x'.repeat(38)}🎉🎉`)).to.equal(`${'x'.repeat(38)}🎉…`);
    expect(sanitizeForDisplay('🎉'.repeat(20))).to.equal('🎉'.repeat(20));
  });

  it('is well-formed and at most one unit longer than the maximum, for any text', () => {
    const unit = fc.oneof(
      fc.constantFrom('a', '🎉', '\ud83c', '\udf89', '\u0007'),
      fc.nat(0xffff).map((code) => String.fromCharCode(code)),
    );
    fc.assert(
      fc.property(fc.array(unit), fc.nat(60), (units, most) => {
        const text = units.join('');
        const shown = sanitizeForDisplay(text, most);
        expect(shown.isWellFormed()).to.equal(true);
        expect(shown.length).to.be.at.most(most + 1);
      }),
    );
  });

  it('is not truncated if it is short enough', () => {
    expect(truncate('ab\ud83c', 3)).to.equal('ab\ud83c');
    expect(truncate('abc', 2)).to.equal('ab');
  });
});

describe('shellWords', () => {
  it('quotes only the words that a shell would change', () => {
    expect(shellWords(['curl', '-F', 'file=@a b.jpg', "it's", '', '$HOME', 'http://x:1/a_b%20c'])).to.equal(
      `curl -F 'file=@a b.jpg' 'it'\\''s' '' '$HOME' http://x:1/a_b%20c`,
    );
  });
});

describe('formatBytes', () => {
  it('rounds to two or three digits and changes the unit at powers of 1000', () => {
    expect([0, 999, 1000, 9949, 9950, 139_400, 999_499, 1e6, 1.5e9, 2e12].map(formatBytes)).to.deep.equal([
      ...['0 B', '999 B', '1.0 kB', '9.9 kB', '10 kB', '139 kB', '999 kB', '1.0 MB', '1.5 GB', '2.0 TB'],
    ]);
  });
});
