// @unit
import { expect } from 'chai';
import { planResult } from '../../../src/conversion/admit.ts';
import type { ConversionInput } from '../../../src/conversion/context.ts';
import { estimateDiskBytes } from '../../../src/conversion/limits/disk-bytes.ts';
import { checkLimits } from '../../../src/conversion/limits/limits.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import type { ConvertOptions } from '../../../src/conversion/plan/types.ts';
import type { ImageInfo } from '../../../src/images/image-info.ts';
import type { Toolchain } from '../../../src/process/toolchain.ts';
import { loadConfig } from '../../../src/tables/config.ts';
import { ALL_OUTPUT_TYPES } from '../../../src/tables/formats.ts';

const MEGAPIXEL: ImageInfo = { type: 'png', width: 1000, height: 1000 };
const INPUT_BYTES = 5000;

/** Returns the estimate for a megapixel in bytes per pixel, without fixed bytes and the input. */
function perPixel(
  image: Partial<ImageInfo>,
  given: Partial<ConvertOptions> & Pick<ConvertOptions, 'format'>,
  magick: 6 | 7 = 7,
): number {
  const options = { quality: 80, metadata: 'none' as const, ...given };
  const job = createJob({ ...MEGAPIXEL, ...image } as ImageInfo, options, { magick });
  const bytes = estimateDiskBytes(job, INPUT_BYTES);
  return bytes === undefined ? Number.NaN : (bytes - INPUT_BYTES - 64 * 1024) / 1e6;
}

describe('the size of an SVG', () => {
  it('is rejected above what librsvg renders, also if the limit of a side is higher', () => {
    const config = { ...loadConfig({}), maxSide: 65_500, maxDrawnSide: 65_500 };
    const job = (width: number, format: 'png' | 'pdf' = 'png') =>
      createJob({ type: 'svg', width, height: 10 }, { format, quality: 80, metadata: 'none' }, { magick: 7 });
    expect(() => checkLimits(job(32_768), config, 'a.svg')).to.throw(
      'a.svg would be rendered 32768 pixels wide or high, more than the limit of 32767: set a smaller width or height.',
    );
    expect(() => checkLimits(job(32_767), config, 'a.svg')).to.not.throw();
    expect(() => checkLimits(job(32_768, 'pdf'), config, 'a.svg'), 'no pixels').to.not.throw();
  });
});

describe('an animation with more frames than a command can name', () => {
  it('is rejected with 413 and that number before a tool runs', () => {
    const tool = { path: '/bin/true', version: '1' };
    const magick = { ...tool, major: 6, reads: new Set<string>(), writes: new Set<string>() } as const;
    const machine = {
      config: { ...loadConfig({}), MAX_FRAMES: 200_000, MAX_TOTAL_PIXELS: 200_000 },
      toolchain: { magick, img2webp: tool } as unknown as Toolchain,
      tools: { magick: 6, assemblesWebp: true } as const,
      source: { type: 'gif', label: 'a.gif' } as ConversionInput,
    };
    const accept = (frames: number) => {
      const delaysMs = Array.from({ length: frames }, (_, at) => 20 + 10 * (at % 2));
      const image: ImageInfo = { type: 'gif', width: 1, height: 1, animation: { delaysMs, loopCount: 0 } };
      return planResult(image, { format: 'webp', quality: 80, metadata: 'none' }, '', machine);
    };
    expect(accept(30_000).plan.steps).to.have.length(2);
    expect(() => accept(100_000))
      .to.throw(
        /^a\.gif has 100000 frames or pages, more than the limit of \d{5} in one command of the tools\. This limit is fixed\.$/,
      )
      .with.property('status', 413);
  });
});

describe('the estimate of disk space', () => {
  const pages = [0, 1, 2].map((index) => ({ index, width: 1000, height: 1000 }));
  const animation = { delaysMs: [40, 40], loopCount: 0 };
  const enlarged = { fit: 'fill', width: 2000, height: 2000, enlarge: true } as const;
  const results = { webp: 3, png: 4.1, jpg: 4.2, gif: 2, bmp: 3.1, pdf: 14, tiff: 5.1, ico: 0.3 } as const;
  for (const [what, image, given, bytes, magick] of [
    ...Object.entries(results).map(([format, bytes]) => {
      return [`the result as ${format}`, {}, { format: format as keyof typeof results }, bytes] as const;
    }),
    ['the PNG that the encoder of AVIF reads', {}, { format: 'avif' }, 4.1 + 4.2],
    ['the PNG that the encoder of JPEG XL reads', {}, { format: 'jxl' }, 4.1 + 4.6],
    ['the PNG that the decoder of HEIC writes', { type: 'heic' }, { format: 'webp' }, 4.1 + 3, 6],
    ['no PNG of HEIC with ImageMagick 7', { type: 'heic' }, { format: 'webp' }, 3, 7],
    ['the PNG files of two programs', { type: 'jxl' }, { format: 'avif' }, 2 * 4.1 + 4.2],
    ['16 bits per channel in TIFF', { deep: true }, { format: 'tiff' }, 2 * 5.1],
    ['16 bits per channel in JPEG XL and its PNG', { deep: true }, { format: 'jxl' }, 2 * (4.1 + 4.6)],
    ['16 bits per channel in a lossless PDF', { deep: true }, { format: 'pdf', lossless: true }, 28],
    ['8 bits per channel in WebP', { deep: true }, { format: 'webp' }, 3],
    ['all pages', { type: 'tiff', pages }, { format: 'tiff' }, 3 * 5.1],
    ['the first page', { type: 'tiff', pages }, { format: 'tiff', pages: 'first' }, 5.1],
    ['all frames', { type: 'gif', animation }, { format: 'tiff' }, 2 * 5.1],
    ['an icon of a large image', { width: 7000, height: 7000 }, { format: 'ico' }, 0.3],
    ['an enlarged image', {}, { format: 'tiff', ...enlarged }, 4 * 5.1],
    ['an enlarged image and its PNG', {}, { format: 'avif', ...enlarged }, 4 * (4.1 + 4.2)],
    ['a second result, and pixels to encode again', {}, { format: 'webp', maxBytes: 1000 }, 2 * 3 + 5],
    ['a second result of the same PNG', {}, { format: 'avif', maxBytes: 1000 }, 4.1 + 2 * 4.2],
  ] as const)
    it(`has space for ${what}`, () => {
      expect(perPixel(image as Partial<ImageInfo>, given, magick)).to.be.closeTo(bytes, 0.001);
    });

  it('is unknown if the header does not have the size or the number of frames', () => {
    for (const format of ALL_OUTPUT_TYPES) {
      expect(perPixel({ width: 0, height: 0 }, { format }), format).to.be.NaN;
      expect(perPixel({ type: 'jxl', hasUncountedFrames: true }, { format }), format).to.be.NaN;
    }
  });
});
