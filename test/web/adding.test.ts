// @slow
import { mkdir, unlink, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { formatBytes } from '../../src/base/text.ts';
import { fixture } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { useServiceWith } from '../helpers/service.ts';
import { made, useBrowser, type WebPage } from './browser.ts';

describe('adding files to the page', () => {
  const { open } = useBrowser();
  const service = useServiceWith();

  const listed = async (page: WebPage, count: number) => {
    await page.getByRole('button', { name: new RegExp(`^Convert ${count} file`) }).waitFor();
    return page.names();
  };

  it('frees the memory of files that are removed before their thumbnails exist', async () => {
    const page = await open(service);
    await page.recordUrls();
    await page.evaluate(() => {
      const decoding = Promise.withResolvers<void>();
      Object.assign(window, { decodeNow: decoding.resolve });
      const { decode } = HTMLImageElement.prototype;
      HTMLImageElement.prototype.decode = async function () {
        await decoding.promise;
        await decode.call(this);
      };
    });
    await page.pick(['scene.jpg', 'scene.png']);
    await page.button('Remove scene.jpg').click();
    await page.pick(['grey.jpg']); // the removal can no longer be undone
    await page.evaluate(() => Reflect.get(window, 'decodeNow')());
    // Previews are created sequentially: once the others have thumbnails, the first is done.
    await page.locator('.thumbnail img').nth(1).waitFor();
    expect(await page.heldUrls()).to.have.lengthOf(2);
  });

  it('accepts files dropped anywhere, and shows type, size, dimensions and a thumbnail', async () => {
    const page = await open(service);
    await page.drop(['scene.jpg', 'scene.svg']);
    expect(await listed(page, 2)).to.deep.equal(['scene.jpg', 'scene.svg']);
    await page.getByText(`JPEG ${formatBytes((await fixture('scene.jpg')).length)} · 120 × 80`).waitFor();
    await page.getByText(/SVG .* B · 120 × 80/).waitFor();
    await page.locator('.thumbnail img').nth(1).waitFor();
  });

  it('adds the images of a dropped folder at any depth, names skipped files, and ignores system files', async () => {
    const folder = join(await makeTempDir('folder'), 'album');
    await mkdir(join(folder, 'deep', 'deeper'), { recursive: true });
    await writeFile(join(folder, 'one.png'), await fixture('scene.png'));
    await writeFile(join(folder, 'deep', 'deeper', 'two.tiff'), await fixture('scene.tiff'));
    await writeFile(join(folder, 'deep', 'notes.txt'), 'not an image');
    await mkdir(join(folder, '__MACOSX'));
    for (const name of ['Thumbs.db', '.DS_Store', 'deep/Desktop.ini', '._one.png', '__MACOSX/one.png'])
      await writeFile(join(folder, name), 'not an image');
    const page = await open(service);
    await page.drop([folder]);
    expect(await listed(page, 2)).to.deep.equal(['album/one.png', 'album/deep/deeper/two.tiff']); // the files of a folder first
    const tooltip = await page.locator('.file-name', { hasText: 'two.tiff' }).getAttribute('title');
    expect(tooltip).to.equal('album/deep/deeper/two.tiff');
    await page.announced('1 skipped: unsupported type.');
    expect(await page.locator('.skipped').innerText()).to.equal(
      '1 skipped: unsupported type\nalbum/deep/notes.txt',
    );
  });

  it('adds the other images of a dropped folder if a file or a sub-folder in it cannot be read', async () => {
    const folder = join(await makeTempDir('unreadable'), 'album');
    await mkdir(join(folder, 'locked'), { recursive: true });
    for (const name of ['gone.png', 'one.png', 'locked/two.png'])
      await writeFile(join(folder, name), await fixture('scene.png'));
    const page = await open(service);
    // Makes two entries fail as if they had been deleted, or belonged to another user.
    await page.evaluate(() => {
      const { webkitGetAsEntry } = DataTransferItem.prototype;
      const withFailures = (entry: FileSystemEntry | null): FileSystemEntry | null => {
        const fail = (_found: unknown, failed?: (error: DOMException) => void) =>
          failed?.(new DOMException());
        if (entry?.name === 'gone.png') Object.assign(entry, { file: fail });
        if (!entry?.isDirectory) return entry;
        const reader = (entry as FileSystemDirectoryEntry).createReader();
        const readEntries = reader.readEntries.bind(reader);
        reader.readEntries = (found, failed) =>
          readEntries(
            (entries) => found(entries.map((each) => withFailures(each) as FileSystemEntry)),
            failed,
          );
        if (entry.name === 'locked') Object.assign(reader, { readEntries: fail });
        return Object.assign(entry, { createReader: () => reader });
      };
      DataTransferItem.prototype.webkitGetAsEntry = function () {
        return withFailures(webkitGetAsEntry.call(this));
      };
    });
    await page.drop([folder]);
    expect(await listed(page, 1)).to.deep.equal(['album/one.png']);
    await page.locator('.skipped').getByText('2 skipped: not readable').waitFor();
    const skipped = await page.locator('.skipped li').allTextContents();
    expect(skipped).to.deep.equal(['album/gone.png', 'album/locked']);
  });

  it('adds nothing from a folder without images, states so, and clears the message with the next file', async () => {
    const folder = await makeTempDir('none');
    for (const name of ['a.txt', 'b.txt']) await writeFile(join(folder, name), 'text');
    const page = await open(service);
    await page.getByLabel('Choose a folder').setInputFiles(folder);
    const said = page.locator('.skipped');
    await said.getByText('2 skipped: unsupported type').waitFor();
    expect(await said.locator('li').allTextContents()).to.deep.equal(
      ['a.txt', 'b.txt'].map((name) => `${basename(folder)}/${name}`),
    );
    await page.pick(['scene.png']);
    await said.waitFor({ state: 'detached' });
  });

  it('lists files, and the images of a folder before those of its sub-folders, in natural order', async () => {
    const folder = join(await makeTempDir('order'), 'album');
    await mkdir(join(folder, 'b'), { recursive: true });
    // tmpfs lists the newest file first; ext4 lists by a hash of the name.
    for (const name of ['10.png', 'c.png', '1.png', 'b/1.png', 'a.png', '2.png'])
      await writeFile(join(folder, name), await fixture('scene.png'));
    const files = ['1.png', '2.png', '10.png'];
    const album = [...files, 'a.png', 'c.png', 'b/1.png'].map((name) => `album/${name}`);
    const paths = ['10.png', '2.png', '1.png'].map((name) => join(folder, name));
    const page = await open(service);
    for (const [add, expected] of [
      [() => page.getByLabel('Choose a folder').setInputFiles(folder), album],
      [() => page.drop([folder]), album],
      [() => page.pick(paths), files],
      [() => page.drop(paths), files],
    ] as const) {
      await add();
      expect(await listed(page, expected.length)).to.deep.equal(expected);
      await page.button('Clear list').click();
    }
  });

  it('adds a pasted image', async () => {
    const page = await open(service, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.evaluate(
      async (bytes) => {
        const image = new Blob([new Uint8Array(bytes)], { type: 'image/png' });
        await navigator.clipboard.write([new ClipboardItem({ 'image/png': image })]);
      },
      [...(await fixture('scene.png'))],
    );
    await page.keyboard.press('Control+V');
    expect(await listed(page, 1)).to.deep.equal(['image.png']);
    await page.row('image.png').getByText('120 × 80').waitFor();
  });

  it('ignores system files that are chosen, and states which file is in the list already', async () => {
    const folder = await makeTempDir('twice');
    const [image, other] = [join(folder, 'a.png'), join(folder, 'desktop.ini')];
    await writeFile(image, await fixture('scene.png'));
    await writeFile(other, 'text');
    const page = await open(service);
    await page.pick([image, other]);
    await listed(page, 1);
    expect(await page.locator('.skipped').count()).to.equal(0);
    await page.pick([image]);
    await page.locator('.skipped').getByText('1 skipped: already in the list').waitFor();
    expect(await listed(page, 1)).to.deep.equal(['a.png']);
    await utimes(image, 1, 1); // a changed file is another one
    await page.pick([image]);
    expect(await listed(page, 2)).to.deep.equal(['a.png', 'a.png']);
    expect(await page.locator('.skipped').count()).to.equal(0);
  });

  it('replaces the row of a file that could not be read when it is added again', async () => {
    const image = join(await makeTempDir('again'), 'a.png');
    const restore = async () => {
      await writeFile(image, await fixture('scene.png'));
      await utimes(image, 1000, 1000);
    };
    await restore();
    const page = await open(service);
    await page.pick([image]);
    await listed(page, 1);
    await unlink(image);
    await page.convertAll();
    await page.row('a.png').getByText('The file was changed, moved or deleted. Add it again.').waitFor();
    await restore();
    await page.pick([image]);
    expect(await listed(page, 1)).to.deep.equal(['a.png']);
    await page.convertAll();
    await page.finished(1);
  });

  it('shows the middle of an SVG that has only a viewBox, without a size that the browser invents', async () => {
    const page = await open(service);
    const squares = ['red', 'lime', 'blue'].map((c, at) => `<path fill="${c}" d="M${at * 30} 0h30v30h-30"/>`);
    const svg = (attributes: string) =>
      Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 30" ${attributes}>${squares.join('')}</svg>`,
      );
    await page.pick([made('icon.svg', svg('')), made('sized.svg', svg('width="180" height="60"'))]);
    for (const [name, properties] of [
      ['icon.svg', `SVG ${formatBytes(svg('').length)}`],
      ['sized.svg', `SVG ${formatBytes(svg('width="180" height="60"').length)} · 180 × 60`],
    ] as const) {
      const pixels = await page
        .row(name)
        .locator('.thumbnail img')
        .evaluate((image: HTMLImageElement) => {
          const context = new OffscreenCanvas(128, 128).getContext('2d');
          context?.drawImage(image, 0, 0);
          return [...(context?.getImageData(0, 0, 128, 128).data ?? [])];
        });
      const { channels } = await sharp(Buffer.from(pixels), {
        raw: { width: 128, height: 128, channels: 4 },
      }).stats();
      expect(
        channels.map(({ mean }) => Math.round(mean / 64)),
        name,
      ).to.deep.equal([0, 4, 0, 4]);
      expect(await page.row(name).locator('.file-properties').innerText()).to.equal(properties);
    }
  });

  it('shows type and dimensions of a file that no browser decodes', async () => {
    const page = await open(service);
    const lying = await sharp(await fixture('scene.png'))
      .withMetadata({ orientation: 6 })
      .tiff()
      .toBuffer();
    await page.pick(['scene.tiff', made('lying.tiff', lying), made('cut off.tiff', lying.subarray(0, 20))]);
    await page.row('scene.tiff').locator('.thumbnail', { hasText: 'TIFF' }).waitFor();
    await page.row('scene.tiff').getByText('120 × 80').waitFor();
    await page.row('lying.tiff').getByText('80 × 120').waitFor();
    await page.row('cut off.tiff').getByText('TIFF').first().waitFor();
    expect(await page.row('cut off.tiff').locator('.file-properties').textContent()).to.equal('TIFF 20 B');
  });
});
