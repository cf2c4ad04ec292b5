// @full
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import sharp, { type Sharp } from 'sharp';
import { box } from '../../scripts/fixtures/boxes.ts';
import { type HeifItem, heif, itemsOf, phonePhoto } from '../../scripts/fixtures/heif-writer.ts';
import { psd } from '../../scripts/fixtures/psd.ts';
import { open, scene, square } from '../../scripts/fixtures/scene.ts';
import { cur, iconBitmap } from '../../scripts/fixtures/writers.ts';
import { convert, converted, fixture, jsonOf, postImage } from '../helpers/client.ts';
import { ALL_EXTRAS, extra, runCjxl } from '../helpers/extra.ts';
import { jxlHeader, withAssociatedAlpha } from '../helpers/jxl-header.ts';
import { decodeByPillow } from '../helpers/pillow.ts';
import { decode, difference, type Pixels, pixelAt } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';

/** Minimum PSNR in dB of a lossless result from a lossy file, and from a lossless file. */
const LOSSY = 38;
const LOSSLESS = 48;

const window = () => scene({ transparent: true });
const pixels = async (picture: Sharp): Promise<Pixels> => decode(await picture.png().toBuffer());
const grey = () => pixels(open(scene()).removeAlpha().greyscale());
const large = () => pixels(open(scene()).resize(256, 192, { kernel: 'nearest', fit: 'fill' }));
/** The 48 tiles of `phone.heic`, which are cut at the right and at the bottom. */
function tiles(): Pixels {
  const tile = square(64);
  const [width, height] = [504, 378];
  const data = Buffer.alloc(width * height * 4, 255);
  for (let at = 0; at < width * height; at += 1) {
    const [x, y] = [at % width, Math.floor(at / width)];
    data.set(tile.data.subarray(((y % 64) * 64 + (x % 64)) * 4).subarray(0, 3), at * 4);
  }
  return { width, height, data };
}
/** The scene in the eight colours of the palette of the fixture. */
const eightColours = (): Pixels => {
  const { width, height, data } = scene();
  return {
    width,
    height,
    data: data.map((value, at) => (at % 4 === 3 ? 255 : value >= 128 ? 192 : 64)) as Buffer,
  };
};
const planesOf = (data: Uint8Array, channels: number): Buffer[] =>
  Array.from({ length: channels }, (_, channel) =>
    Buffer.from(data.filter((_v, at) => at % channels === channel)),
  );

interface Row {
  readonly shows: string;
  readonly file: () => Promise<Buffer>;
  readonly picture: () => Pixels | Promise<Pixels>;
  readonly least: number;
}
const row = (name: string, shows: string, picture: Row['picture'], least: number): Row => ({
  shows: `${name}: ${shows}`,
  file: () => extra(name),
  picture,
  least,
});
/** A PSD of `window()` by default. */
const photoshop = (shows: string, options: Parameters<typeof psd>[1], picture: Row['picture']): Row => ({
  shows: `a PSD with ${shows}`,
  file: async () => psd(window(), options),
  picture,
  least: LOSSLESS,
});

/** Returns `window()` without its transparency. */
const covered = (): Pixels => {
  const { width, height, data } = window();
  return { width, height, data: Buffer.from(data.map((value, at) => (at % 4 === 3 ? 255 : value))) };
};

/** Replaces a text in a file by another one of the same length. */
function changed(file: Buffer, from: string, to: string): Buffer {
  expect(file.includes(from, 0, 'latin1')).to.equal(true);
  return Buffer.from(
    file.toString('latin1').replace(from, () => to),
    'latin1',
  );
}

const USUAL_PROFILE = readFileSync(new URL('../../scripts/fixtures/srgb-1998.icc', import.meta.url));

