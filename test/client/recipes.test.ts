import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readFile, symlink, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Express } from 'express';
import sharp from 'sharp';
import { fixture, fixturePath, sendForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

describe('the examples of docs/recipes.md', () => {
  const service = useService();
  let folder: string;
  before(async () => {
    folder = await makeTempDir('recipes');
    await copyFile(fixturePath('scene.jpg'), join(folder, 'photo.jpg'));
    await symlink(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  });

  /** Writes the example below a heading to a file. It imports the source of the client, and requests the service of the test. */
  async function writeExample(heading: string): Promise<string> {
    const text = await readFile(join(PROJECT, 'docs/recipes.md'), 'utf8');
    const [, example = ''] =
      new RegExp(`^## ${heading}\\n.*?^\`\`\`js\\n(.*?)^\`\`\``, 'ms').exec(text) ?? [];
    const path = join(folder, `${heading.replaceAll(' ', '-')}.mjs`);
    const program = example
      .replaceAll('imagemill/client', join(PROJECT, 'src/client/library/index.ts'))
      .replaceAll('http://localhost:3000', service.base.replace('/api/v1', ''));
    expect(program).to.include(service.base.replace('/api/v1', ''));
    await writeFile(path, program);
    return path;
  }

  const run = async (path: string) => promisify(execFile)(process.execPath, [path], { cwd: folder });

  it('convert, describe and batch images with the client', async () => {
    const { stdout, stderr } = await run(await writeExample('The client'));
    expect([stdout, stderr]).to.deep.equal(['120 80 true\n[]\n', '']);
    expect(await sharp(join(folder, 'photo.webp')).metadata()).to.include({ format: 'webp', width: 120 });
    const entries = await readZip(await readFile(join(folder, 'photos.zip')));
    expect(entries.filter(({ name }) => name.endsWith('.png'))).to.have.length(2);
  });

  it('convert an image with fetch', async () => {
    await writeFile(join(folder, 'photo.webp'), '');
    await run(await writeExample('fetch'));
    expect(await sharp(join(folder, 'photo.webp')).metadata()).to.include({ format: 'webp', width: 120 });
  });

  describe('for Express', () => {
    let server: Server;
    let url: string;
    before(async () => {
      const { app } = (await import(await writeExample('Express'))) as { app: Express };
      server = app.listen(0, '127.0.0.1');
      await once(server, 'listening');
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/avatar`;
    });
    after(() => {
      server.closeAllConnections();
      server.close();
    });

    it('return a square image', async () => {
      const body = new Uint8Array(await fixture('scene.png'));
      const answer = await sendForm(url, { method: 'POST', body });
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'image/webp']);
      expect(await sharp(answer.body).metadata()).to.include({ width: 256, height: 256 });
    });

    it('return the status and the reason of an error', async () => {
      const answer = await sendForm(url, { method: 'POST', body: 'no image' });
      expect(answer.status).to.equal(415);
      expect(JSON.parse(answer.body.toString())).to.include({ reason: 'unsupported_type' });
    });
  });
});
