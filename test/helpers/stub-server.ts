/** @module HTTP servers that stand in for a service. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Starts servers on free ports of this machine, and closes them after each test. */
export function useServers() {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });
  const serve = async (answer: RequestListener): Promise<string> => {
    const server = createServer(answer).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  return {
    /** Starts a server and returns its URL. */
    serve,
    /**
     * Starts a server that answers /health as imagemill does, and everything else with `answer`.
     */
    stub: (answer: RequestListener): Promise<string> =>
      serve((req, res) => {
        if (!req.url?.endsWith('/health')) return answer(req, res);
        return res.setHeader('content-type', 'application/json').end('{"version":"1.2.3"}');
      }),
  };
}
