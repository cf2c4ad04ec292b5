// @unit
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import type { Request, Response } from 'express';
import { Workspaces } from '../../../src/files/workspace.ts';
import { changeClient } from '../../../src/server/clients.ts';
import type { UploadOptions } from '../../../src/server/receive/file-collector.ts';
import { receiveBody } from '../../../src/server/receive/upload.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { testConfig } from '../../helpers/service.ts';

const START =
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: 5000000\r\n\r\n' +
  '--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.gif"\r\n\r\nGIF89a';

/** Uploads the start of a body, lets `behave` continue, and returns the result or the error. */
async function upload(rules: Partial<UploadOptions>, behave: (socket: Socket) => void): Promise<unknown> {
  const workspaces = new Workspaces(await makeTempDir('upload'));
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const server = createServer(async (req, res) => {
    changeClient(req, { key: 'client' });
    const form = { fileField: 'file', maxFiles: 1, isBatch: false, acceptsImage: false } as const;
    const all: UploadOptions = { config: testConfig(), accepts: ['gif'], ...form, ...rules };
    const reception = { req: req as Request, res: res as Response, workspaces, rules: all, image: undefined };
    resolve(await receiveBody(reception, async () => {}).catch((error) => error));
    res.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    socket.write(START);
    behave(socket);
    return await promise;
  } finally {
    socket.destroy();
    server.close();
    await workspaces.close();
  }
}

describe('an upload', () => {
  it('fails with 408 long before the timeout when the upload stays below the minimum rate', async () => {
    let trickle: NodeJS.Timeout | undefined;
    const error = await upload({ rateWindowMs: 1000 }, (socket) => {
      trickle = setInterval(() => socket.write('x'), 20);
    });
    clearInterval(trickle);
    const message = 'The upload was too slow: less than 1024 bytes per second.';
    expect(error).to.include({ code: 'UPLOAD_TOO_SLOW', status: 408, message });
  });

  it('does not fail before the timeout when the upload is above the minimum rate', async () => {
    let stream: NodeJS.Timeout | undefined;
    const config = testConfig({ UPLOAD_TIMEOUT_MS: '3000' });
    const error = await upload({ rateWindowMs: 2700, config }, (socket) => {
      stream = setInterval(() => socket.write(Buffer.alloc(1000)), 10);
    });
    clearInterval(stream);
    expect(error).to.include({ code: 'UPLOAD_TIMEOUT' });
  });
});
