// @full
import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  chmod,
  chown,
  copyFile,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { findToolchain } from '../../src/process/toolchain.ts';
import { fixturePath } from '../helpers/client.ts';
import { useConvertFolder } from '../helpers/convert-folder.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { useProcesses } from '../helpers/process.ts';
import { requires } from '../helpers/skips.ts';

/** A user other than root and the one who runs the tests. */
const OTHER_USER = 54_321;

describe('the start of a command', () => {
  const folder = useConvertFolder();
  const start = useProcesses();
  let home = '';
  let cache = '';

  beforeEach(async () => {
    home = await makeTempDir('cache');
    await chmod(home, 0o700);
    cache = join(home, 'imagemill');
    await folder.put('scene.jpg', 'photo.jpg');
  });

  const convert = (env = {}) =>
    folder.run(['photo.jpg', '-o', 'out/', '--force'], { env: { XDG_CACHE_HOME: home, ...env } });

  /** Returns the names of the programs that are started meanwhile. */
  async function startedBy(work: () => Promise<unknown>): Promise<string[]> {
    const started: ChildProcess[] = []; // they have no name yet when the channel reports them
    const note = (message: unknown) => started.push((message as { process: ChildProcess }).process);
    subscribe('child_process', note);
    await work().finally(() => unsubscribe('child_process', note));
    return started.map(({ spawnfile }) => spawnfile);
  }

  /** Returns the version of librsvg in the plan of a drawing. A cached one is changed first. */
  async function rsvgVersion(env = {}): Promise<string> {
    const args = ['explain', fixturePath('scene.svg'), '--json', '--format', 'png'];
    const settings = { TEMP_DIR: folder.temp, XDG_CACHE_HOME: home, ...env };
    const { objects } = await runInProcess(args, { env: settings });
    return objects()[0].plan.versions.rsvg;
  }

  const cacheFile = () => join(cache, 'tools.json');
  const falsify = async (): Promise<void> => {
    const entries = JSON.parse(await readFile(cacheFile(), 'utf8'));
    for (const { toolchain } of entries) toolchain.rsvg.version = '0.0.1';
    await writeFile(cacheFile(), JSON.stringify(entries));
  };

  it('tries the tools once, and afterwards starts only the one that converts', async () => {
    expect((await startedBy(convert)).length).to.be.above(5);
    const second = await startedBy(convert);
    const { magick } = await findToolchain({ path: process.env.PATH ?? '' });
    expect(second).to.deep.equal([magick?.path]);
    expect(await folder.files('out')).to.deep.equal(['photo.webp']);
    const third = await startedBy(() => convert({ MAX_PIXELS: '1000000' }));
    expect(third.length).to.be.above(5); // the trials had other limits
  });

  it('tries a tool again that has changed', async () => {
    const { rsvg } = await findToolchain({ path: process.env.PATH ?? '' });
    const bin = await makeTempDir('bin');
    const copy = join(bin, 'rsvg-convert');
    await copyFile(rsvg?.path ?? '', copy);
    const env = { RSVG_BIN: copy };
    expect(await rsvgVersion(env)).to.equal(rsvg?.version);
    await falsify();
    expect(await rsvgVersion(env)).to.equal('0.0.1');
    await utimes(copy, 1_000_000, 1_000_000);
    expect(await rsvgVersion(env)).to.equal(rsvg?.version);
  });

  it('ignores results of trials in a file or folder that is a link, malformed or open to others', async () => {
    const version = await rsvgVersion();
    const changes: Record<string, () => Promise<unknown>> = {
      'a file that others can write': () => chmod(cacheFile(), 0o660),
      'a link to a file': async () => {
        await rename(cacheFile(), join(home, 'elsewhere.json'));
        await symlink(join(home, 'elsewhere.json'), cacheFile());
      },
      'a file that is no JSON': () => writeFile(cacheFile(), '[{"key":'),
      'a file of another form': async () => {
        const [entry] = JSON.parse(await readFile(cacheFile(), 'utf8'));
        await writeFile(cacheFile(), JSON.stringify([{ ...entry, served: 'all' }]));
      },
      'a folder that others can write': () => chmod(cache, 0o777),
      'a parent folder that others can write': () => chmod(home, 0o777),
      'a link to a folder': async () => {
        await rename(cache, join(home, 'elsewhere'));
        await symlink(join(home, 'elsewhere'), cache);
      },
    };
    for (const [name, change] of Object.entries(changes)) {
      home = await makeTempDir('cache');
      await chmod(home, 0o700);
      cache = join(home, 'imagemill');
      await rsvgVersion();
      await falsify();
      expect(await rsvgVersion(), name).to.equal('0.0.1');
      await change();
      expect(await rsvgVersion(), name).to.equal(version);
    }
  });

  it('ignores the cache folder of another user, and creates none in the home of another user', async function () {
    requires(this, 'root', process.getuid?.() === 0);
    const version = await rsvgVersion();
    await falsify();
    await chown(cache, OTHER_USER, OTHER_USER);
    expect(await rsvgVersion()).to.equal(version);
    await chown(cache, 0, 0);
    expect(await rsvgVersion()).to.equal('0.0.1');
    await chown(cacheFile(), OTHER_USER, OTHER_USER);
    expect(await rsvgVersion()).to.equal(version);
    const other = await makeTempDir('home');
    await chown(other, OTHER_USER, OTHER_USER);
    expect(await rsvgVersion({ XDG_CACHE_HOME: '', HOME: other })).to.equal(version);
    expect(await readdir(other)).to.deep.equal([]);
  });

  it('forgets the trials when a tool does not start', async () => {
    await convert();
    await falsify();
    const entries = JSON.parse(await readFile(cacheFile(), 'utf8'));
    for (const { toolchain, served } of entries) {
      toolchain.magick.path = '/usr/bin/true';
      served.push('/usr/bin/true');
    }
    await writeFile(cacheFile(), JSON.stringify(entries));
    const failed = await convert();
    expect(failed.status).to.equal(1);
    expect((await convert()).status).to.equal(0);
  });

  it('keeps the code of a command compiled in the cache folder, but not that of the server', async () => {
    const env = { NODE_COMPILE_CACHE: undefined, XDG_CACHE_HOME: '', HOME: home };
    const { outcome } = await folder.runProcess(['photo.jpg', '-o', 'out/'], { env });
    expect(outcome).to.equal('0');
    const own = join(home, '.cache/imagemill');
    expect((await stat(own)).mode & 0o777).to.equal(0o700);
    const compiled = async () => (await readdir(join(own, 'code'), { recursive: true })).length;
    expect(await compiled()).to.be.above(5);
    expect((await stat(join(own, 'tools.json'))).mode & 0o777).to.equal(0o600);
    await rm(own, { recursive: true });
    const started = start(env);
    await started.base();
    started.child.kill('SIGTERM');
    expect(await started.ended()).to.equal(0);
    expect(await readdir(join(home, '.cache'))).to.deep.equal([]);
  });
});
