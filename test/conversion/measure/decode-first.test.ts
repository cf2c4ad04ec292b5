// @unit
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { PNG_SIGNATURE, pngChunk } from '../../../src/images/png/png-writer.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { execute } from '../../helpers/process.ts';

const DECODED = new URL('../../../src/conversion/measure/decode-first.ts', import.meta.url);
const CONFIG = new URL('../../../src/tables/config.ts', import.meta.url);
const SIZE = 200 * 1024 ** 2;

/** Writes a PNG with EXIF and a chunk of image data, which no decoder reads here. */
async function writeLargePng(path: string): Promise<void> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(7000, 0);
  header.writeUInt32BE(7000, 4);
  header.set([8, 2], 8);
  const exif = Buffer.from('II*\0\x08\0\0\0\0\0\0\0\0\0', 'latin1');
  const start = Buffer.concat([PNG_SIGNATURE, pngChunk('IHDR', header), pngChunk('eXIf', exif)]);
  const data = Buffer.alloc(8);
  data.writeUInt32BE(SIZE - start.length - 12);
  data.write('IDAT', 4, 'latin1');
  await writeFile(path, Buffer.concat([start, data]));
  await truncate(path, SIZE);
}

describe('a decoded image with EXIF', () => {
  it('is not in memory as a whole while its EXIF is copied', async () => {
    const folder = await makeTempDir('decoded');
    await writeLargePng(join(folder, 'decoded.png'));
    const script = `
      import { readDecoded } from '${DECODED}';
      import { loadConfig } from '${CONFIG}';
      const peak = () => process.resourceUsage().maxRSS * 1024;
      const before = peak();
      await readDecoded({ type: 'jxl', metadata: ['exif'] }, '${folder}', loadConfig({}), true);
      console.log(peak() - before);`;
    const { stdout } = await execute(process.execPath, ['--input-type=module', '-e', script]);
    expect(Number(stdout)).to.be.below(SIZE);
  });
});
