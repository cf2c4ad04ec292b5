import { expect } from 'chai';
import sharp from 'sharp';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { decode, difference, toPixels } from '../helpers/pixels.ts';
import { startService } from '../helpers/service.ts';

describe('imagemill convert --pages', () => {
  const folder = useConvertFolder();
  beforeEach(() => folder.put('pages.tiff', 'in/scan.tiff'));
  const sourcePage = (page: number) => toPixels(sharp(folder.file('in/scan.tiff'), { page: page - 1 }));
  const toPng = ['in', '-o', 'out', '-f', 'png'];

  it('writes an image of each page, with tools and with --url, and skips them with --update', async () => {
    const args = [...toPng, '--pages', '1,3', '--update'];
    expect((await folder.run(args)).status).to.equal(0);
    expect(await folder.files('out')).to.deep.equal(['scan.tiff-p1.png', 'scan.tiff-p3.png']);
    for (const page of [1, 3]) {
      const found = await decode(await folder.read(`out/scan.tiff-p${page}.png`));
      expect(difference(found, await sourcePage(page)).max, `page ${page}`).to.equal(0);
    }
    expect((await folder.run(args)).lines.at(-1)).to.include('2 up to date');
    await using service = await startService();
    const remote = ['in', '-o', 'there', '-f', 'png', '--pages', '1,3', '--url', service.base];
    expect((await folder.run(remote)).status).to.equal(0);
    for (const page of [1, 3]) {
      const here = await folder.read(`out/scan.tiff-p${page}.png`);
      expect((await folder.read(`there/scan-p${page}.png`)).equals(here), `page ${page}`).to.equal(true);
    }
  });

  it('writes one file for one page, and one document of several pages', async () => {
    await folder.run(['in/scan.tiff', '-o', 'second.png', '--pages', '2']);
    const second = await decode(await folder.read('second.png'));
    expect(difference(second, await sourcePage(2)).max).to.equal(0);
    const args = ['in', '-o', 'out', '-f', 'tiff', '--pages', '2-3'];
    expect((await folder.run(args, { env: { EXTRA_OUTPUTS: 'tiff' } })).status).to.equal(0);
    expect((await sharp(folder.file('out/scan.tiff')).metadata()).pages).to.equal(2);
  });

  it('explains a page that does not exist', async () => {
    const { status, complaints } = await folder.run([...toPng, '--pages', '4']);
    expect(status).to.equal(1);
    expect(complaints.join('\n')).to.include('has 3 pages, so there is no page 4.');
  });
});
