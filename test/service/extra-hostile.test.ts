import { expect } from 'chai';
import { boxesOf } from '../../scripts/fixtures/boxes.ts';
import { psd } from '../../scripts/fixtures/psd.ts';
import { scene } from '../../scripts/fixtures/scene.ts';
import { seeded } from '../../scripts/stress/random.ts';
import { convert } from '../helpers/client.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { useOwnServices } from '../helpers/service.ts';

/** Files of the formats that operators switch on, made to be too large, to lie, or to be damaged. */

const WHOLE = [
  'scene.heic',
  'grid.heic',
  'scene.jxl',
  'moving.jxl',
  'scene.jp2',
  'window.j2k',
  'scene.psd',
  'scene.cur',
];

/** A HEIC whose every stated size is this. */
async function heicOf(name: string, width: number, height: number): Promise<Buffer> {
  const file = Buffer.from(await extra(name));
  for (let at = file.indexOf('ispe'); at > 0; at = file.indexOf('ispe', at + 4)) {
    file.writeUInt32BE(width, at + 8);
    file.writeUInt32BE(height, at + 12);
  }
  return file;
}

/** A grid whose own data says another size than its properties do (ISO/IEC 23008-12, section 6.6.2.3). */
async function lyingGrid(): Promise<Buffer> {
  const file = Buffer.from(await extra('grid.heic'));
  const meta = boxesOf(file)
    .find(({ name }) => name === 'meta')
    ?.body.subarray(4) as Buffer;
  const data = boxesOf(meta).find(({ name }) => name === 'idat')?.body;
  const grid = data ?? file.subarray(file.indexOf(Buffer.from([0, 0, 1, 1, 1, 0, 0, 192])));
  grid.writeUInt16BE(60_000, 4);
  grid.writeUInt16BE(60_000, 6);
  return file;
}

/** A JPEG XL of 16 384 by 16 384 pixels that has a header and no frame. */
function hugeJxl(): Buffer {
  const bits: number[] = [0]; // sides are no multiples of 8
  const put = (value: number, count: number) => {
    for (let bit = 0; bit < count; bit += 1) bits.push((value >> bit) & 1);
  };
  put(2, 2); // in 18 bits
  put(16_383, 18);
  put(1, 3); // as wide as it is high
  put(1, 1); // all else as usual
  for (let at = 0; at < 64; at += 1) put(0, 8);
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  for (const [at, bit] of bits.entries()) bytes[at >> 3] = (bytes[at >> 3] as number) | (bit << (at & 7));
  return Buffer.concat([Buffer.from([0xff, 0x0a]), bytes]);
}

/** A JPEG 2000 whose codestream is larger than its boxes say. */
async function lyingJp2(): Promise<Buffer> {
  const file = Buffer.from(await extra('scene.jp2'));
  const siz = file.indexOf(Buffer.from([0xff, 0x4f, 0xff, 0x51]));
  file.writeUInt32BE(60_000, siz + 8);
  file.writeUInt32BE(60_000, siz + 12);
  return file;
}

function hugePsd(): Buffer {
  const file = psd(scene(), {});
  file.writeUInt32BE(16_000, 14);
  file.writeUInt32BE(16_000, 18);
  return file;
}

describe('hostile files of the formats that EXTRA_INPUTS switches on', () => {
  const services = useOwnServices();
  beforeEach(() => services.start(ALL_EXTRAS));

  const post = (file: Uint8Array, format = 'png') => convert(services.current().base, file, { format });

  const tooLarge: readonly (readonly [string, () => Promise<Buffer> | Buffer])[] = [
    ['a HEIC of 200 megapixels in a few KB', () => heicOf('scene.heic', 20_000, 10_000)],
    ['a HEIC grid of 200 megapixels', () => heicOf('grid.heic', 20_000, 10_000)],
    ['a JPEG XL of 268 megapixels without a frame', hugeJxl],
    ['a JPEG 2000 whose codestream is larger than its boxes say', lyingJp2],
    ['a PSD of 256 megapixels', hugePsd],
  ];
  for (const [what, file] of tooLarge) {
    it(`refuses ${what} by its header, with 413`, async () => {
      const { status, message } = await post(await file());
      expect(status, message).to.equal(413);
    });
  }

  it('refuses a HEIC whose grid says another size than its properties do', async () => {
    const { status, message } = await post(await lyingGrid());
    expect(status, message).to.be.within(400, 413);
  });

  it('answers a PSD of 10 000 layers with 413, or with its merged picture', async () => {
    const { status, message } = await post(psd(scene(), { layers: 10_000 }));
    expect([200, 413], message).to.include(status);
  });

  for (const name of WHOLE) {
    it(`answers ${name}, cut off or with bytes changed, with a result or a clear refusal`, async () => {
      const whole = await extra(name);
      const { below } = seeded(whole.length);
      const files = [0.05, 0.3, 0.6, 0.95].map((share) => whole.subarray(0, Math.ceil(whole.length * share)));
      for (let round = 0; round < 6; round += 1) {
        const changed = Buffer.from(whole);
        for (let change = 0; change < 5; change += 1) changed[20 + below(changed.length - 20)] = below(256);
        files.push(changed);
      }
      for (const file of files) {
        const { status, message } = await post(file, 'webp');
        expect([200, 400, 413, 415], message).to.include(status);
      }
    });
  }
});
