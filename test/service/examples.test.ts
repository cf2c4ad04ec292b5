import { copyFile, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { fixturePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { difference, type Pixels, toPixels } from '../helpers/pixels.ts';
import { execute } from '../helpers/process.ts';
import { useService } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

const PROJECT = new URL('../../', import.meta.url);
const DOCUMENTS = ['README.md', 'docs/api.md'];

/** A command of a document, and the output that the document shows for it. */
interface Example {
  readonly command: string;
  readonly shown: string;
}

/** Reads all commands that call the API, in the order of the documents. */
async function readExamples(): Promise<Example[]> {
  const texts = await Promise.all(DOCUMENTS.map((path) => readFile(new URL(path, PROJECT), 'utf8')));
  const blocks = texts.flatMap((text) => [...text.matchAll(/^```(?:sh|console)\n(.*?)^```/gms)]);
  return blocks.flatMap(([, block = '']) => {
    const lines = block.replaceAll(/\\\n\s*/g, '').split('\n');
    return lines.flatMap((line, at) => {
      const [, prompt, command] = /^(\$ )?(curl .*localhost:3000\/api.*)$/.exec(line) ?? [];
      return command === undefined ? [] : [{ command, shown: prompt ? (lines[at + 1] ?? '') : '' }];
    });
  });
}

describe('the curl examples of the documents', () => {
  const service = useService();
  let folder: string;

  const image = (name: string) => sharp(join(folder, name), { animated: true }).metadata();
  const pdf = async (name: string) => pdfFacts(await readFile(join(folder, name)));
  const entries = async (name: string) =>
    (await readZip(await readFile(join(folder, name)))).map((entry) => entry.name);
  /** Reads the colour of a pixel that is transparent in the `window` fixtures. */
  const windowColour = async (name: string): Promise<number[]> => {
    const pixel = { left: 60, top: 20, width: 1, height: 1 };
    return [...(await sharp(join(folder, name)).extract(pixel).raw().toBuffer())];
  };

  /** Checks each file that an example writes. */
  const CHECKS: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
    'scene.webp': async (name) => expect(await image(name)).to.include({ format: 'webp', width: 120 }),
    'body.webp': async (name) => expect(await image(name)).to.include({ format: 'webp', width: 60 }),
    'keyed.webp': async (name) => expect(await image(name)).to.include({ format: 'webp' }),
    'description.json': async (name) =>
      expect(JSON.parse(await readFile(join(folder, name), 'utf8')).conversion).to.include({ width: 60 }),
    'revealed.json': async (name) => {
      const { values } = JSON.parse(await readFile(join(folder, name), 'utf8')).revealed;
      expect(values).to.deep.include({
        kind: 'owner',
        source: 'exif',
        name: 'Artist',
        value: 'Somebody Private',
      });
    },
    'explained.json': async (name) =>
      expect(JSON.parse(await readFile(join(folder, name), 'utf8')).explanation.sentences).to.deep.equal([
        'turned upright (EXIF 6)',
        '120 × 80 → 60 × 40 with Lanczos',
        'EXIF metadata is removed',
        'WebP, quality 80',
      ]),
    'best.webp': async (name) => expect(await image(name)).to.include({ format: 'webp' }),
    'fitted.jpg': async (name) => expect(await image(name)).to.include({ width: 60, height: 40 }),
    'square.webp': async (name) => expect(await image(name)).to.include({ width: 60, height: 60 }),
    'middle.webp': async (name) => expect(await image(name)).to.include({ width: 60, height: 40 }),
    'variants.zip': async (name) =>
      expect(await entries(name)).to.deep.equal(['scene-card.webp', 'scene-zoom.jpg', 'manifest.json']),
    'edited.webp': async (name) => {
      expect(await image(name)).to.include({ width: 80, height: 120 });
      const [red, green, blue] = (await sharp(join(folder, name)).stats()).channels;
      expect(red?.mean)
        .to.be.closeTo(green?.mean ?? 0, 1)
        .and.closeTo(blue?.mean ?? 0, 1);
    },
    'marked.webp': async (name) => {
      const mark = { left: 94, top: 62, width: 24, height: 16 };
      const [marked, plain] = await Promise.all(
        [name, 'fixtures/images/scene.jpg'].map((path) => toPixels(sharp(join(folder, path)).extract(mark))),
      );
      expect(difference(marked as Pixels, plain as Pixels).psnr).to.be.below(25);
    },
    'credited.webp': async (name) =>
      expect((await image(name)).exif?.toString('latin1')).to.include('Somebody Private'),
    'scene.pdf': async (name) => expect((await pdf(name)).images).to.deep.equal([]),
    'a4.pdf': async (name) => expect((await pdf(name)).points).to.deep.equal([[841.89, 595.276]]),
    'black.jpg': async (name) => expect(Math.max(...(await windowColour(name)))).to.be.below(30),
    'converted.zip': async (name) => expect(await entries(name)).to.deep.equal(['scene.pdf', 'pages.pdf']),
    'three.zip': async (name) =>
      expect(await entries(name)).to.deep.equal(['scene.webp', 'scene (2).webp', 'scene (3).webp']),
    'receipts.pdf': async (name) => expect((await pdf(name)).pages).to.equal(2),
    'frames.gif': async (name) =>
      expect(await image(name)).to.include({ format: 'gif', pages: 2, width: 320, pageHeight: 240 }),
    'skipped.zip': async (name) => expect(await entries(name)).to.deep.equal(['scene.png', 'errors.json']),
  };

  /** Masks the values that change between runs. */
  const withoutVariables = (text: string): string =>
    text.replace(/"version":"[^"]*"/, '"version":…').replace(/"timestamp":"[^"]*"/, '"timestamp":…');

  it('succeed in one folder, one after the other, and write the documented files', async () => {
    folder = await makeTempDir('examples');
    await symlink(new URL('fixtures', PROJECT).pathname, join(folder, 'fixtures'));
    const origin = new URL(service.base).host;
    const examples = await readExamples();
    expect(examples.length).to.be.at.least(15);
    const written: string[] = [];
    for (const { command, shown } of examples) {
      const { stdout } = await execute('sh', ['-c', command.replace('localhost:3000', origin)], {
        cwd: folder,
      }).catch(({ code, stderr }) => expect.fail(`${command}: exit status ${code}: ${stderr}`));
      if (shown !== '') expect(withoutVariables(stdout.trim()), command).to.equal(withoutVariables(shown));
      const [, result] = / -o (\S+)/.exec(command) ?? [];
      if (result === undefined) continue;
      expect(await readdir(folder), command).to.include(result);
      expect(CHECKS, command).to.have.property(result);
      await CHECKS[result]?.(result);
      written.push(result);
    }
    expect(written).to.have.members(Object.keys(CHECKS));
  });
});

describe('the example of an application in the README', () => {
  const service = useService();

  it('converts a photo to WebP, and throws the message of an error', async () => {
    const text = await readFile(new URL('README.md', PROJECT), 'utf8');
    const [, code = ''] = /^```js\n(.*?)^```/ms.exec(text) ?? [];
    const folder = await makeTempDir('application');
    await writeFile(join(folder, 'example.mjs'), code.replace('http://localhost:3000/api/v1', service.base));
    const start = () => execute(process.execPath, ['example.mjs'], { cwd: folder });
    await copyFile(fixturePath('orientation-6.jpg'), join(folder, 'photo.jpg'));
    await start();
    const { format, width, height } = await sharp(join(folder, 'photo.webp')).metadata();
    expect([format, width, height]).to.deep.equal(['webp', 120, 80]);
    await writeFile(join(folder, 'photo.jpg'), 'text');
    const error = await start().catch(({ stderr }) => stderr);
    expect(error).to.include('Error: ');
  });
});
