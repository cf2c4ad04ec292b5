import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import type { ServiceError } from '../../src/errors.ts';
import { createWorkspaces } from '../../src/files/workspace.ts';
import { receiveUpload, type UploadOptions } from '../../src/server/upload.ts';
import { makeTempDir } from '../helpers/hooks.ts';

const START =
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: 100000\r\n\r\n' +
  '--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.gif"\r\n\r\nGIF89a';

/** How the upload of a client ends whose manners are `behave`'s. */
async function outcomeOf(rules: Partial<UploadOptions>, behave: (socket: Socket) => void): Promise<unknown> {
  const workspaces = createWorkspaces(await makeTempDir('upload'));
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const server = createServer(async (req, res) => {
    const workspace = await workspaces.open();
    const all: UploadOptions = {
      ...{
        fileField: 'file',
        fileFieldAliases: [],
        maxFiles: 1,
        maxFileBytes: 1_000_000,
        acceptsArchives: false,
      },
      ...{ timeoutMs: 10_000, accepts: ['gif'], label: () => 'The file', skipInvalid: () => false },
      ...rules,
    };
    resolve(await receiveUpload(req, workspace, all, new AbortController().signal).catch((error) => error));
    await workspace.remove();
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
  it('that stands still is ended with 408 long before the deadline', async () => {
    const error = await outcomeOf({ rateWindowMs: 50 }, () => {});
    expect(error).to.include({ code: 'UPLOAD_TOO_SLOW', status: 408 });
    expect((error as ServiceError).message).to.equal(
      'The upload came too slowly: less than 1024 bytes a second.',
    );
  });

  it('that trickles is ended, too', async () => {
    let trickle: NodeJS.Timeout | undefined;
    const error = await outcomeOf({ rateWindowMs: 1000 }, (socket) => {
      trickle = setInterval(() => socket.write('x'), 20);
    });
    clearInterval(trickle);
    expect(error).to.include({ code: 'UPLOAD_TOO_SLOW' });
  });

  it('that goes on is left alone until the deadline', async () => {
    let stream: NodeJS.Timeout | undefined;
    const error = await outcomeOf({ rateWindowMs: 100, timeoutMs: 700 }, (socket) => {
      stream = setInterval(() => socket.write(Buffer.alloc(1000)), 10);
    });
    clearInterval(stream);
    expect(error).to.include({ code: 'UPLOAD_TIMEOUT' });
  });
});
