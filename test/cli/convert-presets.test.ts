import { expect } from 'chai';
import sharp from 'sharp';
import { convert as convertWith, fixture } from '../helpers/client.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { type OwnService, startService } from '../helpers/service.ts';

const card = (quality: number) =>
  `presets:
  - { name: card, format: jpg, width: 60, height: 60, fit: cover, quality: ${quality} }
  - { name: auto, format: auto }
  - name: product
    width: 50
    variants:
      - { name: square, width: 40, height: 40, fit: cover }
      - { name: zoom, format: png }
`;

describe('imagemill convert --preset', () => {
  const folder = useConvertFolder();
  let service: OwnService;
  beforeEach(async () => {
    await folder.put('scene.jpg', 'in/a.jpg');
    await folder.write('presets.yaml', card(80));
  });
  before(async () => {
    const path = await writeTempFile('presets.yaml', card(80));
    service = await startService({ PRESETS_FILE: path });
  });
  after(() => service.stop());

  const run = (args: readonly string[], env = {}) => runInProcess(args, { cwd: folder.path, env });
  const convert = (...args: string[]) => run(['convert', 'in', '-o', 'out', ...args]);
  const size = async (name: string) => {
    const { format, width, height } = await sharp(folder.file(name)).metadata();
    return [format, width, height];
  };

  it('writes what the server returns for the preset, which other options override', async () => {
    const { outcome } = await convert('--preset', 'card', '--presets', 'presets.yaml');
    expect(outcome).to.equal('0');
    const { body } = await convertWith(service.base, await fixture('scene.jpg'), { preset: 'card' });
    expect((await folder.read('out/a.jpg')).equals(body)).to.equal(true);
    await convert('--preset', 'card', '--presets', 'presets.yaml', '--format', 'png', '--width', '30');
    expect(await size('out/a.png')).to.deep.equal(['png', 30, 60]);
    const env = { PRESETS_FILE: folder.file('presets.yaml') };
    await run(['convert', 'in/a.jpg', '-o', 'b.webp', '--preset', 'card'], env);
    expect(await size('b.webp')).to.deep.equal(['webp', 60, 60]);
  });

  it('puts the watermark of the preset on the results, unless the command has another', async () => {
    const mark = (colour: string) =>
      sharp({ create: { width: 8, height: 8, channels: 3, background: colour } }).png();
    await mark('#f00').toFile(folder.file('red.png'));
    await mark('#00f').toFile(folder.file('blue.png'));
    await folder.write('marked.yaml', 'presets: [{ name: mark, format: png, watermark: red.png }]');
    for (const [more, colour] of [
      [[], [255, 0, 0]],
      [
        ['--watermark', 'blue.png'],
        [0, 0, 255],
      ],
    ] as const) {
      const { outcome } = await convert('--preset', 'mark', '--presets', 'marked.yaml', '--force', ...more);
      expect(outcome).to.equal('0');
      const corner = { left: 110, top: 70, width: 1, height: 1 };
      const pixel = await sharp(folder.file('out/a.png')).extract(corner).removeAlpha().raw().toBuffer();
      expect([...pixel]).to.deep.equal(colour);
    }
  });

  it('writes all variants of a preset, named as in the archives of the server', async () => {
    const args = ['--preset', 'product', '--presets', 'presets.yaml'];
    const { lines } = await convert(...args);
    expect(await folder.files('out')).to.deep.equal(['a-square.webp', 'a-zoom.png']);
    expect(await size('out/a-square.webp')).to.deep.equal(['webp', 40, 40]);
    expect(await size('out/a-zoom.png')).to.deep.equal(['png', 50, 33]);
    expect(lines.at(-1)).to.match(/^2 converted/);
    const one = await run(['convert', 'in/a.jpg', '-o', 'b.webp', ...args]);
    expect(one.outcome).to.equal(
      '2 imagemill: -o b.webp takes one result, and there are 2 of each file: a folder ends with a slash.',
    );
    const { objects } = await run(['explain', 'in/a.jpg', ...args, '--json']);
    expect(objects().map(({ variant, sentences }) => [variant, sentences.at(-1)])).to.deep.equal([
      ['square', 'WebP, quality 80'],
      ['zoom', 'PNG, without loss'],
    ]);
  });

  it('converts again with --update what a change of the preset concerns', async () => {
    const args = ['--preset', 'card', '--presets', 'presets.yaml', '--update', '--json'];
    const done = async (...more: string[]) => {
      const { converted, upToDate } = (await convert(...args, ...more)).summary();
      return { converted, upToDate };
    };
    expect(await done()).to.deep.equal({ converted: 1, upToDate: 0 });
    expect(await done()).to.deep.equal({ converted: 0, upToDate: 1 });
    await folder.write('presets.yaml', card(30));
    expect(await done()).to.deep.equal({ converted: 1, upToDate: 0 });
    const product = ['--preset', 'product'];
    expect(await done(...product)).to.deep.equal({ converted: 2, upToDate: 0 });
    await folder.write('presets.yaml', card(30).replace('height: 40', 'height: 20'));
    expect(await done(...product)).to.deep.equal({ converted: 1, upToDate: 1 });
    expect(await size('out/a.jpg-square.webp')).to.deep.equal(['webp', 40, 20]);
  });

  it('sends the name to the instances of --url, which have presets of their own', async () => {
    const remote = ['--url', service.base, '--preset'];
    const { complaints } = await convert(...remote, 'card', '--format', 'png', '--width', '30', '--update');
    expect(complaints).to.deep.equal([]);
    expect(await size('out/a.jpg.png')).to.deep.equal(['png', 30, 60]);
    const other = await convert(...remote, 'auto', '--format', 'png', '--width', '30', '--update');
    expect(other.lines[0]).to.match(/^in\/a.jpg → out\/a.jpg.png/);
    expect(await size('out/a.jpg.png')).to.deep.equal(['png', 30, 20]);
    const several = await convert(...remote, 'product', '--format', 'gif');
    expect(several.outcome).to.include(
      '1 imagemill: in/a.jpg: The preset has several results. With --presets instead of --url, all of them are written.',
    );
  });
});
