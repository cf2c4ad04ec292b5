// @unit
import { expect } from 'chai';
import { measuringJobs } from '../../../src/conversion/measure/measurements.ts';
import {
  plan,
  planAgain,
  planBranch,
  planDecoding,
  planJob,
  planTogether,
} from '../../../src/conversion/plan/index.ts';
import { createJob, refusedLabel, toolsFor } from '../../../src/conversion/plan/job.ts';
import { renderSmaller } from '../../../src/conversion/plan/rasterize.ts';
import { outputsOf } from '../../../src/conversion/plan/step.ts';
import type {
  ConversionJob,
  ConvertOptions,
  PlannedJob,
  ToolContext,
} from '../../../src/conversion/plan/types.ts';
import { watermarkBoxes } from '../../../src/conversion/plan/watermark.ts';
import { colourOf } from '../../../src/images/colour/declared-colour.ts';
import { type ImageFacts, type ImageInfo, type Page, RGB_PIXELS } from '../../../src/images/image-info.ts';
import { ALL_INPUT_TYPES, ALL_OUTPUT_TYPES } from '../../../src/tables/formats.ts';
import { type Fit, OPTION_NAMES, OPTIONS } from '../../../src/tables/options.ts';
import type { ToolName } from '../../../src/tables/tools.ts';
import { complete, METADATA_VALUES, planSteps, valuesOf } from '../../helpers/plans.ts';

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

const START = '-limit thread 1';
const FILTER = '-filter Lanczos -define filter:support=2 -define filter:win-support=2.6';
const AVERAGE = '-filter Box -resize';
const SRGB =
  '-define profile:highres-transform=false -intent relative -black-point-compensation -profile /srgb.icc';
const moving = { delaysMs: [100, 40], loopCount: 0 };

