import { expect } from 'chai';
import fc from 'fast-check';
import { sanitizeForDisplay, truncate } from '../src/text.ts';

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
