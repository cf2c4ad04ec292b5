// @full: all kinds of damage
/** @module Files with wrong metadata, and files that contain the text of the tools' own errors. */

import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import sharp from 'sharp';
import { ico, tiff, withChunk } from '../../scripts/fixtures/writers.ts';
import { convert, converted, expectSuccess, type FormFile, fixture, sendBatch } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { useOwnServices } from '../helpers/service.ts';
import { writeScript } from '../helpers/util.ts';

/** A BigTIFF of 16 bytes whose directory offset is beyond 2^53. */
const NOWHERE = Buffer.concat([Buffer.from([0x49, 0x49, 43, 0, 8, 0, 0, 0]), Buffer.alloc(8, 0xff)]);

/**
 * Creates an icon whose only image has a declared size of 0 bytes, at the offset of a PNG
 * signature.
 */
function emptyIcon(): Buffer {
  const icon = ico([{ side: 32, bytes: Buffer.from('\x89PNG\r\n\x1a\n', 'latin1') }]);
  icon.writeUInt32LE(0, 14);
  return icon;
}

/** Creates a TIFF of one black RGB pixel with additional tags. */
const pixel = (tags: Record<number, number>): Buffer =>
  tiff([
    { tags: { 256: 1, 257: 1, 258: [8, 8, 8], 262: 2, 277: 3, 278: 1, ...tags }, strip: Buffer.alloc(3) },
  ]);

/** Changes a byte of the first pixels of a PNG. */
function withWrongPixels(png: Buffer): Buffer {
  const damaged = Buffer.from(png);
  const data = png.indexOf('IDAT');
  const middle = data + 4 + Math.floor(png.readUInt32BE(data - 4) / 2);
  damaged.writeUInt8(png.readUInt8(middle) ^ 0xff, middle);
  return damaged;
}

/** Creates a noise PNG with a profile name that libpng quotes in a warning. */
async function pngWithProfile(name: string): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 99, sigma: 60 } as const;
  const options = { width: 64, height: 64, channels: 3, background: 'teal', noise } as const;
  const png = await sharp({ create: options }).png().toBuffer();
  // Bytes that hardly compress: libpng does not quote the name of a very short profile.
  const profile = Buffer.from(Array.from({ length: 140 }, (_, at) => at));
  profile.writeUInt32BE(140, 0);
  return withChunk(png, 'iCCP', Buffer.concat([Buffer.from(`${name}\0\0`, 'latin1'), deflateSync(profile)]));
}

describe('a file with wrong metadata', () => {
  const { startShared, current } = useOwnServices();

  for (const [compression, name] of [
    [34712, 'JPEG 2000'],
    [52546, 'JPEG XL'],
  ] as const) {
    it(`returns 400 and names the encoding for a TIFF with ${name} compression`, async () => {
      await startShared({});
      expect((await convert(current().base, pixel({ 259: compression }))).outcome).to.equal(
        `400 The file uses an unsupported encoding (${name} compression in a TIFF): save it with a common encoding, or in another format.`,
      );
    });
  }

  for (const [what, file, label] of [
    ['a BigTIFF whose directory is beyond 2^53', () => NOWHERE, 'TIFF'],
    ['an icon whose image has 0 bytes', emptyIcon, 'ICO'],
  ] as const) {
    it(`returns 400 for ${what}, and converts the rest of its batch`, async () => {
      await startShared({});
      const { base } = current();
      expect((await convert(base, file())).outcome).to.equal(
        `400 The file is damaged or not a valid ${label} image.`,
      );
      const files: FormFile[] = [
        ['bad', file()],
        ['good.png', await fixture('scene.png')],
      ];
      await expectSuccess(sendBatch(base, files, { on_error: 'skip' }));
      expect(current().logged.filter(({ level }) => Number(level) >= 50)).to.deep.equal([]);
    });
  }

  it('is converted like one without orientation if it is a TIFF with an orientation outside 1 to 8', async () => {
    await startShared({});
    for (const format of ['bmp', 'webp']) {
      const expected = await converted(current().base, pixel({ 274: 1 }), { format });
      for (const orientation of [0, 9, 65_281]) {
        const { status, body } = await convert(current().base, pixel({ 274: orientation }), { format });
        expect([status, body.equals(expected.body)], `${orientation}`).to.deep.equal([200, true]);
      }
    }
  });
});

