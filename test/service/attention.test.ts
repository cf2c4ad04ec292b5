// @full: nine pictures, and each type of file
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp from 'sharp';
import { ico } from '../../scripts/fixtures/writers.ts';
import { seeded } from '../../scripts/stress/random.ts';
import { convert, converted, edgeCase, type Fields } from '../helpers/client.ts';
import { drawPdf } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

type Area = Readonly<Record<'left' | 'top' | 'width' | 'height', number>>;

/** Objects that draw attention, in a square of 100. */
const SUBJECTS = {
  face:
    '<ellipse cx="50" cy="45" rx="40" ry="45" fill="#4a3426"/><ellipse cx="50" cy="54" rx="34" ry="44" fill="#d9a07c"/>' +
    '<circle cx="37" cy="46" r="5" fill="#222"/><circle cx="63" cy="46" r="5" fill="#222"/><path d="M36 76q14 10 28 0" stroke="#933" stroke-width="5" fill="none"/>',
  flower:
    '<g fill="#e0213a"><circle cx="50" cy="25" r="22"/><circle cx="25" cy="50" r="22"/><circle cx="75" cy="50" r="22"/><circle cx="50" cy="75" r="22"/></g><circle cx="50" cy="50" r="16" fill="#ffd23a"/>',
  letters:
    '<rect width="100" height="100" fill="#fff"/><path stroke="#000" stroke-width="9" d="M10 20h80M10 40h60M10 60h75M10 80h40"/>',
  chess: `<rect width="100" height="100" fill="#fff"/>${Array.from({ length: 8 }, (_, at) => `<rect x="${(at % 2) * 50 + (Math.floor(at / 2) % 2) * 25}" y="${Math.floor(at / 2) * 25}" width="25" height="25"/>`).join('')}`,
} as const;

/** Colours of a background from top to bottom, and the standard deviation of its noise. */
const BACKGROUNDS = {
  wall: ['#6a7078', '#6a7078', 0],
  night: ['#080a10', '#1a1e28', 4],
  sky: ['#3d6ea8', '#9fbcd6', 0],
  sand: ['#8c8470', '#6c6758', 9],
  meadow: ['#5a7a3c', '#3f5c2c', 9],
} as const;

interface Picture {
  readonly background: keyof typeof BACKGROUNDS;
  readonly subject: keyof typeof SUBJECTS;
  /** Sides in pixels. */
  readonly size: readonly [width: number, height: number];
  /** Centre of the subject in percent of the sides, and its side in percent of the shorter one. */
  readonly at: readonly [x: number, y: number, side: number];
  readonly box: readonly [width: number, height: number];
}

const areaOf = ({ size: [width, height], at: [x, y, side] }: Picture): Area => {
  const length = (Math.min(width, height) * side) / 100;
  const [left, top] = [(width * x) / 100 - length / 2, (height * y) / 100 - length / 2];
  return { left, top, width: length, height: length };
};

