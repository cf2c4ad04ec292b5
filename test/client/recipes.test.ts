// @registry: installs libraries of the examples
import { once } from 'node:events';
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Express } from 'express';
import type { Browser } from 'playwright-core';
import sharp from 'sharp';
import { build, type Rollup } from 'vite';
import { hasChromium, launchChromium, openPage } from '../helpers/chromium.ts';
import { convert, fixture, fixturePath, jsonOf, sendForm } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';
import { countPages } from '../helpers/pdf.ts';
import { execute } from '../helpers/process.ts';
import { installPackages, readRecipe } from '../helpers/recipes.ts';
import { useService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { readZip } from '../helpers/zip.ts';

/**
 * Gives Uppy the files of an input, and shows its errors, as an application does without Uppy's own
 * dashboard.
 */
const UPPY_INPUT = `document.querySelector('input').onchange = ({ target: { files } }) => {
  for (const data of files) uppy.addFile({ name: data.name, type: data.type, data });
  uppy.upload();
};
uppy.on('upload-error', (_file, { message }) => document.body.append(message));`;

describe('the examples of docs/recipes.md', () => {
  const service = useService();
  let folder: string;
  before(async () => {
    folder = await makeTempDir('recipes');
    await copyFile(fixturePath('scene.jpg'), join(folder, 'photo.jpg'));
    await symlink(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  });

  /** Writes the example below a heading to a file. */
  async function writeExample(heading: string): Promise<string> {
    const path = join(folder, `${heading.replaceAll(' ', '-')}.mjs`);
    await writeFile(path, await readRecipe(`## ${heading}`, 'js', service.base));
    return path;
  }

  const run = async (path: string) => execute(process.execPath, [path], { cwd: folder });

  it('convert, describe and batch images with the client', async () => {
    const { stdout, stderr } = await run(await writeExample('The client'));
    expect([stdout, stderr]).to.deep.equal(['120 80 true\n[]\n', '']);
    expect(await sharp(join(folder, 'photo.webp')).metadata()).to.include({ format: 'webp', width: 120 });
    const entries = await readZip(await readFile(join(folder, 'photos.zip')));
    expect(entries.filter(({ name }) => name.endsWith('.png'))).to.have.length(2);
  });

  it('combine receipts to one PDF, and name those that are left out', async () => {
    await mkdir(join(folder, 'receipts'));
    for (const name of ['10.jpg', '9.jpg'])
      await copyFile(fixturePath('scene.jpg'), join(folder, 'receipts', name));
    await writeFile(join(folder, 'receipts/notes.txt'), 'no image');
    const { stderr } = await run(await writeExample('Receipts to one PDF'));
    expect(stderr).to.equal('notes.txt is not in receipts.pdf\n');
    expect(await countPages(await readFile(join(folder, 'receipts.pdf')))).to.equal(2);
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
      expect(jsonOf(answer)).to.include({ reason: 'unsupported_type' });
    });
  });

  describe('in a browser,', () => {
    let packages: string;
    let browser: Browser;
    before(async function () {
      requires(this, 'browser', hasChromium());
      packages = await makeTempDir('browser-recipes');
      await installPackages(packages, ['@uppy/core@6.3.1', '@uppy/xhr-upload@6.0.0', 'filepond@4.32.12']);
      browser = await launchChromium();
    });
    after(() => browser?.close());

    for (const [heading, own] of [
      ['Uppy', UPPY_INPUT],
      ['FilePond', ''],
    ] as const) {
      it(`${heading} gets the exact bytes of a result, and the message of an error`, async () => {
        const entry = join(packages, `${heading}.js`);
        await writeFile(entry, `${await readRecipe(`## ${heading}`, 'js', service.base)}\n${own}`);
        const lib = { entry, formats: ['es' as const] };
        const options = { configFile: false, logLevel: 'error', build: { lib, write: false } } as const;
        const [built] = [await build(options)].flat();
        const { code } = (built as Rollup.RollupOutput).output[0];
        const page = await openPage(browser);
        await page.setContent('<input type="file">');
        await page.addScriptTag({ content: code, type: 'module' });
        const send = (name: string, buffer: Buffer): Promise<void> =>
          page.locator('input[type=file]').setInputFiles({ name, mimeType: 'image/jpeg', buffer });

        const [logged] = await Promise.all([
          page.waitForEvent('console'),
          send('photo.jpg', await fixture('scene.jpg')),
        ]);
        const [, address = ''] = /(blob:.*)/.exec(logged.text()) ?? [];
        const bytes = await page.evaluate(
          async (url) => [...new Uint8Array(await (await fetch(url)).arrayBuffer())],
          address,
        );
        const { body } = await convert(service.base, await fixture('scene.jpg'), { width: '1200' });
        expect(Buffer.from(bytes).equals(body)).to.equal(true);

        let requests = 0;
        page.on('request', () => {
          requests += 1;
        });
        await send('text.jpg', Buffer.from('no image'));
        await page.getByText('The file is not an image of a supported format').first().waitFor();
        expect(requests).to.equal(1);
        await page.close();
      });
    }
  });
});
