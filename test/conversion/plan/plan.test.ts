import { expect } from 'chai';
import { findMisread, plan, toolsFor } from '../../../src/conversion/plan/index.ts';
import { drawSmaller } from '../../../src/conversion/plan/rasterize.ts';
import type { ConvertOptions, ImageInfo, Page, ToolContext } from '../../../src/conversion/plan/types.ts';

const SEVEN: ToolContext = { magick: 7, srgbProfile: '/srgb.icc' };
const SIX: ToolContext = { magick: 6, srgbProfile: '/srgb.icc' };
const options = (given: Partial<ConvertOptions> = {}): ConvertOptions => ({
  format: 'webp',
  quality: 80,
  stripMetadata: true,
  ...given,
});
const lines = (picture: ImageInfo, given: Partial<ConvertOptions> = {}, machine = SEVEN): string[] =>
  plan(picture, options(given), machine).steps.map(({ tool, args }) => `${tool} ${args.join(' ')}`);

const START = '-limit thread 1 -define profile:highres-transform=false';
const SRGB = '-intent relative -black-point-compensation -profile /srgb.icc';
const moving = { delaysMs: [100, 40], loopCount: 0 };

describe('the plan', () => {
  it('for a JPEG to WebP is one command, every stage in its order', () => {
    const picture = { type: 'jpg', orientation: 6, profile: 'other' } as const;
    expect(lines(picture, { width: 300, height: 200 })).to.deep.equal([
      `magick ${START} JPEG:in[0] -orient RightTop -auto-orient -orient TopLeft +repage ` +
        `-filter Lanczos -resize 300x200> ${SRGB} -strip -quality 80 -define webp:method=4 -define webp:lossless=false WEBP:image.webp`,
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

    it('decodes at a half from 3.3 on, at a quarter from 6.6 on, at an eighth from 17 on, never at less', () => {
      expect(hint(3360, 2080, { width: 1019 })).to.equal(undefined);
      expect(hint(3360, 2080, { width: 1018 })).to.equal('1680x1040');
      expect(hint(3360, 2080, { width: 510 })).to.equal('1680x1040');
      expect(hint(3360, 2080, { width: 509 })).to.equal('840x520');
      expect(hint(3360, 2080, { width: 198 })).to.equal('840x520');
      expect(hint(3360, 2080, { width: 197 })).to.equal('420x260');
      expect(hint(3360, 2080, { width: 21 })).to.equal('420x260');
    });

    it('counts with the sides as they are seen, and asks for them as they are stored', () => {
      expect(hint(3000, 1000, { width: 400 })).to.equal('750x250');
      const turned = { type: 'jpg', width: 3000, height: 1000, orientation: 6 } as const; // 1000 wide
      expect(lines(turned, { width: 400 })[0]).to.not.include('jpeg:size');
      expect(lines(turned, { height: 400 })[0]).to.include('jpeg:size=750x250 ');
    });

    it('gives no hint for full size, or when the size is not known', () => {
      expect(hint(3000, 2000, {})).to.equal(undefined);
      expect(lines({ type: 'jpg' }, { width: 10 })[0]).to.not.include('jpeg:size');
    });

    it('decodes at what divides both sides, since libjpeg rounds up what is left and so shifts the picture', () => {
      expect(hint(4000, 3000, { width: 200 })).to.equal('500x375');
      expect(hint(4000, 3004, { width: 200 })).to.equal('1000x751');
      expect(hint(4002, 3000, { width: 200 })).to.equal('2001x1500');
      expect(hint(4000, 2999, { width: 200 })).to.equal(undefined);
      expect(hint(2725, 2225, { width: 300 })).to.equal(undefined);
    });
  });

  describe('for a large reduction of others', () => {
    const steps = (picture: ImageInfo, given: Partial<ConvertOptions>) =>
      /(-scale \S+ )?-filter Lanczos -resize \S+/.exec(lines(picture, given)[0] ?? '')?.[0];
    const size = { width: 3000, height: 2000 };

    it('averages a little later, and then tells the size exactly', () => {
      const averaged = (width: number) => steps({ type: 'png', ...size }, { width });
      expect(averaged(858)).to.equal('-filter Lanczos -resize 858x>');
      expect(averaged(857)).to.equal('-scale 50% -filter Lanczos -resize 857x571!');
      expect(averaged(400)).to.equal('-scale 25% -filter Lanczos -resize 400x267!');
      expect(averaged(176)).to.equal('-scale 12.5% -filter Lanczos -resize 176x117!');
      expect(steps({ type: 'webp', ...size }, { width: 400, height: 300 })).to.equal(
        '-scale 25% -filter Lanczos -resize 400x267!',
      );
    });

    it('leaves that to the decoder of a JPEG, and averages what its sides do not allow there', () => {
      const averaged = (width: number, height: number) =>
        steps({ type: 'jpg', width, height }, { width: 150 });
      expect(averaged(3000, 2000)).to.equal('-filter Lanczos -resize 150x100!');
      expect(averaged(3000, 2004)).to.equal('-scale 50% -filter Lanczos -resize 150x100!');
      expect(averaged(3002, 2000)).to.equal('-scale 25% -filter Lanczos -resize 150x100!');
      expect(averaged(3001, 2000)).to.equal('-scale 12.5% -filter Lanczos -resize 150x100!');
    });

    it('rounds half a pixel up, as the tool does that is told no height', () => {
      expect(steps({ type: 'png', width: 1024, height: 768 }, { width: 150 })).to.include('-resize 150x113!');
    });

    it('counts with the sides as they are seen, and does without where they are not known for sure', () => {
      expect(steps({ type: 'png', ...size, orientation: 6 }, { width: 500 })).to.equal(
        '-scale 50% -filter Lanczos -resize 500x750!',
      );
      expect(steps({ type: 'tiff', pages: [{ index: 0, ...size }] }, { width: 500 })).to.include('500x333!');
      for (const picture of [{ type: 'png' }, { type: 'avif', ...size }, { type: 'gif', ...size }] as const)
        expect(steps(picture, { width: 300 })).to.equal('-filter Lanczos -resize 300x>');
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
        { type: 'gif', animation: { delaysMs: [100, 40], loopCount: 3 } },
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

    it('of a known size is drawn by the side that it reaches first, and by both where both are whole numbers', () => {
      const argsFor = (width: number, height: number, more = {}) =>
        lines({ type: 'svg', width: 1920, height: 1080, ...more }, { format: 'png', width, height });
      expect(argsFor(500, 500)).to.deep.equal(['rsvg -f png -w 500 -o image.png']);
      expect(argsFor(500, 100)).to.deep.equal(['rsvg -f png -h 100 -o image.png']);
      expect(argsFor(1600, 2000)).to.deep.equal(['rsvg -f png -w 1600 -h 900 -o image.png']);
      expect(argsFor(500, 500, { styled: true })).to.deep.equal([
        'rsvg -f png -a -w 500 -h 500 -o image.png',
      ]);
    });

    it('that was drawn larger than asked for is drawn again, by the side that is exceeded', () => {
      const again = (drawn: { width: number; height: number }) =>
        drawSmaller('image.png', drawn, options({ format: 'png', width: 500, height: 300 }))?.args.join(' ');
      expect(again({ width: 500, height: 300 })).to.equal(undefined);
      expect(again({ width: 501, height: 282 })).to.equal('-f png -w 500 -o image.png');
      expect(again({ width: 212, height: 301 })).to.equal('-f png -h 300 -o image.png');
    });

    it('to PNG is what librsvg draws, and nothing is done to it', () => {
      expect(lines({ type: 'svg' }, { format: 'png', width: 50 })).to.deep.equal([
        'rsvg -f png -a -w 50 -o image.png',
      ]);
    });

    it('to anything else is drawn at its size by librsvg from standard input, then converted without resizing', () => {
      const { steps } = plan({ type: 'svg' }, options({ format: 'jpg', width: 400, height: 300 }), SEVEN);
      expect(steps[0]).to.deep.equal({
        tool: 'rsvg',
        args: ['-f', 'png', '-a', '-w', '400', '-h', '300', '-o', 'rasterized.png'],
        stdin: 'in',
        rendersTo: 'rasterized.png',
      });
      expect(steps[1]?.args.join(' ')).to.include(' PNG:rasterized.png ').and.not.include('-resize');
    });
  });

  describe('for an AVIF', () => {
    it('on version 7 is one command', () => {
      expect(lines({ type: 'avif' })).to.have.length(1);
    });

    it('on version 6 is decoded by heif-convert first, and of several pictures the primary one is taken', () => {
      const [decode, convert] = lines({ type: 'avif', images: { count: 5, primary: 2 } }, {}, SIX);
      expect(decode).to.equal('heif in rasterized.png');
      expect(convert).to.include(' PNG:rasterized-2.png ');
      expect(lines({ type: 'avif' }, {}, SIX)[1]).to.include(' PNG:rasterized.png ');
    });
  });

  describe('for colour', () => {
    const p3 = { type: 'jpg', profile: 'other' } as const;

    it('does nothing for a picture that is sRGB, or says nothing of its colours', () => {
      for (const profile of ['none', 'srgb'] as const) {
        expect(lines({ type: 'jpg', profile }, { format: 'png' })[0]).to.not.match(/-profile|-colorspace/);
      }
      expect(lines({ type: 'bmp' }, { format: 'png' })[0]).to.include(SRGB); // not looked into
    });

    it('drops a profile that turned out to be useless', () => {
      expect(lines({ type: 'jpg', profile: 'useless' })[0])
        .to.include(' +profile icc ')
        .and.not.include('-intent');
    });

    it('keeps profile and pixels together with the metadata, where the format can hold a profile', () => {
      for (const format of ['webp', 'png', 'jpg'] as const) {
        expect(lines(p3, { format, stripMetadata: false })[0]).to.not.match(/-profile|-strip|-colorspace/);
      }
      for (const format of ['gif', 'bmp', 'pdf'] as const) {
        expect(lines(p3, { format, stripMetadata: false })[0])
          .to.include(SRGB)
          .and.not.include('-strip');
      }
    });

    it('makes CMYK RGB before it is resized; and leaves it in a JPEG that keeps its metadata', () => {
      const picture = { ...p3, cmyk: true } as const;
      expect(lines(picture, { width: 10 })[0]).to.match(/-profile \S+ -colorspace sRGB .*-resize/);
      expect(lines(picture, { format: 'png', stripMetadata: false })[0]).to.include(SRGB);
      expect(lines(picture, { format: 'jpg', stripMetadata: false })[0]).to.not.include('-profile');
    });

    it('hands over a profile that the tools do not see, and never keeps it', () => {
      const apart = { type: 'webp', profile: 'other', externalProfile: true } as const;
      for (const stripMetadata of [true, false]) {
        expect(lines(apart, { stripMetadata })[0]).to.include(' -profile ICC:in.icc -profile /srgb.icc ');
      }
    });

    it('converts pages of different colours each by itself', () => {
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
      expect(plan(picture, options({ format: 'pdf' }), SEVEN).notes).to.deep.equal([
        'colour-converted-to-srgb',
      ]);
      expect(plan(picture, options({ format: 'png' }), SEVEN).notes).to.deep.equal(['first-page-only']);
    });

    it('turns CIELab and inks without a profile in the one way that needs none', () => {
      for (const special of [{ lab: true }, { cmyk: true }]) {
        const line = lines({ type: 'jpg', profile: 'none', ...special })[0];
        expect(line).to.include(' -colorspace sRGB ').and.not.include('-profile /');
      }
    });
  });

  describe('for transparency', () => {
    it('lays it over white or the colour asked for, where the format has none, and tells whether there was any', () => {
      for (const format of ['jpg', 'bmp', 'pdf'] as const) {
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

    it('of a drawing that becomes a PDF is paper, unless a colour is asked for', () => {
      expect(lines({ type: 'svg' }, { format: 'pdf' })[0]).to.not.include('background');
      expect(lines({ type: 'svg' }, { format: 'pdf', background: '#112233' })[0]).to.include(
        '--background-color #112233',
      );
    });
  });

  describe('for a PDF', () => {
    const compression = (picture: ImageInfo, given: Partial<ConvertOptions> = {}) =>
      /-compress (\S+)/.exec(lines(picture, { format: 'pdf', ...given })[0] ?? '')?.[1];

    it('compresses photos as JPEG and few colours without loss', () => {
      expect(compression({ type: 'jpg' })).to.equal('JPEG');
      expect(compression({ type: 'png', paletteKind: 'palette' })).to.equal('Zip');
      expect(compression({ type: 'png', paletteKind: 'bilevel' })).to.equal('Group4');
      expect(compression({ type: 'png', paletteKind: 'bilevel' }, { width: 10 })).to.equal('Zip'); // greys, by then
    });

    it('keeps every page of a TIFF when one of them must not lose anything', () => {
      const bilevel = { index: 0, paletteKind: 'bilevel' } as const;
      expect(compression({ type: 'tiff', pages: [bilevel, { index: 1, paletteKind: 'bilevel' }] })).to.equal(
        'Group4',
      );
      expect(compression({ type: 'tiff', pages: [bilevel, { index: 1 }] })).to.equal('Zip');
      expect(compression({ type: 'tiff', pages: [{ index: 0 }, bilevel] }, { pages: 'first' })).to.equal(
        'JPEG',
      );
    });
  });

  describe('for what is wanted of several pictures', () => {
    const gif = { type: 'gif', animation: moving } as const;
    const tiff = { type: 'tiff', pages: [{ index: 0 }, { index: 1 }] } as const;

    it('takes the first frame when asked to, and all of them as pages only when asked to', () => {
      expect(lines(gif, { format: 'webp', frames: 'first' })[0]).to.include(' GIF:in[0] ');
      expect(lines(gif, { format: 'pdf' })[0]).to.include(' GIF:in[0] ');
      expect(lines(gif, { format: 'pdf', frames: 'all' })[0]).to.include(' GIF:in ');
      expect(lines(gif, { format: 'png', frames: 'all' })[0]).to.include(' GIF:in[0] ');
    });

    it('takes the first page when asked to', () => {
      expect(lines(tiff, { format: 'pdf', pages: 'first' })[0]).to.include(' TIFF:in[0] ');
      expect(lines(tiff, { format: 'pdf', frames: 'first' })[0]).to.include(' TIFF:in[0,1] ');
    });

    it('says so when not all is in the result', () => {
      const notes = (picture: ImageInfo, given: Partial<ConvertOptions>) =>
        plan(picture, options(given), SEVEN).notes;
      expect(notes(gif, { format: 'webp' })).to.deep.equal([]);
      expect(notes(gif, { format: 'webp', frames: 'first' })).to.deep.equal(['first-frame-only']);
      expect(notes(gif, { format: 'jpg' })).to.deep.equal(['first-frame-only']);
      expect(notes({ type: 'png', hasIgnoredFrames: true }, {})).to.deep.equal(['first-frame-only']);
      expect(notes(tiff, { format: 'jpg' })).to.deep.equal(['first-page-only']);
      expect(notes(tiff, { format: 'pdf' })).to.deep.equal([]);
      expect(notes({ type: 'jpg', profile: 'other' }, {})).to.deep.equal(['colour-converted-to-srgb']);
      expect(notes({ type: 'jpg', profile: 'other' }, { stripMetadata: false })).to.deep.equal([]);
      expect(notes({ type: 'jpg', profile: 'srgb' }, {})).to.deep.equal([]);
    });
  });

  describe('for a TIFF', () => {
    const page = (at: number): Page => ({ index: at });
    const picture = { type: 'tiff', pages: [0, 2, 3].map(page) } as const;
    it('takes all real pages into a PDF, and the first of them into anything else', () => {
      expect(lines(picture, { format: 'pdf' })[0]).to.include(' TIFF:in[0,2,3] ');
      expect(lines({ ...picture, pages: [1, 2].map(page) }, { format: 'png' })[0]).to.include(' TIFF:in[1] ');
    });

    it('mends each page in its own way, and neighbours together', () => {
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
      const old: ImageInfo = { type: 'tiff', pages: [{ index: 0, misread: ['old-jpeg'] }] };
      const label = 'a TIFF with old-style JPEG inside';
      const misreadBy = (tools: ToolContext, image = old) => findMisread(image, options(), tools);
      expect([misreadBy(SIX), misreadBy(SEVEN), misreadBy(SIX, picture)]).to.deep.equal([
        ...[label, undefined, undefined],
      ]);
    });

    it('is refused only for pages that the result would show', () => {
      const pages: Page[] = [{ index: 0 }, { index: 1, misread: ['icc-lab'] }];
      const misreadIn = (format: 'png' | 'pdf') =>
        findMisread({ type: 'tiff', pages }, options({ format }), SEVEN);
      expect([misreadIn('png'), misreadIn('pdf')]).to.deep.equal([
        ...[undefined, 'a TIFF with ICCLab or ITULab colours'],
      ]);
    });
  });

  it('packs a PNG as a photo, or as flat colours where it is known to have them and is not resized', () => {
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

  it('makes codes of its own for small JPEG results only', () => {
    const large = { type: 'png', width: 1000, height: 750 } as const;
    const plain = 'jpeg:optimize-coding=false';
    expect(lines(large, { format: 'jpg' })[0]).to.include(plain);
    expect(lines(large, { format: 'jpg', width: 300 })[0]).to.not.include(plain);
    expect(lines({ type: 'png' }, { format: 'jpg' })[0]).to.not.include(plain);
  });

  it('needs librsvg for SVG only, and libheif for AVIF on version 6 only', () => {
    expect(toolsFor('svg', 'pdf', 7)).to.deep.equal(['rsvg']);
    expect(toolsFor('svg', 'png', 7)).to.deep.equal(['rsvg']);
    expect(toolsFor('svg', 'webp', 7)).to.deep.equal(['rsvg', 'magick']);
    expect(toolsFor('avif', 'png', 6)).to.deep.equal(['heif', 'magick']);
    expect(toolsFor('avif', 'png', 7)).to.deep.equal(['magick']);
  });
});
