// @unit
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { storeProfile } from '../../../src/conversion/input/inspect.ts';
import { inspectPdf } from '../../../src/conversion/input/inspect-pdf.ts';
import { BT709_PRIMARIES, declaredProfile, powerCurve } from '../../../src/images/colour/declared-colour.ts';
import { type ImageInfo, RGB_PIXELS } from '../../../src/images/image-info.ts';
import { inspect } from '../../../src/images/index.ts';
import { type Command, CommandError } from '../../../src/process/command.ts';
import type { Toolchain } from '../../../src/process/toolchain.ts';
import { edgeCasePath } from '../../helpers/client.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { testConfig } from '../../helpers/service.ts';
import { failure } from '../../helpers/util.ts';

describe('an external profile', () => {
  const stored = async (name: string): Promise<{ image: ImageInfo; folder: string }> => {
    const folder = await makeTempDir('external-profile');
    await writeFile(join(folder, 'in'), await readFile(edgeCasePath(name)));
    const image = await inspect(join(folder, 'in'), name.endsWith('png') ? 'png' : 'avif');
    return { image: await storeProfile(folder, image), folder };
  };

  it('is in a file whose name depends on the colours: ImageMagick 7 remembers profiles by name', async () => {
    const names = await Promise.all(
      ['declared-adobe.png', 'declared-p3.png', 'declared-p3.avif', 'declared-pq.avif'].map(
        async (name) => (await stored(name)).image.profileFile,
      ),
    );
    expect(names[1]).to.equal(names[2]);
    expect(new Set(names).size).to.equal(3);
  });

  it('is a profile of the size that it states', async () => {
    const { image, folder } = await stored('declared-pq.avif');
    const profile = await readFile(join(folder, image.profileFile as string));
    expect([profile.readUInt32BE(0), profile.toString('latin1', 36, 40)]).to.deep.equal([
      profile.length,
      'acsp',
    ]);
  });

  it('is not made for an image that is sRGB', async () => {
    expect((await stored('declared-srgb.png')).image.profileFile).to.equal(undefined);
  });
});

describe('the tables of a profile of curves and a matrix', () => {
  async function tablesOf(change: (profile: Buffer) => void, magick: 6 | 7 = 6) {
    const folder = await makeTempDir('colour-tables');
    const colour = {
      primaries: { ...BT709_PRIMARIES, red: [0.68, 0.32] as const },
      transfer: powerCurve(2.2),
    };
    const profile = Buffer.from(await declaredProfile(colour));
    change(profile);
    await writeFile(join(folder, 'in'), profile);
    const pixels = { ...RGB_PIXELS, profile: { at: 0, length: profile.length } };
    const image = { type: 'webp', profile: 'other', externalProfile: true, pixels } as const;
    return { tables: (await storeProfile(folder, image, magick)).colourTables, folder };
  }

  it('are images of 16 bits, for ImageMagick 6', async () => {
    const { tables, folder } = await tablesOf(() => {});
    const images = await readFile(join(folder, tables?.file as string));
    expect(images.toString('latin1').split('P6 4096 1 65535')).to.have.length(3);
    const rows = tables?.matrix.split(',').map(Number) as number[];
    expect(rows).to.have.length(9);
    for (const row of [0, 3, 6])
      expect(
        rows.slice(row, row + 3).reduce((sum, value) => sum + value, 0),
        'white',
      ).to.be.closeTo(1, 0.001);
    expect((await tablesOf(() => {}, 7)).tables).to.equal(undefined);
  });

  it('are not made for what Little CMS may read in another way', async () => {
    const changes: Readonly<Record<string, (profile: Buffer) => void>> = {
      'lookup tables': (profile) => profile.write('A2B0', profile.indexOf('cprt'), 'latin1'),
      'floating-point tables': (profile) => profile.write('D2B1', profile.indexOf('cprt'), 'latin1'),
      'a printer': (profile) => profile.write('prtr', 12, 'latin1'),
      'another connection space': (profile) => profile.write('Lab ', 20, 'latin1'),
      'no signature': (profile) => profile.write('none', 36, 'latin1'),
      'more bytes than it has': (profile) => profile.writeUInt32BE(profile.length + 4, 0),
      'an unknown curve': (profile) => profile.write('none', profile.indexOf('curv'), 'latin1'),
      'a curve that ends beyond it': (profile) => profile.writeUInt32BE(99_999, profile.indexOf('curv') + 8),
      'a curve that falls': (profile) => profile.writeUInt16BE(65_535, profile.indexOf('curv') + 100),
      'a black that is not 0': (profile) => profile.fill(255, profile.indexOf('curv') + 12),
    };
    for (const [what, change] of Object.entries(changes))
      expect((await tablesOf(change)).tables, what).to.equal(undefined);
  });
});

describe('the inspection of a PDF', () => {
  it('ends after a second of processor time, with 413 that names this limit', async () => {
    const commands: Command[] = [];
    const machine = {
      config: testConfig(),
      toolchain: { pdfinfo: { path: '/usr/bin/pdfinfo' } } as Toolchain,
      run(command: Command) {
        commands.push(command);
        return Promise.reject(new CommandError('signal', 'killed', { signal: 'SIGXCPU' }));
      },
      signal: new AbortController().signal,
    };
    const source = { folder: '/nonexistent', type: 'pdf', label: 'The file' } as const;
    expect(await failure(inspectPdf(source, [], machine))).to.include({
      status: 413,
      message:
        'The file took longer to convert than the limit of 1 second for reading the pages of a PDF. This limit is fixed.',
    });
    expect(commands.map(({ cpuSeconds }) => cpuSeconds)).to.deep.equal([1]);
  });
});
