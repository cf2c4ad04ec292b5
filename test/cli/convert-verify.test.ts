// @full: faults in all formats
// @slow
import { existsSync } from 'node:fs';
import { copyFile, readdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { open } from '../../scripts/fixtures/scene.ts';
import { createVerifier } from '../../src/cli/convert/verifier.ts';
import { verify as verifyResult } from '../../src/regress/verify.ts';
import { edgeCase, fixture, fixturePath } from '../helpers/client.ts';
import { useConvertFolder, type Variants } from '../helpers/convert-folder.ts';
import { patchedMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { madePhotos } from '../helpers/made-photos.ts';
import type { Pixels } from '../helpers/pixels.ts';
import { execute } from '../helpers/process.ts';
import { startEngine } from '../helpers/service.ts';
import { processesWhere, writeScript } from '../helpers/util.ts';

const OUTPUTS = ['png', 'webp', 'jpg', 'gif', 'bmp', 'tiff', 'avif', 'jxl'];
/**
 * Faults of a conversion: the source that shows it, its name in the folder, its coder, and the
 * arguments that are added before the output.
 */
const FAULTS = [
  ['scene.png', 'colour.png', 'PNG', '-modulate 100,100,80'],
  ['scene.jpg', 'row.jpg', 'JPEG', '-chop 0x1+0+40'],
  ['scene.bmp', 'mirror.bmp', 'BMP', '-flop'],
  ['window.webp', 'window.webp', 'WEBP', '-alpha off'],
] as const;

/** Returns the processes that verify for this one: its only children that run Node.js. */
const findWorkers = (): number[] =>
  processesWhere('status', (text) => text.includes(`\nPPid:\t${process.pid}\n`)).filter((pid) =>
    processesWhere('cmdline', (text) => text.split('\0')[0] === process.execPath).includes(pid),
  );

describe('imagemill convert --verify', () => {
  const folder = useConvertFolder();
  const EXTRA_OUTPUTS = 'tiff,avif,jxl';
  const verify = (mode: string, format: string, args: readonly string[] = [], env = {}) =>
    folder.run(['in', '-o', 'out', '--format', format, '--verify', mode, ...args], {
      env: { EXTRA_OUTPUTS, ...env },
    });
  const verifyAll = (mode: string, variants: Variants, args: readonly string[] = [], env = {}) =>
    folder.runVariants(variants, ['--verify', mode, ...args], { env: { EXTRA_OUTPUTS, ...env } });
  const firstFrame = ['--frames', 'first'];

  it('passes sound results with visual in every format, resized or not', async () => {
    const [photo] = await madePhotos(300, 200, 1);
    for (const name of ['window.png', 'orientation-6.jpg']) await folder.put(name, `in/${name}`);
    await open(photo as Pixels)
      .jpeg()
      .toFile(folder.file('in/photo.jpg'));
    expect((await verifyAll('visual', OUTPUTS, ['--width', '60'])).outcome).to.equal('0');
    for (const name of ['scene.png', 'p3.jpg', 'moving.gif']) await folder.put(name, `in/${name}`);
    expect((await verifyAll('visual', OUTPUTS, firstFrame)).outcome).to.equal('0');
    expect(await folder.files('out')).to.have.length(6 * OUTPUTS.length);
  });

  it('passes sound results whose working files are in memory or on the disk', async () => {
    await folder.put('scene.jpg', 'in/small.jpg');
    const blank = sharp({ create: { width: 5000, height: 5000, channels: 3, background: '#fff' } });
    await blank.png().toFile(folder.file('in/large.png'));
    expect((await verify('visual', 'webp', [], { TEMP_DIR: '' })).outcome).to.equal('0');
  });

  it('passes a JPEG XL of a dark photo in Display P3, of whose colours rounding is a large part', async () => {
    const [width, height] = [640, 480];
    const pixels = Buffer.alloc(width * height * 3);
    for (let at = 0; at < width * height; at += 1) {
      const [x, y] = [at % width, Math.floor(at / width)];
      const light = 1 + 0.5 * Math.sin(x / 97) * Math.cos(y / 61);
      const noise = ((x * 7 + y * 13) % 10) / 8;
      for (const [channel, colour] of [6, 3, 1].entries())
        pixels[at * 3 + channel] = Math.round(colour * light + noise);
    }
    const photo = sharp(pixels, { raw: { width, height, channels: 3 } }).withIccProfile('p3');
    await folder.write('in/dark.jpg', await photo.jpeg({ quality: 92 }).toBuffer());
    expect(await verify('visual', 'jxl')).to.include({ status: 0 });
  });

  it('passes a JPEG that sharp would make one pixel too high', async () => {
    const create = { width: 1003, height: 750, channels: 3, background: 'teal' } as const;
    const source = await sharp({ create }).jpeg().toBuffer();
    expect((await sharp(await sharp(source).resize(300).png().toBuffer()).metadata()).height).to.equal(225);
    await folder.put('scene.png', 'in/scene.png');
    await folder.write('in/odd.jpg', source);
    expect(await verify('visual', 'png', ['--force', '--width', '300'])).to.include({ status: 0 });
    const { height } = await sharp(folder.file('out/odd.png')).metadata();
    expect(height).to.equal(224);
  });

  it('passes sound results without loss with pixels', async () => {
    for (const name of ['scene.png', 'window.png', 'orientation-6.jpg', 'moving.gif'])
      await folder.put(name, `in/${name}`);
    const variants = [
      'png',
      'bmp',
      'tiff',
      { name: 'webp', format: 'webp', lossless: true },
      { name: 'jxl', format: 'jxl', quality: 100 },
    ];
    expect((await verifyAll('pixels', variants, firstFrame)).outcome).to.equal('0');
    expect(await folder.files('out')).to.have.length(4 * variants.length);
  });

  it('writes no result of several frames or pages, nor with pixels one that lacks bits per channel', async () => {
    for (const name of ['moving.gif', 'pages.tiff']) await folder.put(name, `in/${name}`);
    const samples = Uint16Array.from({ length: 64 * 64 * 3 }, (_, at) => at * 5);
    const deep = sharp(samples, { raw: { width: 64, height: 64, channels: 3 } });
    await deep.toColourspace('rgb16').png().toFile(folder.file('in/deep.png'));
    const { status, complaints } = await verify('pixels', 'bmp');
    expect([status, complaints.length], complaints.join()).to.deep.equal([1, 4]);
    expect(complaints.join()).to.match(/deep\.png: .* 8 bits per channel instead of 16/);
    expect(complaints.join()).to.match(/moving\.gif: .* it has 3 frames: use --frames first/);
    expect(complaints.join()).to.match(/pages\.tiff: .* it has 3 pages: use --pages first/);
    expect(await folder.files('out').catch(() => [])).to.deep.equal([]);
    const animated = await verify('visual', 'webp', ['--force']);
    expect(animated.complaints.join()).to.match(/moving\.gif: .* it has 3 frames: use --frames first/);
    const first = ['--frames', 'first', '--pages', 'first'];
    expect((await verify('pixels', 'tiff', first)).complaints).to.deep.equal([]);
  });

  it('compares samples of 16 bits with pixels, where they are not transparent', async () => {
    const [width, height] = [40, 30];
    const samples = Uint16Array.from({ length: width * height * 4 }, (_, at) => (at * 977) % 65536);
    samples[3] = 0;
    const raw = { width, height, channels: 4 } as const;
    const file = (data: Uint16Array) => sharp(data, { raw }).toColourspace('rgb16').png().toBuffer();
    await folder.write('in.png', await file(samples));
    for (const format of ['png', 'tiff']) {
      const args = ['in.png', '-o', `out.${format}`, '--verify', 'pixels'];
      expect((await folder.run(args, { env: { EXTRA_OUTPUTS } })).complaints, format).to.deep.equal([]);
    }
    const options = { format: 'png', quality: 80, metadata: 'none' } as const;
    const judge = async (at: number) => {
      const other = samples.with(at, (samples[at] as number) ^ 1);
      return verifyResult('pixels', 'png', await file(samples), await file(other), options);
    };
    expect(await judge(0), 'under a transparent pixel').to.include({ passed: true });
    expect((await judge(4)).reason).to.equal('samples of 16 bits differ by less than 1 of 255');
  });

  it('writes no result with a wrong colour, a missing row, a mirror image or a lost alpha, in any format', async () => {
    for (const [source, name] of FAULTS) await folder.put(source, `in/${name}`);
    const branches = FAULTS.map(([, , coder, args]) => `*${coder}:in*) set -- "$@" "$word" ${args} ;;`);
    const MAGICK_BIN = await patchedMagick(`-strip) case "$*" in ${branches.join(' ')} esac ;;`);
    const { status, complaints } = await verifyAll('visual', OUTPUTS, [], { MAGICK_BIN });
    const opaque = ['window-bmp.bmp', 'window-jpg.jpg'];
    for (const [source, name] of FAULTS) {
      const failed = complaints.filter((line) =>
        line.includes(`${name}: the result was not verified, and is not written: `),
      );
      const count = OUTPUTS.length - (name === 'window.webp' ? opaque.length : 0);
      expect(failed, complaints.join()).to.have.length(count);
      expect(await folder.read(`in/${name}`)).to.deep.equal(await fixture(source));
    }
    expect([status, await folder.files('out')]).to.deep.equal([1, opaque]);
  });

  it('finds one changed pixel with pixels, names the place and draws it', async () => {
    await folder.put('scene.png', 'in/scene.png');
    const MAGICK_BIN = await patchedMagick(
      `-strip) set -- "$@" "$word" -fill magenta -draw 'point 70,50' ;;`,
    );
    const { status, complaints } = await verify('pixels', 'png', ['--report', 'pictures/'], { MAGICK_BIN });
    expect(status).to.equal(1);
    expect(complaints[0]).to.match(/1 pixels of a block differ .*worst at (56|64), (40|48) \(pictures\//);
    const [picture = ''] = await readdir(folder.file('pictures'));
    expect((await sharp(folder.file('pictures', picture)).metadata()).format).to.equal('webp');
    await folder.write('taken', '');
    const untaken = await verify('pixels', 'png', ['--report', 'taken/'], { MAGICK_BIN });
    expect(untaken.complaints[0]).to.match(
      /differ .*\(its picture cannot be written: file already exists\)\.$/,
    );
  });

  it('names the pictures of failures by results, so that those of variants do not replace each other', async () => {
    await folder.put('scene.png', 'in/scene.png');
    await folder.put('scene.png', 'in/a/scene.png');
    const variants = [
      { name: 'small', width: 60 },
      { name: 'large', width: 100 },
    ];
    const presets = JSON.stringify({ presets: [{ name: 'web', format: 'png', variants }] });
    await folder.write('presets.json', presets);
    const MAGICK_BIN = await patchedMagick('-strip) set -- "$@" "$word" -flop ;;');
    const args = ['in', '-o', 'out', '--presets', 'presets.json', '--preset', 'web', '--verify', 'visual'];
    const { status, complaints } = await folder.run([...args, '--report', 'worst/'], { env: { MAGICK_BIN } });
    expect([status, complaints.length], complaints.join()).to.deep.equal([1, 5]);
    const pictures = (await readdir(folder.file('worst'))).map((name) => name.replace(/-\w{8}\.webp$/, ''));
    expect(pictures).to.have.members(
      ['out_scene', 'out_a_scene'].flatMap((name) => [`${name}-small.png`, `${name}-large.png`]),
    );
  });

  it('decodes JPEG XL with a decoder that is not the one of its encoder', async () => {
    await folder.put('scene.png', 'in/scene.png');
    await folder.put('window.png', 'in/window.png');
    const verified = await verify('pixels', 'jxl', ['--quality', '100', '--json']);
    expect(verified.complaints).to.deep.equal([]);
    for (const { verification } of verified.objects().slice(0, 2))
      expect(verification).to.include({ decoder: 'sharp, jxl-oxide', passed: true });
    const MAGICK_BIN = await patchedMagick(
      `-strip) set -- "$@" "$word" -fill magenta -draw 'point 70,50' ;;`,
    );
    const again = ['--quality', '100', '--force'];
    const { status, complaints } = await verify('pixels', 'jxl', again, { MAGICK_BIN });
    expect([status, complaints.length], complaints.join()).to.deep.equal([1, 3]);
    expect(complaints[0]).to.match(/1 pixels of a block differ .*worst at (56|64), (40|48)/);
  });

  it('verifies what is made of a JPEG XL that is not animated', async () => {
    for (const name of ['window.jxl', 'moving.jxl'])
      await copyFile(new URL(`../../fixtures/extra/${name}`, import.meta.url), folder.file(name));
    const env = { EXTRA_INPUTS: 'jxl' };
    const convert = (name: string) =>
      folder.run([name, '-o', `${name}.png`, '--verify', 'pixels', '--frames', 'first'], { env });
    expect((await convert('window.jxl')).complaints).to.deep.equal([]);
    expect((await convert('moving.jxl')).complaints.join()).to.include(
      'this JPEG XL cannot be compared: it is animated',
    );
  });

  it('passes a JPEG XL from which the same JPEG can be restored, and no other', async () => {
    const EXTRA_OUTPUTS = 'jxl';
    const args = ['--lossless', '--keep-metadata'];
    for (const name of ['private.jpg', 'orientation-6.jpg', 'scene.png'])
      await folder.put(name, `in/${name}`);
    const named = [...args, '--keep-extension'];
    const { status, complaints } = await verify('pixels', 'jxl', named, { EXTRA_OUTPUTS });
    expect([status, complaints.length], complaints.join()).to.deep.equal([1, 3]);
    expect(complaints.join()).to.match(
      /orientation-6\.jpg: the result was not verified.*only an upright JPEG/,
    );
    expect(await folder.files('out')).to.deep.equal(['private.jpg.jxl']);
    expect((await verify('pixels', 'jxl', ['--lossless'], { EXTRA_OUTPUTS })).status).to.equal(2);
    const visual = await verify('visual', 'jxl', [...args, '--force'], { EXTRA_OUTPUTS });
    expect(visual.outcome).to.equal('0');
  });

  it('advises --quality 100 where it helps, and not for CMYK', async () => {
    const restorable = ['--lossless', '--keep-metadata'];
    const cmyk = await sharp(await fixture('scene.png'))
      .toColourspace('cmyk')
      .withIccProfile('cmyk')
      .jpeg()
      .toBuffer();
    await folder.put('scene.png', 'in/scene.png');
    await folder.put('orientation-6.jpg', 'in/turned.jpg');
    await folder.write('in/bare.jpg', await edgeCase('cmyk-bare.jpg'));
    await folder.write('in/tagged.jpg', cmyk);
    const reasonOf = ({ complaints }: { complaints: readonly string[] }, name: string) =>
      complaints.find((line) => line.includes(`${name}: the result was not verified`));
    const first = await verify('pixels', 'jxl', restorable);
    for (const name of ['scene.png', 'turned.jpg', 'tagged.jpg'])
      expect(reasonOf(first, name)).to.match(
        /only an upright JPEG.*for others, except CMYK, use --quality 100/,
      );
    expect(reasonOf(first, 'bare.jpg')).to.match(/its CMYK colours are not defined by a profile\.$/);
    const second = await verify('pixels', 'jxl', [...restorable, '--quality', '100', '--force']);
    expect(reasonOf(second, 'bare.jpg')).to.equal(reasonOf(first, 'bare.jpg'));
    expect(await folder.files('out')).to.include.members(['scene.jxl', 'turned.jxl']);
  });

  it('writes no JPEG XL from which another JPEG would be restored', async () => {
    await folder.put('scene.jpg', 'in/scene.jpg');
    const cjxl = await writeScript(
      'cjxl',
      'for word in "$@"; do shift; case $word in *jpeg=1) word=--lossless_jpeg=0; esac; set -- "$@" "$word"; done; exec /usr/bin/cjxl "$@"',
    );
    const PATH = dirname(cjxl); // has no other cjxl: binaries are preferred to scripts
    for (const tool of ['convert', 'djxl']) await symlink(`/usr/bin/${tool}`, join(PATH, tool));
    const env = { EXTRA_OUTPUTS: 'jxl', PATH, MAGICK_BIN: '/usr/bin/convert' };
    const { status, complaints } = await verify('pixels', 'jxl', ['--lossless', '--keep-metadata'], env);
    expect([status, complaints.length], complaints.join()).to.deep.equal([1, 1]);
    expect(await folder.files('out').catch(() => [])).to.deep.equal([]);
  });

  it('verifies with --update each result that no earlier run has verified in the same way', async () => {
    await folder.put('scene.png', 'in/a.png');
    const update = async (...args: readonly string[]) => {
      const { summary } = await folder.run(['in', '-o', 'out', '-f', 'png', '--update', '--json', ...args]);
      const { converted, upToDate } = summary();
      return `${converted} ${upToDate}`;
    };
    expect(await update()).to.equal('1 0');
    expect(await update('--verify', 'visual'), 'not verified').to.equal('1 0');
    expect(await update('--verify', 'visual'), 'verified').to.equal('0 1');
    expect(await update('--verify', 'pixels'), 'verified in another way').to.equal('1 0');
    await utimes(folder.file('in/a.png'), new Date(), new Date(1e12));
    expect(await update('--verify', 'pixels'), 'touched').to.equal('0 1');
    expect(await update('--verify', 'pixels'), 'still verified').to.equal('0 1');
    expect(await update(), 'without --verify').to.equal('0 1');
  });

  it('fails a file whose decoder crashes, and converts the others', async () => {
    await folder.put('scene.png', 'in/a.png');
    await folder.put('scene.jpg', 'in/b.jpg');
    // The tool claims success with a file that no other decoder reads.
    const claim = 'JPEG:in\\[0\\]) set -- "$@" "$word" ; cp "$0" image.png ; exit 0 ;;';
    const MAGICK_BIN = await patchedMagick(claim);
    const { status, complaints } = await verify('visual', 'png', [], { MAGICK_BIN });
    expect(status, complaints.join()).to.equal(1);
    expect(await folder.files('out')).to.deep.equal(['a.png']);
  });

  it('fails a file whose decoder is killed, keeps its source, and converts the others with another one', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const name of names) await folder.put('scene.png', `in/${name}.png`);
    const killed: number[] = [];
    const timer = setInterval(() => {
      const hasResult = names.some((name) => existsSync(folder.file(`out/${name}.webp`)));
      if (killed.length > 0 || !hasResult) return;
      for (const pid of findWorkers()) {
        process.kill(pid, 'SIGKILL');
        killed.push(pid);
      }
    }, 2);
    const { status, complaints } = await verify('visual', 'webp', ['--jobs', '1']).finally(() =>
      clearInterval(timer),
    );
    const failed = complaints.flatMap(
      (line) => /([a-f])\.png: the result was not verified, .*SIGKILL/.exec(line)?.[1] ?? [],
    );
    expect([status, complaints.length], complaints.join()).to.deep.equal([1, failed.length + 1]);
    expect(failed.length).to.be.within(1, killed.length);
    const sound = names.filter((name) => !failed.includes(name));
    expect(await folder.files('out')).to.deep.equal(sound.map((name) => `${name}.webp`));
    for (const name of failed)
      expect(await folder.read(`in/${name}.png`)).to.deep.equal(await fixture('scene.png'));
  });

  /** Calls a function with a folder, and one that compares two files in it with `pixels`. */
  async function withVerifier(
    use: (folder: string, ask: (source: string, result: string) => Promise<unknown>) => Promise<void>,
  ): Promise<void> {
    const engine = await startEngine();
    const verifier = await createVerifier(engine, 1, undefined);
    const options = { format: 'png', quality: 80, metadata: 'none' } as const;
    const question = { mode: 'pixels', type: 'png', options } as const;
    try {
      await use(await engine.workspaces.root(), (source, result) =>
        verifier
          .verify({ ...question, source, result }, { input: 'scene.png', output: 'out.png' })
          .catch((error: Error) => error.message),
      );
    } finally {
      verifier.close();
      await engine.close();
    }
  }

  it('blames the decoder if it decodes the same file in two ways', () =>
    withVerifier(async (root, ask) => {
      // Pipes stand in for such a decoder: each process reads other bytes from them.
      const [source, result] = [join(root, 'source'), join(root, 'result')] as const;
      await execute('mkfifo', [source, result]);
      const [scene, other] = [await fixture('scene.png'), await fixture('window.png')];
      const answer = ask(source, result);
      for (const [one, two] of [
        [scene, other],
        [scene, scene],
      ] as const) {
        await writeFile(source, one);
        await writeFile(result, two);
      }
      expect(await answer).to.match(/the decoder failed: it disagrees with itself: .* then no difference/);
      await copyFile(fixturePath('scene.png'), join(root, 'scene.png'));
      const sound = join(root, 'scene.png');
      expect(await ask(sound, sound)).to.include({ passed: true });
    }));

  it('verifies in a process that reads the working files and no others', () =>
    withVerifier(async (root, ask) => {
      const folders = [root, await makeTempDir('other-files')] as const;
      const [inside, outside] = folders.map((path) => join(path, 'scene.png')) as [string, string];
      for (const path of [inside, outside]) await copyFile(fixturePath('scene.png'), path);
      expect(await ask(inside, inside)).to.include({ passed: true });
      for (const path of [outside, '/etc/passwd'])
        for (const files of [
          [path, inside],
          [inside, path],
        ] as const)
          expect(await ask(...files), path).to.match(/^scene\.png: the result was not verified, .*EACCES/s);
    }));
});
