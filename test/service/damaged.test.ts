import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import sharp from 'sharp';
import { ico, tiff, withChunk } from '../../scripts/fixtures/writers.ts';
import { convert, fixture, sendForm } from '../helpers/client.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { useOwnServices } from '../helpers/service.ts';
import { writeScript } from '../helpers/util.ts';

/** Files that are wrong about themselves, and files whose words are those of the tools' own errors. */

/** A BigTIFF of 16 bytes whose directory is beyond 2^53. */
const NOWHERE = Buffer.concat([Buffer.from([0x49, 0x49, 43, 0, 8, 0, 0, 0]), Buffer.alloc(8, 0xff)]);

/** An icon whose one image is a PNG of 0 bytes, though a signature of PNG is where it is to start. */
function emptyIcon(): Buffer {
  const icon = ico([{ side: 32, bytes: Buffer.from('\x89PNG\r\n\x1a\n', 'latin1') }]);
  icon.writeUInt32LE(0, 14);
  return icon;
}

/** One black pixel in RGB, and more tags. */
const pixel = (tags: Record<number, number>): Buffer =>
  tiff([
    { tags: { 256: 1, 257: 1, 258: [8, 8, 8], 262: 2, 277: 3, 278: 1, ...tags }, strip: Buffer.alloc(3) },
  ]);

/** Noise, so that a part of it can be missing, with a profile of this name that libpng quotes in a warning. */
async function pngWithProfile(name: string): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 99, sigma: 60 } as const;
  const png = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'teal', noise } })
    .png()
    .toBuffer();
  // Bytes that do not pack well: libpng quotes no name of a profile that is very short.
  const profile = Buffer.from(Array.from({ length: 140 }, (_, at) => at));
  profile.writeUInt32BE(140, 0);
  return withChunk(png, 'iCCP', Buffer.concat([Buffer.from(`${name}\0\0`, 'latin1'), deflateSync(profile)]));
}

describe('a file that is wrong about itself', () => {
  const { start, current } = useOwnServices();

  for (const [what, file, label] of [
    ['a BigTIFF whose directory is beyond 2^53', () => NOWHERE, 'TIFF'],
    ['an icon whose image has 0 bytes', emptyIcon, 'ICO'],
  ] as const) {
    it(`is answered with 400 when it is ${what}, and the rest of its batch is converted`, async () => {
      await start({});
      const { base } = current();
      const { status, message } = await convert(base, file());
      expect([status, message]).to.deep.equal([400, `The file is damaged or not a valid ${label} image.`]);
      const form = new FormData();
      form.append('on_error', 'skip');
      form.append('files', new Blob([new Uint8Array(file())]), 'bad');
      form.append('files', new Blob([new Uint8Array(await fixture('scene.png'))]), 'good.png');
      expect((await sendForm(`${base}/batch`, { method: 'POST', body: form })).status).to.equal(200);
      expect(current().logged.filter(({ level }) => Number(level) >= 50)).to.deep.equal([]);
    });
  }

  it('is answered with 400 when it is a TIFF whose orientation is not one of the eight', async () => {
    await start({});
    for (const format of ['bmp', 'pdf', 'webp']) {
      expect((await convert(current().base, pixel({ 274: 6 }), { format })).status).to.equal(200);
      for (const orientation of [0, 9, 65_281]) {
        const { status, message } = await convert(current().base, pixel({ 274: orientation }), { format });
        expect([status, message]).to.deep.equal([400, 'The file is damaged or not a valid TIFF image.']);
      }
    }
  });
});

