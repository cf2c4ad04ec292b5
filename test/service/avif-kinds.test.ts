// @full: the kinds of public test suites
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
/**
 * @module AVIF files with structures that only some encoders write (AVIF, section 2; ISO/IEC
 * 23008-12, section 6).
 */
import { expect } from 'chai';
import sharp from 'sharp';
import { box, uint16, uint32 } from '../../scripts/fixtures/boxes.ts';
import { avif } from '../../scripts/fixtures/edge-case.ts';
import { type HeifItem, heif, itemsOf } from '../../scripts/fixtures/heif-writer.ts';
import { open, scene } from '../../scripts/fixtures/scene.ts';
import { convert, converted, edgeCase, fixture, identify } from '../helpers/client.ts';
import { decode, difference, type Pixels, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

/** Returns the properties of an item without those of this name. */
const without = ({ properties }: HeifItem, name: string): Buffer[] =>
  properties.filter((one) => one.toString('latin1', 4, 8) !== name);

const BITS = box('pixi', Buffer.from([0, 0, 0, 0, 3, 8, 8, 8]));
const BITS_OF_ONE = box('pixi', Buffer.from([0, 0, 0, 0, 1, 8]));

/** A clean aperture of 40 × 60 of 120 × 80 pixels, so far right of and below their centre. */
const aperture = (right: number, below: number): Buffer =>
  box('clap', Buffer.from([40, 1, 60, 1, right, 1, below, 1].flatMap((one) => [...uint32(one >>> 0)])));

/**
 * A rotation by quarter turns anticlockwise, and an exchange of top and bottom (0) or left and
 * right (1).
 */
interface Rotation {
  readonly irot: 0 | 1 | 2 | 3;
  readonly imir?: 0 | 1 | undefined;
}

/**
 * Encodes a transparent picture as an AVIF whose rotation only the colours have, as libavif writes
 * it.
 */
async function rotatedAvif({ irot, imir }: Rotation): Promise<Buffer> {
  const png = await open(scene({ transparent: true }))
    .png()
    .toBuffer();
  return avif([png], ['--irot', `${irot}`, ...(imir === undefined ? [] : ['--imir', `${imir}`])]);
}

/** Swaps the two last properties of the first item of an AVIF. */
function mirroredFirst(file: Buffer): Buffer {
  const swapped = Buffer.from(file);
  const at = swapped.indexOf('ipma') + 12; // after version, flags, the number of items, and the ID of the first
  const last = at + 2 + (swapped[at + 2] as number);
  return swapped.fill(Buffer.of(swapped[last] as number, swapped[last - 1] as number), last - 1, last + 1);
}

/** Rotates and then mirrors the transparent picture. */
async function rotated({ irot, imir }: Rotation): Promise<Pixels> {
  const turned = await open(scene({ transparent: true }))
    .rotate(((4 - irot) % 4) * 90)
    .png()
    .toBuffer();
  const image = sharp(turned);
  return toPixels(imir === undefined ? image : imir === 0 ? image.flip() : image.flop());
}

describe('an AVIF', () => {
  const service = useService();

  for (const [what, ...properties] of [
    ['an operating point (a1op)', box('a1op', Buffer.from([0]))],
    ['a selected layer (lsel)', box('lsel', Buffer.from([0, 0]))],
    ['all layers selected (lsel)', box('lsel', Buffer.from([0xff, 0xff]))],
    ['two equal numbers of bits (pixi)', BITS, Buffer.from(BITS)],
    ['numbers of bits for three channels and for one (pixi)', BITS, BITS_OF_ONE],
  ] as const) {
    it(`of one layer with ${what} is shown like one without`, async () => {
      const plain = await fixture('scene.avif');
      const [item] = itemsOf(plain) as [HeifItem];
      const all = [...without(item, 'pixi'), ...properties];
      const file = heif({ brand: 'avif', items: [{ ...item, properties: all }] });
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), await decode(plain)).max).to.be.at.most(3);
    });
  }

  it('whose alpha has its properties in a second box (ipma) keeps it', async () => {
    const window = await fixture('window.avif');
    const file = heif({
      brand: 'avif',
      items: itemsOf(window),
      references: [['auxl', 2, [1]]],
      separate: true,
    });
    const { body } = await converted(service.base, file, { format: 'png' });
    expect(difference(await decode(body), await decode(window)).psnr).to.be.at.least(48);
    expect(await identify(service.base, file)).to.include({ alpha: true });
  });

  it('that its decoder rotates is cut in its upright size', async () => {
    const plain = await fixture('scene.avif');
    const [item] = itemsOf(plain) as [HeifItem];
    const quarterTurn = box('irot', Buffer.from([3]));
    const file = heif({ brand: 'avif', items: [{ ...item, properties: [...item.properties, quarterTurn] }] });
    const { width, height } = { width: 80, height: 120 };
    for (const [crop, area] of [
      ['10,90,70,30', { left: 10, top: 90, width: 70, height: 30 }],
      ['0%,50%,100%,50%', { left: 0, top: height / 2, width, height: height / 2 }],
    ] as const) {
      const { body } = await converted(service.base, file, { format: 'png', crop });
      const part = sharp(await sharp(plain).rotate(90).png().toBuffer()).extract(area);
      expect(difference(await decode(body), await toPixels(part)).psnr, crop).to.be.at.least(30);
    }
  });

  for (const rotation of [
    { irot: 0, imir: 0 },
    { irot: 1 },
    { irot: 1, imir: 1 },
    { irot: 2, imir: 1 },
    { irot: 3, imir: 0 },
  ] as const)
    it(`that is transparent is rotated and mirrored with its alpha: ${JSON.stringify(rotation)}`, async () => {
      const { body } = await converted(service.base, await rotatedAvif(rotation), { format: 'png' });
      expect(difference(await decode(body), await rotated(rotation)).psnr).to.be.above(50);
    });

  it('that lists imir before irot is mirrored and then rotated', async () => {
    const file = mirroredFirst(await rotatedAvif({ irot: 1, imir: 0 }));
    const { body } = await converted(service.base, file, { format: 'png' });
    // From top to bottom, and then rotated, is the same as rotated, and then from left to right.
    expect(difference(await decode(body), await rotated({ irot: 1, imir: 1 })).psnr).to.be.above(50);
  });

  it('of one channel without code points has the range that its sequence header states', async () => {
    const wanted = await decode(await open(scene()).removeAlpha().greyscale().png().toBuffer());
    for (const name of ['greys-of-video.avif', 'deep-greys-of-video.avif']) {
      const [item] = itemsOf(await edgeCase(name)) as [HeifItem];
      const file = heif({ brand: 'avif', items: [{ ...item, properties: without(item, 'colr') }] });
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), wanted).psnr, name).to.be.at.least(42);
    }
  });

  it('that is a sequence by its general brand (msf1) is shown like one with the brand of AVIF', async () => {
    const sequence = await edgeCase('moving.avif');
    const general = Buffer.from(sequence);
    general.write('msf1', 8, 'latin1');
    const [wanted, found] = await Promise.all(
      [sequence, general].map((file) => converted(service.base, file, { format: 'png' })),
    );
    expect(found?.body).to.deep.equal(wanted?.body);
    expect(found?.notes).to.equal('first-frame-only');
  });

  it('with a gain map in tiles that do not cover it is shown, and one with such a grid itself is damaged', async () => {
    const plain = await fixture('scene.avif');
    const [item] = itemsOf(plain) as [HeifItem];
    // 2 × 2 tiles of 120 × 80 pixels, which are too small for this size.
    const [size, data] = [box('ispe', uint32(0, 400, 300)), Buffer.from([0, 0, 1, 1, ...uint16(400, 300)])];
    const grid = { type: 'grid', data, properties: [size], hidden: true };
    const tiles = Array.from({ length: 4 }, () => ({ ...item, hidden: true }));
    const toneMapped = { type: 'tmap', data: Buffer.alloc(62), properties: [item.properties[0] as Buffer] };
    const file = heif({
      brand: 'avif',
      items: [item, toneMapped, grid, ...tiles],
      references: [
        ['dimg', 2, [1, 3]],
        ['dimg', 3, [4, 5, 6, 7]],
      ],
    });
    const { body, notes } = await converted(service.base, file, { format: 'png' });
    expect(difference(await decode(body), await decode(plain)).psnr).to.be.at.least(40);
    expect(notes).to.equal('hdr-removed');
    const asPrimary = heif({
      brand: 'avif',
      items: [grid, ...tiles],
      references: [['dimg', 1, [2, 3, 4, 5]]],
    });
    expect((await convert(service.base, asPrimary, { format: 'png' })).outcome).to.match(/^400 .*damaged/);
  });

  it('that is a sequence keeps the alpha of its primary image, and is rejected if only frames have alpha', async () => {
    const png = await open(scene({ transparent: true }))
      .png()
      .toBuffer();
    const file = avif([png, png]);
    const { body, notes } = await converted(service.base, file, { format: 'png' });
    expect(difference(await decode(body), await decode(png)).psnr).to.be.above(45);
    expect(notes).to.equal('first-frame-only');
    file.write('free', file.indexOf('auxl'), 'latin1'); // the reference of the image, before those of the tracks
    const { outcome } = await convert(service.base, file, { format: 'png' });
    expect(outcome).to.match(/^400 .*only the frames have transparency/);
  });

  it('with a larger image beside the primary one has the size of the primary one', async () => {
    const plain = await fixture('scene.avif');
    const large = await sharp(plain).resize(300, 200).avif().toBuffer();
    const items = [...itemsOf(plain), ...itemsOf(large)];
    const file = heif({ brand: 'avif', items });
    expect(await identify(service.base, file)).to.include({ width: 120, height: 80 });
    for (const [crop, area] of [
      ['20,10,90,60', { left: 20, top: 10, width: 90, height: 60 }],
      ['50%,0%,50%,100%', { left: 60, top: 0, width: 60, height: 80 }],
    ] as const) {
      const { body } = await converted(service.base, file, { format: 'png', crop });
      expect(
        difference(await decode(body), await toPixels(sharp(plain).extract(area))).psnr,
        crop,
      ).to.be.at.least(40);
    }
    const outside = await convert(service.base, file, { format: 'png', crop: '200,100,50,50' });
    expect(outside.message).to.include('120 × 80 pixels when upright');
  });

  it('with a clean aperture that its alpha lacks keeps the alpha', async () => {
    const [colours, alpha] = itemsOf(await fixture('window.avif')) as [HeifItem, HeifItem];
    const properties = [...colours.properties, aperture(0, -10)];
    const items = [{ ...colours, properties }, alpha];
    const file = heif({ brand: 'avif', items, references: [['auxl', 2, [1]]] });
    const { body } = await converted(service.base, file, { format: 'png' });
    const shown = sharp(await fixture('window.avif')).extract({ left: 40, top: 0, width: 40, height: 60 });
    expect(difference(await decode(body), await toPixels(shown)).psnr).to.be.at.least(38);
  });

  it('whose sequence header states a limited range keeps it with a clean aperture, also if it is rotated', async () => {
    const [item] = itemsOf(await edgeCase('unspecified-range.avif')) as [HeifItem];
    const area = { left: 70, top: 0, width: 40, height: 60 };
    const shown = await open(scene()).removeAlpha().extract(area).png().toBuffer();
    for (const [turns, degrees] of [
      [0, 0],
      [3, 90],
      [2, 180],
    ] as const) {
      const properties = [...without(item, 'colr'), aperture(30, -10), box('irot', Buffer.from([turns]))];
      const file = heif({ brand: 'avif', items: [{ ...item, properties }] });
      const { body } = await converted(service.base, file, { format: 'png' });
      const wanted = await toPixels(sharp(shown).rotate(degrees));
      expect(difference(await decode(body), wanted).psnr, `${degrees}°`).to.be.at.least(38);
      const { width, height } = wanted;
      expect(await identify(service.base, file)).to.include({ width, height });
    }
  });

  it('with a clean aperture is fitted and cut in the size of the aperture', async () => {
    const plain = await fixture('scene.avif');
    const [item] = itemsOf(plain) as [HeifItem];
    const properties = [...item.properties, aperture(0, 0)];
    const file = heif({ brand: 'avif', items: [{ ...item, properties }] });
    const shown = await sharp(plain).extract({ left: 40, top: 10, width: 40, height: 60 }).png().toBuffer();
    for (const [options, expected] of [
      [{}, sharp(shown)],
      [{ crop: '5,30,30,20' }, sharp(shown).extract({ left: 5, top: 30, width: 30, height: 20 })],
      [{ fit: 'cover', width: '20', height: '20' }, sharp(shown).resize(20, 20)],
      [{ width: '20' }, sharp(shown).resize(20)],
    ] as const) {
      const { body } = await converted(service.base, file, { format: 'png', ...options });
      const found = difference(await decode(body), await toPixels(expected));
      expect(found.psnr, JSON.stringify(options)).to.be.at.least(28);
    }
    const outside = await convert(service.base, file, { format: 'png', crop: '30,50,20,20' });
    expect(outside.message).to.include('40 × 60 pixels when upright');
  });
});
