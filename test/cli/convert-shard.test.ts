// @full: 400 files
// @slow
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { parseBulkOptions } from '../../src/cli/convert/bulk-options.ts';
import { fixture, fixturePath } from '../helpers/client.ts';
import type { CommandRun } from '../helpers/command.ts';
import { type ConvertFolder, createConvertFolder } from '../helpers/convert-folder.ts';
import { fakeMagick } from '../helpers/fake-magick.ts';
import { writeTempFile } from '../helpers/hooks.ts';
import { eventually } from '../helpers/util.ts';

const FILES = 400;
const SHARDS = 4;

describe('imagemill convert --shard', () => {
  it('assigns each path to one part, in parts of about the same size, by a hash that never changes', () => {
    const isIn = (shard: string) => (path: string) => parseBulkOptions({ shard }).shard?.includes(path);
    const paths = Array.from({ length: 4000 }, (_, at) => `2024/${at}`);
    const parts = [1, 2, 3, 4].map((number) => paths.filter(isIn(`${number}/4`)));
    expect(parts.flat().sort()).to.deep.equal(paths.sort());
    for (const part of parts) expect(part.length).to.be.within(900, 1100);
    // A change of the hash would let machines with different versions skip files.
    expect(
      ['a', 'photos/b', '2024/ü'].map((key) => [1, 2, 3].find((n) => isIn(`${n}/3`)(key))),
    ).to.deep.equal([1, 1, 3]);
  });

  /** Creates different small images, and returns their bytes by name. */
  async function createImages(folder: ConvertFolder): Promise<Map<string, Buffer>> {
    const images = new Map<string, Buffer>();
    for (let at = 0; at < FILES; at += 1) {
      const name = `${at % 20}/${at}`;
      if (at < 20) await mkdir(folder.file('photos', String(at)), { recursive: true });
      const background = { r: at >> 8, g: at & 255, b: 7 };
      const image = sharp({ create: { width: 2, height: 2, channels: 3, background } });
      const png = await image.png().toBuffer();
      await folder.write(`photos/${name}.png`, png);
      images.set(`${name}.png.webp`, png);
    }
    return images;
  }

  it(`converts ${FILES} files with ${SHARDS} processes, each file once, although one is killed`, async () => {
    const folder = await createConvertFolder();
    const images = await createImages(folder);
    const log = await writeTempFile('log', '');
    // The result contains the source, so that the test sees whether it is the right one.
    const magick = await fakeMagick(`echo >> ${log}; cat ${fixturePath('scene.webp')} in > image.webp`);
    const env = { MAGICK_BIN: magick, SANDBOX: 'off' };
    const run = (number: number, kill?: (pid: number) => Promise<void>): Promise<CommandRun> =>
      folder.runProcess(
        ['photos', '-o', 'out', '--update', '--json', '--jobs', '2', '--shard', `${number}/${SHARDS}`],
        { env, ...(kill && { meanwhile: kill }) },
      );
    const killAfterSome = async (pid: number): Promise<void> => {
      const index = folder.file(`out/.imagemill/index-2-of-${SHARDS}.jsonl`);
      const lines = async () => (await readFile(index, 'utf8').catch(() => '')).split('"bytes"').length;
      await eventually(async () => (await lines()) > 20);
      process.kill(pid, 'SIGKILL');
    };
    const [first, killed, ...others] = await Promise.all([
      run(1),
      run(2, killAfterSome).then(async ({ status }) => [status, await run(2)] as const),
      run(3),
      run(4),
    ]);
    expect(killed[0]).to.equal('SIGKILL');
    const ended = [first, killed[1], ...others];
    expect(ended.map(({ status }) => status)).to.deep.equal([0, 0, 0, 0]);

    expect(await folder.files('out')).to.deep.equal([...images.keys()].sort());
    const prefix = await fixture('scene.webp');
    for (const [name, png] of images) {
      const result = await folder.read(join('out', name));
      expect(result.equals(Buffer.concat([prefix, png])), name).to.equal(true);
    }
    const conversions = (await readFile(log, 'utf8')).length;
    expect(conversions, 'only what was in progress is repeated').to.be.within(FILES, FILES + 3);

    const { summary } = await folder.run(['photos', '-o', 'out', '--update', '--json'], { env });
    const all = { converted: 0, upToDate: FILES };
    expect(summary(), 'a run without shards knows all results').to.include(all);
  });
});
