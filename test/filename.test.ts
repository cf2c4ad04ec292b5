import { expect } from 'chai';
import { baseNameOf, lastComponentOf } from '../src/filename.ts';
import { asciiFallback } from '../src/server/response.ts';

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
    const started = performance.now();
    for (let count = 0; count < 20; count += 1) {
      baseNameOf(name);
      asciiFallback(name);
    }
    expect(performance.now() - started).to.be.below(1000);
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
