import { expect } from 'chai';
import { baseNameOf } from '../../src/convert/output-name.ts';
import { asciiName } from '../../src/http/ascii-name.ts';

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
  ] as const) {
    it(`from ${JSON.stringify(given)} is ${JSON.stringify(base)}`, () => {
      expect(baseNameOf(given)).to.equal(base);
    });
  }

  it('is cut to 200 bytes, between characters as readers see them', () => {
    expect(baseNameOf(`${'a'.repeat(5000)}.png`)).to.equal('a'.repeat(200));
    const family = '👩‍👩‍👧';
    expect(baseNameOf(`${family.repeat(300)}.png`)).to.equal(
      family.repeat(Math.floor(200 / Buffer.byteLength(family))),
    );
  });

  it('has an ASCII stand-in without anything that needs escaping', () => {
    expect(asciiName('Übergrößen "x" 100%.webp')).to.equal('Ubergro_en _x_ 100_.webp');
    expect(asciiName('фото.webp')).to.equal('_.webp');
  });
});
