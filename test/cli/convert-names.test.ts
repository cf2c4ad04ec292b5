import { mkdir, rm } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { MAIN, runOnTerminal } from '../helpers/command.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';

describe("imagemill convert for a user's own files", () => {
  const folder = useConvertFolder();
  const onTerminal = (columns: number, ...args: string[]) =>
    runOnTerminal(
      `stty cols ${columns}; TEMP_DIR=${folder.temp} ${process.execPath} ${MAIN} convert ${args.join(' ')}`,
      folder.path,
    );

  it('converts an image beyond the limits of the server, and rejects it with limits of its own', async () => {
    const create = { width: 12_000, height: 5000, channels: 3, background: '#369' } as const;
    const image = await sharp({ create }).jpeg().toBuffer();
    await folder.write('wide.jpg', Buffer.concat([image, Buffer.alloc(12e6 - image.length)]));
    const { outcome } = await folder.run(['wide.jpg', '-o', 'small.png', '--width', '100']);
    expect(outcome).to.equal('0');
    const { width, height } = await sharp(folder.file('small.png')).metadata();
    expect([width, height]).to.deep.equal([100, 42]);
    for (const [args, env, reason] of [
      [['--max-pixels', '50M'], {}, /pixels, more than the limit of 50000000 .*--max-pixels/],
      [['--max-file-size', '10M'], {}, /too large: .*--max-file-size/],
      [[], { MAX_PIXELS: '50000000' }, /pixels, more than the limit of 50000000/],
    ] as const) {
      const limited = await folder.run(['wide.jpg', '-o', 'other.png', ...args], { env });
      expect(limited.status).to.equal(1);
      expect(limited.complaints.join()).to.match(reason);
    }
  });

  it('keeps the extension of each source with --keep-extension', async () => {
    await folder.put('scene.jpg', 'in/a.jpg');
    await folder.put('scene.png', 'in/a.png');
    const { status } = await folder.run(['in', '-o', 'out', '--keep-extension']);
    expect([status, await folder.files('out')]).to.deep.equal([0, ['a.jpg.webp', 'a.png.webp']]);
  });

  it('replaces what Windows cannot store in names with --safe-names, and overwrites no result', async () => {
    for (const name of ['in/con/x:y?.jpg', 'in/a<b/c.jpg', 'in/a>b/c.jpg', 'in/a_b/d.jpg'])
      await folder.put('scene.jpg', name);
    const results = ['_con/x_y_.webp', 'a_b/c (2).webp', 'a_b/c.webp', 'a_b/d.webp'];
    expect((await folder.run(['in', '-o', 'out', '--safe-names'])).status).to.equal(0);
    expect(await folder.files('out')).to.deep.equal(results);
    const { status, complaints } = await folder.run(['in', '-o', 'new', '--safe-names', '--update']);
    expect([status, complaints.length]).to.deep.equal([1, 2]);
    expect(complaints[0]).to.include('would both become new/a_b/c.jpg.webp');
  });

  it('prints with --dry-run what would be converted, deleted or fail, and changes nothing', async () => {
    await mkdir(folder.file('in'));
    for (const name of ['in/a.jpg', 'in/b.jpg', 'in/c.jpg']) await folder.put('scene.jpg', name);
    expect((await folder.run(['in', '-o', 'out', '--dry-run', '--update'])).lines).to.deep.equal([
      'in/a.jpg → out/a.jpg.webp',
      'in/b.jpg → out/b.jpg.webp',
      'in/c.jpg → out/c.jpg.webp',
      '3 to convert',
    ]);
    expect(await folder.files()).to.deep.equal(['in/a.jpg', 'in/b.jpg', 'in/c.jpg']);
    await folder.run(['in', '-o', 'out', '--update']);
    await rm(folder.file('in/b.jpg'));
    await folder.put('scene.png', 'in/c.jpg');
    await folder.put('scene.png', 'in/d.jpg');
    await folder.put('scene.png', 'out/d.jpg.webp');
    await folder.write('in/e.jpg', 'no image');
    await folder.write('in/f.jpg', '');
    const before = await folder.files();
    const { status, lines, complaints } = await folder.run(['in', '-o', 'out', '--dry-run', '--delete']);
    expect([status, lines, complaints]).to.deep.equal([
      1,
      ['in/c.jpg → out/c.jpg.webp', 'out/b.jpg.webp to delete', '1 to convert, 1 up to date, 1 to delete'],
      [
        'imagemill: out/d.jpg.webp already exists: use --force to overwrite it.',
        'imagemill: in/e.jpg is not an image of a supported format (PNG, JPEG, GIF, BMP, TIFF, SVG, AVIF, ICO, WebP, HEIC, JPEG XL, JPEG 2000, PSD, CUR, PDF).',
        'imagemill: in/f.jpg is empty (0 bytes).',
        'imagemill: 3 of 5 files not converted: 1 empty, 1 with an existing result, 1 of an unsupported type.',
      ],
    ]);
    expect(await folder.files()).to.deep.equal(before);
    const json = await folder.run(['in', '-o', 'out', '--dry-run', '--delete', '--json']);
    expect(json.lines).to.include('{"input":"in/c.jpg","output":"out/c.jpg.webp","toConvert":true}');
    expect(json.lines).to.include('{"input":"in/b.jpg","output":"out/b.jpg.webp","toDelete":true}');
  });

  it('prints errors and a summary on a terminal, and with --verbose a line per result that fits its width', async () => {
    const deep = 'in/a-folder-with-a-long-name/and-another-one-below-it';
    for (const name of ['first-photo-of-the-summer.jpg', 'second-photo-of-the-summer.jpg'])
      await folder.put('scene.jpg', `${deep}/${name}`);
    await folder.write('in/torn.jpg', 'not an image');
    const quiet = await onTerminal(80, 'in', '-o', 'out');
    expect(quiet.status).to.equal(1);
    expect(quiet.shown).to.include('torn.jpg is not an image').and.include('1 failed');
    expect(quiet.shown).to.not.include('second-photo-of-the-summer.webp');
    const { shown } = await onTerminal(80, 'in', '-o', 'out', '--force', '--verbose');
    const lines = shown
      .split(/[\r\n]+/)
      .filter((line) => /kB → .*%/.test(line) && !line.includes('converted'));
    expect(lines, shown).to.have.length(2);
    for (const line of lines) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequence that clears the line
      const text = line.replace(/\u001b\[K/g, '');
      expect(text).to.match(/^out\/a-folder.*….*-summer\.webp {2}\d/);
      expect(text.length).to.be.at.most(80);
    }
  });

  it('prints a short usage without arguments or without -o', async () => {
    for (const args of [[], ['a.jpg']]) {
      const { status, complaints } = await folder.run(args);
      expect([status, complaints.length]).to.deep.equal([2, 4]);
      expect(complaints[1]).to.equal('imagemill:   imagemill convert photo.jpg photo.webp');
    }
  });
});
