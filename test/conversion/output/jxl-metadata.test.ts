import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { box, boxesOf } from '../../../scripts/fixtures/boxes.ts';
import { checkResult } from '../../../src/conversion/output/result.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import { pngChunk } from '../../../src/images/png/png-writer.ts';
import { makeTempDir } from '../../helpers/hooks.ts';

/** The first box of a JPEG XL (ISO/IEC 18181-2). */
const SIGNATURE = box('JXL ', Buffer.from('\r\n\x87\n', 'latin1'));
const TIFF = Buffer.from('II*\0\x08\0\0\0\0\0\0\0\0\0', 'latin1');
const EXIF_BODY = Buffer.concat([Buffer.alloc(4), TIFF]);
const XMP = Buffer.from('<x:xmpmeta/>');
const rawXmp = (bytes: Buffer): Buffer => Buffer.from(`\nxmp\n      12\n${bytes.toString('hex')}\n`);
const text = (keyword: string, body: Buffer): Buffer => Buffer.concat([Buffer.from(`${keyword}\0`), body]);

describe('the metadata of a JPEG XL', () => {
  const job = createJob({ type: 'png' }, { format: 'jxl', quality: 80, metadata: 'all' }, { magick: 7 });

  /** Returns the file of these boxes after the metadata of a PNG with these chunks was added. */
  async function added(chunks: readonly Buffer[], boxes: readonly Buffer[], isLink = false): Promise<Buffer> {
    const folder = join(await makeTempDir('jxl-metadata'), 'job');
    await mkdir(folder);
    await writeFile(join(folder, 'image.jxl'), Buffer.concat([SIGNATURE, ...boxes]));
    const png = Buffer.concat([Buffer.alloc(8), ...chunks, pngChunk('IEND', Buffer.alloc(0))]);
    await writeFile(join(folder, isLink ? 'real.png' : 'encode.png'), png);
    if (isLink) await symlink('real.png', join(folder, 'encode.png'));
    const { path, bytes } = await checkResult({ folder, type: 'png', label: 'The file' }, job, '');
    const result = await readFile(path);
    expect(bytes).to.equal(result.length);
    return result.subarray(SIGNATURE.length);
  }
  const boxesWith = async (chunks: readonly Buffer[], ...boxes: readonly Buffer[]) =>
    boxesOf(await added(chunks, boxes));

  const codestream = box('jxlc', Buffer.from('pixels'));

  it('is appended as boxes, from each kind of chunk', async () => {
    const kinds = {
      zTXt: text('Raw profile type xmp', Buffer.concat([Buffer.of(0), deflateSync(rawXmp(XMP))])),
      tEXt: text('Raw profile type xmp', rawXmp(XMP)),
      iTXt: text('XML:com.adobe.xmp', Buffer.concat([Buffer.alloc(4), XMP])),
    };
    for (const [name, body] of Object.entries(kinds)) {
      const boxes = await boxesWith([pngChunk(name, body), pngChunk('eXIf', TIFF)], codestream);
      expect(boxes, name).to.have.deep.members([
        { name: 'jxlc', body: Buffer.from('pixels') },
        { name: 'Exif', body: EXIF_BODY },
        { name: 'xml ', body: XMP },
      ]);
    }
  });

  it('is not added twice, also if the encoder has compressed it', async () => {
    const exif = box('Exif', EXIF_BODY);
    const xmp = box('brob', Buffer.from('xml compressed'));
    const chunks = [
      pngChunk('eXIf', TIFF),
      pngChunk('iTXt', text('XML:com.adobe.xmp', Buffer.concat([Buffer.alloc(4), XMP]))),
    ];
    const boxes = await boxesWith(chunks, exif, xmp, codestream);
    expect(boxes.map(({ name }) => name)).to.deep.equal(['Exif', 'brob', 'jxlc']);
  });

  it('follows a codestream that extended to the end of the file', async () => {
    const open = Buffer.from(codestream);
    open.writeUInt32BE(0);
    const boxes = await boxesWith([pngChunk('eXIf', TIFF)], open);
    expect(boxes).to.deep.equal([
      { name: 'jxlc', body: Buffer.from('pixels') },
      { name: 'Exif', body: EXIF_BODY },
    ]);
  });

  it('follows a codestream whose length has 64 bits', async () => {
    const large = Buffer.concat([
      Buffer.from('\0\0\0\x01jxlc\0\0\0\0\0\0\0\x20', 'latin1'),
      Buffer.alloc(16),
    ]);
    const result = await added([pngChunk('eXIf', TIFF)], [large]);
    expect(result).to.deep.equal(Buffer.concat([large, box('Exif', EXIF_BODY)]));
  });

  it('is left out if it is damaged, too large, or not EXIF', async () => {
    const bomb = deflateSync(rawXmp(Buffer.alloc(5 * 1024 ** 2)));
    const chunks = [
      pngChunk('eXIf', Buffer.from('not a TIFF')),
      pngChunk('zTXt', text('Raw profile type xmp', Buffer.concat([Buffer.of(0), bomb]))),
      pngChunk('zTXt', text('Raw profile type xmp', Buffer.from('\0no deflate'))),
      pngChunk('iTXt', Buffer.from('no keyword')),
    ];
    expect((await boxesWith(chunks, codestream)).map(({ name }) => name)).to.deep.equal(['jxlc']);
  });

  it('is not read through a link', async () => {
    expect(await added([pngChunk('eXIf', TIFF)], [codestream], true)).to.deep.equal(codestream);
  });
});
