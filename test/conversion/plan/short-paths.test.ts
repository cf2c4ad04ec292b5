// @unit
import { expect } from 'chai';
import { encode } from '../../../src/conversion/plan/encode.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import { orientFirst } from '../../../src/conversion/plan/resize.ts';
import { effectOf, SHORT_PATHS, type ShortPath } from '../../../src/conversion/plan/short-paths.ts';
import type { ConversionJob, ConvertOptions } from '../../../src/conversion/plan/types.ts';
import type { ImageInfo } from '../../../src/images/image-info.ts';
import { aValueOfEach } from '../../helpers/plans.ts';

/** Images and options that take each path, and how a job shows that it does. */
const PATHS: Readonly<
  Record<ShortPath, readonly [ImageInfo, Partial<ConvertOptions>, (job: ConversionJob) => boolean]>
> = {
  vectors: [{ type: 'svg', width: 40, height: 30 }, { format: 'pdf' }, isOnlyDrawn],
  drawing: [{ type: 'svg', width: 40, height: 30 }, { format: 'png' }, isOnlyDrawn],
  transcoding: [
    { type: 'jpg', width: 40, height: 30, profile: 'none' },
    { format: 'jxl', lossless: true, metadata: 'all' },
    ({ isTranscoded }) => isTranscoded,
  ],
  embedding: [
    {
      type: 'jpg',
      width: 40,
      height: 30,
      orientation: 6,
      pixels: { alpha: false, bits: 8, colourSpace: 'rgb' },
    },
    { format: 'pdf', lossless: true },
    ({ isEmbedded }) => isEmbedded,
  ],
  passthrough: [
    { type: 'gif', width: 40, height: 30, animation: { delaysMs: [100, 100], loopCount: 0 } },
    { format: 'gif' },
    ({ isPassthrough }) => isPassthrough,
  ],
  scaledDecoding: [
    { type: 'jpg', width: 4000, height: 3000, profile: 'none' },
    { width: 200, height: 150 },
    ({ scaledDecoding }) => scaledDecoding !== undefined,
  ],
  lateRotation: [
    { type: 'png', width: 400, height: 300, orientation: 6, profile: 'none' },
    { width: 20, height: 20 },
    (job) => orientFirst(job).length === 0,
  ],
  sameShades: [
    { type: 'png', width: 40, height: 30, profile: 'none', paletteKind: 'palette' },
    { format: 'png' },
    (job) => encode(job).includes('png:compression-filter=1'), // no filter
  ],
};

function isOnlyDrawn({ programs }: ConversionJob): boolean {
  return programs.join() === 'rsvg';
}

const { metadata: _, quality: __, ...each } = aValueOfEach();
/** A value of every option that can change a result, except the format. */
const VALUES: Partial<ConvertOptions> = {
  ...each,
  width: 10,
  height: 10,
  scale: 3,
  fit: 'fill',
  watermark: { type: 'png', sha256: 'a'.repeat(64) },
};

function takes(path: ShortPath, more: object = {}): boolean {
  const [image, options, isTaken] = PATHS[path];
  const given = { format: 'webp', quality: 80, metadata: 'none', ...options, ...more } as const;
  return isTaken(createJob(image, given, { magick: 7 }));
}

describe('the short paths of a plan', () => {
  for (const path of Object.keys(PATHS) as ShortPath[]) {
    it(`take ${path} with each option that it honours, and the long way with any other`, () => {
      const honoured: readonly (string | undefined)[] = SHORT_PATHS[path];
      expect(takes(path)).to.equal(true);
      for (const [name, value] of Object.entries(VALUES))
        expect(takes(path, { [name]: value }), name).to.equal(honoured.includes(effectOf(name)));
    });

    it(`never take ${path} with an option that it does not know`, () => {
      expect(takes(path, { sparkle: true })).to.equal(false);
      expect(takes(path, { sparkle: undefined })).to.equal(true);
    });
  }
});
