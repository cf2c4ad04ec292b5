import { expect } from 'chai';
import { plan, toolsFor } from '../../src/convert/plan/plan.ts';
import type { ConvertOptions, Machine, Page, Picture } from '../../src/convert/plan/types.ts';

const SEVEN: Machine = { magick: 7, srgbProfile: '/srgb.icc' };
const SIX: Machine = { magick: 6, srgbProfile: '/srgb.icc' };
const options = (given: Partial<ConvertOptions> = {}): ConvertOptions => ({
  format: 'webp',
  quality: 80,
  stripMetadata: true,
  ...given,
});
const lines = (picture: Picture, given: Partial<ConvertOptions> = {}, machine = SEVEN): string[] =>
  plan(picture, options(given), machine).steps.map(({ tool, args }) => `${tool} ${args.join(' ')}`);

const START = '-limit thread 1 -define profile:highres-transform=false';
const SRGB = '-intent relative -black-point-compensation -profile /srgb.icc';
const moving = { delaysMs: [100, 40], plays: 0 };

describe('the plan', () => {
  it('for a JPEG to WebP is one command, every stage in its order', () => {
    expect(lines({ type: 'jpg' }, { width: 300, height: 200 })).to.deep.equal([
      `magick ${START} JPEG:in[0] -auto-orient +repage -filter Lanczos -resize 300x200> ` +
        `${SRGB} -colorspace sRGB -strip -quality 80 -define webp:method=4 WEBP:image.webp`,
    ]);
  });

  it('names one file as its output, and nothing else that starts with its name', () => {
    for (const picture of [{ type: 'svg' }, { type: 'avif' }, { type: 'gif', animation: moving }] as const) {
      for (const format of ['webp', 'png', 'pdf'] as const) {
        const { steps, output } = plan(picture, options({ format }), SIX);
        expect(output).to.equal(`image.${format}`);
        const written = steps.flatMap(({ args }) => args.filter((arg) => /^(\w+:)?image/.test(arg)));
        expect(written.map((arg) => arg.replace(/^\w+:/, ''))).to.deep.equal([output]);
      }
    }
  });

  describe('for a large reduction of a JPEG', () => {
    const hint = (width: number, height: number, given: Partial<ConvertOptions>) =>
      /jpeg:size=(\S+)/.exec(lines({ type: 'jpg', width, height }, given)[0] ?? '')?.[1];

    it('decodes at a half from 3 on, at a quarter from 6 on, never at less', () => {
      expect(hint(3000, 2000, { width: 1001 })).to.equal(undefined);
      expect(hint(3000, 2000, { width: 600 })).to.equal('1500x1000');
      expect(hint(3000, 2000, { width: 300 })).to.equal('750x500');
      expect(hint(3000, 2000, { width: 30 })).to.equal('750x500');
    });

    it('counts with the orientation that leaves more pixels, since it is not known', () => {
      expect(hint(3000, 1000, { width: 400 })).to.equal(undefined); // turned, it is 1000 wide
    });

    it('gives no hint for full size, or when the size is not known', () => {
      expect(hint(3000, 2000, {})).to.equal(undefined);
      expect(lines({ type: 'jpg' }, { width: 10 })[0]).to.not.include('jpeg:size');
    });
  });

  describe('for an animation', () => {
    it('reads all frames where the output moves, and the first where it cannot', () => {
      const picture = { type: 'gif', animation: moving } as const;
      expect(lines(picture, { format: 'webp' })[0]).to.include(' GIF:in -alpha set -coalesce ');
      expect(lines(picture, { format: 'png' })[0]).to.include(' GIF:in[0] -alpha set -coalesce ');
    });

    it('leaves the frames of a GIF alone that stays a GIF of its size', () => {
      expect(lines({ type: 'gif', animation: moving }, { format: 'gif' })).to.deep.equal([
        `magick ${START} GIF:in -strip GIF:image.gif`,
      ]);
    });

    it('to WebP on version 6 is put together by img2webp', () => {
      const [frames, assemble] = lines(
        { type: 'gif', animation: { delaysMs: [100, 40], plays: 3 } },
        {},
        SIX,
      );
      expect(frames).to.match(/^magick .* GIF:in -alpha set -coalesce .* png:frame-%05d\.png$/);
      expect(assemble).to.equal(
        'img2webp -loop 3 -d 100 -lossy -q 80 -m 4 frame-00000.png -d 40 -lossy -q 80 -m 4 frame-00001.png -o image.webp',
      );
    });
  });

  describe('for an SVG', () => {
    it('to PDF is vector, one point a pixel', () => {
      expect(plan({ type: 'svg' }, options({ format: 'pdf', width: 50 }), SEVEN).steps).to.deep.equal([
        {
          tool: 'rsvg',
          args: ['-f', 'pdf', '--dpi-x', '72', '--dpi-y', '72', '-a', '-w', '50', '-o', 'image.pdf'],
          stdin: 'in',
        },
      ]);
    });

    it('to anything else is drawn at its size by librsvg from standard input, then converted without resizing', () => {
      const { steps } = plan({ type: 'svg' }, options({ format: 'jpg', width: 400, height: 300 }), SEVEN);
      expect(steps[0]).to.deep.equal({
        tool: 'rsvg',
        args: ['-f', 'png', '-a', '-w', '400', '-h', '300', '-o', 'drawn.png'],
        stdin: 'in',
      });
      expect(steps[1]?.args.join(' ')).to.include(' PNG:drawn.png ').and.not.include('-resize');
    });
  });

  describe('for an AVIF', () => {
    it('on version 7 is one command', () => {
      expect(lines({ type: 'avif' })).to.have.length(1);
    });

    it('on version 6 is decoded by heif-convert first, and of several pictures the primary one is taken', () => {
      const [decode, convert] = lines({ type: 'avif', stills: { count: 5, primary: 2 } }, {}, SIX);
      expect(decode).to.equal('heif in drawn.png');
      expect(convert).to.include(' PNG:drawn-2.png ');
      expect(lines({ type: 'avif' }, {}, SIX)[1]).to.include(' PNG:drawn.png ');
    });
  });

  describe('for colour', () => {
    it('keeps profile and pixels together with the metadata, where the format can hold a profile', () => {
      for (const format of ['webp', 'png', 'jpg'] as const) {
        expect(lines({ type: 'jpg' }, { format, stripMetadata: false })[0]).to.not.match(
          /-profile|-strip|-colorspace/,
        );
      }
      for (const format of ['gif', 'bmp', 'pdf'] as const) {
        expect(lines({ type: 'jpg' }, { format, stripMetadata: false })[0])
          .to.include(SRGB)
          .and.not.include('-strip');
      }
    });

    it('makes CMYK RGB before it is resized; and leaves it in a JPEG that keeps its metadata', () => {
      const picture = { type: 'jpg', cmyk: true } as const;
      expect(lines(picture, { width: 10 })[0]).to.match(/-profile \S+ -colorspace sRGB .*-resize/);
      expect(lines(picture, { format: 'png', stripMetadata: false })[0]).to.include(SRGB);
      expect(lines(picture, { format: 'jpg', stripMetadata: false })[0]).to.not.include('-profile');
    });
  });

  describe('for a TIFF', () => {
    const page = (at: number): Page => ({ at });
    const picture = { type: 'tiff', pages: [0, 2, 3].map(page) } as const;
    it('takes all real pages into a PDF, and the first of them into anything else', () => {
      expect(lines(picture, { format: 'pdf' })[0]).to.include(' TIFF:in[0,2,3] ');
      expect(lines({ ...picture, pages: [1, 2].map(page) }, { format: 'png' })[0]).to.include(' TIFF:in[1] ');
    });
  });

  it('needs librsvg for SVG only, and libheif for AVIF on version 6 only', () => {
    expect(toolsFor('svg', 'pdf', 7)).to.deep.equal(['rsvg']);
    expect(toolsFor('svg', 'png', 7)).to.deep.equal(['rsvg', 'magick']);
    expect(toolsFor('avif', 'png', 6)).to.deep.equal(['heif', 'magick']);
    expect(toolsFor('avif', 'png', 7)).to.deep.equal(['magick']);
  });
});
