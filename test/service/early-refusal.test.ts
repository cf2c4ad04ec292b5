// @full: bodies of 24 MiB from all clients
/**
 * @module Errors sent long before the client has sent the whole body must still reach the client.
 */

import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { launchChromium, openPage } from '../helpers/chromium.ts';
import { convert, fixture, jsonOf, sendForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { execute } from '../helpers/process.ts';
import { dial } from '../helpers/raw-http.ts';
import { useService } from '../helpers/service.ts';
import { useServers } from '../helpers/stub-server.ts';

const MIB = 1024 * 1024;
/**
 * More than the limit, and the buffers of a connection; sent within 5 seconds on a slow machine.
 */
const SIZE = 24 * MIB;

const photo = await fixture('scene.jpg');

describe('an early error response to a large upload reaches', () => {
  const service = useService();
  const { serve } = useServers();

  /** Creates a sparse file of {@link SIZE}. */
  const bigFile = async (start: Buffer): Promise<string> => {
    const path = join(await makeTempDir('big'), 'big.jpg');
    const file = await open(path, 'w');
    await file.write(start);
    await file.truncate(SIZE);
    await file.close();
    return path;
  };

  it('curl, for a file that is too large', async () => {
    const path = await bigFile(photo);
    const { stdout } = await execute('curl', [
      '--silent',
      '--show-error',
      '--write-out',
      '\n%{http_code}',
      // Without this, curl waits for 100 Continue and the announced length alone is rejected.
      '--header',
      'Expect:',
      '--form',
      `file=@${path}`,
      `${service.base}/convert`,
    ]);
    const [body, code] = stdout.split('\n');
    expect(Number(code)).to.equal(413);
    expect(JSON.parse(body ?? '').error.code).to.equal(413);
  });

  for (const [what, start, status] of [
    ['too large', photo, 413],
    ['of no supported type', Buffer.from('plain text'), 415],
  ] as const)
    it(`fetch, for a file that is ${what}`, async () => {
      const answer = await convert(service.base, Buffer.concat([start, Buffer.alloc(SIZE)]));
      expect([answer.status, jsonOf(answer).error.code]).to.deep.equal([status, status]);
    });

  it('a browser on a page of another origin', async () => {
    const page = await serve((_req, res) => res.setHeader('content-type', 'text/html').end('<p>page</p>'));
    await using browser = await launchChromium();
    const tab = await openPage(browser);
    await tab.goto(page);
    const answer = await tab.evaluate(
      async ({ url, size, start }) => {
        const form = new FormData();
        form.append('file', new Blob([new Uint8Array(start), new Uint8Array(size)]), 'big.jpg');
        const response = await fetch(url, { method: 'POST', body: form });
        return [response.status, ((await response.json()) as { error: { code: number } }).error.code];
      },
      { url: `${service.base}/convert`, size: SIZE, start: [...photo] },
    );
    expect(answer).to.deep.equal([413, 413]);
  });

  it('a client that sends Connection: close and reads only after sending everything', async () => {
    const program =
      'import json, sys, urllib.error, urllib.request\n' +
      'body = b"--xyz\\r\\nContent-Disposition: form-data; name=\\"file\\"; filename=\\"a.jpg\\"\\r\\n\\r\\n" + bytes(int(sys.argv[2]))\n' +
      'headers = {"Content-Type": "multipart/form-data; boundary=xyz"}\n' +
      'try: urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers))\n' +
      'except urllib.error.HTTPError as error: print(error.code, json.load(error)["error"]["code"])\n';
    const args = ['-c', program, `${service.base}/convert`, String(SIZE)];
    expect((await execute('python3', args)).stdout.trim()).to.equal('415 415');
  });

  for (const [what, start, bytes, status] of [
    ['one byte over the limit', () => photo, 10 * MIB + 1, 413],
    ['the first bytes of a file that is not an image', () => Buffer.alloc(0), 5000, 415],
  ] as const) {
    it(`a client that has sent only ${what}`, async () => {
      const socket = await dial(service.base);
      socket.write(
        `POST /api/v1/convert HTTP/1.1\r\nHost: x\r\nContent-Length: ${SIZE}\r\n` +
          'Content-Type: multipart/form-data; boundary=xyz\r\n\r\n' +
          '--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.jpg"\r\n\r\n',
      );
      socket.write(Buffer.concat([start(), Buffer.alloc(bytes)], bytes));
      const [data] = await once(socket, 'data');
      expect(String(data)).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      socket.destroy();
    });
  }

  it('a client that uses a wrong path or sends a body that is too large', async () => {
    for (const [path, status] of [
      ['/nothing', 404],
      ['/health', 405],
      ['/convert', 413],
    ] as const) {
      const init = { method: 'POST', body: new Uint8Array(SIZE) };
      expect((await sendForm(service.base + path, init)).status).to.equal(status);
    }
  });
});
