import { copyFile, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { fixturePath } from '../helpers/client.ts';
import { runCliInProcess } from '../helpers/command-line.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { execute } from '../helpers/process.ts';

describe('imagemill explain', () => {
  const explain = (...args: string[]) => runCliInProcess(['explain', ...args]);

  it('states in order what is done with an image, the limits and the key', async () => {
    const { status, stdout } = await explain(fixturePath('orientation-6.jpg'), '--width', '60');
    expect(status).to.equal(0);
    const [head, ...lines] = stdout.split('\n');
    expect(head).to.match(/orientation-6\.jpg \(JPEG, 80 × 120\) → WebP$/);
    expect(lines.slice(0, 4)).to.deep.equal([
      '  turned upright (EXIF 6)',
      '  120 × 80 → 60 × 40 with Lanczos',
      '  EXIF metadata is removed',
      '  WebP, quality 80',
    ]);
    expect(lines[4]).to.match(/^ {2}limits: \d+ megapixels, \d+ frames, \d+ s$/);
    expect(lines[5]).to.match(/^ {2}key: [0-9a-f]{64}$/);
  });

  it('prints commands that make the bytes of the conversion when they are run by hand', async () => {
    const folder = await makeTempDir('by-hand');
    for (const name of ['p3.jpg', 'scene.svg', "it's $HOME.png"]) {
      const path = join(folder, name);
      await copyFile(fixturePath(name.startsWith('it') ? 'window.png' : name), path);
      const options = ['--format', 'png', '--width', '50'];
      const { stdout } = await explain(relative('', path), ...options, '--commands'); // they run in another folder
      const commands = stdout.split('\n').filter((line) => /^ {2}(cp|\/)/.test(line));
      expect(commands.length).to.be.at.least(2);
      await execute('sh', ['-e', '-c', commands.join('\n')], { cwd: folder });
      await runCliInProcess(['convert', path, '-o', join(folder, 'result.png'), '--force', ...options]);
      const [made, converted] = await Promise.all(
        ['image.png', 'result.png'].map((file) => readFile(join(folder, file))),
      );
      expect(made?.equals(converted as Buffer), name).to.equal(true);
    }
  });

  it('explains a picture as a page or a frame of one file', async () => {
    const explainPart = (name: string, ...args: string[]) => explain(fixturePath(name), '--combine', ...args);
    const page = await explainPart('moving.gif', '-f', 'pdf');
    expect(page.stdout).to.include('only the first of').and.include('its pages become pages of one PDF\n');
    const size = ['--width', '60', '--height', '60'];
    const frame = await explainPart('scene.jpg', '-f', 'webp', ...size);
    expect(frame.stdout).to.include('borders').and.include('becomes a frame of one WebP\n');
    const single = await explain(fixturePath('scene.jpg'), '-f', 'webp', ...size);
    expect(single.stdout).to.not.include('one WebP');
    expect((await explainPart('scene.jpg', '-f', 'webp')).stderr).to.include(
      'Invalid --combine "true": expected false, or width and height beside it',
    );
  });

  it('names the formats to choose the smallest result from', async () => {
    const { stdout } = await explain(fixturePath('scene.png'), '-f', 'smallest');
    expect(stdout).to.include('(PNG, 120 × 80) → smallest format\n');
    expect(stdout).to.match(/^ {2}the smallest of AVIF, WebP, JPEG, PNG, GIF, /m);
  });

  it('prints the canonical plan as JSON, without a path', async () => {
    const { stdout } = await explain(fixturePath('p3.jpg'), '--json', '--format', 'gif');
    const { type, width, sentences, plan, notes, limits } = JSON.parse(stdout);
    expect([type, width]).to.deep.equal(['jpg', 120]);
    expect(sentences).to.deep.equal(['embedded colour profile → sRGB', 'GIF, up to 256 colours']);
    expect(notes).to.deep.equal(['colour-converted-to-srgb']);
    expect(JSON.stringify(plan)).to.not.match(/"[^"]*\/[^"]*srgb/);
    expect(plan.versions).to.have.keys('imagemill', 'magick');
    expect(limits).to.include.keys('MAX_PIXELS', 'CONVERT_TIMEOUT_MS');
  });

  it('describes options in its help without those of convert', async () => {
    const { stdout } = await explain('--help');
    expect(stdout)
      .to.include('--format <name>')
      .and.not.match(/\B-o\b/);
  });

  it('calls a result lossless only if its encoder loses nothing', async () => {
    const settings = { EXTRA_OUTPUTS: 'jxl' };
    for (const [how, ...args] of [
      ['JPEG XL, quality 80', '--format', 'jxl', '--lossless'],
      ['JPEG XL, without loss', '--format', 'jxl', '--quality', '100'],
      ['WebP, without loss', '--lossless'],
    ]) {
      const { stdout } = await runCliInProcess(['explain', fixturePath('scene.png'), ...args], settings);
      expect(stdout, args.join(' ')).to.include(`\n  ${how}\n`);
    }
  });

  it('reports files that could not be converted, and exits with 1', async () => {
    const { status, stdout, stderr } = await explain(fixturePath('scene.png'), fixturePath('../README.md'));
    expect(status).to.equal(1);
    expect(stdout).to.include('scene.png');
    expect(stderr).to.include('README.md is not an image of a supported format');
    expect((await explain(fixturePath('scene.png'), '--quality', '0')).status).to.equal(2);
  });

  it('shows the watermark of the command, and refuses a file that is no image', async () => {
    const args = [fixturePath('scene.png'), '--format', 'png', '--watermark'];
    for (const opacity of ['50', '50%']) {
      const given = [fixturePath('window.png'), '--watermark-opacity', opacity];
      const { status, stdout } = await explain(...args, ...given);
      expect(status).to.equal(0);
      expect(stdout).to.contain('a watermark at right bottom, with 20% of the width and 50% opacity');
    }
    const refused = await explain(...args, fixturePath('../README.md'));
    expect(refused.status).to.equal(2);
    expect(refused.stderr).to.match(/--watermark .+: The watermark is not an image/);
  });
});
