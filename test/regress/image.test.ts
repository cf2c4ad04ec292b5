import { expect } from 'chai';
import { open, scene, square } from '../../scripts/fixtures/scene.ts';
import { ico, iconBitmap } from '../../scripts/fixtures/writers.ts';
import { decode } from '../../src/regress/image/codec.ts';
import { digestOf, distance, fingerprintsOf } from '../../src/regress/image/fingerprint.ts';
import type { Raster } from '../../src/regress/image/image.ts';
import { convert, fixture } from '../helpers/client.ts';
import { extra } from '../helpers/extra.ts';
import { decode as decodeOtherwise, difference, type Pixels } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { blurred, image, original, redrawn } from './images.ts';

describe('the decoders of regress', () => {
  const service = useService();

  for (const format of ['bmp', 'pdf'] as const) {
    it(`decode ${format} like an independent decoder`, async () => {
      for (const name of ['scene.jpg', 'window.png']) {
        const { body } = await convert(service.base, await fixture(name), { format });
        const { frames } = await decode(body, format);
        const [raster] = frames;
        const same = { ...raster, data: Buffer.from(raster?.data ?? []) } as Parameters<typeof difference>[0];
        // Poppler and PDFium upsample the chroma of a JPEG differently.
        const least = format === 'bmp' ? Number.POSITIVE_INFINITY : 36;
        expect(difference(same, await decodeOtherwise(body, format)).psnr).to.be.at.least(least);
      }
    });
  }

  it('decode every page of a PDF, and every frame of an animation with its delay', async () => {
    const pages = await convert(service.base, await fixture('pages.tiff'), { format: 'pdf' });
    expect((await decode(pages.body, 'pdf')).facts.frames).to.equal(3);
    const { facts, frames } = await decode(await fixture('moving.gif'), 'gif');
    expect(facts).to.include({ frames: 3, plays: 3 });
    expect(facts.delays).to.deep.equal([100, 250, 40]);
    expect(frames.map(({ height }) => height)).to.deep.equal([facts.height, facts.height, facts.height]);
  });

  it('detect the colour profile and the kinds of metadata', async () => {
    const kept = await decode(await fixture('private.jpg'), 'jpg');
    expect(kept.facts.metadata).to.include.members(['exif', 'xmp']);
    expect((await decode(await fixture('p3.png'), 'png')).facts.profile).to.match(/^[\da-f]{8}$/);
    const plain = (await decode(await fixture('scene.png'), 'png')).facts;
    expect(plain).to.include({ profile: undefined, metadata: undefined });
  });

  it('decode all images of an icon, and JPEG XL, AVIF and TIFF', async () => {
    const sides = [32, 16];
    const icon = ico(sides.map((side) => ({ side, bytes: iconBitmap(square(side)) })));
    const { frames } = await decode(icon, 'ico');
    expect(frames).to.have.length(sides.length);
    for (const [at, side] of sides.entries())
      expect(difference(frames[at] as Pixels, square(side)).max).to.equal(0);
    const jxl = await decode(await extra('window.jxl'), 'jxl');
    expect(difference(jxl.frames[0] as Pixels, scene({ transparent: true })).max).to.equal(0);
    expect((await decode(await fixture('scene.avif'), 'avif')).facts).to.include({ width: 120, height: 80 });
    expect((await decode(await fixture('pages.tiff'), 'tiff')).facts).to.include({ frames: 3 });
  });

  it('throw for a file that is not an image', async () => {
    for (const format of ['webp', 'bmp', 'pdf'] as const) {
      const file = Buffer.from('BM nothing of a image, and not long at all either');
      expect(await decode(file, format).catch((error) => error), format).to.be.instanceOf(Error);
    }
  });
});

describe('the fingerprint of an image', () => {
  const of = (raster: Raster) => fingerprintsOf(image([raster]));

  it('is short, and equal for equal images', () => {
    expect(of(original())).to.deep.equal(of(original()));
    expect(of(original())[0]).to.have.lengthOf.at.most(120);
    expect(distance(of(original()), of(original()))).to.deep.equal({ means: 0, sharpness: 0 });
  });

  it('differs little between two settings of an encoder', async () => {
    const encoded = async (quality: number): Promise<Raster> => {
      const { frames } = await decode(await open(original()).jpeg({ quality }).toBuffer(), 'jpg');
      return frames[0] as Raster;
    };
    const [one, other] = [await encoded(89), await encoded(90)];
    const delta = distance(of(one), of(other));
    expect(digestOf(image([one]))).not.to.equal(digestOf(image([other])));
    expect(delta.means).to.be.at.most(2);
    expect(delta.sharpness).to.be.at.most(0.05);
  });

  it('differs when an image is slightly blurred, rotated or recoloured', async () => {
    const turned = redrawn(original(), (x, y) => {
      const { width, height, data } = original();
      const at = ((height - 1 - y) * width + (width - 1 - x)) * 4;
      return [...data.subarray(at, at + 4)];
    });
    const delta = async (raster: Raster) => distance(of(original()), of(raster));
    expect((await delta(await blurred(original(), 0.6))).sharpness).to.be.above(0.05);
    expect((await delta(turned)).means).to.be.above(20);
  });

  it('exists for an image of one pixel, and covers three frames of an animation', () => {
    expect(of({ width: 1, height: 1, data: new Uint8Array([1, 2, 3, 255]) })).to.have.length(1);
    const frames = Array.from({ length: 9 }, () => square(16));
    expect(fingerprintsOf(image(frames))).to.have.length(3);
    expect(fingerprintsOf(image(frames.slice(0, 2)))).to.have.length(2);
  });
});
