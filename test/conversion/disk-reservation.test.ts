// @full
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import type { DiskAccount } from '../../src/files/disk-space.ts';
import {
  ALL_OUTPUT_TYPES,
  EXTRA_INPUT_TYPES,
  INPUT_TYPES,
  type InputType,
  type OutputType,
} from '../../src/tables/formats.ts';
import { fixturePath } from '../helpers/client.ts';
import { ALL_EXTRAS, extraPath } from '../helpers/extra.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { startEngine } from '../helpers/service.ts';

describe('a conversion', () => {
  let engine: ConversionEngine;
  let noise: string;
  before(async () => {
    engine = await startEngine(ALL_EXTRAS);
    noise = join(await makeTempDir('noise'), 'noise.png');
    const pixels = Buffer.from(Array.from({ length: 300 * 200 * 4 }, (_, at) => (at * 2_654_435_761) >>> 24));
    await sharp(pixels, { raw: { width: 300, height: 200, channels: 4 } })
      .png()
      .toFile(noise);
  });
  after(() => engine.close());

  /** Converts a file. Returns the reserved bytes and the size of the result. */
  async function convert(path: string, type: InputType, format: OutputType) {
    return engine.workspaces.use({}, async (workspace) => {
      let reserved = 0;
      let stored = 0;
      const disk: DiskAccount = {
        ...workspace.disk,
        async reserve(bytes) {
          reserved += bytes;
          return (kept) => {
            stored += kept;
          };
        },
      };
      const folder = await workspace.folder('job');
      await copyFile(path, join(folder, 'in'));
      const source = { folder, disk, type, label: 'The file' };
      const options = { format, quality: 100, metadata: 'all' } as const;
      const { bytes } = await engine.convert(source, options, new AbortController().signal);
      expect(existsSync(folder), 'the folder of the tool').to.equal(false);
      return { reserved, stored, bytes };
    });
  }

  for (const [place, format] of ALL_OUTPUT_TYPES.entries()) {
    it(`to ${format} reserves space for the largest result, keeps what it needs, and removes its input`, async () => {
      const scenes = [
        ...INPUT_TYPES.map((type) => [type, fixturePath(`scene.${type}`)] as const),
        ...EXTRA_INPUT_TYPES.map((type) => [type, extraPath(`scene.${type}`)] as const),
      ];
      const files = [
        ...scenes.filter((_, at) => (at + place) % 3 === 0),
        ['png', noise] as const,
        ['gif', fixturePath('moving.gif')] as const,
      ];
      for (const [type, path] of files) {
        if (type === 'pdf' && format === 'pdf') continue; // is rejected
        const { reserved, stored, bytes } = await convert(path, type, format);
        expect(stored, path).to.equal(bytes);
        expect(reserved, path).to.be.above(bytes).and.below(4_000_000);
      }
    });
  }
});