describe('the words of a file', () => {
  const { start, current } = useOwnServices();
  const TIME = "x\nmagick: time limit exceeded `in' @ fatal/cache.c/GetImagePixelCache/1.\n";
  const POLICY = "x\nm: not allowed by the security policy `in' @ error/module.c/Open/1.\n";
  const PROFILE = "x\nmagick: ColorspaceColorProfileMismatch `icc' @ error/profile.c/X/1.\n";

  /** What an operator sees who has not asked for more: `info` and above. */
  const seen = (): string =>
    JSON.stringify(current().logged.filter(({ level }) => Number(level) >= 30)).toLowerCase();

  for (const entity of ['TimeLimitExceeded', 'BAD_DIMENSION']) {
    it(`decide no status and reach no log above debug when an SVG has the entity ${entity}`, async () => {
      await start({});
      const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">&${entity};</svg>`;
      for (const format of ['png', 'webp', 'pdf']) {
        const { status, message } = await convert(current().base, Buffer.from(drawing), { format });
        expect([status, message]).to.deep.equal([400, 'The file is damaged or not a valid SVG image.']);
      }
      expect(seen()).to.not.include(entity.toLowerCase());
    });
  }

  for (const [what, name] of Object.entries({ TIME, POLICY, PROFILE })) {
    it(`decide nothing when the name of a PNG's profile holds a message of ImageMagick: ${what}`, async () => {
      await start({});
      const png = await pngWithProfile(name);
      expect((await convert(current().base, png)).status, 'a sound file').to.equal(200);
      const cut = png.subarray(0, png.length - 3000);
      const { status, message } = await convert(current().base, cut);
      expect([status, message]).to.deep.equal([400, 'The file is damaged or not a valid PNG image.']);
      expect(seen()).to.not.match(/time limit exceeded|security policy|profilemismatch/);
    });
  }

  it('decide nothing when they are the text of a PNG or the tags of a TIFF that is cut off', async () => {
    await start({});
    const words = 'time limit exceeded: No space left on device';
    const png = withChunk(await fixture('scene.png'), 'tEXt', Buffer.from(`Title\0${words}`));
    const description = await sharp(await fixture('scene.tiff'))
      .withExif({ IFD0: { ImageDescription: words, Software: words } })
      .tiff()
      .toBuffer();
    for (const [file, kept] of [
      [png, 400],
      [description, 100],
    ] as const) {
      expect((await convert(current().base, file)).status).to.equal(200);
      expect((await convert(current().base, file.subarray(0, kept))).message).to.include('is damaged');
    }
    expect(seen()).to.not.include('time limit exceeded');
  });

  it('that a failed tool printed are in the log at debug', async () => {
    await start({ MAGICK_BIN: await fakeMagick('echo "words of a picture" >&2; exit 1') });
    await convert(current().base, await fixture('scene.jpg'));
    const debug = current().logged.filter(({ level }) => level === 20);
    expect(JSON.stringify(debug)).to.include('words of a picture');
    expect(seen()).to.not.include('words of a picture');
  });
});

describe('a tool that draws SVG', () => {
  const { start, current } = useOwnServices();

  for (const [what, body] of [
    ['nothing', 'exit 0'],
    ['a link', 'for last; do :; done; ln -s /etc/passwd "$last"'],
    ['a pipe', 'for last; do :; done; mkfifo "$last"'],
    ['a folder', 'for last; do :; done; mkdir "$last"'],
  ]) {
    it(`is answered with 400 when it says that all is well and leaves ${what}`, async () => {
      const answers = `case "$*" in --version) echo "rsvg-convert version 2.60.0" ;; *) ${body} ;; esac`;
      await start({ RSVG_BIN: await writeScript('rsvg-convert', answers) });
      for (const format of ['png', 'webp']) {
        const { status, message } = await convert(current().base, await fixture('scene.svg'), { format });
        expect([status, message]).to.deep.equal([400, 'The file is damaged or not a valid SVG image.']);
      }
    });
  }
});

describe('a tool that is killed from outside', () => {
  const { start, current } = useOwnServices();

  it('is answered with 503 and Retry-After, since the picture is not to blame', async () => {
    await start({ MAGICK_BIN: await fakeMagick('kill -KILL $$') });
    const { status, message, headers } = await convert(current().base, await fixture('scene.jpg'));
    expect([status, message]).to.deep.equal([
      503,
      'The service cannot convert at the moment. Try again shortly.',
    ]);
    expect(Number(headers.get('retry-after'))).to.be.above(0);
  });
});
