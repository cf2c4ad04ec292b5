// @full: all attacks on the event loop
// @slow
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { box } from '../../scripts/fixtures/boxes.ts';
import { memoryOf, PROBE_MODULE, readProbe, slowness } from '../../scripts/processes/usage.ts';
import { ONE_PIXEL } from '../../src/process/policy.ts';
import { sendForm } from '../helpers/client.ts';
import { ALL_EXTRAS, extra } from '../helpers/extra.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { HOSTILE_ARCHIVES, HOSTILE_IMAGES, LARGEST_IMAGES, MARKS } from '../helpers/hostile-files.ts';
import { type ServiceProcess, startProcess } from '../helpers/process.ts';
import { dial } from '../helpers/raw-http.ts';

/**
 * Maximum CPU time for which a request of 10 MiB or less may block the event loop, in ms, on a
 * machine without {@link slowness}.
 */
const MAX_TURN_MS = 50;
/**
 * Number of attempts; the best counts, because garbage collection and compilation may fall into any
 * of them.
 */
const TRIES = 5;

describe('the event loop', () => {
  let server: ServiceProcess;
  let base: string;
  let file: string;
  before(async () => {
    file = join(await makeTempDir('stalls'), 'probe');
    server = startProcess({
      ...ALL_EXTRAS,
      TEMP_DIR: await makeTempDir('stalls-temp'),
      CONVERT_TIMEOUT_MS: '5000', // the main thread does most of its work before the tools
      NODE_OPTIONS: `--import=${PROBE_MODULE}`,
      PROBE_FILE: file,
    });
    base = await server.base();
  });
  after(async () => {
    server.child.kill('SIGTERM');
    await server.ended();
  });

  const longestTurn = async (): Promise<number> => (await readProbe(server.pid, file)).longestTurnMs;

  /** Measures the longest turn during an attack, in ms: the minimum of several attempts. */
  async function longestTurnDuring(attack: () => Promise<void>): Promise<number> {
    let best = Number.POSITIVE_INFINITY;
    for (let count = 0; count < TRIES && best >= MAX_TURN_MS; count += 1) {
      await longestTurn();
      await attack();
      const turnMs = await longestTurn();
      best = Math.min(best, turnMs < MAX_TURN_MS ? turnMs : turnMs / slowness());
    }
    return best;
  }

  /** Measures the longest turn during a request, in ms. */
  const longestTurnOf = (body: Buffer, path = '/batch'): Promise<number> =>
    longestTurnDuring(async () => {
      const headers = { 'content-type': 'multipart/form-data; boundary=xyz' };
      const init = { method: 'POST', headers, body: new Uint8Array(body) };
      const { status, message } = await sendForm(`${base}${path}`, init);
      expect(status, message).to.be.oneOf([200, 400, 413, 415, 503]);
    });

  const part = (parameters: string, content: Buffer | string): Buffer =>
    Buffer.concat([
      Buffer.from(`--xyz\r\nContent-Disposition: form-data; ${parameters}\r\n\r\n`),
      Buffer.from(content as string),
      Buffer.from('\r\n'),
    ]);
  const END = Buffer.from('--xyz--\r\n');
  const body = (parts: readonly Buffer[]): Buffer => Buffer.concat([...parts, END]);
  const times = (count: number, make: (at: number) => Buffer): Buffer[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const MIB = 1024 ** 2;

  const BODIES: Readonly<Record<string, () => Buffer>> = {
    'for 20 file names of combining marks': () =>
      body(times(20, () => part(`name="files"; filename="${MARKS.slice(12_200, 19_900)}.png"`, ONE_PIXEL))),
    'for 20 file names in the extended form': () =>
      body(
        times(20, () => part(`name="files"; filename*=UTF-8''${'%cc%80%cc%a3'.repeat(1300)}.png`, ONE_PIXEL)),
      ),
    'for 20 files with backslashes and quotation marks in their names': () =>
      body(times(20, () => part(`name="files"; filename="${'\\"'.repeat(7900)}`, ONE_PIXEL))),
    'for 100 fields of 100 kB': () =>
      body([
        ...times(100, (at) => part(`name="x${at}"`, Buffer.alloc(100_000))),
        part('name="files"; filename="a"', ONE_PIXEL),
      ]),
    'for fields with long whitespace in their headers': () =>
      body(times(100, () => part(`name="x";${' '.repeat(8000)}x${' '.repeat(7000)}`, ''))),
    'for a file that nearly repeats the boundary': () =>
      body([part('name="files"; filename="a"', Buffer.alloc(9 * MIB, '\r\n--xy'))]),
    'for a file of line breaks': () =>
      body([part('name="files"; filename="a"', Buffer.alloc(9 * MIB, '\r\n'))]),
    'for a preamble of 9 MiB': () => Buffer.concat([Buffer.alloc(9 * MIB, '\r'), END]),
    'for a body of empty parts': () => body(times(100_000, () => part('name="x"', ''))),
    'for an archive among files': () =>
      body([part('name="files"; filename="a"', ONE_PIXEL), part('name="files"; filename="b"', 'PK\x05\x06')]),
  };

  for (const [what, make] of Object.entries(BODIES)) {
    it(`is blocked for less than ${MAX_TURN_MS} ms ${what}`, async () => {
      expect(await longestTurnOf(make())).to.be.below(MAX_TURN_MS);
    });
  }

  for (const [what, request] of [
    ['in HTTP/1.1', 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['in HTTP/1.0', 'GET /api/v1/openapi.json HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'],
  ] as const) {
    it(`is blocked for less than ${MAX_TURN_MS} ms by 3000 pipelined requests ${what}, within 60 MB`, async () => {
      const memoryBefore = memoryOf(server.pid).resident;
      const turnMs = await longestTurnDuring(async () => {
        const sockets = await Promise.all(Array.from({ length: 20 }, () => dial(base)));
        for (const socket of sockets) socket.pause().write(request.repeat(3000));
        for (let count = 0; count < 100; count += 1)
          expect((await fetch(new URL('/livez', base))).status).to.equal(200);
        expect(memoryOf(server.pid).resident - memoryBefore).to.be.below(60e6);
        for (const socket of sockets) socket.destroy();
      });
      expect(turnMs).to.be.below(MAX_TURN_MS);
    });
  }

  /** Builds EXIF of one entry, the orientation, and this number of bytes. */
  const exif = (bytes: number): Buffer =>
    Buffer.concat([
      Buffer.from('II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0', 'latin1'),
      randomBytes(bytes),
    ]);
  const METADATA: Readonly<Record<string, () => Promise<Buffer>>> = {
    async 'an AVIF with 9 MiB of EXIF'() {
      const folder = await makeTempDir('stalls-exif');
      await writeFile(join(folder, 'in.png'), ONE_PIXEL);
      await writeFile(join(folder, 'exif'), exif(9 * MIB));
      const args = ['-s', '10', '--exif', 'exif', 'in.png', 'out.avif'];
      execFileSync('avifenc', args, { cwd: folder, stdio: 'ignore' });
      return readFile(join(folder, 'out.avif'));
    },
    async 'a JPEG XL with 3.9 MiB of EXIF'() {
      const start = [
        box('JXL ', Buffer.from('\r\n\x87\n', 'latin1')),
        box('ftyp', Buffer.from('jxl \0\0\0\0jxl ')),
      ];
      const metadata = box('Exif', Buffer.concat([Buffer.alloc(4), exif(3.9 * MIB)]));
      return Buffer.concat([...start, metadata, box('jxlc', await extra('scene.jxl'))]);
    },
    async 'a JPEG 2000 of 900000 boxes'() {
      const file = await extra('unnamed.jp2');
      const start = file.indexOf('jp2h') - 4;
      const boxes = Buffer.alloc(900_000 * 8, box('free', Buffer.alloc(0)));
      return Buffer.concat([file.subarray(0, start), boxes, file.subarray(start)]);
    },
  };

  for (const [what, make] of Object.entries({ ...HOSTILE_IMAGES, ...HOSTILE_ARCHIVES, ...METADATA })) {
    it(`is blocked for less than ${MAX_TURN_MS} ms for ${what}`, async () => {
      const content = await make();
      expect(content.length).to.be.at.most(10 * MIB);
      const fields = [part('name="format"', 'png'), part('name="strip_metadata"', 'no')];
      const request = body([part('name="files"; filename="a"', content), ...fields]);
      expect(await longestTurnOf(request)).to.be.below(MAX_TURN_MS);
    });
  }

  /** Options that add to the plan of each frame or page. */
  const EDITS = {
    trim: '5',
    width: '9',
    height: '7',
    fit: 'cover',
    position: 'attention',
    enlarge: 'true',
    sharpen: '1',
    watermark_repeat: 'true',
    frames: 'all',
  };
  /** Options of variants: each adds to the plan in another way. */
  const VARIED = [{}, EDITS, { width: '3', watermark_repeat: 'true' }, { pages: '1-300', trim: '5' }];
  const VARIANTS = ['pdf', 'gif', 'tiff'].flatMap((format) =>
    VARIED.map((options, at) => ({ name: `${format}${at}`, format, ...options })),
  );
  const watermark = part('name="watermark"; filename="w.png"', ONE_PIXEL);
  const field = (name: string, value: string): Buffer => part(`name="${name}"`, value);
  const fieldsOf = (fields: Record<string, string>): Buffer[] =>
    Object.entries(fields).map((entry) => field(...entry));
  const explained = (format: string): Buffer[] => [
    ...fieldsOf({ ...EDITS, format, plan: 'true', reveal: 'true' }),
    watermark,
  ];
  const several = { variants: JSON.stringify(VARIANTS), on_error: 'skip', manifest: 'true' };
  const paged = { format: 'png', pages: '1-500', trim: '5' };
  const asPdf = ['identified with its plan as PDF', '/identify', 20, explained('pdf')] as const;
  /** What differs for images of many pages: the plans. */
  const PLANNED = [
    asPdf,
    ['identified with its plan as GIF', '/identify', 20, explained('gif')],
    ['identified with its plan as WebP', '/identify', 20, explained('webp')],
    ['converted to 12 variants in a batch', '/batch', 2, [...fieldsOf(several), watermark]],
    ['converted to each of its pages', '/convert', 1, [...fieldsOf(paged), watermark]],
  ] as const;
  const ATTACKS = [
    ...PLANNED.flatMap((request) => Object.entries(LARGEST_IMAGES).map((image) => [image, request] as const)),
    // Few of them reach a plan, so one request reads all that can be read.
    ...Object.entries({ ...HOSTILE_IMAGES, ...METADATA }).map((image) => [image, asPdf] as const),
  ];

  for (const [[what, make], [how, path, files, parts]] of ATTACKS) {
    it(`is blocked for less than ${MAX_TURN_MS} ms for ${what} ${how}`, async () => {
      const content = await make();
      const count = Math.max(1, Math.min(files, Math.floor((20 * MIB) / content.length)));
      const name = path === '/convert' ? 'file' : 'files';
      // Files that differ are not converted together.
      const copies = times(count, (at) =>
        part(`name="${name}"; filename="a"`, Buffer.concat([content, Buffer.from(`${at}`)])),
      );
      expect(await longestTurnOf(body([...copies, ...parts]), path)).to.be.below(MAX_TURN_MS);
    });
  }

  /** A photo of 12 megapixels, different for each number. */
  const largePhoto = (at: number): Promise<Buffer> =>
    sharp(
      Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" width="4000" height="3000"><defs><radialGradient id="b"><stop offset="0" stop-color="#ffc2b0"/><stop offset="1" stop-color="#6b51${48 + at}"/></radialGradient></defs><rect width="4000" height="3000" fill="url(#b)"/></svg>`,
      ),
    )
      .jpeg()
      .toBuffer();

  for (const format of ['jpg', 'smallest']) {
    it(`is blocked for less than ${MAX_TURN_MS} ms by photos of 12 megapixels at quality=auto as ${format}, within 200 MB`, async () => {
      const photos = await Promise.all([1, 2, 3].map(largePhoto));
      const memoryBefore = memoryOf(server.pid).resident;
      const parts = photos.map((photo) => part('name="files"; filename="a.jpg"', photo));
      const fields = [field('output_format', format), field('quality', 'auto')];
      expect(await longestTurnOf(body([...parts, ...fields]))).to.be.below(MAX_TURN_MS);
      expect(memoryOf(server.pid).resident - memoryBefore).to.be.below(200e6);
    });
  }
});
