import { type FileHandle, open, readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { writeAt } from '../../src/images/containers/file.ts';
import { writeTempFile } from '../helpers/hooks.ts';

describe('writing into a file', () => {
  /**
   * Writes ABCDEFGH to offset 2 of a file of 12 bytes, with at most `most` bytes per call of the
   * system.
   */
  const written = async (most: number): Promise<string> => {
    const path = await writeTempFile('edited', '............');
    await using file = await open(path, 'r+');
    const write = file.write.bind(file);
    const short = (bytes: Uint8Array, from: number, length: number, at: number) =>
      write(bytes, from, Math.min(length, most), at);
    await writeAt(Object.assign(file, { write: short }) as FileHandle, 2, Buffer.from('ABCDEFGH'));
    return readFile(path, 'latin1');
  };

  it('continues after the system has written only a part of the bytes', async () => {
    expect(await written(3)).to.equal('..ABCDEFGH..');
  });

  it('is an error if the system writes nothing', async () => {
    const error = await written(0).catch((reason: Error) => reason.message);
    expect(error).to.equal('Wrote 0 of 8 bytes.');
  });
});
