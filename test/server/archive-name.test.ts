import { expect } from 'chai';
import { archiveBaseName } from '../../src/server/archive-name.ts';

describe('archiveBaseName', () => {
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
    it(`returns "${expected}" for ${given === undefined ? 'a file without a name' : `"${given}"`}`, () => {
      expect(archiveBaseName(given)).to.equal(expected);
    });
  }
});
