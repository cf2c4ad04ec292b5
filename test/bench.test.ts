import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Image } from '../scripts/bench/images.ts';
import { measure } from '../scripts/bench/load.ts';

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
