// @full
import { readFileSync } from 'node:fs';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { startService } from '../helpers/service.ts';

describe('names and times of the results of imagemill convert', () => {
  const folder = useConvertFolder();
  const put = (...names: string[]) => Promise.all(names.map((name) => folder.put('scene.jpg', name)));

  it('writes the last argument with the extension of an output, and replaces an image only with --force', async () => {
    await put('a.jpg', 'other.jpg');
    await folder.write('text.webp', 'no image');
    const formatOf = async (name: string) => (await sharp(folder.file(name)).metadata()).format;
    expect((await folder.run(['a.jpg', 'b.webp'])).outcome).to.equal('0');
    expect(await formatOf('b.webp')).to.equal('webp');
    const replaces = ' exists. Set the output with -o, or use --force to replace this image by the result:';
    const oneFile = ' is one file, for several inputs: a folder ends with a slash.';
    const files = await folder.files();
    for (const [args, outcome] of [
      [['a.jpg', 'b.webp'], `2 imagemill: b.webp${replaces}`],
      [['a.jpg', 'other.jpg'], `2 imagemill: other.jpg${replaces}`],
      [['a.jpg', 'text.webp'], '1 imagemill: text.webp already exists: use --force to overwrite it.'],
      [['a.jpg', 'new'], '2 imagemill: Set the output with -o:'],
      [['a.jpg', '*.png'], '2 imagemill: Set the output with -o:'],
      [['a.jpg', 'other.jpg', 'b.webp'], '2 imagemill: Set the output with -o:'],
      [['a.jpg', 'other.jpg', 'c.webp'], `2 imagemill: -o c.webp${oneFile}`],
      [['a.jpg', 'other.jpg', 'b.webp', '--force'], `2 imagemill: -o b.webp${oneFile}`],
    ] as const)
      expect((await folder.run(args)).outcome, args.join()).to.include(outcome);
    expect(await folder.files()).to.deep.equal(files);
    expect(await folder.text('text.webp')).to.equal('no image');
    for (const output of ['b.webp', 'text.webp', 'other.jpg']) {
      const before = await folder.read(output);
      const { outcome } = await folder.run(['a.jpg', output, '--width', '20', '--force']);
      expect(outcome, output).to.equal('0');
      expect(before.equals(await folder.read(output)), output).to.equal(false);
    }
  });

  it('writes each result of --format smallest with the extension of the format that was chosen', async () => {
    await folder.put('scene.png', 'photo.png');
    await folder.put('moving.gif', 'moving.gif');
    await folder.write('presets.yaml', 'presets: [{ name: small, format: smallest, width: 60 }]');
    const convert = (...args: string[]) => folder.run(['photo.png', 'moving.gif', ...args]);
    expect((await convert('-o', 'plan', '-f', 'smallest', '--dry-run')).lines).to.include(
      'photo.png → plan/photo.{format}',
    );
    expect((await convert('-o', 'small', '-f', 'Smallest')).outcome).to.equal('0');
    expect((await folder.run(['photo.png', 'photo.avif', '-q', 'auto'])).outcome).to.equal('0');
    const results = await readdir(folder.file('small'));
    expect(results).to.have.length(2);
    for (const name of results) {
      const { format, compression = format } = await sharp(folder.file(`small/${name}`)).metadata();
      expect(name).to.match(compression === 'av1' ? /\.avif$/ : /\.(?:webp|gif)$/);
    }
    expect(results).to.include('photo.avif');
    expect(await folder.read('small/photo.avif')).to.deep.equal(await folder.read('photo.avif'));
    const again = await convert('-o', 'small', '-f', 'smallest');
    expect(again.complaints.join())
      .to.include('2 results exist: --force replaces')
      .and.not.include('--update');
    expect((await convert('-o', 'small', '-f', 'smallest', '--force')).outcome).to.equal('0');
    const preset = ['--presets', 'presets.yaml', '--preset', 'small', '--name', '{name}-{width}'];
    expect((await convert('-o', 'preset', ...preset)).outcome).to.equal('0');
    expect(await readdir(folder.file('preset'))).to.include('photo-60.avif');
  });

  it('makes a thumbnail in an empty file with the command of docs/recipes.md for MediaWiki', async () => {
    await put('a.jpg');
    await folder.write('thumbnail.jpg', '');
    const recipes = readFileSync(new URL('../../docs/recipes.md', import.meta.url), 'utf8');
    const [, command = ''] = /^\$wgCustomConvertCommand = 'imagemill convert (.+)';$/m.exec(recipes) ?? [];
    const values = { '%s': 'a.jpg', '%d': 'thumbnail.jpg', '%w': '60', '%h': '40' };
    const words = command.split(' ').map((word) => values[word as keyof typeof values] ?? word);
    const { outcome } = await folder.run(words);
    expect(outcome).to.equal('0');
    expect(await sharp(folder.file('thumbnail.jpg')).metadata()).to.include({ width: 60, height: 40 });
  });

  it('names the danger if a result would replace its own source', async () => {
    await put('a.jpg', 'b.jpg');
    const danger = 'would be replaced by its own result: use --force if you do not need the original.';
    expect((await folder.run(['a.jpg', '-o', 'a.jpg'])).outcome).to.equal(`1 imagemill: a.jpg ${danger}`);
    const { complaints } = await folder.run(['*.jpg', '-o', '.', '-f', 'jpg']);
    expect(complaints.toSorted()).to.deep.equal([
      'imagemill: 2 of 2 files not converted: 2 with itself as the result.',
      `imagemill: a.jpg ${danger}`,
      `imagemill: b.jpg ${danger}`,
    ]);
  });

  it('scales by a width, a height or a scale in percent', async () => {
    await put('a.jpg');
    for (const flags of [
      ['--width', '50%'],
      ['--height', '50%'],
      ['--scale', '50'],
      ['--scale', '50%'],
    ]) {
      expect((await folder.run(['a.jpg', '-o', 'b.png', '--force', ...flags])).outcome).to.equal('0');
      const { width, height } = await sharp(folder.file('b.png')).metadata();
      expect([width, height], flags.join(' ')).to.deep.equal([60, 40]);
    }
  });

  it('takes --trim without a value as yes, and no file name as its value', async () => {
    const dot = { input: { create: { width: 10, height: 8, channels: 3, background: 'black' } } } as const;
    const sheet = sharp({ create: { width: 40, height: 30, channels: 3, background: 'white' } });
    const drawn = sheet.composite([{ ...dot, left: 5, top: 6 }]).png();
    await folder.write('a.png', await drawn.toBuffer());
    for (const [args, size] of [
      [['--trim', 'a.png', 'b.png'], '10×8'],
      [['--trim', '-f', 'png', 'a.png', 'b.png'], '10×8'],
      [['a.png', 'b.png', '--trim'], '10×8'],
      [['a.png', 'b.png', '--trim', 'yes'], '10×8'],
      [['--trim', '4%', 'a.png', 'b.png'], '10×8'],
      [['--trim', '100', 'a.png', 'b.png'], '40×30'],
      [['--trim', 'no', 'a.png', 'b.png'], '40×30'],
    ] as const) {
      expect((await folder.run(args)).outcome, args.join(' ')).to.equal('0');
      const { width, height } = await sharp(folder.file('b.png')).metadata();
      expect(`${width}×${height}`, args.join(' ')).to.equal(size);
      await rm(folder.file('b.png'));
    }
    expect((await folder.run(['--trim', '101', 'a.png', 'b.png'])).outcome).to.include('--trim "101"');
  });

  it('gives results the time of their source with --preserve-times, also in later runs with --update', async () => {
    await put('in/a.jpg', 'in/b.jpg');
    const times = async () =>
      Promise.all(
        ['a.jpg.webp', 'b.jpg.webp'].map(async (name) => (await stat(folder.file('out', name))).mtimeMs),
      );
    await utimes(folder.file('in/a.jpg'), 1_000_000_000, 1_000_000_000.5);
    await utimes(folder.file('in/b.jpg'), 1_100_000_000, 1_100_000_000);
    const args = ['in', '-o', 'out', '--update', '--preserve-times'];
    expect((await folder.run(args)).status).to.equal(0);
    expect(await times()).to.deep.equal([1_000_000_000_500, 1_100_000_000_000]);
    expect((await folder.run(args)).lines).to.deep.equal(['none converted, 2 up to date']);
    await utimes(folder.file('in/b.jpg'), 1_200_000_000, 1_200_000_000); // touched: the result is only confirmed
    expect((await folder.run(args)).lines).to.deep.equal(['none converted, 2 up to date']);
    expect(await times()).to.deep.equal([1_000_000_000_500, 1_200_000_000_000]);
    const plain = await folder.run(['in/a.jpg', '-o', 'plain.webp', '--preserve-times']);
    expect(plain.status).to.equal(0);
    expect((await stat(folder.file('plain.webp'))).mtimeMs).to.equal(1_000_000_000_500);
  });

  it('names results by a pattern with the size of each result', async () => {
    await put('in/a.jpg', 'in/deep/b.jpg');
    await folder.put('pages.tiff', 'in/c.tiff');
    const sized = ['in', '-o', 'out', '--name', '{name}-{width}x{height}', '--width', '60'];
    const dry = await folder.run([...sized, '--dry-run']);
    expect(dry.lines).to.include('in/deep/b.jpg → out/deep/{name}-{width}x{height}.webp');
    const { outcome, lines } = await folder.run(sized);
    expect(outcome).to.equal('0');
    expect(await folder.files('out')).to.deep.equal(['a-60x40.webp', 'c-48x32.webp', 'deep/b-60x40.webp']);
    expect(lines.join()).to.include('in/a.jpg → out/a-60x40.webp');
    const again = await folder.run(sized);
    expect(again.complaints.join('\n')).to.include('3 results exist: --force replaces all.');
    // A PDF has no size in pixels. With a pattern, -o is a folder.
    const pdf = await folder.run(['in/a.jpg', '-o', 'pdf', '-f', 'pdf', '--name', '{name}-{width}']);
    expect(pdf.outcome).to.equal('0');
    expect(await folder.files('pdf')).to.deep.equal(['a.pdf']);
  });

  it('keeps results of a pattern unique, also where case does not count', async () => {
    await put('in/a.jpg', 'in/A.jpeg', 'in/b.jpg');
    for (const [pattern, expected] of [
      ['{name}', ['A.webp', 'a (2).webp', 'b.webp']],
      ['web', ['web (2).webp', 'web (3).webp', 'web.webp']],
      ['{width}', ['120 (2).webp', '120 (3).webp', '120.webp']],
      ['{name}_web', ['A_web.webp', 'a_web (2).webp', 'b_web.webp']],
      ['photo-{number}', ['photo-001.webp', 'photo-002.webp', 'photo-003.webp']],
      ['{number}-{width}', ['001-120.webp', '002-120.webp', '003-120.webp']],
    ] as const) {
      expect((await folder.run(['in', '-o', 'out', '--force', '--name', pattern])).status).to.equal(0);
      expect(await folder.files('out'), pattern).to.deep.equal(expected);
      await rm(folder.file('out'), { recursive: true });
    }
  });

  it('numbers the files of a folder or a pattern as file managers sort them, and arguments in their order', async () => {
    await put('in/IMG_10.jpg', 'in/IMG_2.jpg', 'in/img_3.jpg', 'in/a/b.jpg');
    const natural = ['IMG_2', 'img_3', 'IMG_10', 'a/b'];
    for (const [inputs, expected] of [
      [['in'], natural],
      [['in/**/*.jpg'], natural],
      [
        ['in/IMG_10.jpg', 'in/IMG_2.jpg', 'in/img_3.jpg'],
        ['IMG_10', 'IMG_2', 'img_3'],
      ],
    ] as const) {
      const { lines } = await folder.run([...inputs, '-o', 'out', '--name', 'p{number}', '--dry-run']);
      const planned = expected.map(
        (name, at) => `in/${name}.jpg → ${join('out', dirname(name), `p00${at + 1}.webp`)}`,
      );
      expect(lines.slice(0, -1), inputs.join()).to.deep.equal(planned);
    }
  });

  it('prints sources with line ends, emoji and 255 bytes in a line each, also with --update and --url', async () => {
    const names = ['two words.jpg', 'line\nend.jpg', '🦊 fox.jpg', `${'ä'.repeat(125)}x.jpg`];
    await put(...names.map((name) => `in/${name}`));
    await using service = await startService();
    const url = ['--url', service.base];
    const upToDate = 'none converted, 4 up to date';
    for (const flags of [[], ['--update'], url, [...url, '--update']]) {
      const extension = flags.includes('--update') ? '.jpg.webp' : '.webp';
      const { outcome, lines } = await folder.run(['in', '-o', 'out', ...flags]);
      expect(outcome, flags.join(' ')).to.equal('0');
      expect(lines.length).to.equal(5); // with the summary
      expect(lines.join('\n')).to.include(`in/line\ufffdend.jpg → out/lineend${extension}`);
      const short = ['lineend', 'two words', '🦊 fox'].map((name) => name + extension);
      expect(await readdir(folder.file('out'))).to.include.members([...short, `${'ä'.repeat(100)}.webp`]);
      expect(await folder.files('out')).to.have.length(4);
      if (flags.includes('--update'))
        expect((await folder.run(['in', '-o', 'out', ...flags])).lines.join()).to.equal(upToDate);
      await rm(folder.file('out'), { recursive: true });
    }
  });

  it('loses neither of two sources whose long names share the first 200 bytes', async () => {
    const start = 'ö'.repeat(100);
    const [first, second] = ['a', 'b'].map((end) => `in/${start}${end.repeat(51)}.jpg`); // 255 bytes
    await folder.put('scene.jpg', first as string);
    await folder.put('pages.tiff', second as string);
    const sizeOf = async (name: string) => {
      const { width, height } = await sharp(folder.file('out', name)).metadata();
      return [width, height];
    };
    expect((await folder.run(['in', '-o', 'out'])).outcome).to.equal('0');
    expect(await folder.files('out')).to.deep.equal([`${start} (2).webp`, `${start}.webp`]);
    expect(await sizeOf(`${start}.webp`)).to.deep.equal([120, 80]);
    expect(await sizeOf(`${start} (2).webp`)).to.deep.equal([48, 32]);
    await rm(folder.file('out'), { recursive: true });
    // The name must not depend on the other source, so the second one is an error, in each run.
    for (const summary of ['1 converted', 'none converted, 1 up to date']) {
      const { status, lines, complaints } = await folder.run(['in', '-o', 'out', '--update']);
      expect([status, ...complaints]).to.deep.equal([
        1,
        `imagemill: ${second} and ${first} would both become out/${start}.webp: rename one of them.`,
        'imagemill: 1 of 2 files not converted: 1 with the same result name.',
      ]);
      expect(lines.at(-1)).to.match(new RegExp(`^${summary}`));
      expect(await folder.files('out')).to.deep.equal([`${start}.webp`]);
      expect(await sizeOf(`${start}.webp`)).to.deep.equal([120, 80]);
    }
  });

  it('accepts a pattern with --update that depends on the source alone', async () => {
    await put('in/a.jpg', 'in/b.jpg');
    const args = ['in', '-o', 'out', '--update', '--name', '{name}_web'];
    expect((await folder.run(args)).status).to.equal(0);
    expect(await folder.files('out')).to.deep.equal(['a.jpg_web.webp', 'b.jpg_web.webp']);
    expect((await folder.run(args)).lines).to.deep.equal(['none converted, 2 up to date']);
  });
});
