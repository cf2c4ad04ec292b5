import { readFile } from 'node:fs/promises';
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';

import { correctChecksums } from '../../../src/images/png/png-repair.ts';
import { PNG_SIGNATURE, pngChunk } from '../../../src/images/png/png-writer.ts';
import { writeTempFile } from '../../helpers/hooks.ts';

const SIDE = 8;

/** Creates a greyscale PNG of 8 by 8 pixels whose image data has a wrong checksum. */
function withWrongChecksum(data: Buffer): Buffer {
  const header = Buffer.from([0, 0, 0, SIDE, 0, 0, 0, SIDE, 8, 0, 0, 0, 0]);
  const chunk = pngChunk('IDAT', data);
  chunk.writeUInt32BE(0, chunk.length - 4);
  return Buffer.concat([PNG_SIGNATURE, pngChunk('IHDR', header), chunk, pngChunk('IEND', Buffer.alloc(0))]);
}

const rows = (count: number): Buffer => deflateSync(Buffer.alloc(count * (1 + SIDE), 1));

describe('the checksums of a PNG', () => {
  it('are corrected if the image data is whole', async () => {
    const file = withWrongChecksum(rows(SIDE));
    const path = await writeTempFile('in', file);
    expect(await correctChecksums(path)).to.equal(true);
    expect(await correctChecksums(path), 'again').to.equal(false);
  });

  it('stay wrong if the image data is damaged, or has too few or too many rows', async () => {
    const damaged = rows(SIDE);
    damaged.writeUInt32BE(0, damaged.length - 4); // Adler-32
    for (const [what, data] of Object.entries({ damaged, few: rows(SIDE - 1), many: rows(SIDE + 1) })) {
      const file = withWrongChecksum(data);
      const path = await writeTempFile('in', file);
      expect(await correctChecksums(path), what).to.equal(false);
      expect((await readFile(path)).equals(file), what).to.equal(true);
    }
  });
});
