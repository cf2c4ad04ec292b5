// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { storeExternalProfile } from '../../src/conversion/inspect.ts';
import { inspectPdf } from '../../src/conversion/inspect-pdf.ts';
import type { ImageInfo } from '../../src/images/image-info.ts';
import { inspect } from '../../src/images/index.ts';
import { type Command, CommandError } from '../../src/process/command.ts';
import type { Toolchain } from '../../src/process/toolchain.ts';
import { edgeCasePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { testConfig } from '../helpers/service.ts';
import { failure } from '../helpers/util.ts';

describe('an external profile', () => {
  const stored = async (name: string): Promise<{ image: ImageInfo; folder: string }> => {
    const folder = await makeTempDir('external-profile');
    await writeFile(join(folder, 'in'), await readFile(edgeCasePath(name)));
    const image = await inspect(join(folder, 'in'), name.endsWith('png') ? 'png' : 'avif');
    return { image: await storeExternalProfile(folder, image), folder };
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
    expect((await stored('declared-srgb.png')).image).to.not.have.property('profileFile');
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
      ...{ signal: new AbortController().signal },
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