function drawSvg(picture: Picture, extra = ''): Buffer {
  const [width, height] = picture.size;
  const [above, below] = BACKGROUNDS[picture.background];
  const { left, top, width: side } = areaOf(picture);
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><defs><linearGradient id="a" x2="0" y2="1">` +
      `<stop stop-color="${above}"/><stop offset="1" stop-color="${below}"/></linearGradient></defs>` +
      `<rect width="100%" height="100%" fill="url(#a)"/>${extra}<svg x="${left}" y="${top}" width="${side}" height="${side}" viewBox="0 0 100 100">` +
      `${SUBJECTS[picture.subject]}</svg></svg>`,
  );
}

/** Draws a picture as PNG, always the same one. */
async function draw(picture: Picture): Promise<Buffer> {
  const [, , deviation] = BACKGROUNDS[picture.background];
  const drawn = sharp(drawSvg(picture)).removeAlpha().raw();
  const { data, info } = await drawn.toBuffer({ resolveWithObject: true });
  const { next } = seeded(7);
  for (let at = 0; at < data.length; at += 3) {
    const noise = (next() + next() + next() - 1.5) * 2 * deviation;
    for (const channel of [0, 1, 2])
      data[at + channel] = Math.min(255, Math.max(0, (data[at + channel] as number) + noise));
  }
  return sharp(data, { raw: info }).png().toBuffer();
}

/** Rows from one that is compared to the next. */
const ROW_STEP = 4;

/**
 * Returns the area that `cover` keeps, in pixels of the picture, where the whole resized picture
 * looks most like the result.
 */
async function findArea(result: Buffer, whole: Buffer): Promise<Area> {
  const { width: w, height: h } = await sharp(whole).metadata();
  const { data: cut, info } = await sharp(result).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const scale = Math.max(info.width / w, info.height / h);
  const [width, height] = [Math.round(w * scale), Math.round(h * scale)];
  const all = await sharp(whole).removeAlpha().resize(width, height, { fit: 'fill' }).raw().toBuffer();
  const differenceAt = (left: number, top: number): number => {
    let sum = 0;
    for (let y = 0; y < info.height; y += ROW_STEP)
      for (let x = 0; x < info.width * 3; x += 1)
        sum += Math.abs(
          (all[((top + y) * width + left) * 3 + x] as number) - (cut[y * info.width * 3 + x] as number),
        );
    return (sum * ROW_STEP) / cut.length;
  };
  const slack = Math.max(width - info.width, height - info.height);
  const across = width > info.width;
  const found = Array.from({ length: slack + 1 }, (_, by) => ({
    by,
    difference: differenceAt(across ? by : 0, across ? 0 : by),
  })).reduce((one, other) => (other.difference < one.difference ? other : one));
  expect(found.difference, 'the result is a part of the picture').to.be.below(8);
  const [left, top] = across ? [found.by, 0] : [0, found.by];
  return { left: left / scale, top: top / scale, width: info.width / scale, height: info.height / scale };
}

/** Returns the share of an area that another one contains. */
function shareInside(area: Area, kept: Area): number {
  const overlap = (from: 'left' | 'top', length: 'width' | 'height'): number =>
    Math.max(
      0,
      Math.min(area[from] + area[length], kept[from] + kept[length]) - Math.max(area[from], kept[from]),
    );
  return (overlap('left', 'width') * overlap('top', 'height')) / (area.width * area.height);
}

const [WIDE, TALL] = [[600, 300] as const, [300, 560] as const];
const [SQUARE, CARD, BANNER] = [[100, 100] as const, [60, 120] as const, [200, 100] as const];
const FLOWER: Picture = { background: 'wall', subject: 'flower', size: WIDE, at: [88, 30, 40], box: SQUARE };
/** The mirrored picture. */
const OTHER = { ...FLOWER, at: [12, 30, 40] } as const;
const FACE: Picture = { background: 'night', subject: 'face', size: WIDE, at: [80, 45, 40], box: SQUARE };
/** Pictures of each subject on each background. */
const PICTURES: readonly Picture[] = [
  FLOWER,
  FACE,
  { background: 'wall', subject: 'letters', size: TALL, at: [40, 14, 40], box: SQUARE },
  { background: 'night', subject: 'chess', size: TALL, at: [50, 15, 30], box: BANNER },
  { background: 'sky', subject: 'face', size: WIDE, at: [30, 60, 40], box: CARD },
  { background: 'sky', subject: 'letters', size: WIDE, at: [70, 75, 40], box: SQUARE },
  { background: 'sand', subject: 'flower', size: WIDE, at: [75, 50, 40], box: CARD },
  { background: 'sand', subject: 'chess', size: TALL, at: [50, 83, 40], box: SQUARE },
  { background: 'meadow', subject: 'flower', size: TALL, at: [20, 12, 30], box: SQUARE },
];

/**
 * @module Converts pictures with a subject at a known place, and checks by sharp that the result
 * shows it.
 */
describe('position=attention', () => {
  const service = useService();

  const ask = (file: Buffer, [width, height]: Picture['box'], fields: Fields = {}) =>
    converted(service.base, file, {
      fit: 'cover',
      position: 'attention',
      format: 'png',
      width: `${width}`,
      height: `${height}`,
      ...fields,
    });
  const expectSubject = async (picture: Picture, result: Buffer, whole: Buffer, what = 'imagemill') =>
    expect(shareInside(areaOf(picture), await findArea(result, whole)), what).to.be.above(0.98);

  for (const [at, picture] of PICTURES.entries()) {
    const { background, subject, box } = picture;
    it(`keeps the subject of picture ${at + 1}, as sharp does: ${subject} on ${background}`, async () => {
      const whole = await draw(picture);
      const [width, height] = box;
      const theirs = await sharp(whole)
        .resize({ width, height, fit: 'cover', position: 'attention' })
        .png()
        .toBuffer();
      await expectSubject(picture, theirs, whole, 'sharp');
      await expectSubject(picture, (await ask(whole, box)).body, whole);
    });
  }

  const images = async () => {
    const [whole, other] = await Promise.all([FLOWER, OTHER].map(draw));
    return { whole, other } as { readonly whole: Buffer; readonly other: Buffer };
  };

  for (const type of ['jpg', 'gif', 'tiff', 'webp', 'avif', 'bmp', 'ico', 'svg'] as const) {
    it(`keeps the subject of a file of type ${type}`, async () => {
      const picture =
        type === 'ico' ? { ...FLOWER, size: [200, 200] as const, at: [75, 30, 40] as const } : FLOWER;
      const whole = await draw(picture);
      const file = await {
        svg: () => drawSvg(picture),
        bmp: async () => (await convert(service.base, whole, { format: 'bmp' })).body,
        ico: () => ico([{ side: 200, bytes: whole }]),
        jpg: () => sharp(whole).jpeg().toBuffer(),
        gif: () => sharp(whole).gif().toBuffer(),
        tiff: () => sharp(whole).tiff().toBuffer(),
        webp: () => sharp(whole).webp().toBuffer(),
        avif: () => sharp(whole).avif().toBuffer(),
      }[type]();
      await expectSubject(picture, (await ask(file, [60, 120])).body, whole);
    });
  }

  it('keeps the subject of a photo that is decoded at a smaller size', async () => {
    const picture = { ...FLOWER, size: [4000, 2000] } as const;
    const whole = await draw(picture);
    const file = await sharp(whole).jpeg().toBuffer();
    await expectSubject(picture, (await ask(file, [100, 100])).body, whole);
  });

  it('turns the image upright first', async () => {
    const { whole } = await images();
    for (const [orientation, degrees] of [
      [3, 180],
      [6, 270],
      [8, 90],
    ] as const) {
      const stored = sharp(await sharp(whole).rotate(degrees).toBuffer());
      const file = await stored.jpeg().withMetadata({ orientation }).toBuffer();
      await expectSubject(FLOWER, (await ask(file, [100, 100])).body, whole, `${orientation}`);
    }
  });

  it('ignores the colours of transparent pixels', async () => {
    const face = { ...FACE, at: [88, 50, 40] } as Picture;
    const hidden =
      '<path stroke="white" stroke-width="20" d="M40 50h180M40 90h180M40 130h180M40 170h180M40 210h180"/>';
    const { data, info } = await sharp(drawSvg(face, hidden))
      .ensureAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true });
    for (let at = 0; at < data.length; at += 4) if ((at / 4) % info.width < info.width / 2) data[at + 3] = 0;
    const whole = await sharp(data, { raw: info }).png().toBuffer();
    const { body } = await ask(whole, [100, 100]);
    await expectSubject(face, body, await sharp(whole).flatten().png().toBuffer());

    const opaque = await sharp(whole).removeAlpha().png().toBuffer();
    const shown = await findArea((await ask(opaque, [100, 100])).body, opaque);
    expect(shareInside(areaOf(face), shown), 'where the hidden colours are visible').to.be.below(0.5);
  });

  it('chooses within the crop', async () => {
    const { whole, other } = await images();
    const left = await sharp(other).extract({ left: 0, top: 0, width: 300, height: 300 }).toBuffer();
    const both = await sharp(whole)
      .composite([{ input: left, left: 0, top: 0 }])
      .png()
      .toBuffer();
    for (const [crop, left, at] of [
      ['0,0,300,300', 0, 24],
      ['300,0,300,300', 300, 76],
    ] as const) {
      const part = await sharp(both).extract({ left, top: 0, width: 300, height: 300 }).png().toBuffer();
      const picture = { ...FLOWER, size: [300, 300], at: [at, 30, 40] } as const;
      await expectSubject(picture, (await ask(both, [50, 100], { crop })).body, part, crop);
    }
  });

  it('keeps the place that the first frame or page draws attention to in all of them', async () => {
    const first = { ...FLOWER, background: 'sand' } as const;
    const stills = await Promise.all([first, { ...OTHER, background: 'sand' } as const].map(draw));
    const joined = () => sharp(stills, { join: { animated: true } });
    const delay = [100, 100];
    for (const [image, format] of [
      [joined().gif({ delay }), 'webp'],
      [joined().webp({ lossless: true, delay }), 'gif'],
      [joined().tiff(), 'pdf'],
    ] as const) {
      const { body } = await ask(await image.toBuffer(), [100, 100], { format });
      const shown = [0, 1].map((page) =>
        format === 'pdf' ? drawPdf(body, page + 1) : sharp(body, { page }).png().toBuffer(),
      );
      const [area, other] = (await Promise.all(
        shown.map(async (still, at) => findArea(await still, stills[at] as Buffer)),
      )) as [Area, Area];
      expect(shareInside(areaOf(first), area), format).to.be.above(0.98);
      expect(other, format).to.deep.equal(area);
    }
  });

  it('keeps the subject of a drawing that stays vector', async () => {
    const { body } = await ask(drawSvg(FLOWER), [100, 100], { format: 'pdf' });
    expect(body.includes('/Subtype /Image')).to.equal(false);
    await expectSubject(FLOWER, await drawPdf(body), await draw(FLOWER));
  });

  it('keeps the subject of a result with a maximum size in bytes', async () => {
    const { whole } = await images();
    const { body } = await ask(whole, [100, 100], { format: 'jpg', max_bytes: '1500' });
    expect(body.length).to.be.at.most(1500);
    await expectSubject(FLOWER, body, whole);
  });

  it('is the centre if nothing is to be cut, and for pages of different sizes', async () => {
    const { whole } = await images();
    const pages = await edgeCase('mixed.tiff');
    for (const [file, box, fields] of [
      [whole, [900, 900], { enlarge: 'false' }],
      [whole, [100, 50], {}],
      [whole, [100, 100], { fit: 'contain' }],
      [whole, [100, 100], { fit: 'inside' }],
      [whole, [100, 100], { fit: 'fill' }],
      [pages, [20, 40], { format: 'pdf' }],
    ] as const) {
      const keys = [
        await ask(file, box, fields),
        await ask(file, box, { ...fields, position: 'center' }),
      ].map(({ headers }) => headers.get('x-conversion-key'));
      expect(keys[0], JSON.stringify([box, fields])).to.equal(keys[1]);
    }
  });

  it('rejects a damaged image as other positions do', async () => {
    const { whole } = await images();
    const damaged = Buffer.from(whole).fill(0x55, 200, 800);
    const size = { fit: 'cover', width: '100', height: '100' };
    const [one, other] = await Promise.all(
      ['attention', 'center'].map((position) => convert(service.base, damaged, { ...size, position })),
    );
    expect(one?.outcome).to.equal(other?.outcome).and.match(/^400 /);
  });
});
