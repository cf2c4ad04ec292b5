import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { docker, IMAGE, inspect } from '../helpers/docker.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { madePhotos } from '../helpers/made-photos.ts';
import { execute } from '../helpers/process.ts';

const SCRIPT = new URL('../../docker/upgrade-check.sh', import.meta.url).pathname;
const NAME = 'imagemill-test-upgrade';
const PRESENT = `${NAME}:present`;
const PHOTOS = ['one.jpg', 'two.png'];

describe('docker/upgrade-check.sh with two images', function () {
  this.timeout(600_000);
  let photos: string;

  /** Makes an image from the image under test. */
  async function derive(tag: string, command: string): Promise<string> {
    const folder = await makeTempDir('derived');
    const lines = [`FROM ${IMAGE}`, 'USER root', `RUN ${command}`, 'USER 10001:10001', ''];
    await writeFile(join(folder, 'Dockerfile'), lines.join('\n'));
    await docker('build', '--network', 'none', '--tag', `${NAME}:${tag}`, folder);
    return `${NAME}:${tag}`;
  }
  const idOf = async (image: string): Promise<string> => (await inspect(image)).Id;
  const check = async (candidate: string, folder = photos) => {
    const env = { ...process.env, PRESENT, CANDIDATE: candidate };
    const ended = await execute('sh', [SCRIPT, folder], { env }).catch((error) => error);
    return { status: ended.code ?? 0, text: `${ended.stdout}${ended.stderr}` };
  };

  before(async () => {
    photos = await makeTempDir('photos');
    const made = await madePhotos(450, 300, PHOTOS.length);
    for (const [at, { data, ...sides }] of made.entries())
      await sharp(data, { raw: { ...sides, channels: 4 } })
        .removeAlpha()
        .toFile(join(photos, PHOTOS[at] as string));
  });
  beforeEach(() => docker('tag', IMAGE, PRESENT));
  after(async () => {
    const tags = await docker('images', '--format', '{{.Repository}}:{{.Tag}}', NAME);
    await docker('rmi', '--force', ...tags.split('\n'));
  });

  it('gives the name of the present image to one that converts alike', async () => {
    const candidate = await derive('alike', 'touch rebuilt');
    const { status, text } = await check(candidate);
    expect(status, text).to.equal(0);
    expect(text).to.match(/^2 images, \d+ results/m);
    expect(await idOf(PRESENT)).to.equal(await idOf(candidate));
    expect(await idOf(`${PRESENT}-before`)).to.equal(await idOf(IMAGE));
  });

  it('keeps the present image if the other one resizes with another filter, or no file can be compared', async () => {
    const candidate = await derive('changed', 'grep -rl Lanczos dist | xargs sed -i s/Lanczos/Point/g');
    const changed = await check(candidate);
    expect(changed.status, changed.text).to.equal(1);
    expect(changed.text)
      .to.match(/^changed .*one\.jpg/m)
      .and.match(/^changed .*two\.png/m);
    const none = await check(IMAGE, await makeTempDir('no-photos'));
    expect([none.status, /There are no images/.test(none.text)], none.text).to.deep.equal([2, true]);
    expect(await idOf(PRESENT)).to.equal(await idOf(IMAGE));
  });

  it('ends with 2 and changes no name if an image cannot be started', async () => {
    const { status, text } = await check(await derive('broken', 'rm dist/main.js'));
    expect(status, text).to.equal(2);
    expect(text).to.include('is not healthy');
    expect(await idOf(PRESENT)).to.equal(await idOf(IMAGE));
  });
});
