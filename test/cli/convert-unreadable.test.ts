import { appendFile, chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { readUnchanged, stateOf } from '../../src/cli/convert/converter.ts';
import { fixture } from '../helpers/client.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';

/** Root may read everything, unless it has given up these capabilities (capabilities(7)). */
const UNPRIVILEGED =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'] : [];

describe('imagemill convert with unreadable input', () => {
  const folder = useConvertFolder();
  let env: Record<string, string>;
  const closed: string[] = [];
  beforeEach(async () => {
    env = { MAGICK_BIN: await fakeMagick(COPY_SCENE), SANDBOX: 'off' };
  });
  afterEach(async () => {
    for (const path of closed.splice(0)) await chmod(path, 0o700);
  });

  const close = async (name: string): Promise<void> => {
    const path = folder.file(name);
    await chmod(path, 0);
    closed.push(path);
  };
  const run = (...args: string[]) => folder.runProcess(args, { env, launcher: UNPRIVILEGED });

  it('reports unreadable folders and files, converts the rest, and exits with 1', async () => {
    for (const name of ['a.jpg', 'b.jpg', 'closed/c.jpg', 'open/d.jpg', 'open/closed/e.jpg'])
      await folder.put('scene.jpg', `photos/${name}`);
    for (const name of ['photos/b.jpg', 'photos/closed', 'photos/open/closed']) await close(name);
    const { status, complaints } = await run('photos', '-o', 'out', '--jobs', '1');
    expect([status, complaints.toSorted()]).to.deep.equal([
      1,
      [
        'imagemill: 3 of 5 files not converted: 3 unreadable.',
        'imagemill: photos/b.jpg cannot be read: permission denied.',
        'imagemill: photos/closed cannot be read: permission denied.',
        'imagemill: photos/open/closed cannot be read: permission denied.',
      ],
    ]);
    expect(await folder.files('out')).to.deep.equal(['a.webp', 'open/d.webp']);
  });

  it('reports an unreadable folder that is an argument, or that a pattern goes through', async () => {
    for (const name of ['a.jpg', 'closed/b.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    await close('photos/closed');
    for (const arg of ['photos/closed', 'photos/closed/*.jpg']) {
      const { outcome } = await run(arg, '-o', 'out/');
      expect(outcome, arg).to.include('1 imagemill: photos/closed cannot be read: permission denied.');
    }
    const { status, lines, complaints } = await run('photos/**/*.jpg', '-o', 'out');
    expect([status, lines.length, complaints]).to.deep.equal([
      1,
      2,
      [
        'imagemill: photos/closed cannot be read: permission denied.',
        'imagemill: 1 of 2 files not converted: 1 unreadable.',
      ],
    ]);
    expect((await run('photos/*.jpg', '-o', 'more')).status, 'the pattern does not go there').to.equal(0);
  });

  it('deletes no results while a folder is unreadable', async () => {
    for (const name of ['a.jpg', 'closed/b.jpg']) await folder.put('scene.jpg', `photos/${name}`);
    expect((await run('photos', '-o', 'out', '--update')).status).to.equal(0);
    await rm(folder.file('photos/a.jpg'));
    await close('photos/closed');
    const { status, complaints } = await run('photos', '-o', 'out', '--delete', '--yes');
    expect([status, ...complaints]).to.deep.equal([
      1,
      'imagemill: photos/closed cannot be read: permission denied.',
      'imagemill: Nothing was deleted, because not all of the input could be read.',
    ]);
    expect(await folder.files('out')).to.deep.equal(['a.jpg.webp', 'closed/b.jpg.webp']);
  });

  it('reports names that are not UTF-8, of folders, of matches of a pattern and of arguments', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    const place = (name: string): Buffer => Buffer.from(`${folder.path}/photos/${name}`, 'latin1');
    await mkdir(place('\xe9t\xe9'));
    await writeFile(place('\xe9t\xe9/b.jpg'), await fixture('scene.jpg'));
    await writeFile(place('caf\xe9.jpg'), await fixture('scene.jpg'));
    const advice = 'the name is not valid UTF-8. Rename it, for example with convmv.';
    const whole = await run('photos', '-o', 'out');
    expect([whole.status, whole.complaints.slice(0, -1)]).to.deep.equal([
      1,
      [`imagemill: photos/caf\\xE9.jpg: ${advice}`, `imagemill: photos/\\xE9t\\xE9: ${advice}`],
    ]);
    const matches = await run('photos/*.jpg', '-o', 'more');
    expect(matches.outcome).to.include(`1 imagemill: photos/caf\ufffd.jpg: ${advice}`);
    const argument = await folder.runProcess([], {
      env: { ...env, NAME: 'photos/caf' },
      launcher: ['sh', '-c', 'exec "$@" "$(printf "$NAME\\351.jpg")" -o out/', 'sh'],
    });
    expect(argument.outcome).to.equal(`1 imagemill: photos/caf\ufffd.jpg: ${advice}`);
  });

  it('reports a broken link that a pattern matches', async () => {
    await folder.put('scene.jpg', 'photos/a.jpg');
    await symlink('gone.jpg', folder.file('photos/broken.jpg'));
    const { outcome } = await run('photos/*', '-o', 'out');
    expect(outcome).to.include('1 imagemill: photos/broken.jpg cannot be read: no such file or directory.');
    expect(await folder.files('out')).to.deep.equal(['a.webp']);
  });

  for (const [what, read] of [
    ['and is read to its end', () => Promise.resolve()],
    ['and fails because of it', () => Promise.reject(new Error('cut short'))],
  ] as const) {
    it(`reports a source that changes while it is read, ${what}`, async () => {
      await folder.put('scene.jpg', 'a.jpg');
      const path = folder.file('a.jpg');
      const reading = readUnchanged(path, await stateOf(path), async () => {
        await appendFile(path, 'more');
        return read();
      });
      const error = await reading.catch((why) => why);
      expect(error).to.include({
        code: 'SOURCE_CHANGED',
        message: `${path} changed while it was read. Convert it again when it is complete.`,
      });
    });
  }

  it('names the reason of the system if a source cannot be read to its end', async () => {
    await folder.put('scene.jpg', 'a.jpg');
    const path = folder.file('a.jpg');
    const damaged = Object.assign(new Error('EIO: i/o error, read'), { errno: -5, syscall: 'read' });
    const reading = readUnchanged(path, await stateOf(path), () => Promise.reject(damaged));
    expect(await reading.catch((why) => why)).to.include({
      code: 'UNREADABLE',
      message: `${path} cannot be read: i/o error.`,
    });
  });
});
