// @slow
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { fixture, fixturePath } from '../helpers/client.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { requires } from '../helpers/skips.ts';
import { eventually, writeScript } from '../helpers/util.ts';

describe('imagemill convert with many files', () => {
  const folder = useConvertFolder();
  let env: Record<string, string>;
  beforeEach(async () => {
    env = { MAGICK_BIN: await fakeMagick(COPY_SCENE), SANDBOX: 'off' };
  });

  it('writes a CSV file with a row per file, and groups the reasons of failures in the summary', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await folder.put('scene.jpg', 'photos/with "quotes", and commas.jpg');
    for (const name of ['bad.jpg', 'worse.jpg']) await folder.write(join('photos', name), 'text');
    await folder.write('photos/empty.jpg', '');
    const args = ['photos', '-o', 'out', '--report', 'report.csv'];
    const { status, lines, complaints } = await folder.run(args, { env });
    expect(status).to.equal(1);
    expect(lines.at(-1)).to.match(/^2 converted: 6\.5 kB → .* \(.\d+%\)$/);
    const reasons = '2 of an unsupported type, 1 empty';
    expect(complaints.at(-1)).to.equal(`imagemill: 3 of 5 files not converted: ${reasons}.`);
    const [head, ...rows] = (await folder.text('report.csv')).split('\r\n');
    expect(head).to.equal('input,output,status,bytesBefore,bytesAfter,ms,notes,code,message');
    expect(rows.sort().filter((row) => row !== '')).to.have.length(5);
    expect(rows.join('\n'))
      .to.match(/^photos\/a\.jpg,out\/a\.webp,converted,3266,\d+,\d+,,,$/m)
      .and.match(/^"photos\/with ""quotes"", and commas\.jpg","out\/with ""quotes"", and commas\.webp",conv/m)
      .and.match(/^photos\/empty\.jpg,,failed,,,,,EMPTY_FILE,photos\/empty\.jpg is empty/m);
  });

  it('prints names of any kind so that no spreadsheet, terminal or reader of lines obeys them', async () => {
    const names = ['=1+1', '+1', '-1', '@SUM(A1)', 'a\nb', '\tc', 'd\u001b[31m', 'e\u009b1m', 'f\u202egpj'];
    for (const name of names) await folder.put('scene.jpg', `in/${name}.jpg`);
    const args = ['--force', '--report', 'report.csv'];
    const run = (...more: string[]) =>
      folder.run(['*.jpg', '-o', 'out/', ...args, ...more], { env, cwd: folder.file('in') });
    const { lines, objects, status } = await run('--json');
    expect(status).to.equal(0);
    const [, ...rows] = (await folder.text('in/report.csv')).split('\r\n').slice(0, -1);
    expect(rows.map((row) => row.split(',')[0]).sort()).to.deep.equal(
      [
        "'=1+1.jpg",
        "'+1.jpg",
        "'-1.jpg",
        "'@SUM(A1).jpg",
        'a\\u000ab.jpg',
        '\\u0009c.jpg',
        'd\\u001b[31m.jpg',
        'e\\u009b1m.jpg',
        'f\\u202egpj.jpg',
      ].sort(),
    );
    const inputs = objects().flatMap(({ input }) => input ?? []);
    expect(inputs.sort()).to.deep.equal(names.map((name) => `${name}.jpg`).sort());
    const paths = names.map((name) => folder.file('in', `${name}.jpg`));
    const printed = [
      ...lines,
      ...(await run()).lines,
      ...(await runInProcess(['identify', ...paths])).lines,
      ...(await runInProcess(['identify', '--json', ...paths])).lines,
      ...(await runInProcess(['explain', '--commands', ...paths])).lines,
      ...(await folder.run(['in/f\u202egpj.jpg', '-o', 'in/f\u202egpj', '--fit\u009b'])).complaints,
      ...(await folder.run(['in/f\u202egpj.jpg', '-o', 'in/f\u202egpj\u009b'])).complaints,
    ];
    expect(printed.length).to.be.above(40);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no line may have them
    expect(printed.filter((line) => /[\0-\x1f\x7f-\x9f\u202a-\u202e]/.test(line))).to.deep.equal([]);
  });

  it('says in the summary what differs from the images and how often, and has tokens in JSON', async () => {
    for (const name of ['a.gif', 'b.gif']) await folder.put('moving.gif', `photos/${name}`);
    await folder.put('scene.jpg', 'photos/c.jpg');
    const args = ['photos', '-o', 'out', '-f', 'jpg', '--force'];
    const { lines } = await folder.run(args);
    expect(lines.join('\n')).to.match(
      /^photos\/a\.gif → .* {2}Only the first frame of the animation was converted\.$/m,
    );
    const at = lines.findIndex((line) => /^3 converted: [^,]*$/.test(line));
    expect(lines.slice(at + 1)).to.include('2 results: Only the first frame of the animation was converted.');
    const { notes } = (await folder.run([...args, '--json'])).summary();
    expect(notes).to.include({ 'first-frame-only': 2 });
  });

  it('says once how many results exist, and how to convert what changed', async () => {
    for (const name of ['a.jpg', 'b.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    expect((await folder.run(['photos', '-o', 'out'])).status).to.equal(0);
    await folder.put('scene.jpg', 'photos/c.jpg');
    const { status, complaints } = await folder.run(['photos', '-o', 'out']);
    expect([status, ...complaints]).to.deep.equal([
      1,
      'imagemill: 2 of 3 files not converted: 2 with an existing result.',
      'imagemill: 2 results exist: --update converts what changed, from its first run on, and --force replaces all.',
    ]);
    const verbose = await folder.run(['photos', '-o', 'out', '--verbose']);
    const existing = verbose.complaints.filter((line) => line.includes('already exists: use --force'));
    expect(existing).to.have.length(3);
  });

  it('prints with --json and --quiet only errors and the summary', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await folder.write('photos/b.jpg', 'no image');
    const { objects } = await folder.run(['photos', '-o', 'out', '--json', '--quiet']);
    const printed = objects().map(({ error, summary }) => error?.code ?? summary?.converted);
    expect(printed).to.deep.equal(['UNSUPPORTED_TYPE', 1]);
  });

  it('ignores the files that systems add to folders, also those with the extension of an image', async () => {
    const added = ['Thumbs.db', '.DS_Store', 'Desktop.ini', '._a.jpg', '__MACOSX/a.jpg'];
    await folder.put('scene.jpg', 'photos/a.jpg');
    for (const name of added) await folder.write(`photos/${name}`, 'no image');
    for (const input of ['photos', 'photos/**/*.*', 'photos/._*']) {
      const { complaints } = await folder.run([input, '-o', 'out/', '--force']);
      expect(complaints.join(), input).to.match(input.endsWith('_*') ? /matches no image\.$/ : /^$/);
    }
    expect((await folder.run(['photos/._a.jpg', '-o', 'out/'])).status).to.equal(1); // named by the user
  });

  it('replaces an earlier report, but no other file that a pattern of the shell put behind --report', async () => {
    for (const name of ['a.jpg', 'b.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    const report = folder.file('report.csv');
    for (const input of ['photos', 'photos/a.jpg']) {
      const { status } = await folder.run([input, '-o', 'out/', '--force', '--report', report], { env });
      expect(status).to.equal(0);
    }
    expect((await readFile(report, 'utf8')).match(/converted/g)).to.have.length(1);

    const args = ['-o', 'out', '--force', '--report', 'photos/a.jpg', 'photos/b.jpg'];
    expect((await folder.run(args, { env })).outcome).to.equal(
      '2 imagemill: --report photos/a.jpg cannot be written: the file exists, and is not a report.',
    );
    expect(await folder.read('photos/a.jpg')).to.deep.equal(await fixture('scene.jpg'));
  });

  it('rejects a folder that is its own output, also through a link', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await symlink('photos', folder.file('alias'));
    expect((await folder.run(['photos', '-o', 'alias/'], { env })).outcome).to.equal(
      '2 imagemill: photos is also the output folder: its results would be the sources of the next run. Choose another -o, or one inside it.',
    );
  });

  it('gives results names that depend on no other file with --update and --shard', async () => {
    await folder.put('scene.jpg', 'photos/b.jpg');
    const update = () => folder.run(['photos', '-o', 'out', '--update'], { env });
    await update();
    expect(await folder.files('out')).to.deep.equal(['b.jpg.webp']);
    for (const name of ['b.png', 'b.gif', 'A.png'])
      await folder.put(`scene.${name.slice(2)}`, `photos/${name}`);
    await folder.put('scene.jpg', 'photos/b.jpg_original');
    const results = ['A.png.webp', 'b.gif.webp', 'b.jpg.webp', 'b.jpg_original.webp', 'b.png.webp'];
    for (const converted of ['4 converted', 'none converted']) {
      const { status, lines } = await update();
      expect([status, lines.at(-1)?.split(':')[0]?.split(',')[0]]).to.deep.equal([0, converted]);
      expect(await folder.files('out')).to.deep.equal(results);
    }
    for (const part of ['1/2', '2/2'])
      await folder.run(['photos/*', '-o', 'parts', '--shard', part], { env });
    expect(await folder.files('parts')).to.deep.equal(results);
  });

  it('converts the first of two images whose results are the same file if case does not count', async () => {
    for (const name of ['ς.jpg', 'σ.jpg', 'straße.jpg', 'STRAẞE.jpg'])
      await folder.put('scene.jpg', `photos/${name}`);
    const { outcome } = await folder.run(['photos', '-o', 'out', '--update'], { env });
    expect(outcome).to.match(/^1 .*: 2 of 4 files not converted: 2 with the same result name\.$/);
  });

  it('reports broken and circular links and names that are not UTF-8, and converts the other files', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await symlink('loop.jpg', folder.file('photos/loop.jpg'));
    await symlink('gone.jpg', folder.file('photos/broken.jpg'));
    await symlink('..', folder.file('photos/circle'));
    const latin1 = Buffer.from(`${folder.path}/photos/caf\xe9.jpg`, 'latin1');
    await writeFile(latin1, await fixture('scene.jpg'));
    const { status, lines, complaints } = await folder.run(['photos', '-o', 'out'], { env });
    expect([status, lines.length]).to.deep.equal([1, 2]);
    expect(complaints).to.deep.equal([
      'imagemill: photos/broken.jpg cannot be read: no such file or directory.',
      'imagemill: photos/caf\\xE9.jpg: the name is not valid UTF-8. Rename it, for example with convmv.',
      'imagemill: photos/circle is a link to a folder and is not followed. To convert it, name it as an input.',
      'imagemill: photos/loop.jpg cannot be read: too many symbolic links encountered.',
      'imagemill: 3 of 4 files not converted: 2 unreadable, 1 name not UTF-8.',
    ]);
    expect(await folder.files('out')).to.deep.equal(['a.webp']);
  });

  it('stops when the disk of the output is full, keeps complete results, and continues later', async function () {
    requires(this, 'mounts', process.getuid?.() === 0);
    for (let at = 0; at < 30; at += 1) await folder.put('scene.jpg', `photos/${at}.jpg`);
    await mkdir(folder.file('out'));
    const script = `mount -t tmpfs -o size=64k none out && "$@"; status=$?
      mount -o remount,size=10m none out && "$@" >&2 || exit 99
      ls out | wc -l; exit $status`;
    const magick = await fakeMagick(`${COPY_SCENE}; head -c 9000 /dev/zero >> image.webp`);
    const { status, lines, complaints } = await folder.runProcess(['photos', '-o', 'out', '--update'], {
      env: { ...env, MAGICK_BIN: magick },
      launcher: ['unshare', '-m', 'sh', '-c', script, 'sh'],
    });
    const stderr = complaints.join('\n');
    expect(status, stderr).to.equal(1);
    expect(stderr).to.include('cannot be written: the disk is full.');
    expect(stderr).to.include(
      'imagemill: The disk of the output is full. Free disk space, and run the same command again.',
    );
    expect(stderr.match(/the disk is full/g)?.length, 'stops soon').to.be.at.most(5);
    expect(lines.at(-1)?.trim(), 'all results after the second run').to.equal('30');
  });

  for (const [options, rest] of [
    [['--update'], 'The same command converts the rest.'],
    [
      [],
      'The same command converts the rest, and reports these files as existing. With --update from the start, it would skip them.',
    ],
  ] as const) {
    it(`stops on SIGINT ${options.join()}, leaves no incomplete files, and prints how to continue`, async () => {
      for (let at = 0; at < 20; at += 1) await folder.put('scene.jpg', `photos/${at}.jpg`);
      const complete = await readFile(fixturePath('scene.webp'));
      const limited = await folder.limitedTool(9);
      const { lines, outcome } = await folder.runProcess(['photos', '-o', 'out', ...options], {
        env: limited.env,
        async meanwhile(pid) {
          await eventually(async () => (await folder.results()).length > 2);
          process.kill(pid, 'SIGINT');
          process.kill(pid, 'SIGINT'); // impatience does no harm
        },
      });
      const results = await folder.files('out');
      expect(outcome).to.equal(`130 imagemill: Stopped after ${results.length} files. ${rest}`);
      expect(lines.at(-1)).to.match(new RegExp(`^${results.length} converted: `));
      for (const name of results) expect(await folder.read(join('out', name))).to.deep.equal(complete);
      expect(await readdir(folder.temp), 'left in TEMP_DIR').to.deep.equal([]);
    });
  }

  it('ends on SIGINT and prints the summary although a tool that it tests does not react', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    const pidFile = join(await makeTempDir('pid'), 'pid');
    const stubborn = await writeScript('magick', `trap '' INT TERM; echo $$ > ${pidFile}; sleep 600`);
    const { objects, outcome } = await folder.runProcess(['photos', '-o', 'out', '--update', '--json'], {
      env: { ...env, MAGICK_BIN: stubborn },
      async meanwhile(pid) {
        await eventually(() => existsSync(pidFile));
        process.kill(pid, 'SIGINT');
      },
    });
    process.kill(-Number(await readFile(pidFile, 'utf8')), 'SIGKILL');
    expect(outcome).to.equal('130 imagemill: Stopped after 0 files. The same command converts the rest.');
    expect(objects().map(({ summary }) => summary.converted)).to.deep.equal([0]);
  });
});
