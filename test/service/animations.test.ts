// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { expect } from 'chai';
import sharp from 'sharp';
import { opened } from '../../scripts/fixtures/edge-case.ts';
import { gif } from '../../scripts/fixtures/gif-writer.ts';
import { draw, frame, open, solid } from '../../scripts/fixtures/scene.ts';
import { seeded } from '../../scripts/stress/random.ts';
import { bufferReader } from '../../src/images/containers/file.ts';
import { gifBlocks } from '../../src/images/containers/parts.ts';
import {
  convert,
  converted,
  edgeCase,
  expectSuccess,
  type Fields,
  fixture,
  formOf,
  jsonOf,
  postForm,
} from '../helpers/client.ts';
import { composedFrames, gifWithDisposal } from '../helpers/gif-disposal.ts';
import { decode, difference, drawPdf, type Pixels, pixelAt, toPixels } from '../helpers/pixels.ts';
import { useService, useServiceWith } from '../helpers/service.ts';

/**
 * @module Bugs and gaps of the tools with animations, each with a generated file that triggers it.
 */
describe('animations', () => {
  const service = useService();

  const toResult = (file: Buffer, fields: Fields) => converted(service.base, file, fields);
  /** Creates a WebP of three different frames. */
  const animated = (delay: number[]) =>
    sharp(Buffer.concat([0, 1, 2].map((at) => frame(at).data)), {
      raw: { width: 48, height: 96, channels: 4, pageHeight: 32 },
    }).webp({ lossless: true, delay });
  const timing = async (body: Buffer) => (await sharp(body, { animated: true }).metadata()).delay;

  /** Overwrites 24-bit numbers `at` bytes into the data of each frame's ANMF chunk. */
  const overwritten = (webp: Buffer, at: number, values: readonly number[]): Buffer => {
    const changed = Buffer.from(webp);
    let from = 0;
    for (const value of values) {
      from = changed.indexOf('ANMF', from) + 8;
      changed.writeUIntLE(value, from + at, 3);
    }
    return changed;
  };
  const DURATION = 12;
  /** Cuts a WebP before its first frame, and corrects the length of its RIFF chunk. */
  const withoutFrames = (webp: Buffer): Buffer => {
    const cut = Buffer.from(webp.subarray(0, webp.indexOf('ANMF')));
    cut.writeUInt32LE(cut.length - 8, 4);
    return cut;
  };

  for (const [state, spoil] of [
    ['damaged', (webp: Buffer, at: number) => Buffer.from(webp).fill(0xff, at + 32, at + 60)],
    ['incomplete', (webp: Buffer, at: number) => webp.subarray(0, at + 40)],
  ] as const) {
    it(`are converted to their first frame when a later frame of a WebP is ${state}`, async () => {
      const webp = await animated([100, 100, 100]).toBuffer();
      const file = spoil(webp, webp.indexOf('ANMF', webp.indexOf('ANMF') + 4));
      for (const fields of [{ format: 'png' }, { format: 'webp', frames: 'first', lossless: 'true' }]) {
        const { body, notes } = await toResult(file, fields);
        expect(notes).to.equal('first-frame-only');
        expect(
          difference(await decode(body), await toPixels(sharp(webp))).psnr,
          fields.format,
        ).to.be.greaterThan(60);
      }
      expect((await convert(service.base, file, { format: 'webp' })).status).to.equal(400);
    });
  }

  for (const [what, spoil] of [
    ['is outside of the canvas', (webp: Buffer) => overwritten(webp, 0, [40])],
    ['has no valid image', (webp: Buffer) => Buffer.from(webp).fill(0xff, webp.indexOf('VP8L') + 8)],
    [
      'is longer than its chunk',
      (webp: Buffer) => Buffer.from(webp).fill(0x7f, webp.indexOf('VP8L') + 7, webp.indexOf('VP8L') + 8),
    ],
    [
      'follows no ANIM chunk',
      (webp: Buffer) => Buffer.from(webp).fill('X', webp.indexOf('ANIM'), webp.indexOf('ANIM') + 1),
    ],
    ['is missing', (webp: Buffer) => withoutFrames(webp)],
  ] as const) {
    it(`are rejected with 400 if the first frame of a WebP ${what}, instead of converted to an empty canvas`, async () => {
      const file = spoil(await animated([100, 100, 100]).toBuffer());
      for (const fields of [{ format: 'png' }, { format: 'webp' }, { format: 'webp', frames: 'first' }])
        expect((await convert(service.base, file, fields)).status, JSON.stringify(fields)).to.equal(400);
    });
  }

  for (const { delays, inWebp = delays, inGif } of [
    { delays: [16, 17, 42], inGif: [20, 20, 40] },
    { delays: [0, 250, 40], inWebp: [100, 250, 40], inGif: [100, 250, 40] },
    { delays: [700_000, 100, 100], inGif: [655_350, 44_850, 100] },
  ] as readonly { delays: number[]; inWebp?: number[]; inGif: number[] }[]) {
    it(`converts WebP frames of ${delays} ms to ${inWebp} ms in webp and ${inGif} ms in gif`, async () => {
      const source = overwritten(await animated([100, 100, 100]).toBuffer(), DURATION, delays);
      expect(await timing((await toResult(source, { format: 'webp' })).body)).to.deep.equal(inWebp);
      const gif = await timing((await toResult(source, { format: 'gif' })).body);
      expect(gif?.[0]).to.equal(inGif[0]);
      if (Number(delays[0]) < 1000) expect(gif).to.deep.equal(inGif);
    });
  }

  it('lasts as long in gif as the WebP with frames of 16 ms, without some of the frames', async () => {
    const count = 60;
    const shades = Array.from({ length: count }, (_, at) => solid(8, [at * 4, 0, 90, 255]).data);
    const image = sharp(Buffer.concat(shades), {
      raw: { width: 8, height: 8 * count, channels: 4, pageHeight: 8 },
    });
    const source = await image.webp({ lossless: true, delay: shades.map(() => 16) }).toBuffer();
    for (const fields of [{}, { width: '5', trim: '3', sharpen: '1' }] as Fields[]) {
      const { body, notes } = await toResult(source, { format: 'gif', ...fields });
      expect(notes).to.equal('trim' in fields ? 'not-trimmed' : null);
      expect(await timing(body)).to.deep.equal(Array(48).fill(20));
      const { data, width } = await decode(body);
      const reds = Array.from({ length: 48 }, (_, at) => (data[at * width * width * 4] as number) / 4);
      const expected = Array.from({ length: 48 }, (_, at) => Math.floor((at * 20) / 16));
      for (const [at, red] of reds.entries()) expect(red, `${at}`).to.be.closeTo(expected[at] as number, 2);
    }
  });

  it('notes timing-changed if a GIF cannot last as long as its source, also when it is identified', async () => {
    const source = await animated([100, 100, 100]).toBuffer();
    for (const [delays, notes] of [
      [[5, 5, 5], 'timing-changed'],
      [[100, 100, 700_000], 'timing-changed'],
      [[700_000, 100, 100], null],
      [[10, 10, 200], null],
    ] as const) {
      const file = overwritten(source, DURATION, delays);
      expect((await toResult(file, { format: 'gif' })).notes, `${delays}`).to.equal(notes);
      expect((await toResult(file, { format: 'webp' })).notes, `${delays}`).to.equal(null);
      const form = formOf({ format: 'gif' }, [['moving.webp', file]]);
      const { conversion } = jsonOf(await postForm(`${service.base}/identify`, form));
      expect(conversion.notes, `${delays}`).to.deep.equal(notes === null ? [] : [notes]);
    }
  });

  it('converts an animated WebP in Display P3 to sRGB and notes it', async () => {
    const colour = Buffer.alloc(48 * 96 * 4, Buffer.from([229, 40, 30, 255]));
    frame(0).data.copy(colour, 48 * 64 * 4); // one frame differs
    const image = sharp(colour, { raw: { width: 48, height: 96, channels: 4, pageHeight: 32 } });
    const source = await image
      .webp({ lossless: true, delay: [100, 100, 100] })
      .withIccProfile('p3')
      .toBuffer();
    for (const [format, keep] of [
      ['webp', 'false'],
      ['webp', 'true'],
      ['png', 'true'],
      ['gif', 'true'],
    ] as const) {
      const { body, notes } = await toResult(source, { format, quality: '95', strip_metadata: keep });
      expect(notes, format).to.include('colour-converted-to-srgb');
      const shown = pixelAt(await decode(body), 24, 16);
      for (const [at, value] of [229, 40, 30].entries()) {
        expect(shown[at], `${format}: ${shown}`).to.be.closeTo(value, 9); // read as sRGB: 211,61,45
      }
    }
  });

  it('keeps the area around a single WebP frame smaller than its canvas transparent', async () => {
    const two = await animated([100, 100, 100]).toBuffer();
    // Keep only the header, the loop count and one frame; then move the frame and enlarge the
    // canvas.
    const start = two.indexOf('ANMF');
    const length = two.readUInt32LE(start + 4);
    const one = Buffer.concat([two.subarray(0, start + 8 + length + (length % 2))]);
    one.writeUInt32LE(one.length - 8, 4);
    one[20] = (one[20] as number) | 0x10;
    one.writeUIntLE(63, 24, 3);
    one.writeUIntLE(47, 27, 3);
    one.writeUIntLE(2, start + 8, 3);
    one.writeUIntLE(3, start + 11, 3);
    for (const format of ['png', 'webp', 'gif'] as const) {
      const shown = await decode((await toResult(one, { format })).body);
      expect(
        [shown.width, shown.height, pixelAt(shown, 0, 0)[3], pixelAt(shown, 20, 20)[3]],
        format,
      ).to.deep.equal([64, 48, 0, 255]);
    }
    expect((await toResult(one, { format: 'jpg' })).notes).to.equal('alpha-flattened');
  });

  it('repeats a GIF as often as the last of its loop extensions states, also after its frames', async () => {
    const file = await fixture('moving.gif');
    const start = file.indexOf('NETSCAPE2.0') - 3;
    const [before, after] = [file.subarray(0, start), file.subarray(start + 19, -1)];
    const repeating = (count: number): Buffer =>
      Buffer.concat([file.subarray(start, start + 16), Buffer.of(count, 0, 0)]);
    for (const parts of [
      [before, repeating(5), repeating(2), after],
      [before, repeating(5), after, repeating(2)],
    ]) {
      const gif = Buffer.concat([...parts, file.subarray(-1)]);
      expect((await sharp(gif).metadata()).loop).to.equal(3);
      for (const fields of [{ format: 'gif' }, { format: 'gif', width: '20' }, { format: 'webp' }]) {
        const { body } = await converted(service.base, gif, fields);
        expect((await sharp(body).metadata()).loop, JSON.stringify(fields)).to.equal(3);
      }
    }
  });

  it('keeps the maximum loop count from GIF to WebP', async () => {
    const gif = Buffer.from(await fixture('moving.gif'));
    gif.writeUInt16LE(0xffff, gif.indexOf('NETSCAPE2.0') + 13);
    const { body } = await toResult(gif, { format: 'webp' });
    expect((await sharp(body, { animated: true }).metadata()).loop).to.equal(65_535);
  });

  it('clears the area of a WebP frame with disposal to background in a GIF', async () => {
    const source = await animated([100, 100, 100]).toBuffer();
    // The first frame is disposed to the background; the second is smaller, as the encoder wrote
    // it.
    const first = source.indexOf('ANMF') + 8;
    const cleared = Buffer.from(source);
    cleared[first + 15] = (cleared[first + 15] as number) | 1;
    cleared[20] = (cleared[20] as number) | 0x10;
    const expected = await decode(cleared);
    const shown = await decode((await toResult(cleared, { format: 'gif' })).body);
    expect(pixelAt(expected, 47, 33)[3]).to.equal(0);
    expect(pixelAt(shown, 47, 33)[3]).to.equal(0);
  });

  // Disposal 2 leaves transparent pixels, which decoders show in different ways:
  // test/web/same-as-browser.test.ts.
  it('shows each frame of a GIF as its disposal methods state, also of one without a control extension', async () => {
    for (const first of [0, 1, 3])
      for (const second of [0, 1, 3, 'none'] as const)
        for (const format of ['webp', 'gif']) {
          const { body } = await toResult(gifWithDisposal(first, second), { format, lossless: 'true' });
          const { max } = difference(await decode(body), composedFrames(first, second));
          expect(max, `${first} and ${second} in ${format}`).to.equal(0);
        }
  });

  it('stores only what changes in a GIF that did, and shows each frame as its disposal methods state', async () => {
    for (const first of [0, 1, 3])
      for (const second of [0, 1, 3]) {
        const { body } = await toResult(gifWithDisposal(first, second), {
          format: 'gif',
          flip: 'horizontal',
        });
        const [shown, composed] = [await decode(body), composedFrames(first, second)];
        const { width } = composed;
        const flipped = await toPixels(open(composed).flop());
        expect(difference(shown, flipped).max, `${first} and ${second}`).to.equal(0);
        expect(await frameWidths(body), `${first} and ${second}`).to.satisfy(
          ([whole, ...parts]: number[]) => whole === width && parts.every((part) => part < width),
        );
      }
  });

  it('keeps a reduced GIF that stores only what changes within 1.15 times the bytes of sharp', async () => {
    const [count, side] = [16, 240];
    const { data } = await opened()
      .resize(side, side, { fit: 'fill' })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const ball = Buffer.from(
      '<svg width="40" height="40"><circle cx="20" cy="20" r="18" fill="#e33"/></svg>',
    );
    const frames = Array.from({ length: count }, (_, at) =>
      sharp(data, { raw: { width: side, height: side, channels: 3 } })
        .composite([{ input: ball, left: 12 * at, top: 90 }])
        .png()
        .toBuffer(),
    );
    const delay = frames.map((_, at) => 40 + 10 * at);
    const source = await sharp(await Promise.all(frames), { join: { animated: true } })
      .gif({ delay, loop: 3 })
      .toBuffer();
    const { body } = await toResult(source, { format: 'gif', width: '150' });
    const reduced = sharp(source, { animated: true }).resize({ width: 150 });
    expect(body.length).to.be.below(1.15 * (await reduced.clone().gif({ delay, loop: 3 }).toBuffer()).length);
    expect(await timing(body)).to.deep.equal(delay);
    expect((await sharp(body).metadata()).loop).to.equal(3);
    expect(difference(await decode(body), await toPixels(reduced)).psnr).to.be.above(28);
    expect((await frameWidths(body)).slice(1)).to.satisfy((widths: number[]) => Math.max(...widths) < 60);
  });

  it('restores what was before a GIF frame of disposal method 4, as browsers do', async () => {
    const source = await edgeCase('disposal-4.gif');
    for (const fields of [
      { format: 'webp', lossless: 'true' },
      { format: 'gif' },
      { format: 'gif', width: '24' },
    ]) {
      const { body } = await toResult(source, fields);
      const [second, third] = await Promise.all([1, 2].map(async (page) => toPixels(sharp(body, { page }))));
      expect(pixelAt(second as Pixels, 5, 5)).to.deep.equal([40, 90, 160, 255]);
      expect(pixelAt(third as Pixels, 5, 5)).to.deep.equal([200, 40, 40, 255]);
      expect(pixelAt(third as Pixels, 17, 7)).to.deep.equal([30, 160, 60, 255]);
    }
  });

  it('notes alpha-flattened when only a later page has transparency', async () => {
    const { body, notes } = await toResult(await movingWithHole(), {
      format: 'pdf',
      frames: 'all',
      background: '#ffffff',
    });
    expect(notes).to.equal('alpha-flattened');
    for (const channel of pixelAt(await decode(await drawPdf(body, 2)), 4, 4))
      expect(channel).to.be.at.least(250);
  });

  /** Creates an animation of a bar that moves over a transparent background. */
  const bars = (format: 'gif' | 'webp'): Promise<Buffer> => {
    const frames = [0, 1, 2, 3].map((at) => bar(4 + at * 10).data);
    const image = sharp(Buffer.concat(frames), {
      raw: { width: 48, height: 128, channels: 4, pageHeight: 32 },
    });
    const timing = { delay: [50, 0, 10, 70], loop: 0 };
    return (
      format === 'gif' ? image.gif({ ...timing, dither: 0 }) : image.webp({ ...timing, lossless: true })
    ).toBuffer();
  };
  for (const [from, to, fields] of [
    ['gif', 'gif', {}],
    ['gif', 'webp', { width: '24' }],
    ['webp', 'gif', { width: '24' }],
    ['webp', 'webp', {}],
    ['webp', 'webp', { width: '24' }],
  ] as const)
    it(`leaves no trail behind a moving bar from ${from} to ${to}${'width' in fields ? ', resized' : ''}`, async () => {
      const source = await bars(from);
      const shown = await decode((await toResult(source, { format: to, ...fields })).body);
      const whole = sharp(source, { animated: true });
      const isResized = 'width' in fields;
      const expected = await toPixels(isResized ? whole.resize(24, null, { kernel: 'nearest' }) : whole);
      expect(difference(shown, expected).psnr).to.be.at.least(isResized ? 14 : 24); // with trails: below 11
    });

  for (const format of ['png', 'tiff'] as const) {
    it(`keeps 16 bits per channel from ${format} to PNG`, async () => {
      const values = Uint16Array.from({ length: 64 * 16 * 3 }, (_, at) => (at * 12_345) % 65_536);
      const image = sharp(values, { raw: { width: 64, height: 16, channels: 3 } }).toColourspace('rgb16');
      const source = await (format === 'png' ? image.png() : image.tiff({ compression: 'lzw' })).toBuffer();
      const { body } = await expectSuccess(convert(service.base, source, { format: 'png' }));
      const shown = await sharp(body).toColourspace('rgb16').raw({ depth: 'ushort' }).toBuffer();
      const kept = new Uint16Array(shown.buffer, shown.byteOffset, shown.length / 2);
      expect([...kept]).to.deep.equal([...values]);
    });
  }

  it('notes partial transparency that a GIF loses, of any frame of an animation', async () => {
    const frames = (partial: number) =>
      Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          open(solid(9, [at * 9, 0, 90, at === partial ? 128 : 255]))
            .png()
            .toBuffer(),
        ),
      );
    for (const [partial, notes] of [
      [17, 'partial-alpha-lost'],
      [-1, null],
    ] as const) {
      const source = await sharp(await frames(partial), { join: { animated: true } })
        .webp({ lossless: true })
        .toBuffer();
      expect((await toResult(source, { format: 'gif' })).notes).to.equal(notes);
    }
  });

  it('keeps every pixel of a lossless animation, and stores only the parts that change', async () => {
    const random = seeded(7);
    const noise = Buffer.from(Array.from({ length: 48 * 32 * 3 }, () => random.below(256)));
    const frames = Array.from({ length: 20 }, (_, at) => Buffer.from(noise).fill(90, at * 99, at * 99 + 30));
    const raw = { width: 48, height: 32 * frames.length, channels: 3, pageHeight: 32 } as const;
    const image = sharp(Buffer.concat(frames), { raw });
    const source = await image.webp({ lossless: true, delay: frames.map(() => 100) }).toBuffer();
    const { body } = await toResult(source, { format: 'webp', lossless: 'true' });
    const shown = await sharp(body, { animated: true }).removeAlpha().raw().toBuffer();
    expect(shown.equals(Buffer.concat(frames))).to.equal(true);
    expect(body.length).to.be.below(source.length * 1.2);
  });

  it('returns 400 with the reason for an animation too large for WebP', async () => {
    const raw = { width: 16_384, height: 8, channels: 3, pageHeight: 4 } as const;
    const frames = [40, 200].map((value) => Buffer.alloc(raw.width * 4 * 3, value));
    const wide = await sharp(Buffer.concat(frames), { raw }).gif().toBuffer();
    expect((await convert(service.base, wide, { format: 'webp' })).outcome).to.equal(
      '400 The file is too large for WebP, which supports at most 16383 pixels per side: set a smaller width or height, or choose another format.',
    );
  });

  it('encodes an animated WebP lossily at quality 100', async () => {
    const { body } = await toResult(await fixture('moving.gif'), { format: 'webp', quality: '100' });
    expect(body.includes('VP8L')).to.equal(false);
  });
});

