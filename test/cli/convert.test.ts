// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { workingFolder } from '../../src/files/system.ts';
import { flagName, optionsWith } from '../../src/tables/options.ts';
import { convert, edgeCasePath, expectSuccess, fixture, formOf, postForm } from '../helpers/client.ts';
import { MAIN, runOnTerminal } from '../helpers/command.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { extraPath } from '../helpers/extra.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { valuesOf } from '../helpers/plans.ts';
import { execute } from '../helpers/process.ts';
import { startService } from '../helpers/service.ts';
import { eventually, isRunning } from '../helpers/util.ts';

describe('imagemill convert', () => {
  const folder = useConvertFolder();
  const formatOf = async (name: string) => (await sharp(folder.file(name)).metadata()).format;
  const nothingInTemp = async () => expect(await readdir(folder.temp), 'left in TEMP_DIR').to.deep.equal([]);

  it('converts every format of this machine without a setting, and with a setting only those in it', async () => {
    await cp(extraPath('scene.heic'), folder.file('IMG_0001.HEIC'));
    await cp(extraPath('scene.psd'), folder.file('layers.psd'));
    expect((await folder.run(['IMG_0001.HEIC', '-o', 'photo.avif'])).outcome).to.equal('0');
    expect(await formatOf('photo.avif')).to.equal('heif');
    const env = { EXTRA_INPUTS: 'heic', EXTRA_OUTPUTS: 'tiff' };
    const off = await folder.run(['IMG_0001.HEIC', '-o', 'other.avif'], { env });
    expect(off.status).to.equal(2);
    expect(off.complaints.join()).to.include('not one of webp, png, jpg, gif, bmp, pdf, tiff');
    const refused = await folder.run(['layers.psd', '-o', 'other.tiff'], { env });
    expect(refused.outcome).to.match(/^1 .*: PSD is not available here\. See "imagemill doctor"\.$/);
    // In a folder, files of a type that is not enabled are skipped.
    const all = await folder.run(['.', '-o', 'made/', '--format', 'tiff'], { env });
    expect(all.outcome).to.equal('0');
    expect(await folder.files('made')).to.deep.equal(['IMG_0001.tiff', 'photo.tiff']);
  });

  it('converts to the format of the extension of -o, prints the change in size, and leaves no files', async () => {
    await folder.put('scene.jpg', 'photo.jpg');
    const { lines, outcome } = await folder.runProcess(['photo.jpg', '-o', 'photo.webp']);
    expect(outcome).to.equal('0');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(/^photo\.jpg → photo\.webp {2}3\.3 kB → \d+ B \(−\d\d%\)$/);
    const { format, width, height } = await sharp(folder.file('photo.webp')).metadata();
    expect([format, width, height]).to.deep.equal(['webp', 120, 80]);
    await nothingInTemp();
  });

  it('keeps its working files in memory if an image needs little space, and otherwise on the disk', async () => {
    const memory = workingFolder(128 * 1024 ** 2); // the system's folder where memory is scarce
    await folder.put('scene.jpg', 'small.jpg');
    const blank = sharp({ create: { width: 8000, height: 8000, channels: 3, background: '#fff' } });
    await blank.png().toFile(folder.file('large.png'));
    const MAGICK_BIN = await fakeMagick(`pwd >> ${folder.file('log')}; ${COPY_SCENE}`);
    const env = { MAGICK_BIN, SANDBOX: 'off', TEMP_DIR: '' };
    const args = ['-o', 'out/', '--format', 'webp', '--jobs', '1'];
    for (const [name, expected] of [
      ['small.jpg', memory],
      ['large.png', tmpdir()],
    ] as const) {
      await folder.write('log', '');
      expect((await folder.run([name, ...args], { env })).outcome).to.equal('0');
      const [used = ''] = (await folder.text('log')).split('\n');
      expect(used.replace(/\/imagemill-instance-.*/, '')).to.equal(expected);
      expect(existsSync(used), 'removed').to.equal(false);
    }
  });

  it('keeps subfolders, skips files that are not images, and reports other content with an extension', async () => {
    await mkdir(folder.file('photos/2024/may'), { recursive: true });
    await folder.put('scene.png', 'photos/a.png');
    await folder.put('scene.jpg', 'photos/2024/may/b.jpg');
    await folder.put('scene.gif', 'photos/2024/without-extension');
    await folder.write('photos/notes.txt', 'no image');
    await folder.write('photos/fake.jpg', 'no image');
    await symlink('..', folder.file('photos/2024/circle'));
    const { status, complaints } = await folder.run(['photos', '-o', 'small', '-f', 'png', '--quiet']);
    expect(status).to.equal(1);
    expect(complaints).to.have.length(2);
    expect(complaints[0]).to.match(/^imagemill: photos\/fake\.jpg is not an image of a supported format/);
    expect(complaints[1]).to.equal('imagemill: 1 of 4 files not converted: 1 of an unsupported type.');
    expect(await folder.files('small')).to.deep.equal([
      '2024/may/b.png',
      '2024/without-extension.png',
      'a.png',
    ]);
    expect(await formatOf('small/2024/may/b.png')).to.equal('png');
  });

  it('does not convert its own results when the output folder is inside the input folder', async () => {
    await folder.put('scene.png', 'a.png');
    for (const _ of [1, 2]) expect((await folder.run(['.', '-o', 'out', '--force'])).status).to.equal(0);
    expect(await folder.files()).to.deep.equal(['a.png', 'out/a.webp']);
  });

  it('expands patterns, and keeps subfolders relative to the first wildcard', async () => {
    await mkdir(folder.file('photos/2024'), { recursive: true });
    await folder.put('scene.jpg', 'photos/a.jpg');
    await folder.put('scene.jpg', 'photos/2024/b.jpg');
    await folder.put('scene.png', 'photos/c.png');
    expect((await folder.run(['photos/**/*.jpg', '-o', 'out/'])).status).to.equal(0);
    expect(await folder.files('out')).to.deep.equal(['2024/b.webp', 'a.webp']);
  });

  it('gives a new result the mode of the umask, and one that replaces a file the mode of that file', async () => {
    await folder.put('scene.jpg', 'in/a.jpg');
    const modeOf = async (name: string) => ((await stat(folder.file(name))).mode & 0o7777).toString(8);
    const before = process.umask();
    try {
      for (const [umask, expected] of [
        [0o022, '644'],
        [0o027, '640'],
      ] as const) {
        process.umask(umask);
        const out = `out-${expected}`;
        await folder.run(['in/a.jpg', '-o', `${out}/file.webp`]);
        await folder.run(['in', '-o', `${out}/kept`, '--update']);
        for (const name of ['file.webp', 'kept/a.jpg.webp'])
          expect(await modeOf(`${out}/${name}`), name).to.equal(expected);
      }
      process.umask(0o022);
      for (const [name, args] of [
        ['file.webp', ['in/a.jpg', '-o', 'out-644/file.webp', '--force']],
        ['kept/a.jpg.webp', ['in', '-o', 'out-644/kept', '--update', '-q', '50']],
      ] as const) {
        await chmod(folder.file('out-644', name), 0o4664);
        expect((await folder.run(args)).status).to.equal(0);
        expect(await modeOf(`out-644/${name}`), name).to.equal('664');
      }
    } finally {
      process.umask(before);
    }
  });

  it('does not replace a file that is created during the conversion', async () => {
    await folder.put('scene.jpg', 'photo.jpg');
    const late = folder.file('photo.webp');
    const body = `printf precious > ${late}; ${COPY_SCENE}`;
    const env = { MAGICK_BIN: await fakeMagick(body), SANDBOX: 'off' };
    const { outcome } = await folder.run(['photo.jpg', '-o', 'photo.webp'], { env });
    expect(outcome).to.equal('1 imagemill: photo.webp already exists: use --force to overwrite it.');
    expect(await readFile(late, 'utf8')).to.equal('precious');
    expect(await folder.files()).to.deep.equal(['photo.jpg', 'photo.webp']);
  });

  it('reports why a result cannot be written', async () => {
    await folder.put('scene.jpg', 'photo.jpg');
    await folder.write('file', '');
    expect((await folder.run(['photo.jpg', '-o', 'file/photo.webp'])).outcome).to.equal(
      '1 imagemill: file/photo.webp cannot be written: file is not a folder.',
    );
  });

  it('does not replace one input with the result of another, even with --force', async () => {
    await folder.put('scene.png', 'a.png');
    await folder.put('scene.webp', 'a.webp');
    const { outcome } = await folder.run(['a.png', 'a.webp', '-o', '.', '--force']);
    expect(outcome).to.include('1 imagemill: a.webp is one of the inputs, which are never overwritten.');
    expect(await folder.read('a.webp')).to.deep.equal(await fixture('scene.webp'));
  });

  it('prints one JSON object per line with --json, and converts the other files when some fail', async () => {
    await folder.put('scene.jpg', 'good.jpg');
    await folder.put('moving.gif', 'moving.gif');
    await cp(edgeCasePath('cut-in-header.png'), folder.file('bad.png'));
    await folder.write('empty.jpg', '');
    const names = ['good.jpg', 'bad.png', 'moving.gif', 'empty.jpg', 'none.jpg'];
    const { objects, outcome } = await folder.run([...names, '-o', 'out/', '--format', 'jpg', '--json']);
    expect(outcome).to.equal('1');
    const output = new Map(objects().map((one) => [one.input, one]));
    const { bytesAfter, ms, sha256, ...good } = output.get('good.jpg');
    expect(good).to.deep.equal({ input: 'good.jpg', output: 'out/good.jpg', bytesBefore: 3266, notes: [] });
    const result = await folder.read('out/good.jpg');
    expect(bytesAfter).to.equal(result.length);
    expect(sha256).to.deep.equal({
      source: hash('sha256', await fixture('scene.jpg')),
      result: hash('sha256', result),
    });
    expect(ms).to.be.a('number');
    expect(output.get('moving.gif').notes).to.include('first-frame-only');
    expect(output.get('bad.png').error).to.deep.equal({
      code: 'CORRUPT_IMAGE',
      message: 'bad.png is damaged or not a valid PNG image.',
    });
    expect(output.get('empty.jpg').error.code).to.equal('EMPTY_FILE');
    expect(output.get('none.jpg').error.code).to.equal('NO_SUCH_FILE');
    expect(await folder.files('out')).to.deep.equal(['good.jpg', 'moving.jpg']);
    await nothingInTemp();
  });

  it('reads standard input and writes standard output', async () => {
    const input = await fixture('scene.png');
    const { stdout, outcome } = await folder.runProcess(['-', '-o', '-', '-f', 'jpg'], { input });
    expect(outcome).to.equal('0');
    expect((await sharp(stdout).metadata()).format).to.equal('jpeg');
    expect([...stdout.subarray(-2)], 'nothing follows the image').to.deep.equal([0xff, 0xd9]);
  });

  it('prints no error when the reader of standard output exits early', async () => {
    const line = '"$0" "$1" convert --help | true';
    const { stderr } = await execute('/bin/sh', ['-c', line, process.execPath, MAIN]);
    expect(stderr).to.equal('');
  });

  it('ends with one message when standard output cannot be written, and leaves no partial files', async () => {
    for (const name of ['a.png', 'b.png', 'c.png']) await folder.put('scene.png', name);
    const launcher = ['/bin/sh', '-c', 'exec "$@" >/dev/full', 'sh'];
    const { outcome } = await folder.runProcess(['.', '-o', 'out/'], { launcher });
    expect(outcome).to.include(
      '1 imagemill: Standard output cannot be written: ENOSPC: no space left on device, write.',
    );
    expect((await folder.files('out')).filter((name) => name.startsWith('.'))).to.deep.equal([]);
    await nothingInTemp();
  });

  it('converts everything when standard error cannot be written', async () => {
    await folder.put('scene.png', 'a.png');
    await folder.put('scene.png', 'z.png');
    await folder.write('bad.png', 'no image');
    const launcher = ['/bin/sh', '-c', 'exec "$@" 2>/dev/full', 'sh'];
    const { status } = await folder.runProcess(['.', '-o', 'out/', '--jobs', '1'], { launcher });
    expect([status, await folder.files('out')]).to.deep.equal([1, ['a.webp', 'z.webp']]);
  });

  it('enforces limits of the environment, and names the option and the setting that raise them', async () => {
    await folder.put('scene.jpg', 'photo.jpg');
    const env = { MAX_FILE_BYTES: '1000' };
    expect((await folder.run(['photo.jpg', '-o', 'photo.webp'], { env })).outcome).to.equal(
      '1 imagemill: photo.jpg is too large: at most 1 kB (1000 bytes) allowed. Raise the limit with --max-file-size or MAX_FILE_BYTES.',
    );
  });

  it('creates the same bytes as the service', async () => {
    await using own = await startService();
    const names = optionsWith('turn', 'filter', 'colours');
    const edits = names.map((name) => [name, `${valuesOf(name)[0]}`] as const);
    const flagOf = ([name, value]: (typeof edits)[number]) =>
      value === 'true' ? [flagName(name)] : [flagName(name), value.toUpperCase()];
    for (const [name, fields, flags] of [
      ['scene.jpg', { format: 'webp', quality: '60', width: '50' }, ['-q', '60', '--width', '50']],
      ['orientation-6.jpg', { format: 'jpg', strip_metadata: 'false' }, ['--keep-metadata']],
      ['private.jpg', { format: 'png', metadata: 'copyright' }, ['--metadata', 'copyright']],
      ['window.png', { format: 'jpg', background: '08f' }, ['--background', '08f']],
      ['moving.gif', { format: 'webp', frames: 'first' }, ['--frames', 'first']],
      ['scene.svg', { format: 'png', height: '200' }, ['--height', '200']],
      ['window.png', { format: 'png', scale: '50', trim: 'yes' }, ['--scale', '50', '--trim', 'yes']],
      ['window.png', { format: 'png', ...Object.fromEntries(edits) }, edits.flatMap(flagOf)],
      [
        'scene.png',
        { format: 'jpg', fit: 'cover', position: 'north', enlarge: '1', width: '200', height: '300' },
        ['--fit', 'Cover', '--position', 'north', '--enlarge', '--width', '200', '--height', '300'],
      ],
      ['scene.png', { format: 'jpg', max_bytes: '1000' }, ['--max-bytes', '1000']],
      ['p3.png', { format: 'webp', lossless: 'true', quality: '10' }, ['--lossless', '-q', '10']],
    ] as const) {
      await folder.put(name, name);
      const output = `out.${fields.format}`;
      expect((await folder.run([name, '-o', output, '--force', ...flags])).status, name).to.equal(0);
      const answer = await convert(own.base, await fixture(name), fields);
      expect(answer.status, name).to.equal(200);
      expect(answer.body.equals(await folder.read(output)), name).to.equal(true);
    }
  });

  it('puts a watermark on results, here and with --url, and --update notices another one', async () => {
    await using own = await startService();
    await folder.put('scene.png', 'in/a.png');
    await folder.put('window.png', 'mark.png');
    const flags = ['-f', 'png', '--watermark', 'mark.png', '--watermark-opacity', '50', '--update'];
    const run = async (...more: string[]) => {
      expect((await folder.run(['in', '-o', 'out', ...flags, ...more])).outcome).to.equal('0');
      return folder.read('out/a.png.png');
    };
    const form = formOf({ output_format: 'png', watermark_opacity: '50' }, [
      ['a.png', await fixture('scene.png'), 'file'],
      ['mark.png', await fixture('window.png'), 'watermark'],
    ]);
    const { body } = await expectSuccess(postForm(`${own.base}/convert`, form));
    expect((await run()).equals(body)).to.equal(true);
    expect((await run('--force', '--url', own.base)).equals(body)).to.equal(true);
    await folder.put('scene.gif', 'mark.png');
    expect((await run()).equals(body)).to.equal(false);
    await folder.write('mark.png', 'no image');
    const { outcome } = await folder.run(['in', '-o', 'out', ...flags]);
    expect(outcome).to.include('2 imagemill: --watermark mark.png: The watermark is not an image');
  });

  it('prints in --json which quality was used for --max-bytes', async () => {
    await folder.put('scene.png', 'a.png');
    const { status, objects } = await folder.run(['a.png', '-o', 'a.jpg', '--max-bytes', '1kB', '--json']);
    const [{ bytesAfter, quality, notes }] = objects();
    expect(status).to.equal(0);
    expect(bytesAfter).to.be.at.most(1000);
    expect(quality).to.be.within(10, 79);
    expect(notes).to.deep.equal(['quality-lowered']);
  });

  for (const [signal, status] of [
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`kills the tools on ${signal}, leaves no files, and exits with ${status}`, async () => {
      await folder.put('scene.jpg', 'photo.jpg');
      const pidFile = join(await makeTempDir('pid'), 'pid');
      const body = `echo $$ > ${pidFile}; touch image.webp; sleep 60`;
      const env = { MAGICK_BIN: await fakeMagick(body), SANDBOX: 'off' };
      const ended = await folder.runProcess(['photo.jpg', '-o', 'out/'], {
        env,
        async meanwhile(pid) {
          await eventually(() => readFile(pidFile, 'utf8').catch(() => undefined));
          process.kill(pid, signal);
        },
      });
      expect([ended.status, ended.lines, ended.complaints]).to.deep.equal([status, [], []]);
      const tool = Number(await readFile(pidFile, 'utf8'));
      await eventually(() => !isRunning(tool));
      expect(await folder.files()).to.deep.equal(['photo.jpg']);
      await nothingInTemp();
    });
  }

  it('exits on SIGINT while it waits for standard input', async () => {
    const { status } = await folder.runProcess(['-', '-o', 'a.webp'], {
      input: 'never',
      async meanwhile(pid) {
        await eventually(async () =>
          (await readdir(folder.temp, { recursive: true }).catch(() => [])).join().includes('image/in'),
        );
        process.kill(pid, 'SIGINT');
      },
    });
    expect(status).to.equal(130);
    await nothingInTemp();
  });

  it('shows a progress bar on a terminal only', async () => {
    await folder.put('scene.jpg', 'a.jpg');
    await folder.put('scene.png', 'b.png');
    const line = `TEMP_DIR=${folder.temp} ${process.execPath} ${MAIN} convert a.jpg b.png -o out/`;
    const { status, shown } = await runOnTerminal(line, folder.path);
    expect(status, shown).to.equal(0);
    expect(shown)
      .to.match(/█{24} 2\/2\b/)
      .and.not.include('out/a.webp');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequence that clears the line
    expect(shown, 'only the summary stays').to.match(/\r\u001b\[K2 converted: [^\n]+\n$/);
    const { stdout, complaints } = await folder.runProcess(['a.jpg', '-o', 'c.webp']);
    expect([stdout.includes('█'), complaints]).to.deep.equal([false, []]);
  });

  it('names a folder that does not exist, instead of -o without an extension', async () => {
    const { outcome } = await folder.run(['phtos', '-o', 'small']);
    expect(outcome).to.equal('1 imagemill: phtos: no such file or folder.');
  });
});
