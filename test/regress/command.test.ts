// @full: compares many results
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { fixturePath } from '../helpers/client.ts';
import { runCommand } from '../helpers/command.ts';
import { runCli, runCliInProcess } from '../helpers/command-line.ts';
import { fakeMagick, otherFilter, patchedMagick, STRIP_ALONE } from '../helpers/fake-magick.ts';
import { makeTempDir, writeTempFile } from '../helpers/hooks.ts';
import { startProcess } from '../helpers/process.ts';
import { startService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';
import { useServers } from '../helpers/stub-server.ts';
import { eventually, isRunning } from '../helpers/util.ts';

const MATRIX = {
  cases: [
    { name: 'png', format: 'png' },
    { name: 'webp', format: 'webp' },
    { name: 'small', format: 'png', width: 70 },
  ],
};
const IMAGES = ['scene.png', 'p3.jpg', 'window.png'];

interface Found {
  readonly image: string;
  readonly case: string;
  readonly verdict: string;
  readonly reasons: readonly { readonly kind: string }[];
  readonly after?: { readonly commands: readonly string[] };
}

describe('imagemill regress', () => {
  const { serve, stub } = useServers();
  let images: string;
  let matrix: string;
  let baseline: string;
  let fingerprints: string;
  before(async () => {
    const folder = await makeTempDir('regress');
    [images, matrix] = [join(folder, 'images'), join(folder, 'matrix.json')];
    [baseline, fingerprints] = [join(folder, 'baseline'), join(folder, 'fingerprints.json')];
    await mkdir(images);
    for (const name of IMAGES) await copyFile(fixturePath(name), join(images, name));
    await writeFile(join(images, 'cut-off.gif'), Buffer.from('GIF89a\x20\0\x20\0', 'latin1'));
    await writeFile(join(images, 'notes.txt'), 'no image');
    await writeFile(matrix, JSON.stringify(MATRIX));
    const recorded = await runCli(['regress', 'record', images, '--matrix', matrix, '--to', baseline]);
    expect(recorded.stdout).to.include('4 images, 12 results, 3 of them errors');
    expect(recorded.status, recorded.stderr).to.equal(0);
    await record(fingerprints, ['--fingerprints-only']);
  });

  /** Runs `regress record` with the matrix of these tests. */
  const record = (to: string, more: string[] = [], folder = images) =>
    runCliInProcess(['regress', 'record', folder, '--matrix', matrix, '--to', to, ...more]);

  /** Runs `regress check` and parses its JSON report. */
  async function check(against: string, words: string[] = [], env: Record<string, string> = {}, of = images) {
    const json = join(await makeTempDir('found'), 'found.json');
    // The folder for temporary files comes from the environment of the process.
    const run = env.TMPDIR ? runCli : runCliInProcess;
    const ended = await run(['regress', 'check', of, '--against', against, '--json', json, ...words], env);
    const text = await readFile(json, 'utf8').catch(() => '{"findings":[]}');
    const { findings } = JSON.parse(text) as { findings: Found[] };
    const changed = findings.filter(({ verdict }) => !['identical', 'same', 'similar'].includes(verdict));
    return { ...ended, findings, changed, names: changed.map((one) => `${one.image} ${one.case}`).sort() };
  }

  it('exits with 0, prints the tools and removes its temporary files when nothing changed', async () => {
    const TMPDIR = await makeTempDir('nothing-left');
    const { status, stdout, stderr } = await check(baseline, [], { TMPDIR, TEMP_DIR: TMPDIR });
    expect(status, stderr).to.equal(0);
    expect(stdout).to.match(/after: {2}ImageMagick [67]\.[\s\S]*12 results:\s+12 identical/);
    expect(await readdir(TMPDIR)).to.deep.equal([]);
  });

  for (const [kind, path] of [
    ['images', () => baseline],
    ['fingerprints', () => fingerprints],
  ] as const) {
    it(`detects a changed resize filter by ${kind}, only in cases that resize`, async () => {
      const MAGICK_BIN = await patchedMagick(otherFilter('Catrom')); // the most similar one
      const { status, names } = await check(path(), [], { MAGICK_BIN });
      expect(status).to.equal(1);
      expect(names).to.deep.equal(['p3.jpg small', 'scene.png small', 'window.png small']);
    });

    it(`detects by ${kind} that a colour profile is stripped instead of applied`, async () => {
      const MAGICK_BIN = await patchedMagick(STRIP_ALONE);
      const { status, names, findings } = await check(path(), [], { MAGICK_BIN });
      expect(status).to.equal(1);
      expect(names).to.deep.equal(['p3.jpg png', 'p3.jpg small', 'p3.jpg webp']);
      const [worst] = findings;
      expect(worst?.reasons.map((reason) => reason.kind)).to.include('pixels');
      expect(worst?.after?.commands.join()).to.include('-profile assets/srgb.icc');
    });
  }

  it('records the formats of EXTRA_OUTPUTS, and names it in the result of a case of another format', async () => {
    const folder = await makeTempDir('extra');
    await copyFile(fixturePath('scene.png'), join(folder, 'scene.png'));
    const modern = await writeTempFile('matrix.json', '{"cases":[{"name":"modern","format":"avif"}]}');
    const recorded = async (...more: string[]) => {
      const to = join(folder, 'extra.json');
      const words = ['regress', 'record', folder, '--to', to, '--fingerprints-only', ...more];
      await runCliInProcess(words, { EXTRA_OUTPUTS: 'jxl,ico' });
      return readFile(to, 'utf8');
    };
    const text = await recorded();
    for (const format of ['webp', 'jxl', 'ico']) expect(text).to.include(`"format": "${format}"`);
    expect(text).to.not.include('"format": "avif"');
    expect(await recorded('--matrix', modern)).to.include(
      'The format avif is not available: EXTRA_OUTPUTS does not enable it, or its tools are missing.',
    );
  });

  it('writes a byte-identical baseline of fingerprints when recording twice', async () => {
    const again = join(await makeTempDir('again'), 'fingerprints.json');
    await record(again, ['--fingerprints-only']);
    expect(await readFile(again, 'utf8')).to.equal(await readFile(fingerprints, 'utf8'));
  });

  it('replaces a baseline of fingerprints, but no other file', async () => {
    const folder = await makeTempDir('replaced');
    const [earlier, photo] = [join(folder, 'earlier.json'), join(folder, 'photo.jpg')];
    await copyFile(fingerprints, earlier);
    await copyFile(fixturePath('p3.jpg'), photo);
    const { outcome } = await record(photo, ['--fingerprints-only'], folder);
    expect(outcome).to.equal(`2 imagemill: ${photo} is not a baseline: it was not changed`);
    expect(await readFile(photo)).to.deep.equal(await readFile(fixturePath('p3.jpg')));
    const { stdout } = await record(earlier, ['--fingerprints-only'], folder);
    expect(stdout).to.include('1 image, 3 results');
  });

  it('replaces earlier reports, but no other file', async () => {
    const folder = await makeTempDir('reports');
    const compareTo = (option: string, path: string) =>
      runCliInProcess(['regress', 'compare', baseline, baseline, option, path]);
    for (const option of ['--report', '--junit', '--json']) {
      const report = join(folder, 'new', `report${option}`);
      expect((await compareTo(option, report)).status, option).to.equal(0);
      const written = await readFile(report);
      expect((await compareTo(option, report)).status, `${option} again`).to.equal(0);
      expect(await readFile(report)).to.deep.equal(written);

      const picture = join(folder, 'drawing.svg');
      const drawing = '<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>';
      await writeFile(picture, drawing);
      const { outcome } = await compareTo(option, picture);
      expect(outcome).to.equal(`2 imagemill: ${option} ${picture}: the file exists, and is not a report.`);
      expect(await readFile(picture, 'utf8')).to.equal(drawing);
    }
    const { outcome } = await compareTo('--json', '/dev/full');
    expect(outcome).to.match(/^2 imagemill: \/dev\/full cannot be written: ENOSPC/);
  });

  it('distinguishes new errors, fixed errors and changes', async () => {
    const MAGICK_BIN = await patchedMagick('WEBP:image.webp) echo trouble >&2; exit 1 ;;');
    const broken = await check(baseline, [], { MAGICK_BIN });
    expect(broken.status).to.equal(1);
    expect(new Set(broken.changed.map(({ verdict }) => verdict))).to.deep.equal(new Set(['broken']));
    expect(broken.names).to.deep.equal(['p3.jpg webp', 'scene.png webp', 'window.png webp']);

    const failing = join(await makeTempDir('failing'), 'baseline');
    await runCliInProcess(['regress', 'record', images, '--matrix', matrix, '--to', failing], { MAGICK_BIN });
    const fixed = await runCli(['regress', 'compare', failing, baseline]);
    expect(fixed.status).to.equal(1);
    expect(fixed.stdout).to.match(/3 fixed/);
  });

  it('reports added, removed and replaced images as unmatched', async () => {
    const other = await makeTempDir('other-images');
    await copyFile(fixturePath('scene.png'), join(other, 'p3.jpg'));
    await copyFile(fixturePath('scene.png'), join(other, 'scene.png'));
    await copyFile(fixturePath('scene.png'), join(other, 'new.png'));
    const { status, changed } = await check(baseline, [], {}, other);
    expect(status).to.equal(1);
    expect([...new Set(changed.map(({ image, verdict }) => `${image} ${verdict}`))].sort()).to.deep.equal([
      'cut-off.gif unmatched',
      'new.png unmatched',
      'p3.jpg unmatched',
      'window.png unmatched',
    ]);
  });

  it('reports result files of a baseline that are missing or altered, although its digests are the same', async () => {
    const altered = join(await makeTempDir('altered'), 'baseline');
    await cp(baseline, altered, { recursive: true });
    await copyFile(fixturePath('p3.jpg'), join(altered, 'results/scene.png/png.png'));
    await rm(join(altered, 'results/window.png/webp.webp'));
    const report = join(altered, 'report.html');
    const { status, names, changed } = await check(altered, ['--report', report]);
    expect(status).to.equal(1);
    expect(names).to.deep.equal(['scene.png png', 'window.png webp']);
    expect(new Set(changed.map(({ verdict }) => verdict))).to.deep.equal(new Set(['unmatched']));
    expect(await readFile(report, 'utf8')).to.include('the file in the baseline is missing or was altered');
  });

  it('gets the same results from a server and reports the curl command of each', async () => {
    await using service = await startService();
    const url = service.base.replace('/api/v1', '/');
    const { status, findings, stderr } = await check(baseline, ['--url', url]);
    expect(status, stderr).to.equal(0);
    expect(findings).to.have.length(12);
    const small = findings.find((one) => one.case === 'small' && one.image === 'scene.png');
    expect(small?.after?.commands).to.deep.equal([
      `curl --fail-with-body -o small.png -F format=png -F width=70 -F file=@scene.png ${service.base}/convert`,
    ]);
  });

  it('sends the API key, and waits and retries when a server responds 429', async () => {
    let asked = 0;
    const png = await readFile(fixturePath('scene.png'));
    const url = await serve((req, res) => {
      expect(req.headers.authorization).to.equal('Bearer secret');
      if (req.url?.endsWith('/health'))
        return res.setHeader('content-type', 'application/json').end('{"version":"1"}');
      asked += 1;
      req.resume();
      if (asked === 1) return res.writeHead(429, { 'retry-after': '1' }).end('{"error":{"message":"wait"}}');
      return res.setHeader('content-type', 'image/png').end(png);
    });
    const single = await writeTempFile('matrix.json', '{"cases":[{"name":"png","format":"png"}]}');
    const to = join(await makeTempDir('waited'), 'baseline');
    const words = ['regress', 'record', images, '--matrix', single, '--url', url, '--to', to];
    const { stdout } = await runCliInProcess(words, { IMAGEMILL_API_KEY: 'secret' });
    expect(stdout).to.match(/4 images, 4 results, with/);
    expect(asked).to.equal(5);
  });

  it('exits with 2 and prints the cause when the comparison fails', async () => {
    const wrong = await writeTempFile('matrix.yaml', 'cases: [{ name: a, quality: 200 }]');
    const empty = await makeTempDir('empty');
    const badName = await makeTempDir('bad-name');
    await writeFile(Buffer.from(`${badName}/caf\xe9.jpg`, 'latin1'), '');
    const against = ['--against', baseline];
    for (const [words, message, settings = {}] of [
      [['check', '/nowhere', ...against], /\/nowhere cannot be read: no such file or directory$/],
      [['check', matrix, ...against], /cannot be read: not a directory$/],
      [['check', empty, ...against], /There are no images in/],
      [['record', badName, '--to', join(badName, 'baseline')], /caf\ufffd\.jpg: the name is not valid UTF-8/],
      [['check', images, '--against', '/nowhere'], /is not a baseline: no such file or directory$/],
      [['check', images, '--against', join(images, 'scene.png')], /is not a baseline: it is not JSON$/],
      [['check', images, '--against', matrix], /is not a baseline: layout/],
      [['check', images, ...against, '--matrix', wrong], /Invalid quality "200"/],
      [
        ['check', images, ...against, '--url', 'http://127.0.0.1:1'],
        /no imagemill server responds at http:\/\/127\.0\.0\.1:1/,
      ],
      [['check', images, ...against, '--repeat', '0'], /--repeat 0: expected a whole number from 1 to 99/],
      [['check', images, ...against, '--presets', matrix], /--presets needs --matrix/],
      [['check', images], /required option '--against <baseline>'/],
      [['record', images, '--to', images], /contains files, but no baseline: it was not changed/],
      [['check', images, ...against], /PORT="x"/, { PORT: 'x' }],
      [['check', images, ...against], /Nothing can be converted/, { PATH: empty }],
    ] as [string[], RegExp, Record<string, string>?][]) {
      const { status, stderr } = await runCliInProcess(['regress', ...words], settings);
      expect(stderr, words.join(' ')).to.match(message);
      expect(status, words.join(' ')).to.equal(2);
    }
    expect(await readdir(images), 'a folder without a baseline is not changed').to.include.members(IMAGES);
  });

  it('does not make the server load its decoders', async function () {
    await using service = startProcess({ TEMP_DIR: await makeTempDir('light') });
    await service.base();
    const maps = await readFile(`/proc/${service.pid}/maps`, 'utf8').catch(() => undefined);
    requires(this, 'proc', maps !== undefined);
    expect(maps).to.include('/node');
    expect(maps).not.to.match(/sharp|libvips/);
  });

  it('replaces an existing baseline completely', async () => {
    const to = join(await makeTempDir('older'), 'baseline');
    await cp(baseline, to, { recursive: true });
    const fewer = await makeTempDir('fewer');
    await copyFile(fixturePath('scene.png'), join(fewer, 'scene.png'));
    await record(to, [], fewer);
    expect(await readdir(join(to, 'results'))).to.deep.equal(['scene.png']);
  });

  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`stops the tools, removes its files and exits with ${status} on ${signal}`, async () => {
      const to = join(await makeTempDir('stopped'), 'baseline');
      for (const words of [
        ['check', images, '--against', baseline],
        ['record', images, '--matrix', matrix, '--to', to],
      ]) {
        const temp = await makeTempDir('temp');
        const pidFile = join(await makeTempDir('pid'), 'pid');
        const MAGICK_BIN = await fakeMagick(`echo $$ > ${pidFile}; sleep 60`);
        const env = { MAGICK_BIN, SANDBOX: 'off', CONCURRENCY: '2', TMPDIR: temp, TEMP_DIR: temp };
        const ended = await runCommand(['regress', ...words], {
          env,
          async meanwhile(pid) {
            await eventually(() => readFile(pidFile, 'utf8').catch(() => undefined));
            process.kill(pid, signal);
          },
        });
        expect([ended.status, ended.lines, ended.complaints], words[0]).to.deep.equal([status, [], []]);
        const tool = Number(await readFile(pidFile, 'utf8'));
        await eventually(() => !isRunning(tool));
        expect(await readdir(temp), words[0]).to.deep.equal([]);
      }
      expect(await readdir(to), 'so that it can be recorded again').to.deep.equal([]);
    });
  }

  it('ignores a baseline in the folder of images', async () => {
    const among = await makeTempDir('among');
    await copyFile(fixturePath('scene.png'), join(among, 'scene.png'));
    const to = join(among, 'baseline');
    const words = ['regress', 'record', among, '--matrix', matrix, '--to', to];
    await runCliInProcess(words);
    expect((await runCliInProcess(words)).stdout).to.include('1 image, 3 results');
    const { status, findings } = await check(to, [], {}, among);
    expect([status, findings.length]).to.deep.equal([0, 3]);
  });

  for (const [kind, flags, file] of [
    ['a folder', [], 'baseline.json'],
    ['a file of fingerprints', ['--fingerprints-only'], ''],
  ] as const)
    it(`keeps ${kind} with an older baseline when the new one cannot be written`, async () => {
      const [folder, to] = [await makeTempDir('images'), join(await makeTempDir('kept'), 'baseline')];
      await copyFile(fixturePath('scene.gif'), join(folder, 'scene.gif'));
      const cases = Array.from({ length: 30 }, (_, at) => ({ name: `${at}`, format: 'png', width: at + 1 }));
      const many = join(folder, 'matrix.json');
      await writeFile(many, JSON.stringify({ cases }));
      const args = ['regress', 'record', folder, '--to', to, '--matrix', many, ...flags];
      await runCliInProcess(args);
      const names = async () => (await readdir(dirname(to), { recursive: true })).sort();
      const before = [await names(), await readFile(join(to, file), 'utf8')];
      // No file may exceed 16 blocks of 512 bytes. The results fit, but the baseline does not.
      const launcher = ['/bin/sh', '-c', 'ulimit -f 16; exec "$@"', 'sh'];
      const { outcome } = await runCommand(args, { launcher });
      expect(outcome).to.equal('2 imagemill: EFBIG: file too large, write');
      expect([await names(), await readFile(join(to, file), 'utf8')]).to.deep.equal(before);
    });

  it('exits with 2, not 0, when nothing was compared', async () => {
    const skipping = JSON.stringify({ ...MATRIX, overrides: [{ skip: true }] });
    const nothing = await writeTempFile('matrix.json', skipping);
    const words = ['regress', 'compare', baseline, baseline, '--matrix', nothing];
    const { outcome } = await runCliInProcess(words);
    expect(outcome).to.match(
      /^2 .*: the matrix skips \d+ results of the baseline\n.*: There is nothing to compare/,
    );
  });

  it('exits with 2 and removes its files when a server closes the connection during a response', async () => {
    const url = await stub((req, res) => {
      req.resume();
      req.on('end', () => {
        res.writeHead(200, { 'content-length': '99999' });
        res.write('x', () => res.destroy());
      });
    });
    const TMPDIR = await makeTempDir('gone');
    const { status, stderr } = await check(baseline, ['--url', url], { TMPDIR });
    expect(stderr).to.match(/no longer responds/);
    expect(stderr, 'a sentence').not.to.include('    at ');
    expect(status).to.equal(2);
    expect(await readdir(TMPDIR)).to.deep.equal([]);
  });
});