describe('animations of thousands of frames', () => {
  const service = useServiceWith({ MAX_FRAMES: '3000' });

  it('are converted from GIF to WebP with every frame', async () => {
    const palette = [
      [200, 40, 40],
      [40, 90, 160],
    ].flatMap((colour) => [colour, colour]);
    const frames = Array.from({ length: 2100 }, (_, at) => {
      return { x: 0, y: 0, width: 1, height: 1, colour: at % 4 };
    });
    const file = gif({ width: 1, height: 1, palette, frames, repeats: 'NETSCAPE2.0' });
    const { body } = await converted(service.base, file, { format: 'webp' });
    const { delay = [] } = await sharp(body, { animated: true }).metadata();
    // Equal neighbours are one frame that is shown longer.
    expect(delay).to.have.length(1050);
    expect(delay.reduce((total, one) => total + one, 0)).to.equal(210_000);
  });
});

async function frameWidths(body: Buffer): Promise<number[]> {
  const widths: number[] = [];
  for await (const { name, head } of gifBlocks(bufferReader(body)))
    if (name === 'image') widths.push(head.readUInt16LE(5));
  return widths;
}

/** Draws a vertical bar at this left edge on a transparent background. */
const bar = (left: number): Pixels =>
  draw(48, 32, (x) => (x >= left && x < left + 8 ? [200, 40, 40, 255] : [0, 0, 0, 0]));

/** Creates an animated WebP of two frames, the second with a transparent corner. */
async function movingWithHole(): Promise<Buffer> {
  const frames = Buffer.concat([frame(0).data, frame(1).data]);
  for (let y = 32; y < 42; y += 1) frames.fill(0, y * 48 * 4, (y * 48 + 10) * 4);
  const raw = { width: 48, height: 64, channels: 4, pageHeight: 32 } as const;
  return sharp(frames, { raw })
    .webp({ lossless: true, delay: [100, 100] })
    .toBuffer();
}
