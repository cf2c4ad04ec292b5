// @unit
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { mock } from 'node:test';
import { expect } from 'chai';
import type { Request, Response } from 'express';
import { Workspaces } from '../../../src/files/workspace.ts';
import { changeClient } from '../../../src/server/clients.ts';
import type { UploadOptions } from '../../../src/server/receive/file-collector.ts';
import { receiveBody } from '../../../src/server/receive/upload.ts';
import { ClientDisconnectedError } from '../../../src/tables/errors.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { testConfig } from '../../helpers/service.ts';
import { eventually } from '../../helpers/util.ts';

const START =
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: 5000000\r\n\r\n' +
  '--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.gif"\r\n\r\nGIF89a';

/**
 * Uploads the start of a body, lets `behave` continue, and returns the error.
 *
 * @param behave gets the connection, the number of bytes that the server has received, and a
 *   function that ends a window of the rate
 */
async function upload(
  behave: (socket: Socket, received: () => number, endWindow: () => void) => Promise<void> | void,
): Promise<unknown> {
  const workspaces = new Workspaces(await makeTempDir('upload'));
  const windows: (() => void)[] = [];
  const timer = mock.method(globalThis, 'setInterval', (end: () => void) => void windows.push(end));
  const { promise, resolve } = Promise.withResolvers<unknown>();
  let received = (): number => 0;
  const server = createServer(async (req, res) => {
    const { socket } = req;
    received = () => socket.bytesRead;
    changeClient(req, { key: 'client' });
    const form = { fileField: 'file', maxFiles: 1, isBatch: false, acceptsImage: false } as const;
    const rules: UploadOptions = { config: testConfig(), accepts: ['gif'], ...form };
    const reception = { req: req as Request, res: res as Response, workspaces, rules, image: undefined };
    resolve(await receiveBody(reception, async () => {}).catch((error) => error));
    res.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    socket.write(START);
    await eventually(() => windows.length > 0);
    await behave(socket, () => received(), windows[0] as () => void);
    return await promise;
  } finally {
    timer.mock.restore();
    socket.destroy();
    server.close();
    await workspaces.close();
  }
}

describe('an upload', () => {
  it('fails with 408 long before the timeout when it stays below the minimum rate', async () => {
    const error = await upload(async (socket, received, endWindow) => {
      const before = received();
      socket.write('x'.repeat(1000));
      await eventually(() => received() === before + 1000);
      endWindow();
    });
    const message = 'The upload was too slow: less than 1024 bytes per second.';
    expect(error).to.include({ code: 'UPLOAD_TOO_SLOW', status: 408, message });
  });

  it('continues when it is above the minimum rate', async () => {
    const error = await upload(async (socket, received, endWindow) => {
      const before = received();
      socket.write(Buffer.alloc(11_000));
      await eventually(() => received() === before + 11_000);
      endWindow();
      socket.destroy();
    });
    expect(error).to.be.instanceOf(ClientDisconnectedError);
  });
});
