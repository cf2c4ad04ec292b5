import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { serviceError } from '../../src/errors.ts';
import { createDiskSpace } from '../../src/files/disk-space.ts';
import { deflateFile, type PackOptions } from '../../src/server/archive-entries.ts';
import { makeTempDir } from '../helpers/hooks.ts';

const CONTENT = Buffer.alloc(100_000, 'imagemill ');

describe('deflateFile', () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await makeTempDir('deflate');
    path = join(folder, 'image.bmp');
    await writeFile(path, CONTENT);
  });

  /** Returns options that record what is reserved, kept and released. */
  async function recordSpace(more: Partial<PackOptions['disk']> = {}) {
    const space: string[] = [];
    const disk: PackOptions['disk'] = {
      ...(await createDiskSpace(async () => undefined).open(undefined, 0)),
      async reserve(bytes) {
        space.push(`reserve ${bytes}`);
        return (kept) => void space.push(`keep ${kept}`);
      },
      release: (bytes) => void space.push(`release ${bytes}`),
      ...more,
    };
    return { space, disk };
  }

  it('replaces the file, and keeps only the disk space of the new one', async () => {
    const { space, disk } = await recordSpace();
    const packed = await deflateFile(path, CONTENT.length, { disk, signal: new AbortController().signal });
    const stored = await readFile(`${path}.deflated`);
    expect(packed).to.deep.include({
      isDeflated: true,
      bytes: CONTENT.length,
      crc32: crc32(CONTENT),
      stored: { path: `${path}.deflated` },
      storedBytes: stored.length,
    });
    expect(inflateRawSync(stored).equals(CONTENT)).to.equal(true);
    expect(await readdir(folder)).to.deep.equal(['image.bmp.deflated']);
    const { length } = CONTENT;
    expect(space).to.deep.equal([`reserve ${length}`, `release ${length}`, `keep ${stored.length}`]);
  });

  it('stores the file uncompressed if the disk has no space for a second one', async () => {
    const { disk } = await recordSpace({ reserve: async () => Promise.reject(serviceError('DISK_FULL')) });
    const packed = await deflateFile(path, CONTENT.length, { disk, signal: new AbortController().signal });
    expect(packed).to.deep.equal({
      isDeflated: false,
      bytes: CONTENT.length,
      crc32: crc32(CONTENT),
      stored: { path },
      storedBytes: CONTENT.length,
    });
    expect(await readdir(folder)).to.deep.equal(['image.bmp']);
  });

  it('deflates files above 16 MiB with the fastest level, and smaller ones with the default', async () => {
    const pattern = Buffer.alloc(1024 ** 2, 'an image with details 0123456789 and a few more letters ');
    for (let at = 0; at < pattern.length; at += 97) pattern[at] = (at * 7919) % 251;
    const large = Buffer.concat(Array.from({ length: 17 }, () => pattern));
    for (const [content, level] of [
      [large.subarray(0, 16 * 1024 ** 2), 6],
      [large, 1],
    ] as const) {
      await writeFile(path, content);
      const { disk } = await recordSpace();
      const { signal } = new AbortController();
      const packed = await deflateFile(path, content.length, { disk, signal });
      expect(packed.storedBytes).to.equal(deflateRawSync(content, { level }).length);
    }
  });

  it('throws any other error of the reservation', async () => {
    const { disk } = await recordSpace({ reserve: () => Promise.reject(new Error('broken')) });
    const { signal } = new AbortController();
    const error = await deflateFile(path, CONTENT.length, { disk, signal }).catch((failure) => failure);
    expect(error).to.have.property('message', 'broken');
  });

  it('rejects, keeps no disk space reserved and leaves only the original when the client disconnects', async () => {
    const { space, disk } = await recordSpace();
    const signal = AbortSignal.abort();
    const error = await deflateFile(path, CONTENT.length, { disk, signal }).catch((failure) => failure);
    expect(error).to.have.property('name', 'AbortError');
    expect(space).to.deep.equal([`reserve ${CONTENT.length}`, 'keep 0']);
    expect(await readdir(folder)).to.deep.equal(['image.bmp']);
  });
});
