// @unit
/**
 * Node.js has no documented way to count the chunks of a body as they arrive, or to stop the parser
 * within a packet. The server replaces private members for both. A failure here names the version
 * of Node.js that no longer has them.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Express } from 'express';
import { openApiKeys } from '../../../src/files/api-keys.ts';
import { Clients } from '../../../src/server/clients.ts';
import { createHttpServer } from '../../../src/server/http/http-server.ts';
import { stopParser } from '../../../src/server/http/raw-error-response.ts';
import { exchange } from '../../helpers/raw-http.ts';
import { testConfig } from '../../helpers/service.ts';

const HEAD = 'Host: x\r\n';

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe(`the private members of HTTP connections in Node.js ${process.version}`, () => {
  it('count the chunks of a body that no handler reads: `push` and `_read` of IncomingMessage', async () => {
    const config = testConfig();
    const clients = new Clients(config, await openApiKeys(undefined));
    const app = (() => {}) as unknown as Express;
    const { server } = createHttpServer({ app, clients }, config);
    const chunks = `POST / HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(5000)}`;
    try {
      expect(await exchange(await listen(server), `${chunks}0\r\n\r\n`)).to.match(
        /^HTTP\/1\.1 400 [\s\S]*chunks_too_small/,
      );
    } finally {
      server.close();
    }
  });

  it('keep the other requests of a packet from the server: `onIncoming` of the parser', async () => {
    let requests = 0;
    const server = createServer(({ socket }) => {
      requests += 1;
      stopParser(socket);
      socket.destroy();
    });
    try {
      await exchange(await listen(server), `GET / HTTP/1.1\r\n${HEAD}\r\n`.repeat(100));
      expect(requests).to.equal(1);
    } finally {
      server.close();
    }
  });
});
