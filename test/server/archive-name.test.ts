import { expect } from 'chai';
import { archiveBaseName } from '../../src/server/archive-name.ts';

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
    it(`is "${expected}" when the client calls it ${given === undefined ? 'nothing' : `"${given}"`}, so that Windows can extract it`, () => {
      expect(archiveBaseName(given)).to.equal(expected);
    });
  }
});
