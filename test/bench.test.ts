import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Image } from '../scripts/bench/images.ts';
import { formatLikeness } from '../scripts/bench/likeness.ts';
import { measure } from '../scripts/bench/load.ts';
import { parseReference } from '../scripts/bench/reference.ts';
import { sweep } from '../scripts/bench/sweep.ts';
import { makeTempDir } from './helpers/hooks.ts';
import { plain } from './helpers/pixels.ts';

const IMAGE: Image = { name: 'any', type: 'png', pixels: 1, bytes: Buffer.from('any') };

describe('load generator of the benchmark', () => {
  const addresses: (string | undefined)[] = [];
  let server: Server;
  before((done) => {
    server = createServer((req, res) => {
      addresses.push(req.socket.remoteAddress);
      req.resume().on('end', () => res.end());
    }).listen(0, '127.0.0.1', done);
  });
  after((done) => {
    server.close(done);
  });
  beforeEach(() => {
    addresses.length = 0;
  });

  const target = () => ({
    pid: process.pid,
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
  });

  async function send(crowd: boolean): Promise<number> {
    await measure(target(), { image: IMAGE, format: 'png', crowd }, 2, 0.2);
    return new Set(addresses).size;
  }

  it('sends all requests of a pair from one address', async () => {
    expect(await send(false)).to.equal(1);
    expect(addresses.length).to.be.at.least(4); // two of each client
  });

  it('sends each request of a crowd from its own address', async () => {
    expect(await send(true)).to.equal(addresses.length);
    expect(addresses.length).to.be.at.least(4); // two of each client
  });
});

describe('the sweep of the benchmark', () => {
  it('compares each result that is smaller than its source, and leaves out files that are no images', async () => {
    const folder = await makeTempDir('sweep');
    await writeFile(join(folder, 'plain.png'), await plain(400, 10).png().toBuffer());
    await writeFile(join(folder, 'notes.txt'), 'no image');
    const report = await sweep(folder, 1, 'jpg|png 300');
    expect(report).to.match(/^\| all \| 3 \| \d+\.\d\d \|$/m);
    expect(report)
      .to.match(/^\| 300 pixels \| 2 \|/m)
      .and.not.include('1200');
    expect(report).to.match(/^Pairs above 4: \d$/m);
  });
});

describe('the likeness report of the benchmark', () => {
  it('has a dash instead of a ratio to sharp if sharp does not write the format', () => {
    const encoded = { bytes: 50, quality: 80, ssim: 0.98, psnr: 40 };
    const pair = { name: 'any', fixed: encoded, auto: encoded, cost: 2 };
    const report = formatLikeness([
      { ...pair, format: 'jxl', sharp: undefined },
      { ...pair, format: 'webp', sharp: { ...encoded, bytes: 100 } },
    ]);
    expect(report).to.include('| jxl | 1 | 1.00 | – |').and.include('| webp | 1 | 1.00 | 0.50 |');
    expect(report).to.not.include('NaN');
  });
});

describe('reference of bench:guard', () => {
  const COMMIT = '0123456789abcdef0123456789abcdef01234567';
  const ROWS = ['svg text → png 300', 'webp → jpg'];

  it('is a commit, and rows that may be slower, each with its ratio and the reason', () => {
    const { commit, accepted } = parseReference(
      `${COMMIT}\nsvg text → png 300: 1.30, fonts are embedded\n`,
      ROWS,
    );
    expect([commit, ...accepted]).to.deep.equal([COMMIT, ['svg text → png 300', 1.3]]);
  });

  it('is rejected without a commit, a ratio or a reason, and with the name of no row', () => {
    for (const text of [
      'main\n',
      `${COMMIT}\nwebp → jpg: slower`,
      `${COMMIT}\nwebp → jpg: 1.30`,
      `${COMMIT}\nwebp → jpeg: 1.30, why`,
    ])
      expect(() => parseReference(text, ROWS), text).to.throw('bench/reference');
  });
});