async function withUsualProfile(): Promise<Buffer> {
  const [item] = itemsOf(await extra('scene.heic')) as [HeifItem];
  const colour = box('colr', Buffer.concat([Buffer.from('prof'), USUAL_PROFILE]));
  return heif({ brand: 'heic', items: [{ ...item, properties: [...item.properties, colour] }] });
}

/** Channels of a PSD: greys, transparency, and a spot colour. */
const [RED, TRANSPARENCY] = [0, 3].map((channel) => planesOf(window().data, 4)[channel] as Buffer) as [
  Buffer,
  Buffer,
];
const TRANSPARENT_GREY = [RED, TRANSPARENCY, RED.map((value) => 255 - value) as Buffer];
/** A palette of 256 colours: reds, greens and blues. */
const PALETTE = Buffer.from(
  Array.from({ length: 768 }, (_, at) => [at, 255 - at, at * 7][at >> 8] as number),
);

/** Returns an image whose greys are the reds of another one. */
const greyOf = ({ width, height, data }: Pixels): Pixels => ({
  width,
  height,
  data: Buffer.from(data.map((value, at) => (at % 4 === 3 ? value : (data[at & ~3] as number)))),
});

const ROWS: readonly Row[] = [
  row('deep.heic', '10 bits', scene, LOSSY),
  row('window.heic', 'transparency', window, LOSSY),
  row('grid.heic', 'a grid of tiles, as phones write it', large, 30),
  {
    shows: 'a HEIC with a grid that is rotated',
    async file() {
      const [grid, ...tiles] = itemsOf(await extra('grid.heic')) as [HeifItem, ...HeifItem[]];
      const properties = [...grid.properties, box('irot', Buffer.of(3))];
      const references = [['dimg', 1, tiles.map((_tile, at) => at + 2)]] as const;
      return heif({ brand: 'heic', items: [{ ...grid, properties }, ...tiles], references });
    },
    picture: async () => pixels(open(await large()).rotate(90)),
    least: 30,
  },
  row('primary.heic', 'the primary one of two images, not a thumbnail', scene, LOSSY),
  {
    shows: 'a HEIC with a depth map, which is ignored',
    file: async () => changed(await extra('window.heic'), 'hevc:2015:auxid:1', 'hevc:2015:auxid:2'),
    picture: covered,
    least: LOSSY,
  },
  {
    shows: 'a HEIC that is mirrored, without the rotation in EXIF',
    // Axis 1 exchanges left and right (ISO/IEC 23008-12:2022, section 6.5.12).
    file: async () => changed(await extra('turned.heic'), 'irot\x03', 'imir\x01'),
    picture: () => pixels(open(scene()).rotate(90).flop()),
    least: 30,
  },
  row(
    'phone.heic',
    'what phones add to a photo: a gain map, mattes and thumbnails that it shares',
    tiles,
    40,
  ),
  {
    shows: 'a HEIC with the usual sRGB profile, which libpng refuses to write to a PNG',
    file: withUsualProfile,
    picture: scene,
    least: LOSSY,
  },
  row('p3.heic', 'an embedded profile', scene, LOSSY),
  row('named-p3.heic', 'a colour space that is identified by number', scene, LOSSY),
  row('deep.jxl', '16 bits', scene, LOSSLESS),
  row('grey.jxl', 'grey', grey, 46),
  row('window.jxl', 'transparency', window, LOSSLESS),
  row('p3.jxl', 'an embedded profile', scene, 44),
  row('from-jpeg.jxl', 'a JPEG that can be reconstructed', scene, LOSSY),
  row('scene.j2k', 'a bare codestream', scene, LOSSLESS),
  row('grey.jp2', 'grey', grey, 46),
  row('deep.jp2', '16 bits', grey, 46),
  row('window.jp2', 'transparency', window, LOSSLESS),
  row('unnamed.jp2', 'transparency that its header does not declare', window, LOSSLESS),
  row('palette.jp2', 'a palette', eightColours, LOSSLESS),
  row('subsampled.jp2', 'sYCC with colour at half the resolution', scene, 27),
  row('p3.jp2', 'an embedded profile', scene, 44),
  photoshop('16 bits per channel', { depth: 16 }, covered),
  photoshop('transparency', { layers: -1 }, window),
  photoshop(
    'a fourth channel that is not transparency',
    { channels: planesOf(window().data, 4), layers: 1 },
    covered,
  ),
  photoshop(
    '16 bits and transparency, as Photoshop writes its layers',
    { depth: 16, layers: -1, deepLayers: true },
    window,
  ),
  photoshop(
    '16 bits, several layers and a spot colour, without transparency',
    { depth: 16, layers: 3, deepLayers: true, channels: planesOf(window().data, 4) },
    covered,
  ),
  photoshop(
    '16 bits, grey, transparency and a spot colour',
    { mode: 1, depth: 16, packed: true, layers: -2, deepLayers: true, channels: TRANSPARENT_GREY },
    () => greyOf(window()),
  ),
  photoshop('the long numbers of a PSB, and transparency', { large: true, layers: -1 }, window),
  photoshop(
    'the long numbers of a PSB, 16 bits and transparency',
    { large: true, depth: 16, packed: true, layers: -2, deepLayers: true },
    window,
  ),
  ...[true, false].map((packed) =>
    photoshop(
      `the long numbers of a PSB and a spot colour, ${packed ? 'in PackBits' : 'uncompressed'}`,
      { large: true, packed, channels: planesOf(window().data, 4) },
      covered,
    ),
  ),
  photoshop('grey, transparency and a spot colour', { mode: 1, layers: -1, channels: TRANSPARENT_GREY }, () =>
    greyOf(window()),
  ),
  photoshop(
    'grey, transparency and a spot colour, of 16 bits in PackBits',
    { mode: 1, depth: 16, packed: true, layers: -1, channels: TRANSPARENT_GREY },
    () => greyOf(window()),
  ),
  photoshop(
    'a duotone and transparency, as greys',
    { mode: 8, table: Buffer.alloc(16, 7), layers: -1, channels: TRANSPARENT_GREY.slice(0, 2) },
    () => greyOf(window()),
  ),
  ...([false, true] as const).map((packed) =>
    photoshop(
      `indexed colours ${packed ? 'in PackBits and' : 'and'} an extra channel`,
      { mode: 2, packed, table: PALETTE, channels: [RED, RED] },
      () => {
        const { width, height, data } = greyOf(covered());
        const inPalette = data.map((value, at) =>
          at % 4 === 3 ? 255 : (PALETTE[256 * (at % 4) + value] as number),
        );
        return { width, height, data: Buffer.from(inPalette) };
      },
    ),
  ),
  photoshop(
    'indexed colours of which one is transparent',
    { mode: 2, table: PALETTE, channels: [RED], resources: [[1047, Buffer.of(0, RED[0] as number)]] },
    () => {
      const { width, height, data } = greyOf(covered());
      const inPalette = data.map((value, at) => {
        const index = data[at & ~3] as number;
        return at % 4 === 3 ? (index === RED[0] ? 0 : 255) : (PALETTE[256 * (at % 4) + value] as number);
      });
      return { width, height, data: Buffer.from(inPalette) };
    },
  ),
  {
    shows: 'a CUR with hot spots in the fields that an icon uses for bits',
    file: async () =>
      cur([
        { side: 16, bytes: iconBitmap(square(16)) },
        { side: 64, bytes: iconBitmap(square(64)) },
      ]),
    picture: () => square(64),
    least: LOSSLESS,
  },
];

