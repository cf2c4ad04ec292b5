// @full
import { spawnSync } from 'node:child_process';
import { existsSync, linkSync } from 'node:fs';
import {
  appendFile,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { parseBulkOptions } from '../../src/cli/convert/bulk-options.ts';
import { type Converter, startOnDemand } from '../../src/cli/convert/converter.ts';
import { openResultFolder } from '../../src/cli/convert/result-folder.ts';
import { ResultIndex } from '../../src/cli/convert/result-index.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import { readInstanceFolder } from '../../src/files/stale.ts';
import { fixture, fixturePath } from '../helpers/client.ts';
import { type CommandRun, MAIN, runOnTerminal } from '../helpers/command.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { execute, programEnvironment } from '../helpers/process.ts';
import { testConfig } from '../helpers/service.ts';
import { eventually, isRunning, writeScript } from '../helpers/util.ts';

/** Settings with another ImageMagick, which converts by copying a file. */
const copyingTool = async () => ({ MAGICK_BIN: await fakeMagick(COPY_SCENE, '7.9.9-9'), SANDBOX: 'off' });

/** Returns the path of the installed librsvg. */
function rsvgPath(): string {
  const { stdout } = spawnSync('sh', ['-c', 'command -v rsvg-convert'], { encoding: 'utf8' });
  return testConfig().RSVG_BIN ?? stdout.trim();
}

/** Program of Python that makes a socket. */
const BIND = 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])';

/** Returns the inputs that a command with `--json` has converted. */
const convertedBy = ({ objects }: CommandRun): string[] =>
  objects()
    .flatMap(({ input, bytesAfter }) => (bytesAfter === undefined ? [] : input))
    .sort();

