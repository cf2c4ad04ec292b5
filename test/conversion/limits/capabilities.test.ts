// @unit
import { expect } from 'chai';
import { detectCapabilities } from '../../../src/conversion/limits/capabilities.ts';
import type { Toolchain } from '../../../src/process/toolchain.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES, INPUTS, OUTPUTS } from '../../../src/tables/formats.ts';

const TOOL = { path: '/usr/bin/tool', version: '1' };
const WRITES = new Set(ALL_OUTPUT_TYPES.map((type) => OUTPUTS[type].coder));

const NO_EXTRAS = { EXTRA_INPUTS: [], EXTRA_OUTPUTS: [] };

/** Returns a toolchain whose ImageMagick reads all formats except AVIF. */
function withoutAvif(major: 6 | 7): Toolchain {
  const reads = new Set(ALL_INPUT_TYPES.flatMap((type) => INPUTS[type].coder ?? []));
  reads.delete('AVIF');
  const magick = { path: '/usr/bin/magick', version: `${major}.1`, major, reads, writes: WRITES };
  return { magick, rsvg: TOOL, heif: TOOL, cwebp: TOOL, img2webp: TOOL };
}

describe('the detected capabilities', () => {
  it('have no problem with ImageMagick 6 without AVIF, which heif-convert reads', () => {
    const { problems, supports } = detectCapabilities(withoutAvif(6), NO_EXTRAS);
    expect([supports('avif', 'png'), problems]).to.deep.equal([true, []]);
  });

  it('have a problem with ImageMagick 7 without AVIF', () => {
    const { problems, supports } = detectCapabilities(withoutAvif(7), NO_EXTRAS);
    expect(supports('avif', 'png')).to.equal(false);
    const message =
      'ImageMagick at /usr/bin/magick cannot read AVIF. On Debian: apt install libheif-plugin-dav1d';
    expect(problems).to.deep.equal([{ verb: 'read', message }]);
  });
});