describe('the inputs that EXTRA_INPUTS enables', () => {
  const own = useServiceWith({ ...ALL_EXTRAS, CONVERT_TIMEOUT_MS: '120000' });

  const toPng = (file: Uint8Array) => converted(own.base, file, { format: 'png' });

  for (const { shows, file, picture, least } of ROWS) {
    it(`show the same image as ${shows}`, async () => {
      const shown = await decode((await toPng(await file())).body);
      expect(difference(shown, await picture()).psnr, 'PSNR in dB').to.be.at.least(least);
    });
  }

  it('show no wrong pixels of a JPEG XL with 16 bits for colours and 8 for transparency', async () => {
    const file = Buffer.from(
      'AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAABYanhsY/8KQfCjoLgQCAgQAAgBSyg2Vh+8KyiYAiPuvIuM8eLFYPCwAjEG' +
        '6zDG4N0LMRAAICJfaiacfz8IIA7KZph6oOqHk9BnuD/HJPIf2aBMgoMB',
      'base64',
    );
    const { status, message, body } = await convert(own.base, file, { format: 'png' });
    if (status === 400) {
      expect(message).to.contain('fewer bits than its colours'); // djxl 0.7
    } else {
      const [red, green, blue, alpha] = pixelAt(await decode(body), 1, 1);
      expect([red, blue, alpha]).to.deep.equal([78, 39, 255]);
      expect(green).to.be.within(155, 156);
    }
  });

  it('show a JPEG XL of any number of bits per channel', async () => {
    const deep = await open(scene()).removeAlpha().toColourspace('rgb16').png().toBuffer();
    for (const bits of [4, 7, 9, 10, 12, 15]) {
      const file = await runCjxl(deep, `--override_bitdepth=${bits}`);
      const step = Math.ceil(255 / (2 ** bits - 1));
      const shown = await decode((await toPng(file)).body);
      expect(difference(shown, scene()).max, `${bits} bits`).to.be.at.most(step);
    }
  });

  it('show a JPEG XL with 10 bits and transparency, or reject it with the reason', async () => {
    const { status, message, body } = await convert(own.base, await extra('ten-window.jxl'), {
      format: 'png',
    });
    if (status === 400)
      expect(message).to.contain('transparency of other than 8 or 16 bits'); // djxl 0.7
    else expect(difference(await decode(body), window()).max).to.be.at.most(1);
  });

  it('have the predicted note about converted colours of a JPEG XL, and none for greys of sRGB', async () => {
    const picture = open(scene()).removeAlpha();
    const colours = await picture.clone().png().toBuffer();
    const greys = await picture.clone().toColourspace('b-w').png().toBuffer();
    const note = 'colour-converted-to-srgb';
    for (const [file, space, notes] of [
      [colours, 'RGB_D65_SRG_Rel_SRG', []],
      [greys, 'Gra_D65_Rel_SRG', []],
      [greys, 'Gra_D65_Rel_g0.454500', [note]],
      [colours, 'RGB_D65_SRG_Rel_Lin', [note]],
      [colours, 'RGB_D65_202_Rel_PeQ', [note]],
      [colours, 'RGB_DCI_SRG_Rel_SRG', [note]],
    ] as const)
      for (const distance of [0, 1]) {
        const options = ['-d', String(distance), '-x', `color_space=${space}`];
        const body = await runCjxl(file, ...options);
        const what = `${space} at a distance of ${distance}`;
        expect((await toPng(body)).notes ?? '', what).to.equal(notes.join());
        const answer = await postImage(`${own.base}/identify?format=png`, body);
        expect(jsonOf(answer).conversion.notes, what).to.deep.equal(notes);
      }
  });

  it('divide the colours of a JPEG XL by its alpha if they are multiplied by it', async () => {
    const { width, height, data } = scene();
    const straight = Buffer.from(
      data.map((value, at) => (at % 4 === 3 ? 55 + 100 * Math.floor(((at >> 2) % 120) / 40) : value)),
    );
    const multiplied = Buffer.from(
      straight.map((value, at) =>
        at % 4 === 3 ? value : Math.round((value * (straight[at | 3] as number)) / 255),
      ),
    );
    const file = withAssociatedAlpha(
      await runCjxl(await open({ width, height, data: multiplied }).png().toBuffer()),
    );
    const shown = await decode((await toPng(file)).body);
    expect(difference(shown, { width, height, data: straight }).max).to.be.at.most(3); // 1 of 55
    const { body } = await toPng(
      await runCjxl(await open({ width, height, data: straight }).png().toBuffer()),
    );
    expect(difference(await decode(body), { width, height, data: straight }).max).to.equal(0);
  });

  it('write no spot colour of a PSD to a TIFF', async () => {
    const channels = [...planesOf(window().data, 4).slice(0, 3), ...TRANSPARENT_GREY.slice(1)];
    const file = psd(window(), { channels });
    const { body } = await converted(own.base, file, { format: 'tiff' });
    expect(await sharp(body).metadata()).to.include({ channels: 3 });
    expect(difference(await decode(body), covered()).psnr).to.be.at.least(LOSSLESS);
  });

  it('show a CIELab PSD of 16 bits with its transparency', async () => {
    const RED_IN_LAB = [136, 208, 195]; // L* 53.2, a* 80.1, b* 67.2: sRGB red
    const alpha = Buffer.from(Array.from({ length: 64 * 64 }, (_, at) => (at % 64 < 32 ? 255 : 0)));
    const channels = [...RED_IN_LAB.map((value) => Buffer.alloc(64 * 64, value)), alpha];
    const options = { mode: 9, depth: 16, layers: -1, deepLayers: true, channels } as const;
    const { body } = await toPng(psd({ width: 64, height: 64, data: Buffer.alloc(0) }, options));
    const shown = await decode(body);
    for (const [channel, value] of [255, 0, 0, 255].entries())
      expect(pixelAt(shown, 10, 10)[channel]).to.be.closeTo(value, 8);
    expect(pixelAt(shown, 50, 10)[3]).to.equal(0);
  });

  it('convert a CMYK PSD with its profile', async () => {
    const photo = await fixture('p3.jpg');
    const { data, info } = await sharp(photo)
      .toColourspace('cmyk')
      .withIccProfile('cmyk')
      .raw()
      .toBuffer({ resolveWithObject: true });
    const tagged = await sharp(photo).toColourspace('cmyk').withIccProfile('cmyk').tiff().toBuffer();
    const profile = (await sharp(tagged).metadata()).icc as Buffer;
    const channels = planesOf(data, 4).map((plane) => plane.map((value) => 255 - value) as Buffer);
    const file = psd(
      { width: info.width, height: info.height, data: Buffer.alloc(0) },
      { mode: 4, profile, channels },
    );
    const shown = await decode((await toPng(file)).body);
    expect(difference(shown, await decodeByPillow(tagged)).psnr, 'PSNR in dB').to.be.at.least(36);
  });

  it('keep the frames and delays of an animated JPEG XL, as of a GIF', async () => {
    const [fromJxl, fromGif] = await Promise.all(
      [await extra('moving.jxl'), await fixture('moving.gif')].map((file) =>
        convert(own.base, file, { format: 'webp', quality: '90' }),
      ),
    );
    const facts = await sharp(fromJxl?.body).metadata();
    expect(facts).to.include({ pages: 3 });
    expect(facts.delay).to.deep.equal([100, 250, 40]);
    const one = await decode(fromJxl?.body as Buffer);
    expect(difference(one, await decode(fromGif?.body as Buffer)).psnr).to.be.at.least(LOSSY);
    const gif = await convert(own.base, await extra('moving.jxl'), { format: 'gif' });
    expect((await sharp(gif.body).metadata()).delay).to.deep.equal([100, 250, 40]);
    const still = await convert(own.base, await extra('moving.jxl'), { format: 'png' });
    expect(still.notes).to.equal('first-frame-only');
  });

  it('keep the EXIF of a HEIC on request, without applying the orientation twice', async () => {
    const { body } = await convert(own.base, await extra('private.heic'), {
      format: 'jpg',
      strip_metadata: 'false',
    });
    const { exif } = await sharp(body).metadata();
    expect(exif?.toString('latin1')).to.include('Somebody Private');
    const turned = await convert(own.base, await extra('turned.heic'), {
      format: 'jpg',
      strip_metadata: 'false',
    });
    const facts = await sharp(turned.body).metadata();
    expect(facts).to.include({ width: 120, height: 80 });
    expect(facts.orientation ?? 1).to.equal(1);
  });

  for (const name of ['turned.heic', 'turned.jxl'])
    it(`are cut in their upright size, also by a crop that is wider than the stored ${name}`, async () => {
      for (const crop of ['20,5,100,75', '16.666667%,6.25%,83.333333%,93.75%']) {
        const { body } = await converted(own.base, await extra(name), { format: 'png', crop });
        const part = open(scene()).extract({ left: 20, top: 5, width: 100, height: 75 });
        expect(difference(await decode(body), await pixels(part)).psnr).to.be.at.least(30);
      }
    });

  it('keep the profile of a HEIC on request', async () => {
    for (const [file, profile] of [
      [await withUsualProfile(), USUAL_PROFILE],
      [await extra('p3.heic'), (await sharp(await fixture('p3.png')).metadata()).icc],
    ] as const) {
      const { body } = await convert(own.base, file, { format: 'webp', strip_metadata: 'false' });
      expect((await sharp(body).metadata()).icc?.equals(profile as Buffer)).to.equal(true);
    }
  });

  it('keep the EXIF on request that a photo shares with its tone-mapped version', async () => {
    const fields = { format: 'jpg', strip_metadata: 'false' };
    const { body } = await convert(own.base, await extra('phone.heic'), fields);
    expect((await sharp(body).metadata()).exif?.toString('latin1')).to.include('Secret Author');
  });

  it('show a photo of 48 megapixels in 48 tiles, as phones take it', async () => {
    const { file, width, height } = phonePhoto(await extra('tile.heic'), 1024);
    expect(width * height).to.be.above(48_000_000);
    const { body } = await converted(own.base, file, { format: 'png', width: '504' });
    expect(difference(await decode(body), tiles()).psnr).to.be.at.least(28); // edges are smoother
  });

  const refusals: readonly (readonly [string, () => Promise<Buffer>, number, RegExp])[] = [
    [
      'a PSD without a merged image',
      async () => psd(scene(), { merged: false, layers: 1 }),
      400,
      /PSD without a merged image/,
    ],
    ['a PSD with multichannel colours', async () => psd(scene(), { mode: 7 }), 400, /multichannel/],
    ['a PSD with 32 bits per channel', async () => psd(scene(), { depth: 32 }), 400, /32 bits per channel/],
    ['a JPEG XL with a black channel', async () => cmykJxl(), 400, /JPEG XL with CMYK/],
  ];
  for (const [what, file, status, message] of refusals) {
    it(`return 400 with the reason for ${what}`, async () => {
      const answer = await convert(own.base, await file(), { format: 'png' });
      expect(answer.status).to.equal(status);
      expect(answer.message).to.match(message);
    });
  }
});

/** Creates the header of a JPEG XL with an additional black channel. */
const cmykJxl = (): Buffer =>
  jxlHeader([
    [1, 1], // sides are multiples of 8
    [9, 5], // height 80
    [0, 3], // no aspect ratio
    [14, 5], // width 120
    [0, 1], // metadata is not default
    [0, 1], // no orientation, preview or animation
    [0, 1], // integer samples
    [0, 2], // 8 bits per sample
    [1, 1], // 16-bit buffers suffice
    [1, 2], // one extra channel
    [0, 1], // not the default alpha channel
    [2, 2], // type in four bits
    [2, 4], // type 4: black
  ]);