describe('imagemill convert --update', () => {
  const folder = useConvertFolder();
  const update = (args: readonly string[] = [], env: Record<string, string> = {}) =>
    folder.run(['photos', '-o', 'out', '--update', '--json', ...args], { env });
  const indexPath = () => folder.file('out/.imagemill/index.jsonl');

  it('converts only files that are new or changed, or whose results are missing or out of date', async () => {
    for (const name of ['a.jpg', 'b.jpg', '2024/c.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    expect((await update()).summary()).to.include({ converted: 3, upToDate: 0 });
    expect(await folder.files('out')).to.deep.equal(['2024/c.jpg.webp', 'a.jpg.webp', 'b.jpg.webp']);
    expect((await sharp(folder.file('out/2024/c.jpg.webp')).metadata()).width).to.equal(120);

    expect((await update()).summary(), 'nothing changed').to.include({ converted: 0, upToDate: 3 });

    await folder.put('scene.png', 'photos/d.png');
    await folder.put('grey.jpg', 'photos/a.jpg');
    await rm(folder.file('out/b.jpg.webp'));
    expect(convertedBy(await update())).to.deep.equal(['photos/a.jpg', 'photos/b.jpg', 'photos/d.png']);
    expect((await update(['-q', '50'])).summary(), 'another option').to.include({ converted: 4 });
    const other = await update(['-q', '50'], await copyingTool());
    expect(other.summary(), 'another tool').to.include({ converted: 4 });
  });

  it('converts nothing if a changed time, option or tool changes no command', async () => {
    for (const name of ['a.jpg', 'b.svg', 'c.jpg'])
      await folder.put(name.endsWith('.svg') ? 'scene.svg' : 'scene.jpg', `photos/${name}`);
    const png = (args: readonly string[] = [], env: Record<string, string> = {}) =>
      update(['--format', 'png', ...args], env);
    expect((await png()).summary()).to.include({ converted: 3 });
    await utimes(folder.file('photos/a.jpg'), new Date(), new Date(1e12));
    expect((await png()).summary(), 'touched').to.include({ converted: 0, upToDate: 3 });
    expect((await png(['-q', '50'])).summary(), 'quality').to.include({ converted: 0, upToDate: 3 });
    const RSVG_BIN = await writeScript(
      'rsvg-convert',
      `[ "$*" = --version ] && { echo rsvg-convert 99.1; exit; }; exec ${rsvgPath()} "$@"`,
    );
    const other = await png(['-q', '50'], { RSVG_BIN, SANDBOX: 'off' });
    expect(convertedBy(other)).to.deep.equal(['photos/b.svg']);
  });

  it('starts no tool if everything is up to date', async () => {
    const env = await copyingTool();
    const log = join(await makeTempDir('log'), 'starts');
    const MAGICK_BIN = await writeScript('magick', `echo >> ${log}; exec ${env.MAGICK_BIN} "$@"`);
    const starts = async () => (await readFile(log, 'utf8')).length;
    await folder.put('scene.jpg', 'photos/a.jpg');
    await update([], { ...env, MAGICK_BIN });
    const before = await starts();
    expect(before, 'probes and a conversion').to.be.above(1);
    const { summary, status } = await update([], { ...env, MAGICK_BIN });
    expect([status, summary().upToDate, await starts()]).to.deep.equal([0, 1, before]);
  });

  for (const [kind, make] of [
    ['pipe', (path: string) => execute('mkfifo', [path])],
    ['folder', (path: string) => mkdir(path)],
    ['socket', (path: string) => execute('python3', ['-c', BIND, path])],
  ] as const)
    it(`does not wait for a ${kind} in place of an index or a report, and names it`, async () => {
      await folder.put('scene.jpg', 'photos/a.jpg');
      await mkdir(folder.file('out/.imagemill'), { recursive: true });
      for (const name of ['index.jsonl', 'index-1-of-2.jsonl']) {
        const path = `out/.imagemill/${name}`;
        await make(folder.file(path));
        const ended = await folder.run(['photos', '-o', 'out', '--update']);
        expect(ended.outcome).to.equal(`2 imagemill: out cannot be written: ${path} is not a regular file.`);
        await rm(folder.file(path), { recursive: true });
      }
      const owner = 'out/.imagemill/imagemill-instance-x/owner.json';
      await mkdir(folder.file(owner, '..'));
      await make(folder.file(owner));
      await make(folder.file('report'));
      const { outcome } = await update(['--report', 'report']);
      const reason = /^2 imagemill: --report report cannot be written: (?:report is not a regular|it is a)/;
      expect(outcome).to.match(reason);
      expect((await update()).status).to.equal(0);
    });

  it('skips a line of the index that no path can have, and reads the next one, in little memory', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await update();
    const lines = await readFile(indexPath());
    await truncate(indexPath(), 0);
    await truncate(indexPath(), 300e6); // a hole, which takes no disk space
    await appendFile(indexPath(), lines);
    const args = ['photos', '-o', 'out', '--update', '--json'];
    const env = { NODE_OPTIONS: '--max-old-space-size=100' };
    const { status, summary } = await folder.runProcess(args, { env });
    expect([status, summary().upToDate]).to.deep.equal([0, 1]);
  });

  it('ends at a second signal, also while it waits for the writer of a pipe', async () => {
    for (const name of ['a.jpg', 'b.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    await folder.put('scene.jpg', 'photos/z'); // the search opens it after the first conversion
    const late = folder.file('photos/z');
    const MAGICK_BIN = await fakeMagick(
      `[ -p ${late} ] || { rm -f ${late}; mkfifo ${late}; }; ${COPY_SCENE}`,
    );
    const args = ['photos', '-o', 'out', '--update', '--jobs', '1'];
    const { status } = await folder.runProcess(args, {
      env: { MAGICK_BIN, SANDBOX: 'off' },
      async meanwhile(pid, printed) {
        await eventually(() => printed().split('\n').length > 2); // the search has reached the pipe
        await eventually(() => !isRunning(pid) || (process.kill(pid, 'SIGINT') && false));
      },
    });
    expect(status).to.equal('SIGINT');
  });

  describe('with links in the output folder', () => {
    let outside: string;
    const link = async (name: string, to = outside) => {
      const path = folder.file('out', name);
      await mkdir(join(path, '..'), { recursive: true });
      await symlink(to, path);
    };
    beforeEach(async () => {
      outside = await makeTempDir('outside');
      await mkdir(join(outside, 'incomplete'));
      await writeFile(join(outside, 'incomplete/precious'), '');
      await writeFile(join(outside, 'a.jpg.webp'), 'precious');
      await folder.put('scene.jpg', 'photos/sub/a.jpg');
    });
    afterEach(async () => {
      expect((await readdir(outside, { recursive: true })).sort()).to.deep.equal([
        'a.jpg.webp',
        'incomplete',
        'incomplete/precious',
      ]);
      expect(await readFile(join(outside, 'a.jpg.webp'), 'utf8')).to.equal('precious');
    });

    const sub = '1 imagemill: out/sub/a.jpg.webp cannot be written: out/sub is a link that leads out of out.';
    const out = '2 imagemill: out cannot be written:';
    const loop = `${out} too many symbolic links encountered.`;
    for (const [name, target, flags, outcome] of [
      ['.imagemill', '', '--update', `${out} out/.imagemill is a link or a file.`],
      ['.imagemill/index.jsonl', 'a.jpg.webp', '--update', loop],
      ['sub', '', '--update', sub],
      ['sub', '', '--update --force', sub],
      ['sub', '', '--force', sub.replace('a.jpg.webp', 'a.webp')],
    ] as const)
      it(`writes nothing where ${name} leads, with ${flags}`, async () => {
        await link(name, join(outside, target));
        const ended = await folder.run(['photos', '-o', 'out', ...flags.split(' ')]);
        expect(ended.outcome).to.equal(outcome);
      });

    it('deletes no file through a link that a line of the index names', async () => {
      await link('linked');
      const { mtimeMs: made } = await stat(join(outside, 'a.jpg.webp'));
      const entry = { source: '../photos/gone.jpg', size: 1, mtime: 1, optionsHash: 'x', bytes: 8, made };
      await mkdir(folder.file('out/.imagemill'));
      await writeFile(indexPath(), JSON.stringify({ result: 'linked/a.jpg.webp', ...entry }));
      const { status, lines } = await update(['--delete', '--yes']);
      expect(status).to.equal(1);
      expect(lines.join()).to.include(
        'out/linked/a.jpg.webp cannot be deleted: out/linked is a link that leads out of out.',
      );
    });

    it('writes through a link to a folder inside, and to an output folder that is a link itself', async () => {
      await mkdir(folder.file('real/inside'), { recursive: true });
      await symlink('real', folder.file('out'));
      await symlink('inside', folder.file('real/sub'));
      expect((await update()).status).to.equal(0);
      expect(await folder.files('real')).to.deep.equal(['inside/a.jpg.webp', 'sub']);
    });
  });

  it('converts each file once or twice, and fails none, in two runs at the same time', async () => {
    const names = Array.from({ length: 30 }, (_, at) => `${at}.png`);
    for (const name of names) await folder.put('window.png', `photos/${name}`);
    const run = () => folder.runProcess(['photos', '-o', 'out', '--update', '--json']);
    const runs = await Promise.all([run(), run()]);
    for (const { outcome, summary } of runs) {
      expect(outcome).to.equal('0');
      const { converted, upToDate, failed } = summary();
      expect([converted + upToDate, failed]).to.deep.equal([30, {}]);
    }
    expect(await folder.files('out')).to.have.length(30);
    const kept = await readdir(folder.file('out/.imagemill'));
    expect(kept, 'no unfinished files').to.deep.equal(['index.jsonl']);
    expect((await update()).summary()).to.include({ upToDate: 30 });
  });

  it('keeps the mark of another run that has started a result, however often the index is read', async () => {
    const open = () => ResultIndex.open(folder.file('out'), undefined);
    const [one, other] = [await open(), await open()];
    await one.mark('a.jpg.webp', 'started');
    await other.mark('a.jpg.webp', 'started');
    await other.mark('a.jpg.webp', 'withdrawn');
    for (let count = 0; count < 3; count += 1) {
      await Promise.all([other.refresh(), other.refresh()]);
      expect(other.owns('a.jpg.webp')).to.equal(true);
    }
    await Promise.all([one.close(), other.close()]);
  });

  it('keeps the unfinished files of a run that is in progress, and removes those of one that was killed', async () => {
    const index = await ResultIndex.open(folder.file('out'), undefined);
    await writeFile(join(index.temporary, 'unfinished'), '');
    const killed = folder.file('out/.imagemill/imagemill-instance-killed');
    await mkdir(killed);
    const self = (await readInstanceFolder(index.temporary))?.owner;
    await writeFile(join(killed, 'owner.json'), JSON.stringify({ ...self, started: '1' }));
    await folder.put('scene.jpg', 'photos/a.jpg');
    expect((await update()).status).to.equal(0);
    expect(await readdir(index.temporary)).to.include('unfinished');
    expect(existsSync(killed)).to.equal(false);
  });

  it('never replaces a file that it did not write, except with --force', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await mkdir(folder.file('out'));
    await folder.write('out/a.jpg.webp', 'precious');
    const refused = await update();
    expect(refused.status).to.equal(1);
    expect(refused.lines[0]).to.include('"code":"OUTPUT_EXISTS"');
    expect(await folder.text('out/a.jpg.webp')).to.equal('precious');
    expect((await update(['--force'])).status).to.equal(0);
    expect((await sharp(folder.file('out/a.jpg.webp')).metadata()).format).to.equal('webp');
  });

  it('keeps the record of a result that another command with the same output folder wrote meanwhile', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    const [input, output] = [folder.file('photos/a.jpg'), folder.file('out')];
    const job = { input, output: join(output, 'a.jpg.webp'), options: { format: 'webp' } as ConvertOptions };
    const bulk = parseBulkOptions({ url: ['http://localhost'] });
    const converter = startOnDemand(async () => ({ toolVersions: '7' }) as Converter);
    const open = () => openResultFolder(output, bulk, testConfig(), converter, '1.0.0', undefined);
    const [first, second] = [await open(), await open()];
    const source = await stat(input);
    const result = { path: fixturePath('scene.webp'), sourceState: source };
    await first.write(job, result, false);
    const error = await second.write(job, result, false).catch(({ code }) => code);
    expect([error, await (await open()).isUpToDate(job)]).to.deep.equal(['OUTPUT_EXISTS', true]);
  });

  it('converts a file again if its result was truncated or changed after it was written', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await update();
    const path = folder.file('out/a.jpg.webp');
    const whole = await readFile(path);
    await writeFile(path, whole.subarray(0, 20));
    expect((await update()).summary()).to.include({ converted: 1 });
    expect((await readFile(path)).equals(whole)).to.equal(true);
  });

  it('recovers from an index with a truncated line, and from a result without a record', async () => {
    for (const name of ['a.jpg', 'b.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    await update();
    const lines = (await readFile(indexPath(), 'utf8')).split('\n');
    const isRecordOfB = (line: string) => line.includes('"result":"b.jpg.webp"') && line.includes('"bytes"');
    const cut = lines.filter((line) => !isRecordOfB(line)).join('\n');
    await writeFile(indexPath(), `${cut}\n${lines.find(isRecordOfB)?.slice(0, 40)}`);
    expect((await update()).summary()).to.include({ converted: 1, upToDate: 1 });
    expect((await update()).summary()).to.include({ converted: 0, upToDate: 2 });
  });

  it('ignores lines of the index that it did not write, and deletes no file outside of the output folder', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await update();
    const file = folder.file('precious');
    await writeFile(file, 'precious');
    const { mtimeMs: made, size: bytes } = await stat(file);
    const gone = { source: '../photos/gone.jpg', size: 1, mtime: 1, optionsHash: '', bytes, made };
    const values = [
      null,
      5,
      'text',
      [],
      {},
      { result: 1 },
      { result: 'b.jpg.webp' },
      { result: 'b.jpg.webp', made: 1 },
      { tools: 1, result: 'b.jpg.webp', made: 1, source: 'b' },
      ...['../precious', file].map((result) => ({ result, ...gone })),
    ];
    await appendFile(indexPath(), values.map((value) => `\n${JSON.stringify(value)}`).join(''));
    const { outcome, summary } = await update(['--delete', '--yes']);
    expect(outcome).to.equal('0');
    expect(summary()).to.include({ upToDate: 1, deleted: 0 });
    expect(await readFile(file, 'utf8')).to.equal('precious');
  });

  it('loses no result and records no incomplete one when it is killed repeatedly with SIGKILL', async () => {
    const names = Array.from({ length: 24 }, (_, at) => `photos/${at}.jpg`);
    for (const name of names) await folder.put('scene.jpg', name);
    const { env, setLimit } = await folder.limitedTool(0);
    for (const most of [3, 9]) {
      await setLimit(most + 8);
      const { status } = await folder.runProcess(['photos', '-o', 'out', '--update', '--jobs', '2'], {
        env,
        async meanwhile(pid) {
          await eventually(async () => (await folder.results()).length > most);
          process.kill(pid, 'SIGKILL');
        },
      });
      expect(status).to.equal('SIGKILL');
    }
    await setLimit(names.length);
    const before = await folder.results();
    const { status, summary } = await update([], env);
    const { converted, upToDate } = summary();
    expect([status, converted + upToDate]).to.deep.equal([0, 24]);
    expect(upToDate, 'finished before').to.be.within(before.length - 3, before.length);
    const whole = await fixture('scene.webp');
    expect(await folder.files('out')).to.have.length(24);
    for (const name of await folder.files('out'))
      expect((await folder.read(join('out', name))).equals(whole), name).to.equal(true);
    expect(await readdir(folder.file('out/.imagemill'))).to.deep.equal(['index.jsonl']);
  });

  it('rewrites an index in which most lines are superseded', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await update();
    const lines = (await readFile(indexPath(), 'utf8')).split('\n');
    const record = lines.find((line) => line.includes('"bytes"')) ?? '';
    await appendFile(indexPath(), `\n${record}`.repeat(3000));
    expect((await update()).summary()).to.include({ upToDate: 1 });
    const rewritten = (await readFile(indexPath(), 'utf8')).split('\n').filter((line) => line !== '');
    expect(rewritten).to.have.length(2);
    expect((await update()).summary()).to.include({ upToDate: 1 });
  });

  it('checks 10 000 finished files in less than 25 times the processor time of one', async () => {
    await folder.put('scene.jpg', 'photos/0.jpg');
    await update();
    /** Runs the command. Returns its summary, and its processor time in seconds. */
    const check = async () => {
      const command = [process.execPath, MAIN, 'convert', 'photos', '-o', 'out', '--update', '--json'];
      const { stdout } = spawnSync('sh', ['-c', '"$@" >printed; times', 'sh', ...command], {
        cwd: folder.path,
        env: { ...programEnvironment(), TEMP_DIR: folder.temp },
        encoding: 'utf8',
      });
      const [, ofChildren = ''] = stdout.split('\n');
      const numbers = (ofChildren.match(/[\d.]+/g) ?? []).map(Number);
      const [userMinutes = 0, user = 0, systemMinutes = 0, system = 0] = numbers;
      const printed = (await folder.text('printed')).trimEnd().split('\n');
      const { summary } = JSON.parse(printed.at(-1) ?? '');
      return { summary, seconds: 60 * (userMinutes + systemMinutes) + user + system };
    };
    const one = await check();
    const lines = (await readFile(indexPath(), 'utf8')).split('\n');
    const record = JSON.parse(lines.find((line) => line.includes('"bytes"')) ?? '');
    const added = [];
    for (let at = 1; at < 10_000; at += 1) {
      // Links have the time and the size of the first file, and take less time than copies.
      linkSync(folder.file('photos/0.jpg'), folder.file(`photos/${at}.jpg`));
      linkSync(folder.file('out/0.jpg.webp'), folder.file(`out/${at}.jpg.webp`));
      added.push(
        `\n${JSON.stringify({ ...record, result: `${at}.jpg.webp`, source: `../photos/${at}.jpg` })}`,
      );
    }
    await appendFile(indexPath(), added.join(''));
    const all = await check();
    expect(one.summary).to.include({ converted: 0, upToDate: 1 });
    expect(all.summary).to.include({ converted: 0, upToDate: 10_000 });
    expect(all.seconds / one.seconds).to.be.below(25);
  });
});

