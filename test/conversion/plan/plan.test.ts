// @unit
import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { measuringJobs } from '../../../src/conversion/measure/measurements.ts';
import { planBranch, planDecoding, planJob, planTogether } from '../../../src/conversion/plan/index.ts';
import { createJob, refusedLabel, toolsFor } from '../../../src/conversion/plan/job.ts';
import { outputsOf } from '../../../src/conversion/plan/step.ts';
import type {
  ConversionJob,
  ConvertOptions,
  PlannedJob,
  ToolContext,
} from '../../../src/conversion/plan/types.ts';
import { watermarkBoxes } from '../../../src/conversion/plan/watermark.ts';
import type { ImageFacts, ImageInfo, Page } from '../../../src/images/image-info.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES } from '../../../src/tables/formats.ts';
import { type Fit, OPTION_NAMES, OPTIONS } from '../../../src/tables/options.ts';
import type { ToolName } from '../../../src/tables/tools.ts';
import { complete, planSteps, valuesOf } from '../../helpers/plans.ts';

const SEVEN: ToolContext = { magick: 7 };
const SIX: ToolContext = { magick: 6 };
const options = (given: Partial<ConvertOptions> = {}): ConvertOptions => ({
  format: 'webp',
  quality: 80,
  metadata: 'none',
  ...given,
});
const job = (picture: ImageInfo, given: Partial<ConvertOptions> = {}, machine = SEVEN): ConversionJob =>
  createJob(picture, options(given), machine);
const lines = (picture: ImageInfo, given: Partial<ConvertOptions> = {}, machine = SEVEN): string[] =>
  planSteps(job(picture, given, machine)).map(({ tool, args }) => `${tool} ${args.join(' ')}`);

const moving = { delaysMs: [100, 40], loopCount: 0 };

/** An image, the options and tools of its conversion, and what is planned for it. */
interface Golden {
  readonly image: ImageInfo;
  readonly options: Partial<ConvertOptions>;
  readonly tools: ToolContext;
  readonly commands: readonly string[];
  readonly notes: readonly string[];
}
/** `UPDATE=1 npx mocha test/conversion/plan/plan.test.ts` accepts the commands of all plans. */
const GOLDEN = new URL('../../../fixtures/plans.json', import.meta.url);

describe('the golden plans of fixtures/plans.json', () => {
  const golden: Record<string, Golden> = JSON.parse(readFileSync(GOLDEN, 'utf8'));
  after(() => {
    if (!process.env.UPDATE) return;
    const plans = Object.entries(golden).map(([name, one]) => {
      const lines = Object.entries(one).map(([key, value]) => `    "${key}": ${JSON.stringify(value)}`);
      return `  "${name}": {\n${lines.join(',\n')}\n  }`;
    });
    writeFileSync(GOLDEN, `{\n${plans.join(',\n')}\n}\n`);
  });

  for (const [name, { image, options, tools, commands, notes }] of Object.entries(golden))
    it(`has the commands and notes for ${name}`, () => {
      const planned = {
        commands: lines(image, options, tools),
        notes: planJob(job(image, options, tools)).plan.notes,
      };
      if (process.env.UPDATE) golden[name] = { image, options, tools, ...planned };
      else expect(planned).to.deep.equal({ commands, notes });
    });
});

