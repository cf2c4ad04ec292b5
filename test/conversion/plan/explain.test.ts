// @unit
import { expect } from 'chai';
import { explain } from '../../../src/conversion/plan/index.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import type { ConvertOptions } from '../../../src/conversion/plan/types.ts';
import type { ImageInfo } from '../../../src/images/image-info.ts';

const PHOTO: ImageInfo = { type: 'jpg', width: 4000, height: 3000, profile: 'srgb' };
const ANIMATION: ImageInfo = {
  type: 'gif',
  width: 40,
  height: 30,
  animation: { delaysMs: [100, 100, 100], loopCount: 0 },
};

function sentences(image: ImageInfo, options: Partial<ConvertOptions> = {}): string[] {
  const given = { format: 'webp', quality: 80, metadata: 'none', ...options } as const;
  return explain(createJob(image, given, { magick: 6, selectsColours: true }));
}

describe('the sentences of a plan', () => {
  const cases: readonly (readonly [string, ImageInfo, Partial<ConvertOptions>, string])[] = [
    ['a smaller decoding', PHOTO, { width: 800 }, 'decoded at 1000 × 750 instead of 4000 × 3000'],
    ['a resize', PHOTO, { width: 800 }, '4000 × 3000 → 800 × 600 with Lanczos'],
    ['an image that stays smaller', PHOTO, { width: 9000 }, 'not enlarged'],
    ['an orientation', { ...PHOTO, orientation: 8 }, {}, 'turned upright (EXIF 8)'],
    [
      'the orientation of an AVIF',
      { type: 'avif', width: 40, height: 30, orientation: 6 } as ImageInfo,
      {},
      'turned upright (irot and imir, like EXIF 6)',
    ],
    ['a crop', PHOTO, { crop: '10,20,300,200' }, 'cut to 300 × 200 from 10, 20'],
    ['cover', PHOTO, { width: 100, height: 100, fit: 'cover' }, 'cut to 100 × 100'],
    [
      'a part that is chosen',
      PHOTO,
      { width: 100, height: 100, fit: 'cover', position: 'attention' },
      'edges, skin tones and saturation decide which part is kept: the commands keep the centre',
    ],
    ['borders', PHOTO, { width: 50, height: 50, fit: 'contain' }, 'borders of the colour none up to 50 × 50'],
    ['CMYK', { ...PHOTO, cmyk: true, profile: 'other' }, {}, 'CMYK → sRGB'],
    ['a profile', { ...PHOTO, profile: 'other' }, {}, 'embedded colour profile → sRGB'],
    [
      'a profile that stays',
      { ...PHOTO, profile: 'other' },
      { metadata: 'all' },
      'the colour profile is kept',
    ],
    ['metadata', { ...PHOTO, metadata: ['exif', 'xmp'] }, {}, 'EXIF and XMP metadata is removed'],
    [
      'the copyright',
      { ...PHOTO, metadata: ['exif', 'xmp'] },
      { metadata: 'copyright' },
      'EXIF and XMP metadata is removed, except the copyright',
    ],
    ['a gain map', { ...PHOTO, gainMap: true }, {}, 'the gain map for HDR screens is not used'],
    [
      'a truncated file',
      { ...PHOTO, truncated: true },
      {},
      'the file is cut off: what is missing stays empty',
    ],
    [
      'transparency',
      { type: 'png', width: 4, height: 4 },
      { format: 'jpg' },
      'transparent parts get the colour #ffffff',
    ],
    ['all frames', ANIMATION, {}, 'all 3 frames'],
    ['a first frame', ANIMATION, { format: 'png' }, 'only the first of 3 frames'],
    ['a decoder', { type: 'avif', width: 4, height: 4 }, {}, 'decoded by heif-convert'],
    ['a drawing', { type: 'svg', width: 40, height: 30 }, { width: 80 }, 'drawn by librsvg at 80 × 60'],
    ['a lossy encoder', PHOTO, { format: 'jpg', quality: 61 }, 'JPEG, quality 61'],
    ['a lossless encoder', PHOTO, { lossless: true }, 'WebP, without loss'],
    [
      'a palette',
      PHOTO,
      { format: 'jpg', candidates: ['jpg', 'png'] },
      'the smallest of JPEG, PNG, quality 80, or PNG of 256 colours if that looks the same',
    ],
    ['a limit of bytes', PHOTO, { maxBytes: 9000 }, 'WebP, quality 80, or lower for at most 9000 bytes'],
  ];
  for (const [what, image, options, sentence] of cases)
    it(`describe ${what}`, () => {
      expect(sentences(image, options)).to.include(sentence);
    });

  it('are about nothing that is not done', () => {
    expect(sentences({ type: 'jpg', width: 40, height: 30, profile: 'srgb' })).to.deep.equal([
      'WebP, quality 80',
    ]);
  });
});
