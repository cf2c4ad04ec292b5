// @unit
/**
 * @module Files that are combined without decoding them, also if they are not as the tools write
 * them.
 */
import { open, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { circularTiff } from '../../src/cli/doctor/attack-files.ts';
import { CombineError } from '../../src/images/combined/combiner.ts';
import { COMBINERS } from '../../src/images/combined/index.ts';
import { fixture } from '../helpers/client.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { plain } from '../helpers/pixels.ts';
import { failure } from '../helpers/util.ts';

const TIMING = { delayMs: 500, loopCount: 0 };

/**
 * A TIFF of the size of a pixel, whose directory has these entries: tag, type, number of values,
 * and value or offset.
 */
function tiffOf(entries: readonly (readonly [number, number, number, number])[], more = Buffer.alloc(0)) {
  const head = Buffer.from('II*\0\x08\0\0\0', 'latin1');
  const directory = Buffer.alloc(2 + 12 * entries.length + 4);
  directory.writeUInt16LE(entries.length);
  for (const [at, [tag, type, count, value]] of entries.entries()) {
    directory.writeUInt16LE(tag, 2 + 12 * at);
    directory.writeUInt16LE(type, 4 + 12 * at);
    directory.writeUInt32LE(count, 6 + 12 * at);
    directory.writeUInt32LE(value, 10 + 12 * at);
  }
  return Buffer.concat([head, directory, more]);
}

describe('combining files', () => {
  const errorFor = async (format: keyof typeof COMBINERS, ...files: readonly Uint8Array[]) => {
    const folder = await makeTempDir('combined');
    const paths = files.map((_, at) => join(folder, `${at}`));
    for (const [at, path] of paths.entries()) await writeFile(path, files[at] as Uint8Array);
    return failure(COMBINERS[format](paths, TIMING));
  };

  const strip = [273, 4, 1, 8] as const;
  const WRONG: Readonly<
    Record<string, readonly [format: keyof typeof COMBINERS, file: () => Promise<Buffer> | Buffer]>
  > = {
    'a TIFF whose directory follows itself': ['tiff', circularTiff],
    'a TIFF whose EXIF is its own directory': ['tiff', () => tiffOf([[34_665, 4, 1, 8]])],
    'a TIFF with two directories in one place': [
      'tiff',
      () => tiffOf([[330, 4, 2, 26]], Buffer.from([34, 0, 0, 0, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
    ],
    'a TIFF whose strips are listed beyond its end': ['tiff', () => tiffOf([[273, 4, 900, 5000]])],
    'a TIFF with a million strips': ['tiff', () => tiffOf([[273, 4, 1_000_001, 26]])],
    'a TIFF with offsets of 16 bits': ['tiff', () => tiffOf([[273, 3, 1, 8]])],
    'a TIFF with more tags than one has': ['tiff', () => tiffOf(Array.from({ length: 201 }, () => strip))],
    'a TIFF with the most significant byte first': ['tiff', () => Buffer.from('MM\0*\0\0\0\x08')],
    'a file of no bytes as TIFF': ['tiff', () => Buffer.alloc(0)],
    'a GIF that ends in its frame': [
      'gif',
      async () => (await plain(90, 60).gif().toBuffer()).subarray(0, 60),
    ],
    'a GIF without a frame': ['gif', () => Buffer.from('GIF89a\x01\0\x01\0\0\0\0;', 'latin1')],
    'a file of no bytes as GIF': ['gif', () => Buffer.alloc(0)],
    'a WebP that ends in its image': ['webp', async () => (await fixture('scene.webp')).subarray(0, 90)],
    'a file of no bytes as WebP': ['webp', () => Buffer.alloc(0)],
  };
  for (const [what, [format, file]] of Object.entries(WRONG))
    it(`rejects ${what}`, async () => {
      expect(await errorFor(format, await file())).to.be.instanceOf(CombineError);
    });

  it('rejects GIFs and WebPs of different sizes', async () => {
    for (const format of ['gif', 'webp'] as const) {
      const files = [90, 91].map((width) => plain(width, 60).toFormat(format).toBuffer());
      expect(await errorFor(format, ...(await Promise.all(files))), format).to.be.instanceOf(CombineError);
    }
  });

  it('rejects TIFFs of more than 4 GiB in total, before any byte is written', async () => {
    const path = join(await makeTempDir('combined'), 'large.tiff');
    await writeFile(path, tiffOf([strip]));
    await truncate(path, 2_200_000_000); // takes no space on the disk
    const error = await failure(COMBINERS.tiff([path, path]));
    expect(error).to.be.instanceOf(CombineError).and.to.include({ isTooLarge: true });
    await (await open(path)).close();
  });
});
