/** @module AVIF files with structures that only some encoders write (AVIF, section 2; ISO/IEC 23008-12, section 6). */
import { expect } from 'chai';
import sharp from 'sharp';
import { box } from '../../scripts/fixtures/boxes.ts';
import { type HeifItem, heif, itemsOf } from '../../scripts/fixtures/heif-writer.ts';
import { converted, fixture } from '../helpers/client.ts';
import { decode, difference, toPixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';

const BITS = box('pixi', Buffer.from([0, 0, 0, 0, 3, 8, 8, 8]));
const BITS_OF_ONE = box('pixi', Buffer.from([0, 0, 0, 0, 1, 8]));

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
      const others = item.properties.filter((one) => one.toString('latin1', 4, 8) !== 'pixi');
      const file = heif({ brand: 'avif', items: [{ ...item, properties: [...others, ...properties] }] });
      const { body } = await converted(service.base, file, { format: 'png' });
      expect(difference(await decode(body), await decode(plain)).max).to.be.at.most(3);
    });
  }

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
});