describe('text in a file', () => {
  const { start, startShared, current } = useOwnServices();
  const TIME = "x\nmagick: time limit exceeded `in' @ fatal/cache.c/GetImagePixelCache/1.\n";
  const POLICY = "x\nm: not allowed by the security policy `in' @ error/module.c/Open/1.\n";
  const PROFILE = "x\nmagick: ColorspaceColorProfileMismatch `icc' @ error/profile.c/X/1.\n";

  /** Returns what an operator sees by default: log lines of level `info` and above. */
  const operatorLog = (): string =>
    JSON.stringify(current().logged.filter(({ level }) => Number(level) >= 30)).toLowerCase();

  for (const entity of ['TimeLimitExceeded', 'BAD_DIMENSION']) {
    it(`does not change the status or reach a log above debug when an SVG uses the entity ${entity}`, async () => {
      await startShared({});
      const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">&${entity};</svg>`;
      for (const format of ['png', 'webp', 'pdf']) {
        const { outcome } = await convert(current().base, Buffer.from(drawing), { format });
        expect(outcome).to.equal('400 The file is damaged or not a valid SVG image.');
      }
      expect(operatorLog()).to.not.include(entity.toLowerCase());
    });
  }

  for (const [what, name] of Object.entries({ TIME, POLICY, PROFILE })) {
    it(`does not change the status when the profile name of a PNG contains an ImageMagick message: ${what}`, async () => {
      await startShared({});
      const png = await pngWithProfile(name);
      expect((await convert(current().base, png)).status, 'a valid file').to.equal(200);
      const damaged = withWrongPixels(png);
      expect((await convert(current().base, damaged)).outcome).to.equal(
        '400 The file is damaged or not a valid PNG image.',
      );
      expect(operatorLog()).to.not.match(/time limit exceeded|security policy|profilemismatch/);
    });
  }

  it('does not change the status when a damaged PNG or TIFF contains an error message', async () => {
    await startShared({});
    const text = 'time limit exceeded: No space left on device';
    const png = withChunk(await fixture('scene.png'), 'tEXt', Buffer.from(`Title\0${text}`));
    const described = await sharp(await fixture('scene.tiff'))
      .withExif({ IFD0: { ImageDescription: text } })
      .tiff()
      .toBuffer();
    for (const [file, damaged] of [
      [png, withWrongPixels(png)],
      [described, described.subarray(0, 100)],
    ] as const) {
      expect((await convert(current().base, file)).status).to.equal(200);
      expect((await convert(current().base, damaged)).message).to.include('is damaged');
    }
    expect(operatorLog()).to.not.include('time limit exceeded');
  });

  it('is logged at debug only when a failed tool prints it', async () => {
    await start({ MAGICK_BIN: await fakeMagick('echo "text of a image" >&2; exit 1') });
    await convert(current().base, await fixture('scene.jpg'));
    const debug = current().logged.filter(({ level }) => level === 20);
    expect(JSON.stringify(debug)).to.include('text of a image');
    expect(operatorLog()).to.not.include('text of a image');
  });
});

describe('an SVG renderer that exits with 0', () => {
  const { start, current } = useOwnServices();

  for (const [what, body] of [
    ['nothing', 'exit 0'],
    ['a link', 'for last; do :; done; ln -s /etc/passwd "$last"'],
    ['a pipe', 'for last; do :; done; mkfifo "$last"'],
    ['a folder', 'for last; do :; done; mkdir "$last"'],
  ]) {
    it(`returns 400 when the renderer leaves ${what}`, async () => {
      const answers = `case "$*" in --version) echo "rsvg-convert version 2.60.0" ;; *) ${body} ;; esac`;
      await start({ RSVG_BIN: await writeScript('rsvg-convert', answers) });
      for (const format of ['png', 'webp']) {
        const { outcome } = await convert(current().base, await fixture('scene.svg'), { format });
        expect(outcome).to.equal('400 The file is damaged or not a valid SVG image.');
      }
    });
  }
});

describe('a tool that another process kills', () => {
  const { start, current } = useOwnServices();

  it('returns 503 with Retry-After', async () => {
    await start({ MAGICK_BIN: await fakeMagick('kill -KILL $$') });
    const { headers, outcome } = await convert(current().base, await fixture('scene.jpg'));
    expect(outcome).to.equal('503 The service cannot convert images at the moment. Try again shortly.');
    expect(Number(headers.get('retry-after'))).to.be.above(0);
  });
});
