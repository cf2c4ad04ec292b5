/**
 * @module Tests of the files that scripts/make-package-files.ts generates for the Debian package,
 * and of what debian/ names.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../src/tables/config.ts';
import { TOOLS } from '../../src/tables/tools.ts';
import { runCliInProcess } from '../helpers/command-line.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { PROJECT } from '../helpers/markdown.ts';

const readProjectFile = (path: string): Promise<string> => readFile(join(PROJECT, path), 'utf8');

describe('the Debian package', () => {
  let folder: string;
  before(async () => {
    folder = await makeTempDir('package-files');
    execFileSync(process.execPath, [join(PROJECT, 'scripts/make-package-files.ts'), folder]);
  });
  const generated = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
  /**
   * Returns the settings in the lines of the file of settings that match a pattern, whose groups
   * are name and value.
   */
  const settingsIn = async (pattern: RegExp): Promise<Record<string, string>> =>
    Object.fromEntries(
      [...(await generated('imagemill.env')).matchAll(pattern)].map(([, name = '', value = '']) => [
        name,
        value,
      ]),
    );

  it('has a file with all settings, which listens on this machine only and needs the sandbox', async () => {
    const set = await settingsIn(/^([A-Z_]+)=(.*)$/gm);
    expect(set).to.deep.equal({ HOST: '127.0.0.1', TRUST_PROXY: 'loopback', SANDBOX: 'on' });
    const names = Object.keys(await settingsIn(/^#?([A-Z_]+)=(.*)$/gm));
    const { maxSide: _, maxDrawnSide: __, ...all } = loadConfig({});
    expect(names).to.include.members(Object.keys(all)).and.include('IMAGEMILL_API_KEY');
  });

  it('has a file of settings whose comments state the defaults', async () => {
    const { API_KEYS_FILE, TEMP_DIR, ...commented } = await settingsIn(/^#([A-Z_]+)=(.*)$/gm);
    expect(API_KEYS_FILE).to.equal('/etc/imagemill/keys');
    expect(await readProjectFile('debian/imagemill.service')).to.include(` TEMP_DIR=${TEMP_DIR}\n`);
    expect(Object.keys(commented)).to.have.length.above(25);
    expect(loadConfig(commented)).to.deep.equal(loadConfig({}));
  });

  for (const page of ['imagemill.1', 'imagemill.env.5'])
    it(`has the manual page ${page}, which man shows without a warning`, () => {
      const { stdout, stderr } = spawnSync(
        'groff',
        ['-man', '-Kutf8', '-Tutf8', '-ww', '-P-cbou', join(folder, page)],
        {
          encoding: 'utf8',
        },
      );
      expect(stderr).to.equal('');
      expect(stdout).to.match(page === 'imagemill.1' ? /--preserve-times/ : /MAX_PIXELS/);
    });

  it('has a manual page with every command and option', async () => {
    const text = (await generated('imagemill.1')).replaceAll('\\-', '-');
    for (const command of [
      ['convert', '--help', 'all'],
      ['doctor', '--help'],
      ['regress', 'check', '--help'],
    ]) {
      const { stdout } = await runCliInProcess(command);
      const options = [...stdout.matchAll(/^ {2}(?:-\w, )?(--\w[\w-]*)/gm)].map(([, option = '']) => option);
      expect(options).to.have.length.above(1);
      for (const option of options.filter((name) => name !== '--help')) expect(text).to.include(option);
    }
  });

  it('has completions for bash, zsh and fish that these shells can parse', async () => {
    expect(spawnSync('bash', ['-n', join(folder, 'completion/bash/imagemill')]).status).to.equal(0);
    expect(await generated('completion/zsh/_imagemill')).to.match(/^#compdef imagemill\n/);
    expect(await generated('completion/fish/imagemill.fish')).to.include('complete -c imagemill');
  });

  it('depends on the tools of the standard formats, and recommends or suggests the others', async () => {
    const control = await readProjectFile('debian/control');
    const field = (name: string): string =>
      new RegExp(`^${name}:((?:.*\\n )*.*)\\n(?=[A-Z])`, 'm').exec(control)?.[1] ?? '';
    const fields = {
      standard: 'Depends',
      'magick-6': 'Depends',
      speed: 'Recommends',
      colours: 'Recommends',
      combine: 'Recommends',
      extras: 'Suggests',
    };
    for (const { debianPackage, neededFor } of Object.values(TOOLS))
      expect(field(fields[neededFor]), neededFor).to.match(new RegExp(`(^| )${debianPackage},$`, 'm'));
  });

  it('runs the unit with the settings that `imagemill doctor` reads', async () => {
    const unit = await readProjectFile('debian/imagemill.service');
    const [, path = 'no file'] = /^EnvironmentFile=-(.*)$/m.exec(unit) ?? [];
    expect((await runCliInProcess(['doctor', '--help'])).stdout).to.include(path);
  });
});
