// @unit
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import express from 'express';
import { loadWebApp, type WebApp } from '../../src/server/routes/web-app.ts';
import { sendForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';

const SCRIPT = 'console.log(1);\n';

describe('loadWebApp', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await makeTempDir('web');
    await mkdir(join(folder, 'assets'));
    await writeFile(join(folder, 'index.html'), '<!doctype html>');
    await writeFile(join(folder, 'docs.html'), '<!doctype html>');
    await writeFile(join(folder, 'assets/page-1a2b.js'), SCRIPT);
    await writeFile(join(folder, 'assets/page-1a2b.js.gz'), gzipSync(SCRIPT));
  });

  it('returns undefined for a folder that does not exist or lacks a page', async () => {
    expect(loadWebApp(join(folder, 'missing'))).to.equal(undefined);
    await rm(join(folder, 'docs.html'));
    expect(loadWebApp(folder)).to.equal(undefined);
  });

  it('passes a request for a file that was deleted on, without the encoding of the file', async () => {
    const { paths, handler } = loadWebApp(folder) as WebApp;
    expect(paths).to.have.members(['/', '/docs', '/assets/page-1a2b.js']);
    const app = express();
    for (const path of paths) app.get(path, handler);
    app.use((_req, res) => void res.status(404).send('missing'));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/assets/page-1a2b.js`;
      const get = async () => {
        const { status, headers, body } = await sendForm(url, { headers: { 'accept-encoding': 'gzip' } });
        return [status, headers.get('content-encoding'), body.toString()];
      };
      expect(await get()).to.deep.equal([200, 'gzip', SCRIPT]);
      await rm(join(folder, 'assets'), { recursive: true });
      expect(await get()).to.deep.equal([404, null, 'missing']);
    } finally {
      server.close();
    }
  });
});