describe('the plan', () => {
  it('for a JPEG to WebP is one command with all stages in order', () => {
    const picture = { type: 'jpg', orientation: 6, profile: 'other' } as const;
    expect(lines(picture, { width: 300, height: 200 })).to.deep.equal([
      `magick ${START} JPEG:in[0] -orient RightTop -auto-orient -orient TopLeft +repage ` +
        `${FILTER} -resize 300x200> ${SRGB} -strip +set label +set png:tIME -quality 80 -define webp:method=4 -define webp:lossless=false -define webp:exact=false WEBP:image.webp`,
    ]);
  });

  it('has one output file, whose name is not the start of another file name', () => {
    for (const picture of [{ type: 'svg' }, { type: 'avif' }, { type: 'gif', animation: moving }] as const) {
      for (const format of ['webp', 'png', 'pdf'] as const) {
        const output = `image.${format}`;
        const written = planSteps(job(picture, { format }, SIX)).flatMap(({ args }) =>
          args.filter((arg) => /^(\w+:)?image/.test(arg)),
        );
        const isDocument = format === 'pdf' && picture.type !== 'svg'; // of other files
        expect(written.map((arg) => arg.replace(/^\w+:/, ''))).to.deep.equal(isDocument ? [] : [output]);
      }
    }
  });

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
      JSON.stringify([plan(one), measuringJobs(one), watermarkBoxes(one)]);
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
    /** Returns how many eighths of each side libjpeg decodes. ImageMagick rounds down what it divides the sides by. */
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
      expect(eighths(turned, { height: 400 })).to.equal(2);
      expect(lines(turned, { height: 400 })[0]).to.include(
        `${FILTER} -resize 400x133! -orient RightTop -auto-orient `,
      );
    });

    it('has no size hint for full size or an unknown size', () => {
      expect(eighths({ width: 3000, height: 2000 }, {})).to.equal(8);
      expect(lines({ type: 'jpg' }, { width: 10 })[0]).to.not.include('jpeg:size');
    });

    /** Returns the arguments between the decoding and the rotation. */
    const resizing = (width: number, height: number, given: Partial<ConvertOptions>): string =>
      /JPEG:in\[0\] (.*?) -orient/.exec(lines({ type: 'jpg', width, height }, given)[0] ?? '')?.[1] ?? '';

    it('leaves out a partial column or row, which can show what follows the image', () => {
      expect(resizing(4000, 3000, { width: 200 })).to.equal(`${FILTER} -resize 200x150!`);
      expect(resizing(4001, 3001, { width: 200 })).to.equal(
        `-crop 500x375+0+0 +repage ${FILTER} -resize 200x150!`,
      );
      expect(resizing(2000, 1333, { width: 300 })).to.equal(
        `-crop 500x333+0+0 +repage ${FILTER} -resize 300x200!`,
      );
    });

    it('scales a side of partial blocks only if what can be left out is at most 0.3 pixels of the result', () => {
      const half = { codedUnit: { width: 16, height: 16, even: true } };
      const uneven = { codedUnit: { width: 16, height: 8, even: false } };
      const scaleFor = (width: number, more: object, height = 3360): number =>
        eighths({ width, height, ...more }, { width: 400 });
      const widths = [3360, 3368, 3364, 3362, 3367];
      expect(widths.map((width) => scaleFor(width, {}))).to.deep.equal([2, 2, 2, 2, 4]);
      expect(widths.map((width) => scaleFor(width, half))).to.deep.equal([2, 2, 2, 2, 4]);
      expect(widths.map((width) => scaleFor(width, uneven))).to.deep.equal([2, 2, 4, 8, 8]);
      expect(scaleFor(3360, uneven, 3362)).to.equal(2);
      // At 3/8, libjpeg spreads what follows over the coded unit.
      const threeEighths = (width: number, more: object): number =>
        eighths({ width, height: 3360, ...more }, { width: 800 });
      expect([3360, 3368, 3361].map((width) => threeEighths(width, {}))).to.deep.equal([3, 3, 3]);
      expect([3360, 3368, 3361].map((width) => threeEighths(width, half))).to.deep.equal([3, 4, 3]);
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
              const shiftOf = (side: number, { from }: typeof rows, size: number): number =>
                (((side * eighths) / 8) * size) / from - size;
              const { resized } = trustedFitting;
              const shifts = [shiftOf(width, columns, resized.width), shiftOf(height, rows, resized.height)];
              expect(Math.min(...shifts), `${width} × ${height} to ${target}`).to.be.at.least(0);
              expect(Math.max(...shifts), `${width} × ${height} to ${target}`).to.be.at.most(0.3);
            }
        expect(scaled).to.be.at.least(0.75 * 3 * 40 * 40);
      });
  });

  describe('for a large reduction of other images', () => {
    const resizing = (
      width: number,
      height: number,
      given: Partial<ConvertOptions>,
      tools?: ToolContext,
    ): string =>
      /-orient TopLeft \+repage (.*?) -strip/.exec(
        lines({ type: 'png', width, height, profile: 'none' }, given, tools)[0] ?? '',
      )?.[1] ?? '';

    it('averages blocks that leave three times the size of the result, from three pixels a side on', () => {
      expect(resizing(3840, 2160, { width: 300 })).to.equal(`${AVERAGE} 960x540! ${FILTER} -resize 300x169!`);
      expect(resizing(3840, 2160, { width: 300 }, SIX)).to.equal(
        `-scale 960x540! ${FILTER} -resize 300x169!`,
      );
      expect(resizing(2001, 1501, { width: 220 })).to.equal(`${AVERAGE} 667x500! ${FILTER} -resize 220x165!`);
      for (const width of [2000, 900, 400, 223])
        expect(resizing(2001, 1501, { width })).to.equal(`${FILTER} -resize ${width}x>`);
      expect(resizing(3000, 1000, { width: 300, height: 300, fit: 'fill' })).to.equal(
        `${FILTER} -resize 300x300!`,
      );
    });

    it('averages what is left of an image that is cut', () => {
      expect(resizing(4000, 3000, { crop: '0,0,50%,50%', width: 200 })).to.equal(
        `-crop 2000x1500+0+0 +repage ${AVERAGE} 667x500! ${FILTER} -resize 200x150!`,
      );
    });
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

    it('reads the smaller image, and rotates it after the resize', () => {
      const [, convert] = lines({ ...webp, orientation: 6 }, { width: 300 }, { ...SIX, scalesWebp: true });
      expect(convert).to.include(
        `PPM:scaled.ppm -alpha off ${FILTER} -resize 400x300! -orient RightTop -auto-orient `,
      );
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

  describe('for a resize with an ImageMagick that can drop an opaque alpha channel', () => {
    const drops = (image: ImageInfo, given: Partial<ConvertOptions>): boolean =>
      plan(job(image, given, { ...SEVEN, dropsOpaqueAlpha: true })).steps.some(({ args }) =>
        args.join(' ').includes('-alpha off-if-opaque -filter'),
      );

    it('drops that of a resized single image or animated WebP before the resize', () => {
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
  });

  describe('for a box', () => {
    const box = (picture: ImageInfo, given: Partial<ConvertOptions>) =>
      /(?:-define jpeg:size|-filter|-crop|-background).*?(?= -strip)/.exec(
        lines({ profile: 'none', ...picture }, { format: 'png', width: 100, height: 100, ...given })[0] ?? '',
      )?.[0];
    const png = { type: 'png', width: 200, height: 151 } as const;

    it('resizes, and then crops or pads at the same offset as sharp for every position', () => {
      const cut = (position?: ConvertOptions['position']) => box(png, { fit: 'cover', position });
      expect(cut()).to.equal(`${FILTER} -resize 132x100! -crop 100x100+16+0 +repage`);
      expect(cut('left')).to.include('+0+0 ');
      expect(cut('right top')).to.include('+32+0 ');
      const add = (position?: ConvertOptions['position']) => box(png, { fit: 'contain', position });
      expect(add()).to.equal(
        `${FILTER} -resize 100x76! -background none -compose Copy -extent 100x100+0-12 +repage -compose Over`,
      );
      expect(add('top')).to.include('-extent 100x100+0+0 ');
      expect(add('left bottom')).to.include('-extent 100x100+0-24 ');
      expect(box(png, { fit: 'fill' })).to.equal(`${FILTER} -resize 100x100!`);
    });

    it('does not crop or pad if the resized image fills the box', () => {
      for (const fit of ['cover', 'contain', 'fill'] as const)
        expect(box({ ...png, height: 200 }, { fit })).to.equal(`${FILTER} -resize 100x100!`);
    });

    it('does not enlarge any side without enlarge', () => {
      const sizes = (given: Partial<ConvertOptions>) => box({ ...png, height: 50 }, given);
      expect(sizes({ fit: 'cover' })).to.equal('-crop 100x50+50+0 +repage');
      expect(sizes({ fit: 'cover', enlarge: true })).to.include('-resize 400x100! -crop 100x100+150+0 ');
      expect(sizes({ fit: 'fill' })).to.include('-resize 100x50!');
      expect(sizes({ fit: 'fill', enlarge: true })).to.include('-resize 100x100!');
      expect(sizes({ fit: 'contain', width: 300 }))
        .to.include('-background none ')
        .and.include('-extent 300x100-50-25 ')
        .and.not.include('-resize');
      expect(sizes({ width: 300 })).to.equal(undefined);
      expect(sizes({ width: 300, enlarge: true })).to.equal(`${FILTER} -resize 300x100`);
    });

    it('does not resize an image that is known to have its final size', () => {
      expect(box(png, { width: 200, height: undefined })).to.equal(undefined);
      expect(box({ ...png, orientation: 6 }, { width: 151, height: 200, fit: 'fill' })).to.equal(undefined);
      expect(box(png, { crop: '0,0,100,50' })).to.equal('-crop 100x50+0+0 +repage');
      expect(box({ ...png, type: 'gif' }, { width: 200 })).to.include('-resize 200x100>');
    });

    it('lets ImageMagick calculate the offsets if the size is not reliably known', () => {
      const gif = { type: 'gif', width: 200, height: 151 } as const;
      expect(box(gif, { fit: 'cover', position: 'right top' })).to.equal(
        `${FILTER} -resize 100x100^> -gravity NorthEast -crop 100x100+0+0 +gravity +repage`,
      );
      for (const [x, crop] of [
        [0, 'West -crop 100x100+0+0'],
        [45, 'West -crop 100x100+10+0'],
        [50, 'Center -crop 100x100+0+0'],
        [55, 'East -crop 100x100+9+0'],
        [80, 'East -crop 100x100+0+0'],
      ] as const)
        expect(box(gif, { fit: 'cover', position: `${x}%,50%` })).to.include(`-gravity ${crop} `);
      expect(box(gif, { fit: 'contain', height: 200, position: '50%,30%' })).to.include(
        '-gravity North -extent 100x200-0-37 ',
      );
      expect(box(gif, { fit: 'contain' })).to.include(
        '-resize 100x100> -background none -compose Copy -gravity Center -extent 100x100 +gravity +repage -compose Over',
      );
      expect(box(gif, { fit: 'fill', enlarge: true })).to.equal(`${FILTER} -resize 100x100!`);
    });

    it('selects the shrink-on-load factor by the side that is reduced least', () => {
      const jpg = { type: 'jpg', width: 1600, height: 800 } as const;
      expect(box(jpg, {})).to.include('jpeg:size=188.24x94.12 ');
      expect(box(jpg, { fit: 'contain' })).to.include('jpeg:size=188.24x94.12 ');
      expect(box(jpg, { fit: 'cover' }))
        .to.include('jpeg:size=355.56x177.78 ')
        .and.include('-resize 200x100! -orient TopLeft +repage -crop');
      expect(box({ ...jpg, height: 480 }, { fit: 'fill' })).to.include('jpeg:size=355.56x106.67 ');
      expect(box({ ...jpg, type: 'png' }, { fit: 'cover' })).to.include(`${FILTER} -resize 200x100!`);
    });

    it('uses the width and height after orientation', () => {
      expect(box({ ...png, orientation: 6 }, { fit: 'cover', crop: '0,0,100%,100%' })).to.include(
        '-resize 100x132! -crop 100x100+0+16 ',
      );
    });

    it('rotates the image after the resize if that leaves fewer pixels, and nothing was cut before', () => {
      const turned = (given: Partial<ConvertOptions>) => box({ ...png, orientation: 6 }, given);
      const turn = '-orient RightTop -auto-orient -orient TopLeft +repage';
      expect(turned({ fit: 'cover' })).to.equal(
        `${FILTER} -resize 132x100! ${turn} -crop 100x100+0+16 +repage`,
      );
      expect(turned({})).to.equal(`${FILTER} -resize 100x76! ${turn}`);
      expect(box({ ...png, orientation: 3 }, {})).to.include('-resize 100x76! -orient BottomRight ');
      for (const given of [{ enlarge: true, width: 900, height: 900 }, { crop: '0,0,150,150' }])
        expect(turned(given))
          .to.match(/-filter/)
          .and.not.include('-orient');
      const line = (image: object) => lines({ ...png, orientation: 6, ...image }, { width: 10 })[0];
      expect(line({})).to.include(`${AVERAGE} 40x30! ${FILTER} -resize 13x10! ${turn}`);
      expect(line({ decoded: ['decoded.png'] })).to.include(` +repage ${AVERAGE} `);
    });

    it('adds borders in the background colour, after the colour conversion', () => {
      const line = (given: Partial<ConvertOptions>) =>
        lines({ ...png, profile: 'other' }, { fit: 'contain', width: 100, height: 100, ...given })[0] ?? '';
      expect(line({ format: 'webp' })).to.match(/-profile \/srgb.icc -background none -compose Copy/);
      expect(line({ format: 'webp', background: '#112233' })).to.include('-background #112233 -compose Copy');
      expect(line({ format: 'jpg' })).to.match(/-alpha off -background #ffffff -compose Copy/);
    });

    it('renders an SVG with librsvg, which crops it, and adds borders only to a PDF', () => {
      const svg = { type: 'svg', width: 40, height: 20 } as const;
      const drawn = (given: Partial<ConvertOptions>) =>
        lines(svg, { format: 'png', width: 100, height: 100, ...given });
      expect(drawn({ fit: 'cover', position: 'right' })).to.deep.equal([
        'rsvg -f png -w 200 -h 100 --page-width 100 --page-height 100 --left=-100 --top=0 -o image.png',
      ]);
      expect(drawn({ fit: 'fill' })).to.deep.equal(['rsvg -f png -w 100 -h 100 -o image.png']);
      expect(drawn({ fit: 'contain' })[0]).to.equal('rsvg -f png -w 100 -h 50 -o rasterized.png');
      expect(drawn({ fit: 'contain' })[1]).to.include('-gravity Center -extent 100x100');
      expect(drawn({ fit: 'contain', format: 'pdf' })).to.deep.equal([
        'rsvg -f pdf --dpi-x 72 --dpi-y 72 -w 100 -h 50 --page-width 100 --page-height 100 --left=0 --top=25 -o image.pdf',
      ]);
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
  });

  describe('for a limit of bytes', () => {
    const limited = options({ format: 'jpg', maxBytes: 1000 });
    const again = (picture: ImageInfo, given: Partial<ConvertOptions>, machine = SEVEN) => {
      const { tool, args } = complete(planAgain(job(picture, { maxBytes: 1000, ...given }, machine)));
      return `${tool} ${args.join(' ')}`;
    };

    it('stores the image before encoding, and encodes the stored image again', () => {
      expect(lines({ type: 'jpg' }, limited)[0]).to.match(
        /-strip \+set label \+set png:tIME -depth 8 -write MIFF:kept.miff -sampling-factor .*JPEG:image.jpg$/,
      );
      expect(lines({ type: 'jpg' }, { ...limited, maxBytes: undefined })[0]).to.not.include('MIFF');
      expect(again({ type: 'jpg' }, { format: 'jpg', quality: 33 })).to.equal(
        `magick ${START} MIFF:kept.miff -strip +set label +set png:tIME -sampling-factor 4:2:0 -quality 33 JPEG:image.jpg`,
      );
    });

    it('assembles the frames again if another tool assembles them', () => {
      const gif = { type: 'gif', animation: moving } as const;
      expect(lines(gif, { maxBytes: 1000 }, SIX)[0]).to.not.include('MIFF');
      expect(again(gif, { quality: 33 }, SIX)).to.equal(lines(gif, { quality: 33 }, SIX)[1]);
      expect(again(gif, {}, SEVEN)).to.include(' MIFF:kept.miff ');
    });
  });

  describe('for an animation', () => {
    it('reads all frames if the output can be animated, otherwise the first', () => {
      const picture = { type: 'gif', animation: moving } as const;
      expect(lines(picture, { format: 'webp' })[0]).to.include(' GIF:in -alpha set -coalesce ');
      expect(lines(picture, { format: 'png' })[0]).to.include(' GIF:in[0] -alpha set -coalesce ');
    });

    it('does not change the frames of a GIF that is converted to a GIF of the same size', () => {
      expect(lines({ type: 'gif', animation: moving }, { format: 'gif' })).to.deep.equal([
        `magick ${START} GIF:in -strip +set label +set png:tIME GIF:image.gif`,
      ]);
    });

    it('to WebP uses img2webp on version 6, and on 7 if it is installed', () => {
      const gif = { type: 'gif', animation: { delaysMs: [100, 100, 40], loopCount: 3 } } as const;
      for (const machine of [SIX, { ...SEVEN, assemblesWebp: true }]) {
        const [frames, assemble] = lines(gif, {}, machine);
        expect(frames).to.match(/^magick .* GIF:in -alpha set -coalesce .* PAM:frame-%05d\.pam$/);
        expect(assemble).to.equal(
          'img2webp -loop 3 -lossy -q 80 -m 4 -d 100 frame-00000.pam frame-00001.pam -d 40 frame-00002.pam -o image.webp',
        );
        expect(lines(gif, { frames: 'first' }, machine)).to.have.length(1);
      }
      expect(lines(gif, {}, SEVEN)).to.have.length(1);
    });

    it('to WebP has no alpha if it is known to be opaque', () => {
      const gif = { type: 'gif', animation: { ...moving, opaque: true } } as const;
      expect(lines(gif, {}, SIX)[0]).to.include(' GIF:in -coalesce -alpha off ');
      expect(lines(gif, { format: 'gif', width: 9 }, SIX)[0]).to.include(' -alpha set -coalesce ');
      for (const image of [gif, { type: 'gif', opaque: true } as const])
        expect(lines(image, { frames: 'first' }, SIX)[0]).to.include(' GIF:in[0] -alpha off ');
    });

    it('to WebP converts a colour profile to sRGB if img2webp would lose it', () => {
      const moved = {
        type: 'jxl',
        animation: moving,
        decoded: ['0.png', '1.png'],
        profile: 'other',
      } as const;
      const [kept] = lines(moved, { metadata: 'all' }, SEVEN);
      expect(kept).to.not.include('/srgb.icc');
      const [converted] = lines(moved, { metadata: 'all' }, SIX);
      expect(converted).to.include(' -profile /srgb.icc ');
      expect(plan(job(moved, { metadata: 'all' }, SIX)).notes).to.include('colour-converted-to-srgb');
    });
  });

  describe('for an SVG', () => {
    it('to PDF is vector, with one point per pixel', () => {
      expect(planSteps(job({ type: 'svg' }, { format: 'pdf', width: 50 }))).to.deep.equal([
        {
          tool: 'rsvg',
          args: ['-f', 'pdf', '--dpi-x', '72', '--dpi-y', '72', '-a', '-w', '50', '-o', 'image.pdf'],
          stdin: 'in',
        },
      ]);
    });

    it('of a known size is rendered by its limiting side, and by both sides if both are integers', () => {
      const argsFor = (width: number, height: number, more = {}) =>
        lines({ type: 'svg', width: 1920, height: 1080, ...more }, { format: 'png', width, height });
      expect(argsFor(500, 500)).to.deep.equal(['rsvg -f png -w 500 -o image.png']);
      expect(argsFor(500, 100)).to.deep.equal(['rsvg -f png -h 100 -o image.png']);
      expect(argsFor(1600, 2000)).to.deep.equal(['rsvg -f png -w 1600 -h 900 -o image.png']);
      expect(argsFor(500, 500, { styled: true })).to.deep.equal([
        'rsvg -f png -a -w 500 -h 500 -o image.png',
      ]);
    });

    it('that was rendered too large is rendered again, by the side that is exceeded', () => {
      const again = (drawn: { width: number; height: number }, image: Partial<ImageFacts> = {}) => {
        const drawing = job({ type: 'svg', ...image }, { format: 'png', width: 500, height: 300 });
        const step = renderSmaller(drawing, drawn);
        return step && complete(step).args.join(' ');
      };
      expect(again({ width: 500, height: 300 })).to.equal(undefined);
      expect(again({ width: 501, height: 282 })).to.equal('-f png -w 500 -o image.png');
      expect(again({ width: 212, height: 301 })).to.equal('-f png -h 300 -o image.png');
      expect(again({ width: 212, height: 301 }, { canvasColour: 'rgb(1, 2, 3)' })).to.equal(
        '-f png -h 300 --background-color rgb(1, 2, 3) -o image.png',
      );
    });

    it('to other formats is rendered by librsvg at the final size, then converted without resizing', () => {
      const steps = planSteps(job({ type: 'svg' }, { format: 'jpg', width: 400, height: 300 }));
      expect(steps[0]).to.deep.equal({
        tool: 'rsvg',
        args: ['-f', 'png', '-a', '-w', '400', '-h', '300', '-o', 'rasterized.png'],
        stdin: 'in',
        rendersTo: 'rasterized.png',
        deflateLevel: 1,
      });
      expect(steps[1]?.args.join(' ')).to.include(' PNG:rasterized.png ').and.not.include('-resize');
    });
  });

  describe('for an AVIF', () => {
    it('on version 6 is decoded by heif-convert', () => {
      const decoding = planDecoding(job({ type: 'avif' }, {}, SIX));
      expect(decoding).to.deep.equal([{ tool: 'heif', args: ['in', 'decoded.png'], deflateLevel: 0 }]);
      expect(planDecoding(job({ type: 'avif', deep: true }, {}, SIX))[0]?.deflateLevel).to.equal(1);
      const [convert] = lines({ type: 'avif', decoded: ['decoded.png'] }, {}, SIX);
      expect(convert).to.include(' PNG:decoded.png -set colorspace sRGB ');
      expect(planDecoding(job({ type: 'avif' }))).to.deep.equal([]);
    });
  });

  describe('for the formats of EXTRA_INPUTS and EXTRA_OUTPUTS', () => {
    const last = (picture: ImageInfo, given: Partial<ConvertOptions>) => lines(picture, given).at(-1);

    it('encodes AVIF and JPEG XL with the programs of their libraries, from a PNG without metadata', () => {
      const [convert, encode] = lines({ type: 'jpg' }, { format: 'avif' });
      expect(convert).to.match(/ -strip \+set label \+set png:tIME -depth 8 .* PNG:encode\.png$/);
      expect(encode).to.match(/^avifenc .* -s 9 -y 444 .* color:cq-level=21 encode\.png image\.avif$/);
      expect(last({ type: 'png' }, { format: 'jxl' })).to.match(/ -d 1\.55 -e 4 encode\.png image\.jxl$/);
    });

    it('is lossless for JPEG XL of quality 100, and keeps 16 bits in JPEG XL and TIFF', () => {
      expect(last({ type: 'png' }, { format: 'jxl', quality: 100 })).to.include(' -d 0.00 ');
      for (const format of ['jxl', 'tiff'] as const) {
        expect(lines({ type: 'png', deep: true }, { format })[0]).to.include(' -depth 16 ');
        expect(lines({ type: 'png' }, { format })[0]).to.include(' -depth 8 ');
      }
    });

    it('writes a JPEG XL with transparency in 8 bits if cjxl states a wrong number of bits', () => {
      const convert = (statesDeepAlpha: boolean) =>
        plan(job({ type: 'png', deep: true }, { format: 'jxl' }, { ...SEVEN, statesDeepAlpha })).steps[0]
          ?.args;
      expect(convert(false)?.join(' ')).to.include('&&minima.a>=1?16:8]');
      expect(convert(true)?.join(' ')).to.include('>8.5?16:8]');
    });

    it('reads the frames of a decoded animation with their delays, each on a canvas that is cleared', () => {
      const picture: ImageInfo = {
        type: 'jxl',
        decoded: ['a.png', 'b.png'],
        animation: {
          delaysMs: [100, 40],
          loopCount: 2,
          transparent: true,
          frames: [
            { disposeToBackground: true, noBlend: false },
            { disposeToBackground: true, noBlend: false },
          ],
        },
      };
      expect(lines(picture)[0]).to.include(' -delay 100x1000 PNG:a.png -delay 40x1000 PNG:b.png -loop 2 ');
      expect(lines(picture)[0]).to.include('-set dispose Background').and.include('-coalesce');
      expect(lines(picture, { format: 'png' })[0]).to.include(' PNG:a.png -set colorspace sRGB ');
    });

    it('assigns the profile of declared colours, and converts from it', () => {
      const declared = { type: 'heic', profile: 'other', profileFile: 'a.icc' } as const;
      const p3 = { ...declared, declaredColour: colourOf({ primaries: 12, transfer: 13 }) } as ImageInfo;
      expect(lines(p3)[0]).to.include('+profile icc -profile ICC:a.icc -profile /srgb.icc');
      const kept = lines(p3, { metadata: 'all' })[0];
      expect(kept).to.include('+profile icc -profile ICC:a.icc').and.not.include('/srgb.icc');
    });

    it('maps high dynamic range to sRGB, also if metadata is kept', () => {
      const declared = { type: 'avif', profile: 'other', profileFile: 'a.icc' } as const;
      const pq = { ...declared, declaredColour: colourOf({ primaries: 9, transfer: 16 }) } as ImageInfo;
      expect(lines(pq, { metadata: 'all' })[0]).to.include('-profile ICC:a.icc -profile /srgb.icc');
    });

    it('renders an SVG for an icon at 256 pixels, or at the requested size', () => {
      expect(lines({ type: 'svg' }, { format: 'ico' })[0]).to.include(' -w 256 -h 256 ');
      expect(lines({ type: 'svg' }, { format: 'ico', width: 48 })[0]).to.include(' -w 48 ');
    });
  });

  describe('for colour', () => {
    const p3 = { type: 'jpg', profile: 'other' } as const;

    it('does nothing for an image in sRGB or without colour information', () => {
      for (const profile of ['none', 'srgb'] as const) {
        expect(lines({ type: 'jpg', profile }, { format: 'png' })[0]).to.not.match(/-profile|-colorspace/);
      }
      expect(lines({ type: 'bmp' }, { format: 'png' })[0]).to.include(SRGB); // not inspected
    });

    it('converts a large picture with tables where they are faster', () => {
      const colourTables = { file: 't.ppm', matrix: '1,0,0,0,1,0,0,0,1' };
      const photo = { type: 'jpg', width: 4000, height: 3000, profile: 'other', colourTables } as const;
      const line = (width: number) => lines(photo, { format: 'png', width })[0];
      const chain =
        '+profile icc PPM:t.ppm[0] -clut -color-matrix 1,0,0,0,1,0,0,0,1 PPM:t.ppm[1] -clut -profile /srgb.icc ';
      expect(line(1000)).to.include(chain).and.not.include('-intent');
      expect(line(300)).to.include('-intent').and.not.include('-clut');
    });

    it('drops a profile that is unusable', () => {
      expect(lines({ type: 'jpg', profile: 'unusable' })[0])
        .to.include(' +profile icc ')
        .and.not.include('-intent');
    });

    it('keeps the profile and the pixels with the metadata if the format supports profiles', () => {
      for (const format of ['webp', 'png', 'jpg'] as const) {
        expect(lines(p3, { format, metadata: 'all' })[0]).to.not.match(/-profile|-strip|-colorspace/);
      }
      for (const format of ['gif', 'bmp', 'pdf'] as const) {
        expect(lines(p3, { format, metadata: 'all' })[0])
          .to.include(SRGB)
          .and.not.include('-strip');
      }
    });

    it('converts CMYK to RGB before resizing, and keeps CMYK in a JPEG that keeps its metadata', () => {
      const picture = { ...p3, cmyk: true } as const;
      expect(lines(picture, { width: 10 })[0]).to.match(/-profile \S+ -colorspace sRGB .*-resize/);
      expect(lines(picture, { format: 'png', metadata: 'all' })[0]).to.include(SRGB);
      expect(lines(picture, { format: 'jpg', metadata: 'all' })[0]).to.not.include('-profile');
    });

    it('averages inks before their profile converts them, from two pixels a side on', () => {
      const averaged = (
        width: number,
        more: Partial<ImageInfo> = {},
        options: Partial<ConvertOptions> = {},
      ) => {
        const image = {
          type: 'tiff',
          cmyk: true,
          profile: 'other',
          width: 1000,
          height: 800,
          ...more,
        } as const;
        const { cmyk, profile } = image;
        const pages = [{ index: 0, width: 1000, height: 800, cmyk, profile }];
        return lines({ ...image, pages }, { width, ...options })[0]?.match(
          /-filter Box -resize (\S+)!.* -profile/,
        )?.[1];
      };
      expect(averaged(300)).to.equal('500x400');
      expect(averaged(313)).to.equal(undefined);
      expect(averaged(100)).to.equal('167x133');
      expect(averaged(300, { profile: 'none' })).to.equal(undefined);
      expect(averaged(300, {}, { format: 'jpg', metadata: 'all' }), 'inks that stay').to.equal(undefined);
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

    it('passes a profile that the tools do not read, and keeps it except in an animation', () => {
      const still = { type: 'avif', profile: 'other', externalProfile: true, profileFile: 'a.icc' } as const;
      const apart = { ...still, type: 'webp', animation: { delaysMs: [40, 40], loopCount: 0 } } as const;
      const kept = lines(still, { metadata: 'all' })[0];
      expect(kept).to.include(' -profile ICC:a.icc ').and.not.include('srgb.icc');
      for (const metadata of METADATA_VALUES) {
        expect(lines(apart, { metadata })[0]).to.include(' -profile ICC:a.icc -profile /srgb.icc ');
      }
    });

    it('converts pages with different colour spaces separately', () => {
      const pages: Page[] = [
        { index: 0, profile: 'srgb' },
        { index: 1, profile: 'other' },
        { index: 2, cmyk: true, profile: 'none' },
      ];
      const picture = { type: 'tiff', profile: 'srgb', pages } as const;
      const line = lines(picture, { format: 'pdf' })[0] ?? '';
      expect(line.match(/\( TIFF[^)]*\)/g)?.map((group) => /-profile/.test(group))).to.deep.equal([
        false,
        true,
        false,
      ]);
      expect(line)
        .to.match(/TIFF:in\[2\][^)]*-colorspace sRGB \)/)
        .and.not.match(/\) [^(]*-profile/);
      expect(plan(job(picture, { format: 'pdf' })).notes).to.deep.equal(['colour-converted-to-srgb']);
      expect(plan(job(picture, { format: 'png' })).notes).to.deep.equal(['first-page-only']);
    });

    it('converts CIELab, and CMYK without a profile, by formula', () => {
      for (const special of [{ lab: true }, { cmyk: true }]) {
        const line = lines({ type: 'jpg', profile: 'none', ...special })[0];
        expect(line).to.include(' -colorspace sRGB ').and.not.include('-profile /');
      }
    });
  });

  describe('for transparency', () => {
    it('flattens it onto white or a colour if the format has none, and reports whether there was any', () => {
      for (const format of ['jpg', 'bmp'] as const) {
        const line = (given: Partial<ConvertOptions>) => lines({ type: 'png' }, { format, ...given })[0];
        expect(line({})).to.include(
          '-print opaque: %[opaque]\\n -background #ffffff -alpha remove -alpha off',
        );
        expect(line({ background: '#00ff80' })).to.include('-background #00ff80 -alpha remove');
      }
      for (const format of ['webp', 'png', 'gif'] as const) {
        expect(lines({ type: 'png' }, { format, background: '#00ff80' })[0]).to.not.include('-background');
      }
    });

    it('of an SVG to PDF is kept, unless it has a colour of its own or another is requested', () => {
      const paper = (canvasColour?: string, background?: string) =>
        / --background-color (\S+)/.exec(
          lines({ type: 'svg', ...(canvasColour && { canvasColour }) }, { format: 'pdf', background })[0] ??
            '',
        )?.[1];
      expect(paper()).to.equal(undefined);
      expect(paper(undefined, '#112233')).to.equal('#112233');
      expect(paper('rgb(1,2,3)', '#112233')).to.equal('rgb(1,2,3)');
      expect(paper('rgba(1,2,3,0.5)', '#112233')).to.equal('#112233');
      expect(paper('rgba(1,2,3,0.5)')).to.equal('rgba(1,2,3,0.5)');
    });
  });

  describe('for a PDF', () => {
    it('writes each photo as JPEG, and each palette without loss', () => {
      const [bilevel, photo] = [{ index: 0, paletteKind: 'bilevel' }, { index: 1 }] as const;
      for (const [picture, given, ...files] of [
        [{ type: 'jpg' }, {}, 'sheet-0.jpg'],
        [{ type: 'jpg' }, { width: 10, lossless: true }, 'sheet-0.png'],
        [{ type: 'png', paletteKind: 'palette', opaque: true }, {}, 'sheet-0.png'],
        [{ type: 'png', paletteKind: 'bilevel', opaque: true }, {}, 'sheet-0.png', 'sheet-0.g4'],
        [{ type: 'png', paletteKind: 'bilevel', opaque: true }, { width: 10 }, 'sheet-0.png'], // the resize adds greys
        [{ type: 'png' }, {}, 'sheet-0.alpha.png', 'sheet-0.jpg'],
        [{ type: 'png' }, { background: '#ffffff' }, 'sheet-0.jpg'],
        [
          { type: 'tiff', opaque: true, pages: [bilevel, photo] },
          {},
          'sheet-0.png',
          'sheet-0.g4',
          'sheet-1.jpg',
        ],
        [{ type: 'tiff', opaque: true, pages: [photo, bilevel] }, { pages: 'first' }, 'sheet-0.jpg'],
      ] as const) {
        const line = lines(picture, { format: 'pdf', ...given })[0] ?? '';
        const written = [...line.matchAll(/ (?:PNG|JPEG|GROUP4):(sheet\S+)/g)].map(([, name]) => name);
        expect(written, JSON.stringify(picture)).to.deep.equal(files);
      }
    });
  });

  describe('for frames and pages', () => {
    const gif = { type: 'gif', animation: moving } as const;
    const tiff = { type: 'tiff', pages: [{ index: 0 }, { index: 1 }] } as const;

    it('takes the first frame or page on request, and all frames as pages only on request', () => {
      for (const [picture, given, read] of [
        [gif, { format: 'webp', frames: 'first' }, 'GIF:in[0]'],
        [gif, { format: 'pdf' }, 'GIF:in[0]'],
        [gif, { format: 'pdf', frames: 'all' }, 'GIF:in'],
        [gif, { format: 'png', frames: 'all' }, 'GIF:in[0]'],
        [tiff, { format: 'pdf', pages: 'first' }, 'TIFF:in[0]'],
        [tiff, { format: 'pdf', frames: 'first' }, 'TIFF:in[0,1]'],
        // Without thumbnails, which are no pages.
        [{ ...tiff, pages: [{ index: 0 }, { index: 2 }] }, { format: 'pdf' }, 'TIFF:in[0,2]'],
        [{ ...tiff, pages: [{ index: 1 }, { index: 2 }] }, { format: 'png' }, 'TIFF:in[1]'],
      ] as const)
        expect(lines(picture, given)[0], JSON.stringify(given)).to.include(` ${read} `);
    });

    it('has a note if the result lacks frames or pages, or has other colours', () => {
      const jpg = { type: 'jpg', profile: 'other' } as const;
      for (const [picture, given, ...notes] of [
        [gif, { format: 'webp' }],
        [gif, { format: 'webp', frames: 'first' }, 'first-frame-only'],
        [gif, { format: 'jpg' }, 'first-frame-only'],
        [{ type: 'png', hasIgnoredFrames: true }, {}, 'first-frame-only'],
        [tiff, { format: 'jpg' }, 'first-page-only'],
        [tiff, { format: 'pdf' }],
        [jpg, {}, 'colour-converted-to-srgb'],
        [jpg, { metadata: 'all' }],
        [{ ...jpg, profile: 'srgb' }, {}],
      ] as const)
        expect(plan(job(picture, given)).notes, JSON.stringify([picture, given])).to.deep.equal(notes);
    });
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

  it('stores only what changes in a GIF whose source does so, in a palette from four whole frames and the changes', () => {
    const animation = { delaysMs: Array.from({ length: 9 }, () => 50), loopCount: 0, changesLittle: true };
    const planned = (tools: ToolContext, given: Partial<ConvertOptions> = {}) =>
      lines(
        { type: 'gif', width: 300, height: 200, animation },
        { format: 'gif', width: 90, ...given },
        tools,
      )[0] ?? '';
    const layers = '( -clone 0--1 -layers OptimizeFrame -layers OptimizeTransparency )';
    expect(planned(SIX)).to.include(`${layers} -delete 1-1,3-3,5-5,7-8 +map -delete 0-3 GIF:`);
    expect(planned(SIX)).to.match(/^\S+ -limit thread 1 \+dither GIF:in /);
    expect(planned(SEVEN)).to.include(`${layers} -delete 1-1,3-3,5-5,7-8 +remap -delete 0-3 GIF:`);
    expect(planned(SIX, { colors: 32 })).to.include('-layers OptimizeTransparency -colors 32 GIF:');
    expect(planned(SIX, { width: undefined }), 'copies the frames').to.not.include('-layers');
  });

  describe('for a TIFF', () => {
    const page = (at: number): Page => ({ index: at });
    const picture = { type: 'tiff', pages: [0, 2, 3].map(page) } as const;
    it('expands the palette of a page, unless it is stored as RGB or YCbCr, or black and white', () => {
      const reading = (page: Partial<Page>) =>
        lines({ type: 'tiff', pages: [{ index: 0, ...page }] }, { format: 'png' })[0];
      expect(reading({})).to.include(' TIFF:in[0] -evaluate add 0 -orient TopLeft ');
      for (const page of [{ trueColour: true }, { paletteKind: 'bilevel' }] as const)
        expect(reading(page)).to.include(' TIFF:in[0] -orient TopLeft ');
    });

    it('repairs each page separately, and adjacent pages with the same repair together', () => {
      const pages: Page[] = [
        { index: 0 },
        { index: 1 },
        { index: 2, inverted: true },
        { index: 3, orientation: 8, mirroredFor: 8 },
      ];
      expect(lines({ type: 'tiff', pages }, { format: 'pdf' })[0]).to.include(
        ' ( TIFF:in[0,1] -evaluate add 0 -orient TopLeft ) ( TIFF:in[2] -evaluate add 0 -channel RGB -negate +channel -orient TopLeft ) ( TIFF:in[3] -evaluate add 0 -flip -orient LeftBottom -auto-orient -orient TopLeft ) ',
      );
    });

    it('with old-style JPEG inside would be misread by version 6', () => {
      const old: ImageInfo = { type: 'tiff', pages: [{ index: 0, kinds: ['old-jpeg'] }] };
      const label = 'old-style JPEG in a TIFF';
      const misreadBy = (tools: ToolContext, image = old) => refusedLabel(job(image, {}, tools));
      expect([misreadBy(SIX), misreadBy(SEVEN), misreadBy(SIX, picture)]).to.deep.equal([
        label,
        undefined,
        undefined,
      ]);
    });

    it('is rejected only for pages that the result would show', () => {
      const pages: Page[] = [{ index: 0 }, { index: 1, kinds: ['icc-lab'] }];
      const misreadIn = (format: 'png' | 'pdf') => refusedLabel(job({ type: 'tiff', pages }, { format }));
      expect([misreadIn('png'), misreadIn('pdf')]).to.deep.equal([
        undefined,
        'ICCLab or ITULab colours in a TIFF',
      ]);
    });
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

    it('names the files of each command, except heif-convert, and ImageMagick for TIFF to read or Group 4', () => {
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

  it('keeps invisible pixels of a lossless WebP with cwebp on version 6, if there can be any', () => {
    const webp = (image: ImageInfo, tools: ToolContext, lossless = true) =>
      createJob(image, options({ format: 'webp', lossless }), tools).programs.at(-1);
    const six = { ...SIX, encodesWebp: true };
    const clear = { type: 'png', pixels: { ...RGB_PIXELS, alpha: true } } as const;
    expect(webp(clear, six)).to.equal('cwebp');
    expect(webp({ type: 'tiff' }, six)).to.equal('cwebp');
    for (const one of [{ type: 'jpg' }, { type: 'svg' }, { type: 'png', pixels: RGB_PIXELS }] as const)
      expect(webp(one, six), one.type).to.equal('magick');
    expect([webp(clear, six, false), webp(clear, SIX), webp(clear, SEVEN)]).to.deep.equal(
      Array(3).fill('magick'),
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