describe('the plan', () => {
  it('depends on each option', () => {
    const page = { index: 0, width: 300, height: 400 };
    const pictures: readonly ImageInfo[] = [
      { type: 'png', width: 300, height: 200, profile: 'other' },
      { type: 'gif', width: 300, height: 200, animation: moving },
      { type: 'tiff', width: 300, height: 400, pages: [page, { ...page, index: 1 }] },
      { type: 'pdf', pages: [page], pageCount: 1 },
    ];
    const mark = { watermark: { type: 'png', sha256: 'a' } } as const;
    const sets: readonly Partial<ConvertOptions>[] = [
      {},
      { width: 600, height: 50, fit: 'cover' },
      { colors: 16 },
      mark,
    ];
    const cases = pictures.flatMap((picture) =>
      ALL_OUTPUT_TYPES.filter((format) => format !== picture.type).flatMap((format) =>
        sets.map((given) => ({ picture, given: { ...given, format } })),
      ),
    );
    const planText = (one: ConversionJob) =>
      JSON.stringify([planJob(one).plan, measuringJobs(one), watermarkBoxes(one)]);
    const ignored = OPTION_NAMES.filter((name) =>
      cases.every(({ picture, given }) => {
        const planned = planText(job(picture, given));
        return valuesOf(name).every(
          (value) => planText(job(picture, { ...given, [name]: value })) === planned,
        );
      }),
    );
    expect(ignored).to.deep.equal([]);
  });

  describe('for a large reduction of a JPEG', () => {
    /** Returns how many eighths of each side are decoded. ImageMagick rounds down the divisor. */
    const eighths = (picture: ImageFacts, given: Partial<ConvertOptions>): number => {
      const image: ImageInfo = { type: 'jpg', ...picture };
      const size = /jpeg:size=([\d.]+)x([\d.]+)/.exec(lines(image, given)[0] ?? '');
      const { width = 0, height = 0 } = image;
      const divisor = size ? Math.min(width / Number(size[1]), height / Number(size[2])) : 1;
      return Math.ceil(8 / Math.floor(divisor));
    };

    it('decodes at the smallest scale that leaves 1.2 times the pixels of the result', () => {
      const scaleFor = (width: number): number => eighths({ width: 3360, height: 3360 }, { width });
      expect([21, 350, 351, 700, 701, 1050, 1051, 1400, 1401].map(scaleFor)).to.deep.equal([
        1, 1, 2, 2, 3, 3, 4, 4, 8,
      ]);
    });

    it('decodes a detailed JPEG at a scale that leaves three times the pixels', () => {
      const scaleFor = (width: number): number =>
        eighths({ width: 3360, height: 3360, detailed: true }, { width });
      expect([140, 141, 280, 281, 420, 421, 560, 561].map(scaleFor)).to.deep.equal([1, 2, 2, 3, 3, 4, 4, 8]);
    });

    it('compares the oriented size, requests the stored size, and rotates the result', () => {
      expect(eighths({ width: 3000, height: 1000 }, { width: 400 })).to.equal(2);
      const turned = { type: 'jpg', width: 3000, height: 1000, orientation: 6 } as const; // 1000 pixels wide
      expect(eighths(turned, { width: 700 })).to.equal(8);
    });

    it('has no size hint for full size or an unknown size', () => {
      expect(eighths({ width: 3000, height: 2000 }, {})).to.equal(8);
      expect(lines({ type: 'jpg' }, { width: 10 })[0]).to.not.include('jpeg:size');
    });

    it('scales a side of partial blocks only if less than one decoded pixel is left out', () => {
      const half = { codedUnit: { width: 16, height: 16, even: true } };
      const uneven = { codedUnit: { width: 16, height: 8, even: false } };
      const scaleFor = (width: number, more: object, height = 3360): number =>
        eighths({ width, height, ...more }, { width: 400 });
      const widths = [3360, 3368, 3364, 3362, 3367];
      expect(widths.map((width) => scaleFor(width, {}))).to.deep.equal([2, 2, 2, 2, 2]);
      expect(widths.map((width) => scaleFor(width, half))).to.deep.equal([2, 2, 2, 2, 2]);
      expect(widths.map((width) => scaleFor(width, uneven))).to.deep.equal([2, 2, 4, 8, 8]);
      expect(scaleFor(3360, uneven, 3362)).to.equal(2);
      // At 3/8, libjpeg spreads what follows over the coded unit.
      const threeEighths = (width: number, more: object): number =>
        eighths({ width, height: 3360, ...more }, { width: 800 });
      expect([3360, 3368, 3361].map((width) => threeEighths(width, {}))).to.deep.equal([3, 3, 3]);
      expect([3360, 3368, 3361].map((width) => threeEighths(width, half))).to.deep.equal([3, 4, 3]);
    });

    it('copies all pixels for a partly covered column or row only if replacing it would move an edge too far', () => {
      const copyOf = (width: number, height: number): string | undefined => {
        const [command = ''] = lines({ type: 'jpg', width, height }, { width: 300 });
        return / JPEG:in\[0\] (-crop|-extent) /.exec(command)?.[1];
      };
      const sizes = [
        [2560, 1440],
        [3021, 2013],
        [2000, 1333],
        [1999, 1333],
      ] as const;
      expect(sizes.map(([width, height]) => copyOf(width, height))).to.deep.equal([
        undefined,
        undefined,
        '-crop',
        '-extent',
      ]);
    });

    it('decodes a JPEG completely that is smaller than a coded unit', () => {
      const codedUnit = { width: 16, height: 8, even: false };
      expect(eighths({ width: 15, height: 8000, codedUnit }, { height: 100 })).to.equal(8);
    });

    for (const fit of Object.keys(OPTIONS.fit.type.labels) as Fit[])
      it(`by ${fit} moves no edge by more than 0.3 pixels, for sides up to 40 beyond a multiple of eight`, () => {
        let scaled = 0;
        for (const target of [150, 301, 500])
          for (let width = 1601; width <= 1640; width += 1)
            for (let height = 1201; height <= 1240; height += 1) {
              const options = { width: target, height: 200, fit };
              const { scaledDecoding, trustedFitting } = job({ type: 'jpg', width, height }, options);
              if (!scaledDecoding || !trustedFitting) continue; // no scale meets the rule
              scaled += 1;
              const { columns, rows } = scaledDecoding;
              const eighths =
                [1, 2, 3, 4].find((count) => Math.ceil((width * count) / 8) === columns.decoded) ?? 0;
              const shiftOf = (
                side: number,
                { from, repeated, resized }: typeof rows,
                size: number,
              ): number => Math.abs((((side * eighths) / 8) * resized) / (from + repeated) - size);
              const { resized } = trustedFitting;
              const shifts = [shiftOf(width, columns, resized.width), shiftOf(height, rows, resized.height)];
              expect(Math.max(...shifts), `${width} × ${height} to ${target}`).to.be.at.most(0.3);
            }
        expect(scaled).to.be.at.least(0.9 * 3 * 40 * 40);
      });
  });

  it('averages blocks of a large image from three pixels a side on', () => {
    const averages = (given: Partial<ConvertOptions>, [width, height] = [2001, 1501]) =>
      lines({ type: 'png', width, height }, given)[0]?.includes(' -filter Box ');
    expect([220, 223, 2000].map((width) => averages({ width }))).to.deep.equal([true, false, false]);
    expect(averages({ width: 300, height: 300, fit: 'fill' }, [3000, 1000])).to.equal(false);
  });

  describe('for a large reduction of a WebP', () => {
    const webp = {
      type: 'webp',
      width: 4000,
      height: 3000,
      opaque: true,
      profile: 'none',
      metadata: [],
    } as const;
    const reduce = (more: object, given: Partial<ConvertOptions> = { width: 300 }): string | undefined => {
      const [decoding] = lines({ ...webp, ...more }, given, { ...SIX, scalesWebp: true });
      return /^dwebp .* -resize (\d+ \d+) /.exec(decoding ?? '')?.[1];
    };

    it('decodes at two or three times the size of the result, if that leaves far fewer pixels', () => {
      const sizes = [300, 800, 843, 844, 1264, 1265].map((width) => reduce({}, { width }));
      expect(sizes).to.deep.equal(['900 675', '2400 1800', '2529 1896', '1688 1266', '2528 1896', undefined]);
      expect(reduce({ width: 1000, height: 750 }, { width: 100 })).to.equal(undefined);
      expect(reduce({ orientation: 6 }, { width: 300 })).to.equal('1200 900');
    });

    it('is left to ImageMagick for alpha, other colours, metadata to keep, animations, and without dwebp', () => {
      const kept = { width: 300, metadata: 'all' } as const;
      expect([reduce({}, kept), reduce({ metadata: ['exif'] })]).to.deep.equal(['900 675', '900 675']);
      expect([reduce({ profile: 'srgb' }), reduce({ profile: 'unusable' })]).to.deep.equal([
        '900 675',
        '900 675',
      ]);
      for (const [image, given] of [
        [{ opaque: undefined }, undefined],
        [{ profile: 'other' }, undefined],
        [{ metadata: ['exif'] }, kept],
        [{ profile: 'srgb' }, kept],
        [{ animation: moving, opaque: undefined }, undefined],
      ] as const)
        expect(reduce(image, given), JSON.stringify(image)).to.equal(undefined);
      expect(lines(webp, { width: 300 }, SIX)).to.have.length(1);
    });
  });

  const drops = (image: ImageInfo, given: Partial<ConvertOptions>): boolean =>
    planJob(job(image, given, { ...SEVEN, dropsOpaqueAlpha: true })).plan.steps.some(({ args }) =>
      args.join(' ').includes('-alpha off-if-opaque -filter'),
    );

  it('drops an opaque alpha channel of a resized single image or animated WebP, if ImageMagick can', () => {
    const gif = { type: 'gif', animation: moving } as const;
    const png = { type: 'png', width: 300, height: 200 } as const;
    for (const [image, given, isDropped] of [
      [png, { width: 100 }, true],
      [gif, { format: 'png', width: 100 }, true],
      [gif, { format: 'webp', width: 100 }, true],
      [gif, { format: 'gif', width: 100 }, false],
      [png, {}, false],
      [{ ...png, type: 'jpg' }, { width: 100 }, false],
    ] as const)
      expect(drops(image, given), JSON.stringify([image, given])).to.equal(isDropped);
  });

  it('needs the size of an SVG only to cover the box, or for borders of a PDF', () => {
    const svg = { type: 'svg' } as const;
    const sized = { ...svg, width: 1, height: 1 };
    for (const [picture, given, isMeasured] of [
      [svg, { fit: 'cover' }, true],
      [svg, { fit: 'contain', format: 'pdf' }, true],
      ...(['inside', 'contain', 'fill'] as const).map((fit) => [svg, { fit }, false] as const),
      [sized, { fit: 'cover' }, false],
      [{ ...sized, styled: true }, { fit: 'cover' }, true],
      [{ type: 'gif' }, { fit: 'cover' }, false],
    ] as const) {
      const measuring = measuringJobs(job(picture, { width: 10, height: 10, ...given }));
      expect(measuring.length > 0, JSON.stringify([picture, given])).to.equal(isMeasured);
    }
  });

  it('decodes an AVIF by heif-convert only on version 6', () => {
    const decoding = (deep: boolean, machine: ToolContext) =>
      planDecoding(job({ type: 'avif', deep }, {}, machine));
    expect(decoding(false, SIX)).to.deep.equal([
      { tool: 'heif', args: ['in', 'decoded.png'], deflateLevel: 0 },
    ]);
    expect(decoding(true, SIX)[0]?.deflateLevel).to.equal(1);
    expect(decoding(false, SEVEN)).to.deep.equal([]);
  });

  it('converts colours exactly in a PNG and in results of up to 250 000 pixels', () => {
    const isExact = (type: 'png' | 'jpg', width: number, more: { cmyk?: true } = {}) =>
      lines({ type, profile: 'other', width: 3000, height: 2000, ...more }, { width })[0]?.includes(
        'profile:highres-transform=true ',
      );
    expect(isExact('png', 3000)).to.equal(true);
    expect(isExact('jpg', 612)).to.equal(true);
    expect(isExact('jpg', 613)).to.equal(false);
    expect(isExact('jpg', 100, { cmyk: true }), 'CMYK, of which all pixels are converted').to.equal(false);
  });

  it('states that a PNG of many greys has greys, which ImageMagick would count', () => {
    const grey = { alpha: false, bits: 8, colourSpace: 'grey' } as const;
    const isStated = (picture: Partial<ImageInfo>, given: Partial<ConvertOptions> = {}) =>
      lines(
        { type: 'png', width: 900, height: 600, pixels: grey, ...picture },
        { format: 'png', ...given },
      )[0]?.includes('png:color-type=0');
    expect([isStated({}), isStated({ type: 'jpg' }), isStated({ flat: true }, { width: 300 })]).to.deep.equal(
      [true, true, true],
    );
    for (const picture of [
      { pixels: { ...grey, alpha: true } },
      { pixels: { ...grey, bits: 1 } },
      { pixels: { ...grey, bits: 16 } },
      { pixels: { ...grey, colourSpace: 'rgb' } },
      { flat: true },
      { profile: 'grey' },
    ] as const)
      expect(isStated(picture), JSON.stringify(picture)).to.equal(false);
    for (const given of [{ background: '#ff0000' }, { fit: 'contain', width: 300, height: 300 }] as const)
      expect(isStated({}, given), JSON.stringify(given)).to.equal(false);
  });

  it('writes an indexed PNG of few bits as a palette, unless colours can be added', () => {
    const indexed = { type: 'png', width: 90, height: 60, paletteKind: 'palette', opaque: true } as const;
    const pixels = { alpha: false, bits: 4, colourSpace: 'rgb' } as const;
    const isPalette = (picture: Partial<ImageInfo>, given: Partial<ConvertOptions> = {}) =>
      lines({ ...indexed, pixels, ...picture }, { format: 'png', ...given })[0]?.includes('png:color-type=3');
    expect([isPalette({}), isPalette({}, { rotate: 90 })]).to.deep.equal([true, true]);
    expect(isPalette({ pixels: { ...pixels, bits: 8 } })).to.equal(false);
    expect(isPalette({ pixels: { ...pixels, alpha: true } }), 'ImageMagick would make it opaque').to.equal(
      false,
    );
    expect(isPalette({ shownRows: 30 })).to.equal(false);
    for (const given of [{ width: 30 }, { blur: 2 }, { fit: 'contain', width: 99, height: 99 }] as const)
      expect(isPalette({}, given), JSON.stringify(given)).to.equal(false);
  });

  it('rejects a TIFF only for pages that the result would show', () => {
    const pages: Page[] = [{ index: 0 }, { index: 1, kinds: ['icc-lab'] }];
    const misreadIn = (format: 'png' | 'pdf') => refusedLabel(job({ type: 'tiff', pages }, { format }));
    expect([misreadIn('png'), misreadIn('pdf')]).to.deep.equal([
      undefined,
      'ICCLab or ITULab colours in a TIFF',
    ]);
  });

  describe('for the sandbox', () => {
    const machines: readonly ToolContext[] = [
      { ...SIX, encodesWebp: true },
      { ...SEVEN, assemblesWebp: true, scalesWebp: true },
    ];
    const sets: readonly Partial<ConvertOptions>[] = [
      {},
      { width: 100 },
      { maxBytes: 1000 },
      { trim: 5 },
      { lossless: true, metadata: 'all' as const },
      { width: 100, height: 100, fit: 'cover', position: 'attention' },
    ];
    const plain = { width: 4000, height: 3000, opaque: true, profile: 'none' };
    const document = { pages: [{ index: 0, width: 300, height: 400 }], pageCount: 1 };
    const pictures = ALL_INPUT_TYPES.flatMap((type) =>
      [{}, { animation: moving }].map(
        (more) => ({ type, ...plain, ...more, ...(type === 'pdf' && document) }) as ImageInfo,
      ),
    );
    const jobs = machines.flatMap((machine) =>
      pictures.flatMap((picture) =>
        ALL_OUTPUT_TYPES.flatMap((format) =>
          sets.map((given) => job(picture, { format, ...given }, machine)),
        ),
      ),
    );
    /** Returns the commands of a job, each with the files that it writes. */
    const commandsOf = (one: ConversionJob) => {
      const planned = planJob(one);
      return [...measuringJobs(one), planned].flatMap((of) =>
        of.plan.steps.map((step) => ({
          tool: step.tool,
          type: of.image.type,
          files: outputsOf(complete(step), of),
        })),
      );
    };

    it('names the files of each command, except heif-convert, and ImageMagick for TIFF to read', () => {
      const commands = jobs.flatMap(commandsOf);
      const unnamed = commands.filter(
        ({ tool, type }) => tool === 'heif' || (tool === 'magick' && type === 'tiff'),
      );
      expect(commands.filter(({ files }) => !files)).to.deep.equal(unnamed);
      const named: Partial<Record<ToolName, string[]>> = {};
      for (const { tool, files = [] } of commands)
        named[tool] = [...new Set([...(named[tool] ?? []), ...files])].sort();
      const images = ['webp', 'png', 'jpg', 'gif', 'bmp', 'tiff', 'ico'].map((format) => `image.${format}`);
      const frames = ['frame-00000.pam', 'frame-00001.pam'];
      const sheets = ['sheet-0.jpg', 'sheet-0.png'];
      expect(named).to.deep.equal({
        magick: [...images, ...frames, ...sheets, 'encode.png', 'kept.miff', 'measured.miff'].sort(),
        rsvg: ['image.pdf', 'image.png', 'rasterized.png'],
        heif: [],
        dwebp: ['scaled.ppm'],
        cwebp: ['image.webp'],
        img2webp: ['image.webp'],
        djxl: ['decoded.png', 'restored.jpg'],
        cjxl: ['image.jxl'],
        avifenc: ['image.avif'],
        pdftocairo: ['page-1.png', 'pageattention-1.png'],
      });
    });

    it('names the files of all results that one command writes', () => {
      const [one, other] = (['webp', 'jpg'] as const).map((format, at) =>
        planJob(createJob({ type: 'png' }, options({ format, maxBytes: 1000 }), SEVEN, `0${at}`)),
      ) as [PlannedJob, PlannedJob];
      const { parts } = planTogether([one, other].map(planBranch));
      const step = complete({ tool: 'magick', args: parts.flat() });
      expect(outputsOf(step, one)).to.deep.equal(['kept00.miff', 'var00.webp', 'kept01.miff', 'var01.jpg']);
    });
  });

  it('compresses a PNG as a photo, or as flat colours if it has them and is not resized', () => {
    const packed = (picture: ImageInfo, given: Partial<ConvertOptions> = {}) =>
      lines(picture, { format: 'png', ...given })[0]
        ?.match(/png:compression-\S+/g)
        ?.map((text) => text.at(-1));
    expect(packed({ type: 'jpg' })).to.deep.equal(['2', '5']);
    expect(packed({ type: 'png' })).to.deep.equal(['2', '5']);
    const flat = [
      { type: 'png', flat: true },
      { type: 'gif' },
      { type: 'tiff', paletteKind: 'palette' },
    ] as const;
    for (const picture of flat) expect(packed(picture)).to.deep.equal(['4', '1']);
    expect(packed({ type: 'png', flat: true }, { width: 300 })).to.deep.equal(['2', '5']);
  });

  it('selects the colours of a PNG with pngquant, which prints the result, if it is installed', () => {
    const machine = { ...SEVEN, selectsColours: true };
    const steps = (given: Partial<ConvertOptions>) =>
      planSteps(job({ type: 'jpg' }, { format: 'png', ...given }, machine));
    const [convert, select] = steps({ colors: 64 });
    expect(convert?.args.at(-1)).to.equal('PNG:encode.png');
    const args = ['--speed', '4', '--floyd=0.5', '--output', '-', '64', '--', 'encode.png'];
    expect(select).to.deep.include({ tool: 'pngquant', args, stdout: 'image.png' });
    expect(steps({ colors: 64, dither: false })[1]?.args).to.include('--nofs');
    expect(steps({})).to.have.length(1);
    expect(lines({ type: 'jpg' }, { format: 'png', colors: 64 })[0]).to.match(
      / -colors 64 .* PNG:image\.png$/,
    );
  });

  it('optimizes the Huffman tables of small JPEG results only', () => {
    const large = { type: 'png', width: 1000, height: 750 } as const;
    const plain = 'jpeg:optimize-coding=false';
    expect(lines(large, { format: 'jpg' })[0]).to.include(plain);
    expect(lines(large, { format: 'jpg', width: 300 })[0]).to.not.include(plain);
    expect(lines({ type: 'png' }, { format: 'jpg' })[0]).to.not.include(plain);
  });

  it('needs the tools that decode, convert and encode, and those of AVIF by the version of ImageMagick', () => {
    for (const [type, format, magick, ...tools] of [
      ['svg', 'pdf', 7, 'rsvg'],
      ['svg', 'png', 7, 'rsvg'],
      ['svg', 'webp', 7, 'rsvg', 'magick'],
      ['svg', 'jxl', 7, 'rsvg', 'magick', 'cjxl'],
      ['avif', 'png', 6, 'heif', 'magick'],
      ['avif', 'png', 7, 'magick'],
      ['jxl', 'avif', 7, 'djxl', 'magick', 'avifenc'],
      ['heic', 'jxl', 6, 'heif', 'magick', 'cjxl'],
      ['jp2', 'tiff', 6, 'magick'],
    ] as const)
      expect(toolsFor(type, format, magick), `${type} to ${format}`).to.deep.equal(tools);
  });
});
