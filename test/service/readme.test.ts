import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixture } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { useService } from '../helpers/service.ts';
import { makeZip, readZip } from '../helpers/zip.ts';

const run = promisify(execFile);
const README = new URL('../../README.md', import.meta.url);

/** An example: a command of the README, and what it is shown to print. */
interface Example {
  readonly command: string;
  readonly shown: string;
}

/** All commands that ask the API, in the order of the README. */
async function examples(): Promise<Example[]> {
  const text = await readFile(README, 'utf8');
  const blocks = [...text.matchAll(/^```(?:sh|console)\n(.*?)^```/gms)].map(([, block = '']) =>
    block.split('\n'),
  );
  return blocks.flatMap((lines) =>
    lines.flatMap((line, at) => {
      const [, prompt, command] = /^(\$ )?(curl .*localhost:3000\/api.*)$/.exec(line) ?? [];
      return command === undefined ? [] : [{ command, shown: prompt ? (lines[at + 1] ?? '') : '' }];
    }),
  );
}

describe('the curl examples of the README', () => {
  const service = useService();
  let folder: string;

  /** The files that the examples send, as an ordinary user has them. */
  async function writeSamples(): Promise<void> {
    const samples = {
      'photo.jpg': await fixture('private.jpg'),
      'photo.png': await sharp({ create: { width: 1500, height: 900, channels: 3, background: 'teal' } })
        .png()
        .toBuffer(),
      'logo.svg': await fixture('scene.svg'),
      'party.gif': await fixture('moving.gif'),
      'a.jpg': await fixture('scene.jpg'),
      'b.png': await fixture('scene.png'),
      'c.svg': await fixture('scene.svg'),
      'album.zip': makeZip([
        { name: 'album/one.png', content: await fixture('scene.png') },
        { name: 'album/note.txt', content: Buffer.from('no image') },
        { name: 'album/two.gif', content: await fixture('scene.gif') },
      ]),
    };
    for (const [name, content] of Object.entries(samples)) await writeFile(join(folder, name), content);
  }

  const image = (name: string) => sharp(join(folder, name), { animated: true }).metadata();
  const entriesOf = async (name: string) =>
    (await readZip(await readFile(join(folder, name)))).map((entry) => entry.name);

  /** What each file is that an example leaves. */
  const RESULTS: Readonly<Record<string, () => Promise<unknown>>> = {
    'photo.webp': async () => expect((await image('photo.webp')).format).to.equal('webp'),
    'small.jpg': async () => {
      const { format, width } = await image('small.jpg');
      expect([format, width]).to.deep.equal(['jpeg', 1200]);
    },
    'logo.pdf': async () =>
      expect((await pdfFacts(await readFile(join(folder, 'logo.pdf')))).images).to.deep.equal([]),
    'logo.png': async () => {
      const { format, width } = await image('logo.png');
      expect([format, width]).to.deep.equal(['png', 2000]);
    },
    'party.webp': async () => expect((await image('party.webp')).pages).to.be.above(1),
    'first-frame.webp': async () => expect((await image('first-frame.webp')).pages ?? 1).to.equal(1),
    'on-black.jpg': async () => expect((await image('on-black.jpg')).format).to.equal('jpeg'),
    'with-metadata.webp': async () =>
      expect((await image('with-metadata.webp')).exif).to.not.equal(undefined),
    'converted.zip': async () =>
      expect(await entriesOf('converted.zip')).to.deep.equal(['a.webp', 'b.webp', 'c.webp']),
    'album-as-jpg.zip': async () =>
      expect(await entriesOf('album-as-jpg.zip')).to.deep.equal(['one.jpg', 'two.jpg', 'errors.json']),
    'openapi.json': async () =>
      expect(JSON.parse(await readFile(join(folder, 'openapi.json'), 'utf8')).openapi).to.match(/^3\.1\./),
  };

  /** What changes from one run to the next. */
  const steady = (text: string): string =>
    text.replace(/"version":"[^"]*"/, '"version":…').replace(/"timestamp":"[^"]*"/, '"timestamp":…');

  it('work as pasted, one after the other, in one folder', async () => {
    folder = await makeTempDir('readme');
    await writeSamples();
    const origin = new URL(service.base).host;
    const all = await examples();
    expect(all.length).to.be.at.least(13);
    for (const { command, shown } of all) {
      const { stdout } = await run('sh', ['-c', command.replace('localhost:3000', origin)], {
        cwd: folder,
      }).catch(({ code, stderr }) => expect.fail(`${command}: exit status ${code}: ${stderr}`));
      if (shown !== '' && !/ -o /.test(command))
        expect(steady(stdout.trim()), command).to.equal(steady(shown));
      const [, result] = / -o (\S+)/.exec(command) ?? [];
      if (result === undefined) continue;
      expect(await readdir(folder), command).to.include(result);
      expect(RESULTS, `what ${command} leaves`).to.have.property(result);
      await RESULTS[result]?.();
    }
  });
});
