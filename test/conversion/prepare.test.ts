import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { storeExternalProfile } from '../../src/conversion/prepare.ts';
import type { ImageInfo } from '../../src/images/image-info.ts';
import { inspect } from '../../src/images/index.ts';
import { edgeCasePath } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';

describe('an external profile', () => {
  const stored = async (name: string): Promise<{ image: ImageInfo; folder: string }> => {
    const folder = await makeTempDir('external-profile');
    await writeFile(join(folder, 'in'), await readFile(edgeCasePath(name)));
    const image = await inspect(join(folder, 'in'), name.endsWith('png') ? 'png' : 'avif');
    return { image: await storeExternalProfile(folder, image), folder };
  };

  it('is in a file whose name depends on the colours, because ImageMagick 7 remembers profiles by their names', async () => {
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
