// @unit
import { expect } from 'chai';
import fc from 'fast-check';
import {
  asciiFallback,
  baseNameOf,
  createUniqueNamer,
  formatBytes,
  formatChange,
  lastComponentOf,
  portableName,
  sanitizeForDisplay,
  truncate,
} from '../../src/base/text.ts';

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

  it('keeps joiners and characters that Node.js does not know, and replaces controls', () => {
    const newer = String.fromCodePoint(0x1fbff - 1, 0x1faff); // without a name in Unicode 16
    for (const name of ['می\u200cخواهم.jpg', '👩\u200d👧.jpg', 'ශ්\u200dරී.png', newer])
      expect(sanitizeForDisplay(name)).to.equal(name);
    expect(sanitizeForDisplay('a\u001b[2J\u202egpj.exe\u2028\u0085')).to.equal(
      'a\ufffd[2J\ufffdgpj.exe\ufffd\ufffd',
    );
  });

  it('is not truncated if it is short enough', () => {
    expect(truncate('ab\ud83c', 3)).to.equal('ab\ud83c');
    expect(truncate('abc', 2)).to.equal('ab');
  });
});

describe('formatChange', () => {
  it('has a sign, at least −99% for what a result saves, and no percentage without a size before', () => {
    const changes = [
      formatChange(200, 110),
      formatChange(100, 166),
      formatChange(1000, 1),
      formatChange(0, 1),
    ];
    expect(changes).to.deep.equal(['−45%', '+66%', '−99%', '–']);
    expect([formatChange(1000, 1001), formatChange(1000, 1001, 1)]).to.deep.equal(['±0%', '+0.1%']);
  });
});

describe('formatBytes', () => {
  it('never prints a thousand of a unit that has a larger one', () => {
    expect([999_499, 999_500, 999_600, 999_499_999, 999_999_999].map(formatBytes)).to.deep.equal([
      '999 kB',
      '1.0 MB',
      '1.0 MB',
      '999 MB',
      '1.0 GB',
    ]);
  });

  it('rounds to two or three digits and changes the unit at powers of 1000', () => {
    expect([0, 999, 1000, 9949, 9950, 139_400, 999_499, 1e6, 1.5e9, 2e12].map(formatBytes)).to.deep.equal([
      '0 B',
      '999 B',
      '1.0 kB',
      '9.9 kB',
      '10 kB',
      '139 kB',
      '999 kB',
      '1.0 MB',
      '1.5 GB',
      '2.0 TB',
    ]);
  });
});

describe('the name of a converted file', () => {
  for (const [given, base] of [
    ['photo.jpg', 'photo'],
    ['photo', 'photo'],
    ['archive.tar.gz', 'archive.tar'],
    ['.htaccess', '.htaccess'],
    ['../../x.png', 'x'],
    ['/etc/passwd', 'passwd'],
    ['C:\\a\\b.png', 'b'],
    ['folder/', 'image'],
    ['nul\u0000byte\u0007.png', 'nulbyte'],
    ['line\r\nbreak.png', 'linebreak'],
    ['gpj.exe\u202e.png', 'gpj.exe'],
    ['e\u0301.png', 'é'],
    ['\ud800broken.png', '\ufffdbroken'],
    ['  spaced  .png', 'spaced'],
    ['...', 'image'],
    ['..', 'image'],
    ['.', 'image'],
    ['', 'image'],
    [undefined, 'image'],
    ['CON.png', 'CON'],
    ['🎉.png', '🎉'],
    [' .png', 'image'],
    ['\u3000.png', 'image'],
    ['a\\', 'image'],
  ] as const) {
    it(`from ${JSON.stringify(given)} is ${JSON.stringify(base)}`, () => {
      expect(baseNameOf(given)).to.equal(base);
    });
  }

  it('is truncated to 200 bytes, between grapheme clusters', () => {
    expect(baseNameOf(`${'a'.repeat(5000)}.png`)).to.equal('a'.repeat(200));
    const family = '👩‍👩‍👧';
    expect(baseNameOf(`${family.repeat(300)}.png`)).to.equal(
      family.repeat(Math.floor(200 / Buffer.byteLength(family))),
    );
  });

  it('of thousands of combining marks is truncated before it is normalized', () => {
    // Normalizing 32000 marks takes about a second, and 1024 marks a millisecond.
    const name = `${'\u0300'.repeat(16_000)}${'\u0323'.repeat(16_000)}.png`;
    const before = process.cpuUsage();
    for (let count = 0; count < 20; count += 1) {
      baseNameOf(name);
      asciiFallback(name);
    }
    expect(process.cpuUsage(before).user / 1000, 'processor time in ms').to.be.below(1000);
  });

  it('that is truncated never ends in half of a surrogate pair', () => {
    expect(lastComponentOf(`${'x'.repeat(1023)}🎉🎉`)).to.equal('x'.repeat(1023));
    expect(lastComponentOf(`${'x'.repeat(1022)}🎉🎉`)).to.equal(`${'x'.repeat(1022)}🎉`);
    expect(lastComponentOf(`a/b\\${'x'.repeat(1023)}\ud83c`)).to.equal(`${'x'.repeat(1023)}\ud83c`);
  });

  it('has an ASCII fallback without characters that need escaping', () => {
    expect(asciiFallback('Übergrößen "x" 100%.webp')).to.equal('Ubergro_en _x_ 100_.webp');
    expect(asciiFallback('фото.webp')).to.equal('_.webp');
  });
});

describe('createUniqueNamer', () => {
  for (const [first, second] of [
    ['photo', 'PHOTO'],
    ['λόγος', 'ΛΌΓΟΣ'],
    ['straße', 'STRAẞE'],
    ['café', 'CAFE\u0301'],
  ] as const) {
    it(`numbers "${second}" after "${first}", which is the same file if case does not count`, () => {
      const uniqueName = createUniqueNamer();
      expect([first, second].map((base) => uniqueName(base, 'png'))).to.deep.equal([
        `${first}.png`,
        `${second} (2).png`,
      ]);
    });
  }

  it('numbers many files of one name one after the other, and omits numbers that are in use', () => {
    const uniqueName = createUniqueNamer();
    const bases = ['photo', 'photo (3)', 'photo', 'photo', 'PHOTO', 'photo'];
    const names = bases.map((base) => uniqueName(base, 'png'));
    const rest = [' (2)', ' (4)', ' (5)', ' (6)'];
    expect(names).to.deep.equal([
      'photo.png',
      'photo (3).png',
      ...rest.map((number, at) => `${at === 2 ? 'PHOTO' : 'photo'}${number}.png`),
    ]);
  });
});

describe('the name of a file in an archive', () => {
  for (const [given, expected] of [
    ['photo.jpg', 'photo'],
    ['a*b?c<d>e|f"g:h.jpg', 'a_b_c_d_e_f_g_h'],
    ['CON', '_CON'],
    ['con.tar.gz', '_con.tar'],
    ['PRN.png', '_PRN'],
    ['aux .png', '_aux'],
    ['LPT¹.png', '_LPT¹'],
    ['conout$.png', '_conout$'],
    ['COM0x.png', 'COM0x'],
    ['company.png', 'company'],
    ['  leading.png', 'leading'],
    ['trailing. . .png', 'trailing'],
    ['. . ..png', 'image'],
    [undefined, 'image'],
  ] as const) {
    it(`is "${expected}" for ${given === undefined ? 'a file without a name' : `"${given}"`}`, () => {
      expect(portableName(baseNameOf(given))).to.equal(expected);
    });
  }
});