describe('imagemill convert --delete', () => {
  const folder = useConvertFolder();
  let env: Record<string, string>;
  beforeEach(async () => {
    env = await copyingTool();
    for (const name of ['photos/a.jpg', 'photos/2024/b.jpg', 'photos/2025/c.jpg', 'more/d.jpg'])
      await folder.put('scene.jpg', name);
    await run(['photos', 'more']);
  });
  const run = (inputs: readonly string[], flags: readonly string[] = []) =>
    folder.run([...inputs, '-o', 'out', '--update', ...flags], { env });

  it('deletes results whose source no longer exists and folders that become empty, and nothing else', async () => {
    await rm(folder.file('photos/2024'), { recursive: true });
    await rm(folder.file('more/d.jpg'));
    await folder.write('out/2025/foreign.webp', 'kept');
    const { status, lines } = await run(['photos'], ['--delete', '--yes']);
    expect([status, lines]).to.deep.equal([
      0,
      ['out/2024/b.jpg.webp deleted', 'none converted, 2 up to date, 1 deleted'],
    ]);
    expect(await folder.files('out'), 'more/ was not an input').to.deep.equal([
      '2025/c.jpg.webp',
      '2025/foreign.webp',
      'a.jpg.webp',
      'd.jpg.webp',
    ]);
    expect(await readdir(folder.file('out'))).to.not.include('2024');
  });

  it('deletes the result of a deleted link to a file, although the file still exists', async () => {
    await symlink('a.jpg', folder.file('photos/link.jpg'));
    await run(['photos']);
    await rm(folder.file('photos/link.jpg'));
    const { lines } = await run(['photos'], ['--delete', '--yes']);
    expect(lines).to.deep.equal(['out/link.jpg.webp deleted', 'none converted, 3 up to date, 1 deleted']);
  });

  it('keeps a result that was changed after it was written', async () => {
    await rm(folder.file('photos/a.jpg'));
    await folder.write('out/a.jpg.webp', 'edited by hand');
    const { complaints } = await run(['photos'], ['--delete', '--yes']);
    expect(complaints).to.deep.equal(['imagemill: out/a.jpg.webp was changed, and is kept.']);
    expect(await folder.text('out/a.jpg.webp')).to.equal('edited by hand');
  });

  it('deletes nothing if an input folder is empty or missing, because its disk may not be mounted', async () => {
    await rm(folder.file('more/d.jpg'));
    const empty = await run(['photos', 'more'], ['--delete', '--yes']);
    expect(empty.status).to.equal(1);
    expect(empty.complaints).to.include.members([
      'imagemill: There are no images in more.',
      'imagemill: Nothing was deleted, because not all of the input could be read.',
    ]);
    expect(await folder.files('out')).to.include('d.jpg.webp');
  });

  it('asks for confirmation on a terminal, and keeps the results unless the answer is yes', async () => {
    await rm(folder.file('photos/a.jpg'));
    const settings = `TEMP_DIR=${folder.temp} MAGICK_BIN=${env.MAGICK_BIN} SANDBOX=off`;
    const command = `${settings} ${process.execPath} ${MAIN} convert photos -o out --delete`;
    const no = await runOnTerminal(command, folder.path, 'n\n');
    expect(no.shown).to.include('Delete 1 result whose source no longer exists? [y/N]');
    const others = ['2024/b.jpg.webp', '2025/c.jpg.webp', 'd.jpg.webp'];
    expect([no.status, await folder.files('out')]).to.deep.equal([0, [...others, 'a.jpg.webp'].sort()]);
    const yes = await runOnTerminal(command, folder.path, 'y\n');
    expect([yes.status, await folder.files('out')]).to.deep.equal([0, others]);
  });
});
