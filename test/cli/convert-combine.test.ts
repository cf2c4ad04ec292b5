import { rm, truncate, utimes } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { decode, drawPdf, pixelAt, plain } from '../helpers/pixels.ts';

const COLOURS = ['red', 'lime', 'blue'];
const RGB = { red: '255 0 0', lime: '0 255 0', blue: '0 0 255' };

describe('imagemill convert with several inputs and one file', () => {
  const folder = useConvertFolder();
  /** Writes PNGs of one colour each. */
  const put = async (names: readonly string[]) => {
    for (const [at, name] of names.entries()) {
      const image = plain(20 + 10 * at, 20, COLOURS[at]).png();
      await folder.write(name, await image.toBuffer());
    }
  };
  /** Returns the names of the colours of the pages of a PDF. */
  const coloursOf = async (name: string) => {
    const file = await folder.read(name);
    const { pages } = await pdfFacts(file);
    return Promise.all(
      Array.from({ length: pages }, async (_, at) => {
        const found = pixelAt(await decode(await drawPdf(file, at + 1)), 5, 5);
        const isNear = (rgb: string) =>
          rgb.split(' ').every((value, channel) => Math.abs(Number(value) - (found[channel] ?? 0)) < 9);
        return Object.entries(RGB).find(([, rgb]) => isNear(rgb))?.[0];
      }),
    );
  };

  it('makes one PDF in the order of the arguments, and prints a line for each', async () => {
    await put(['a.png', 'b.png', 'c.png']);
    const { status, lines } = await folder.run(['c.png', 'a.png', 'b.png', '-o', 'album.pdf']);
    expect(status).to.equal(0);
    expect(await coloursOf('album.pdf')).to.deep.equal(['blue', 'red', 'lime']);
    const printed = lines.slice(0, 3).map((line) => line.replace(/ {2}.*/, ''));
    expect(printed).to.have.members(['a', 'b', 'c'].map((name) => `${name}.png → album.pdf`));
    expect(await folder.files()).to.deep.equal(['a.png', 'album.pdf', 'b.png', 'c.png']);
  });

  it('takes the files of a folder in natural order, without the combined file of an earlier run in it', async () => {
    await put(['in/10.png', 'in/2.png', 'in/1.png']);
    const args = ['in', '-o', 'in/album.pdf', '--combine'];
    expect((await folder.run(args)).status).to.equal(0);
    expect(await coloursOf('in/album.pdf')).to.deep.equal(['blue', 'lime', 'red']);
    const again = await folder.run(args);
    expect(again.outcome).to.equal(
      '1 imagemill: in/album.pdf already exists: use --force to overwrite it. imagemill: in/album.pdf was not written.',
    );
    expect((await folder.run([...args, '--force'])).status).to.equal(0);
    expect(await coloursOf('in/album.pdf')).to.have.length(3);
  });

  it('writes nothing if an input fails, reports it, and ends with 1', async () => {
    await put(['a.png', 'b.png']);
    await folder.write('c.png', 'no image');
    const { status, objects } = await folder.run(['a.png', 'c.png', 'b.png', '-o', 'album.pdf', '--json']);
    expect(status).to.equal(1);
    expect(objects().flatMap(({ input, error }) => (error ? input : []))).to.deep.equal(['c.png']);
    expect(await folder.files()).to.deep.equal(['a.png', 'b.png', 'c.png']);
  });

  it('prints an object for each input with --json, with the digest of the combined file', async () => {
    await put(['a.png', 'b.png']);
    const { objects } = await folder.run(['a.png', 'b.png', '-o', 'album.pdf', '--json']);
    const [first, second, last] = objects();
    expect([first.input, second.input]).to.deep.equal(['a.png', 'b.png']);
    expect([first.output, second.output]).to.deep.equal(['album.pdf', 'album.pdf']);
    expect(first.sha256.result).to.equal(second.sha256.result);
    expect(first.sha256.source).to.not.equal(second.sha256.source);
    expect(last.summary.converted).to.equal(2);
  });

  it('converts identical files once, and has a page for each', async () => {
    await put(['a.png', 'b.png']);
    await folder.write('c.png', await folder.read('a.png'));
    const args = ['a.png', 'b.png', 'c.png'];
    await folder.run([...args, '-o', 'album.pdf']);
    expect(await coloursOf('album.pdf')).to.deep.equal(['red', 'lime', 'red']);
    const MAGICK_BIN = await fakeMagick(`echo x >>${folder.file('log')}; ${COPY_SCENE}`);
    const env = { MAGICK_BIN, SANDBOX: 'off' };
    const size = ['--width', '120', '--height', '80'];
    expect((await folder.run([...args, '-o', 'all.webp', ...size], { env })).status).to.equal(0);
    expect(await folder.text('log')).to.equal('x\nx\n');
    expect((await sharp(folder.file('all.webp'), { animated: true }).metadata()).pages).to.equal(3);
  });

  it('reports each of several identical files that fail', async () => {
    await put(['a.png']);
    const cut = (await folder.read('a.png')).subarray(0, 60);
    for (const name of ['b.png', 'c.png']) await folder.write(name, cut);
    const { objects } = await folder.run(['a.png', 'b.png', 'c.png', '-o', 'album.pdf', '--json']);
    const errors = objects().filter(({ error }) => error);
    expect(errors.map(({ input }) => input)).to.deep.equal(['b.png', 'c.png']);
    expect(errors[1].error.message).to.include('c.png');
  });

  describe('with --update', () => {
    const summaryOf = async (...args: readonly string[]) =>
      (await folder.run([...args, '--update', '--json'])).summary();
    const made = { converted: 2, upToDate: 0 };
    const kept = { converted: 0, upToDate: 2 };

    it('makes the file again after a change of an input, of the inputs, their order, an option or the file', async () => {
      await put(['a.png', 'b.png', 'c.png']);
      const args = ['a.png', 'b.png', '-o', 'album.pdf'];
      expect(await summaryOf(...args)).to.include(made);
      const earlier = Date.now() / 1000 - 600;
      await utimes(folder.file('b.png'), earlier, earlier);
      expect(await summaryOf(...args), 'an older file').to.include(made);
      expect(await summaryOf(...args)).to.include(kept);
      expect(await summaryOf('b.png', 'a.png', '-o', 'album.pdf'), 'order').to.include(made);
      expect(await coloursOf('album.pdf')).to.deep.equal(['lime', 'red']);
      const added = await summaryOf('a.png', 'b.png', 'c.png', '-o', 'album.pdf');
      expect(added, 'added').to.include({ converted: 3 });
      expect(await summaryOf(...args), 'removed').to.include(made);
      expect(await coloursOf('album.pdf')).to.deep.equal(['red', 'lime']);
      expect(await summaryOf(...args, '--page-size', 'a4'), 'an option').to.include(made);
      expect(await summaryOf(...args, '--page-size', 'a4')).to.include(kept);
      await truncate(folder.file('album.pdf'), 90);
      expect(await summaryOf(...args, '--page-size', 'a4'), 'a changed result').to.include(made);
      const frames = ['a.png', 'b.png', '-o', 'all.gif'];
      expect(await summaryOf(...frames, '--delay', '50')).to.include(made);
      expect(await summaryOf(...frames, '--delay', '60'), 'a delay').to.include(made);
      expect(await summaryOf(...frames, '--delay', '60')).to.include(kept);
    });

    it('replaces no file that it did not write, and no run with --delete removes its file', async () => {
      await put(['in/a.png', 'in/b.png']);
      await folder.write('out/album.pdf', 'mine');
      const args = ['in', '-o', 'out/album.pdf'];
      expect((await folder.run([...args, '--update'])).status).to.equal(1);
      expect(await folder.text('out/album.pdf')).to.equal('mine');
      expect(await summaryOf(...args, '--force')).to.include(made);
      await rm(folder.file('in/a.png'));
      await folder.run(['in', '-o', 'out', '--delete', '--yes']);
      expect(await folder.files('out')).to.deep.equal(['album.pdf', 'b.png.webp']);
    });
  });

  it('only says what it would do with --dry-run', async () => {
    await put(['a.png', 'b.png']);
    const { status, lines } = await folder.run(['a.png', 'b.png', '-o', 'album.pdf', '--dry-run']);
    expect([status, ...lines.slice(0, 2)]).to.deep.equal([0, 'a.png → album.pdf', 'b.png → album.pdf']);
    expect(await folder.files()).to.deep.equal(['a.png', 'b.png']);
  });

  describe('ends with 2, and replaces no image, for', () => {
    /** Arguments, separated by spaces, and a part of the message. */
    const refusals = {
      'a.png b.png -o all.png': '-o all.png is one file, for several inputs: a folder ends with a slash.',
      'a.png b.png -o out/ --combine': '--combine needs a file for -o, and out/ is a folder.',
      'a.png b.png -o all.png --combine': 'Invalid --format "png": expected one of',
      'a.png b.png all.webp': '-o all.webp is one file, for several inputs',
      'a.png b.png --combine --force -f gif': 'Set the output with -o:',
      'a.png b.png -o all.pdf --url http://localhost:1': '--url is not possible if all inputs become one',
      'a.png -o a.gif --delay 50': '--delay and --loop are for the frames',
    };
    for (const [args, message] of Object.entries(refusals))
      it(args, async () => {
        await put(['a.png', 'b.png']);
        const before = await folder.read('b.png');
        const { status, complaints } = await folder.run(args.split(' '));
        expect((await folder.read('b.png')).equals(before)).to.equal(true);
        expect(status).to.equal(2);
        expect(complaints.join('\n')).to.include(message);
      });
  });
});
