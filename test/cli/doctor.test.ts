// @full
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type CheckResult, loadServiceSettings, UNIT_SETTINGS } from '../../src/cli/doctor/collect.ts';
import { type CommandRun, MAIN, runCommand, runOnTerminal } from '../helpers/command.ts';
import { COPY_SCENE, fakeMagick } from '../helpers/fake-magick.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { runInProcess } from '../helpers/in-process.ts';
import { PROJECT } from '../helpers/markdown.ts';
import { writeScript } from '../helpers/util.ts';

describe('imagemill doctor', () => {
  let temp: string;
  beforeEach(async () => {
    temp = await makeTempDir('doctor');
  });
  const run = (env: Record<string, string> = {}, ...args: string[]): Promise<CommandRun> =>
    runInProcess(['doctor', ...args], { env: { TEMP_DIR: temp, ...env } });
  const rowsOf = async (env: Record<string, string>, ...args: string[]) => {
    const { status, objects, complaints } = await run(env, ...args, '--json');
    expect(complaints).to.deep.equal([]);
    const [{ serves, checks }] = objects() as [{ serves: boolean; checks: CheckResult[] }];
    expect(serves).to.equal(status === 0);
    return { status, checks, row: (name: string) => checks.find((check) => check.name === name) };
  };
  let plain: ReturnType<typeof rowsOf> | undefined;
  /** Returns the rows without settings. */
  const plainRows = () => {
    plain ??= rowsOf({});
    return plain;
  };

  it('shows the formats of EXTRA_INPUTS and EXTRA_OUTPUTS, and their tools', async () => {
    const { status, row } = await rowsOf({ EXTRA_INPUTS: 'all', EXTRA_OUTPUTS: 'jxl,avif' });
    expect(status).to.equal(0);
    for (const name of ['djxl', 'cjxl', 'avifenc']) expect(row(name)?.state, name).to.equal('ok');
    expect(row('reads')?.found).to.match(/webp, heic, jxl, jp2, psd, cur, pdf$/);
    expect(row('writes')?.found).to.match(/pdf, avif, jxl$/);
    expect((await plainRows()).row('djxl')).to.equal(undefined);
  });

  it('lists what commands read and write without a setting, and the package for each other format', async () => {
    const { status, row } = await plainRows();
    expect(status).to.equal(0);
    expect(row('own files')?.found).to.match(
      /^read png, .*, webp, heic, jxl, .*pdf; write webp, .*avif, jxl, tiff, ico$/,
    );
    expect(row('own files')?.advice).to.equal(undefined);
    const without = await rowsOf({ PATH: temp, MAGICK_BIN: await fakeMagick(':') });
    expect(without.row('own files')).to.deep.include({ state: 'ok' });
    const advice = without.row('own files')?.advice?.join('\n');
    expect(advice).to.match(
      /^to read heic: .*cannot read HEIC\. On Debian: apt install libheif-plugin-libde265$/m,
    );
    expect(advice).to.match(/^to write avif: avifenc not found\. On Debian: apt install libavif-bin$/m);
    expect(advice).to.match(/^to read pdf: pdf\w+ not found\. On Debian: apt install poppler-utils$/m);
  });

  it('warns of a libheif older than 1.18 if EXTRA_INPUTS enables HEIC', async () => {
    const rowFor = async (libheif: string, inputs: string) => {
      const formats = `echo "  HEIC*  HEIC  rw+  High Efficiency Image Format (${libheif})"`;
      const magick = await fakeMagick(':', '7.1.1-43', formats);
      return (await rowsOf({ MAGICK_BIN: magick, EXTRA_INPUTS: inputs })).row('libheif');
    };
    expect(await rowFor('1.17.6', 'heic')).to.include({
      state: 'warn',
      found: '1.17.6 is older than 1.18: some HEIC of new phones can fail',
    });
    expect(await rowFor('1.23.6', 'all')).to.include({ state: 'ok', found: '1.23.6' });
    expect(await rowFor('1.17.6', 'jp2')).to.equal(undefined);
  });

  it('warns of a missing img2webp with both versions of ImageMagick, and says what is worse', async () => {
    for (const [version, lacks] of [
      ['6.9.11-60', 'no animated WebP'],
      ['7.1.1-43', 'animated WebP takes up to twice as long, and can be several times larger'],
    ] as const) {
      const { row } = await rowsOf({ MAGICK_BIN: await fakeMagick(':', version), PATH: temp });
      expect(row('img2webp'), version).to.include({ state: 'warn', found: `not found: ${lacks}` });
      expect(row('heif-convert')?.state, version).to.equal(version.startsWith('6') ? 'warn' : 'ok');
    }
  });

  it('checks the settings of --env FILE as systemd reads them, and names the file', async () => {
    const path = await writeTempFile(
      'service.env',
      '# four\n\nEXTRA_INPUTS="jxl"\nPORT=80\nCONCURRENCY=\nRATE_LIMIT=3\n',
    );
    const { checks, row } = await rowsOf({ CONCURRENCY: 'many' }, '--env', path);
    expect(row('settings')).to.include({ state: 'ok', found: `all valid, with those of ${path}` });
    expect(row('reads')?.found).to.match(/, jxl$/);
    const warned = checks.filter(({ name, state }) => name === 'settings' && state === 'warn');
    expect(warned.map(({ found }) => found)).to.deep.equal([
      'RATE_LIMIT is not a setting, and has no effect. Did you mean RATE_LIMIT_PER_MINUTE?',
    ]);

    await writeFile(path, 'CONCURRENCY=4 # four\n');
    const invalid = await run({}, '--env', path);
    expect(invalid.status).to.equal(2);
    expect(invalid.lines[0]).to.match(/^fail {2}settings +CONCURRENCY="4 # four": /);
    await writeFile(path, 'PORT=80\n4 processors\n');
    expect((await run({}, '--env', path)).outcome).to.equal(
      `2 imagemill: ${path}, line 2: expected NAME=value.`,
    );
    const missing = join(temp, 'missing.env');
    expect((await run({}, '--env', missing)).outcome).to.match(
      /^2 imagemill: .*missing\.env cannot be read: /,
    );
  });

  it('reads the settings of the systemd unit by default, and says if it may not', async () => {
    const unitFile = await writeTempFile('imagemill.env', 'PORT=80\n');
    const load = (file: string) => loadServiceSettings({ HOST: '::1' }, undefined, file);
    expect(await load(unitFile)).to.deep.equal({ env: { HOST: '::1', PORT: '80' }, file: unitFile });
    expect(await load(join(temp, 'missing'))).to.deep.equal({ env: { HOST: '::1' } });
    expect((await load(temp)).problem).to.match(/ cannot be read: /);
    const unit = await readFile(join(PROJECT, 'debian/imagemill.service'), 'utf8');
    expect(UNIT_SETTINGS).to.equal(/^EnvironmentFile=-(.*)$/m.exec(unit)?.[1]);
  });

  it('states the access and its limits, and needs disk space for ten files if it is private', async () => {
    expect((await plainRows()).row('access')?.found).to.equal(
      'public: 10 MB a file, 20 files a batch, 50 megapixels, 60 requests a minute',
    );
    const { status, row } = await rowsOf({ ACCESS: 'private', MAX_BATCH_FILES: '1000' });
    expect(row('access')?.found).to.match(
      /^private: 210 MB a file, 1000 files a batch, \d+ megapixels, no rate limit$/,
    );
    expect([status, row('TEMP_DIR')?.state]).to.deep.equal([0, 'ok']); // a full batch would need 419 GB
  });

  it('counts the API keys, and fails for a file that the service would refuse', async () => {
    const API_KEYS_FILE = await writeTempFile('keys', `shop:${'a'.repeat(64)}`);
    expect((await rowsOf({ API_KEYS_FILE })).row('API keys')).to.include({
      state: 'ok',
      found: `1 key in ${API_KEYS_FILE}`,
    });
    await writeFile(API_KEYS_FILE, 'shop');
    const { status, row } = await rowsOf({ API_KEYS_FILE });
    expect([status, row('API keys')?.state]).to.deep.equal([2, 'fail']);
    expect(row('API keys')?.found).to.include(`${API_KEYS_FILE}, line 1: expected`);
  });

  it('exits with 0 on a complete machine, prints at most 80 columns, and leaves no files', async () => {
    const { lines, outcome } = await runCommand(['doctor'], { env: { TEMP_DIR: temp } });
    expect(outcome).to.equal('0');
    expect(lines.filter((line) => line.length > 80)).to.deep.equal([]);
    const text = lines.join('\n');
    expect(text).to.match(/^ok {4}ImageMagick {5}[67]\.\S+ {2}\/.+/m);
    expect(text)
      .to.match(/^ok {4}policy /m)
      .and.match(/^ok {4}conversion {6}one pixel to webp, png/m);
    expect(text).to.match(/^\w+ +fonts +SVG text in Latin/m);
    expect(text)
      .to.match(/can serve here/)
      .and.not.include('\u001b');
    expect(await readdir(temp)).to.deep.equal([]);
  });

  it('exits with 2 and names the Debian packages when there are no tools', async () => {
    const { status, row } = await rowsOf({ PATH: await makeTempDir('no-tools') });
    expect(status).to.equal(2);
    expect(row('ImageMagick')?.advice).to.deep.equal(['apt install imagemagick']);
    expect(row('rsvg-convert')?.advice).to.deep.equal(['apt install librsvg2-bin']);
    expect(row('conversion')?.state).to.equal('fail');
  });

  it('exits with 2 when ImageMagick does not enforce the policy', async () => {
    const magick = await fakeMagick(COPY_SCENE);
    await writeFile(magick, (await readFile(magick, 'utf8')).replace('xc:red*) exit 1', 'xc:red*) exit 0'));
    const { status, row } = await rowsOf({ MAGICK_BIN: magick, SANDBOX: 'off' });
    expect([status, row('policy')?.state]).to.deep.equal([2, 'fail']);
    expect(row('policy')?.found).to.include('does not enforce the policy');
  });

  it('exits with 2 when conversions fail', async () => {
    const { status, row } = await rowsOf({ MAGICK_BIN: await fakeMagick('exit 1'), SANDBOX: 'off' });
    expect([status, row('policy')?.state, row('conversion')?.state]).to.deep.equal([2, 'ok', 'fail']);
  });

  for (const [setting, value, name, state, silent, advice] of [
    ['SANDBOX', 'off', 'sandbox', 'warn', 'warning', 'unset SANDBOX'],
    ['TEMP_DIR', '/proc/nothing', 'TEMP_DIR', 'fail', 'conversion', 'set TEMP_DIR'],
    ['MAGICK_BIN', '/bin/true', 'ImageMagick', 'fail', 'conversion', 'unset MAGICK_BIN'],
    ['RSVG_BIN', '/bin/false', 'rsvg-convert', 'fail', 'conversion', 'unset RSVG_BIN'],
  ] as const) {
    it(`reports ${setting}=${value} in the row "${name}" alone, not also in the row "${silent}"`, async () => {
      const { status, row } = await rowsOf({ [setting]: value });
      expect([status, row(name)?.state]).to.deep.equal([state === 'fail' ? 2 : 0, state]);
      expect(row(name)?.advice?.[0]).to.include(advice);
      expect(row(silent)).to.equal(undefined);
    });
  }

  it('names every invalid setting and checks everything else', async () => {
    const { status, lines } = await run({ MAX_PIXELS: 'x', PORT: '-1', TEMP_DIR: '/etc/passwd/folder' });
    expect(status).to.equal(2);
    const text = lines.join('\n');
    expect(text)
      .to.match(/^fail {2}settings +PORT="-1"/m)
      .and.match(/^fail {2}settings +MAX_PIXELS="x"/m);
    expect(text).to.match(/^fail {2}TEMP_DIR +\/etc\/passwd\/folder is not writable/m);
    expect(text).to.match(/^ok {4}ImageMagick/m);
  });

  it('warns when the disk has no space for a full batch, and when Redis does not respond', async () => {
    const { status, row } = await rowsOf({
      MAX_FILE_BYTES: String(2 ** 31),
      MAX_BATCH_FILES: '1000',
      REDIS_URL: 'redis://:secret@127.0.0.1:1',
    });
    expect([status, row('TEMP_DIR')?.state, row('REDIS_URL')?.state]).to.deep.equal([0, 'warn', 'warn']);
    expect(row('TEMP_DIR')?.advice?.[0]).to.include('a full batch needs 4.3 TB');
    expect(JSON.stringify(row('REDIS_URL'))).to.not.include('secret');
  });

  it('warns when Redis accepts the connection and never answers', async () => {
    const silent = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
    try {
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      const { status, row } = await rowsOf({ REDIS_URL: `redis://127.0.0.1:${port}` });
      expect([status, row('REDIS_URL')?.state]).to.deep.equal([0, 'warn']);
      expect(row('REDIS_URL')?.found).to.match(/^no response: timeout of 1000 ms;/);
    } finally {
      silent.close();
    }
  });

  it('says for which scripts fontconfig has fonts, and that it does not know without fc-list', async () => {
    const { row } = await plainRows();
    expect(row('fonts')?.found).to.match(/^SVG text in Latin, Cyrillic, Greek/);
    const folder = await makeTempDir('fonts');
    await writeFile(join(folder, 'none.conf'), '<fontconfig><dir>/nonexistent</dir></fontconfig>');
    const list = join(folder, 'fc-list');
    const body = `FONTCONFIG_FILE=${folder}/none.conf PATH=${process.env.PATH} exec fc-list "$@"`;
    await writeFile(list, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    const fontless = await rowsOf({ PATH: `${folder}:${process.env.PATH}` });
    expect([fontless.status, fontless.row('fonts')?.state]).to.deep.equal([0, 'warn']);
    expect(fontless.row('fonts')?.found).to.match(/^SVG text in no script; boxes instead of Latin/);
    const rsvg = await writeScript('rsvg', 'echo rsvg-convert version 2.54.7');
    const unknown = await rowsOf({ RSVG_BIN: rsvg, PATH: temp });
    expect(unknown.row('fonts')).to.deep.include({ state: 'warn', advice: ['apt install fontconfig'] });
  });

  it('prints colours on a terminal unless NO_COLOR is set', async () => {
    const line = `TEMP_DIR=${temp} ${process.execPath} ${MAIN} doctor`;
    const green = '\u001b[32mok';
    expect((await runOnTerminal(line, temp)).shown).to.include(green);
    const plain = await runOnTerminal(`NO_COLOR=1 ${line}`, temp);
    expect(plain.shown).to.include('ok    settings').and.not.include('\u001b[3');
  });
});
