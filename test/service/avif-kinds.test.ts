/** @module AVIF files with structures that only some encoders write (AVIF, section 2; ISO/IEC 23008-12, section 6). */
import { expect } from 'chai';
import sharp from 'sharp';
import { box } from '../../scripts/fixtures/boxes.ts';
import { type HeifItem, heif, itemsOf } from '../../scripts/fixtures/heif-writer.ts';
import { convert, converted, expectSuccess, fixture, jsonOf, sendForm } from '../helpers/client.ts';
import { decode, difference, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const BITS = box('pixi', Buffer.from([0, 0, 0, 0, 3, 8, 8, 8]));
const BITS_OF_ONE = box('pixi', Buffer.from([0, 0, 0, 0, 1, 8]));

describe('an AVIF', () => {
  const service = useService();
  const identify = async (file: Buffer) =>
    jsonOf(
      await expectSuccess(
        sendForm(`${service.base}/identify`, { method: 'POST', body: new Uint8Array(file) }),
      ),
    );

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
      const others = item.properties.filter((one) => one.toString('latin1', 4, 8) !== 'pixi');
      const file = heif({ brand: 'avif', items: [{ ...item, properties: [...others, ...properties] }] });
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), await decode(plain)).max).to.be.at.most(3);
    });
  }

  it('whose alpha has its properties in a second box (ipma) keeps it', async () => {
    const window = await fixture('window.avif');
    const file = heif({
      ...{ brand: 'avif', items: itemsOf(window) },
      ...{ references: [['auxl', 2, [1]]], separate: true },
    });
    const { body } = await converted(service.base, file, { format: 'png' });
    expect(difference(await decode(body), await decode(window)).psnr).to.be.at.least(48);
    expect(await identify(file)).to.include({ alpha: true });
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

  it('with a clean aperture is fitted and cut in the size of the aperture', async () => {
    const plain = await fixture('scene.avif');
    const [item] = itemsOf(plain) as [HeifItem];
    // 40 × 60 of 120 × 80 pixels, around the centre.
    const numbers = [40, 1, 60, 1, 0, 1, 0, 1].flatMap((number) => [0, 0, 0, number]);
    const aperture = box('clap', Buffer.from(numbers));
    const file = heif({ brand: 'avif', items: [{ ...item, properties: [...item.properties, aperture] }] });
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
