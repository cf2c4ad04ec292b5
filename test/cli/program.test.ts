import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { runCli } from '../helpers/command-line.ts';
import { runInProcess } from '../helpers/in-process.ts';

describe('imagemill on an old version of Node.js', () => {
  for (const args of [[], ['convert', 'a.png', '-o', 'b.png'], ['regress', 'compare', 'a', 'b']]) {
    it(`exits with 2 and names the version that it needs: imagemill ${args.join(' ')}`, async () => {
      const message = 'imagemill: Node.js 22.17 or later is needed, and this is 20.19.2: https://nodejs.org';
      const { status, lines, complaints } = await runInProcess(args, { nodeVersion: '20.19.2' });
      expect({ status, lines, complaints }).to.deep.equal({ status: 2, lines: [], complaints: [message] });
    });
  }

  it('compares the numbers of a version, and needs the version of package.json', async () => {
    const needed = JSON.parse(await readFile('package.json', 'utf8')).engines.node.replace('>=', '');
    const complaintsOf = async (nodeVersion: string) =>
      (await runInProcess(['completion', 'bash'], { nodeVersion })).complaints.join();
    for (const version of [`${needed}.0`, '22.20.1', '24.0.0', '100.1.0'])
      expect(await complaintsOf(version), version).to.equal('');
    for (const version of ['18.20.1', '22.2.0', '22.16.9', '9.9.9'])
      expect(await complaintsOf(version)).to.include(`Node.js ${needed} or later is needed`);
  });
});

describe('imagemill convert --help', () => {
  it('has an example and options in four groups in 40 lines of 80 columns, and with "all" every option', async () => {
    const { stdout: short } = await runCli(['convert', '--help']);
    const { stdout: all } = await runCli(['convert', '--help', 'all']);
    const lines = short.trimEnd().split('\n');
    expect(lines.length).to.be.at.most(40);
    expect(lines.filter((line) => line.length > 80)).to.deep.equal([]);
    for (const group of ['Image', 'Files', 'Many files', 'Checks']) {
      expect(short).to.match(new RegExp(`^${group}: +\\$ imagemill convert `, 'm'));
      expect(all).to.match(new RegExp(`^${group}:$`, 'm'));
    }
    const flagsOf = (text: string) =>
      [...text.matchAll(/^ {2}((?:-\w, )?--[\w-]+)/gm)].map(([, flags]) => flags);
    expect(flagsOf(short).length).to.equal(25);
    expect(flagsOf(all)).to.include.members(flagsOf(short));
    const [, more = ''] = /has (\d+) more options/.exec(short) ?? [];
    expect(flagsOf(all)).to.have.length(25 + Number(more) + 1); // --help itself
    expect(all).to.include('Exit status: 0 if all files were converted');
    for (const help of [short, all]) {
      expect(help).to.include('[options] <input...> -o <output>, or <input> <output>\n');
      expect(help).to.match(/^ {2}--width <pixels> +maximum width.* or 50%/m);
    }
    expect(all).to.include('$ imagemill convert photo.jpg half.webp --width 50%');
  });
});

describe('imagemill for users of other programs', () => {
  for (const [call, ...expected] of [
    ['a.jpg b.webp', 'To convert, name the command:', '  imagemill convert a.jpg b.webp'],
    ['a.jpg', 'To convert, name the command:', '  imagemill convert a.jpg -o results/'],
    ['src --json', 'To convert, name the command:', '  imagemill convert src --json -o results/'],
    [
      '-i a.jpg -y b.webp',
      'To convert, name the command:',
      '  imagemill convert -i a.jpg -y b.webp',
      'Unknown option -i: name the file without an option.',
      'Unknown option -y: use --force.',
    ],
    ['convert -w 300 a.jpg b.webp', 'Unknown option -w: use --width.'],
    [
      'convert a.jpg -resize 300 -quality 80 -strip b.webp',
      'Unknown option -resize: use --width and --height, or --scale.',
      'Unknown option -quality: use --quality.',
      'Unknown option -strip: leave it out: metadata is removed unless --metadata keeps it.',
    ],
    ['convert a.jpg b.webp --resize=300', 'Unknown option --resize: use --width and --height, or --scale.'],
    [
      'explain --strip a.jpg',
      'Unknown option --strip: leave it out: metadata is removed unless --metadata keeps it.',
    ],
    ['convert -- -w', 'Set the output with -o:'],
    ['serv', 'Unknown command "serv": see imagemill --help.'],
  ])
    it(`prints what to write instead of imagemill ${call}`, async () => {
      const { status, complaints } = await runInProcess(call?.split(' ') ?? []);
      expect([status, ...complaints.slice(0, expected.length)]).to.deep.equal([
        2,
        ...expected.map((line) => `imagemill: ${line}`),
      ]);
    });
});

describe('imagemill key', () => {
  for (const args of [['a b'], ['a:b'], ['x'.repeat(65)], ['shop', '--limit', '1.5']]) {
    it(`exits with 2 for ${args.join(' ').slice(0, 20)}, which cannot be in the file`, async () => {
      const { status, lines, complaints } = await runInProcess(['key', ...args]);
      expect([status, lines]).to.deep.equal([2, []]);
      expect(complaints[0]).to.match(/^imagemill: Expected a name of 1 to 64 letters/);
    });
  }
});
