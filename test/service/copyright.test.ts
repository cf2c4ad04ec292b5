// @full
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import sharp from 'sharp';
import { box, boxesOf } from '../../scripts/fixtures/boxes.ts';
import { OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import { convert, converted, expectSuccess, type Fields, fixture, identify } from '../helpers/client.ts';
import { tagsOf, withTags } from '../helpers/exif.ts';
import { ALL_EXTRAS, decodeAny, extraPath } from '../helpers/extra.ts';
import { difference, type Pixels } from '../helpers/pixels.ts';
import { useServiceWith } from '../helpers/service.ts';
import { readZip } from '../helpers/zip.ts';

/** Decodes a result. djxl 0.7 would copy EXIF to its PNG with four bytes too many. */
function pixelsOf(body: Buffer, format: OutputType): Promise<Pixels> {
  if (format !== 'jxl') return decodeAny(body, format);
  const others = boxesOf(body).filter(({ name }) => !['Exif', 'xml '].includes(name));
  return decodeAny(Buffer.concat(others.map((one) => box(one.name, one.body))), format);
}

const COPYRIGHT = ['-IFD0:Artist=Zoë', '-XMP-dc:Rights=All rights'];

describe('metadata=copyright', () => {
  const own = useServiceWith(ALL_EXTRAS);
  const copyright = (file: Buffer, fields: Fields) =>
    converted(own.base, file, { metadata: 'copyright', ...fields });

  for (const format of ['gif', 'bmp', 'pdf', 'ico'] as const) {
    it(`says in a note that ${format} cannot hold a copyright, and identify predicts the note`, async () => {
      const file = await withTags('scene.jpg', await fixture('scene.jpg'), ...COPYRIGHT);
      const { notes, body } = await copyright(file, { format });
      expect(notes).to.equal('metadata-partly-kept');
      expect(body.includes('Zoë')).to.equal(false);
      expect((await copyright(await fixture('scene.jpg'), { format })).notes).to.equal(null);
      const { conversion } = await identify(own.base, file, { format, metadata: 'copyright' });
      expect(conversion.notes).to.deep.equal(['metadata-partly-kept']);
    });
  }

  it('says in a note that the metadata of a PSD is not read', async () => {
    const psd = await withTags('scene.psd', await readFile(extraPath('scene.psd')), ...COPYRIGHT);
    expect((await copyright(psd, { format: 'webp' })).notes).to.equal('metadata-partly-kept');
  });

  it('is kept from the XMP of a GIF, as ExifTool reads it', async () => {
    for (const name of ['scene.gif', 'moving.gif']) {
      const gif = await withTags(name, await fixture(name), '-XMP-dc:Rights=Zoë', '-XMP-aux:SerialNumber=77');
      const { notes, body } = await copyright(gif, { format: 'webp' });
      expect(notes, name).to.equal(null);
      expect(await tagsOf(body, 'webp')).to.include({ 'XMP-dc:Rights': 'Zoë' });
      expect(body.includes('SerialNumber')).to.equal(false);
    }
  });

  it('is kept for each result that asks for it, beside results without', async () => {
    const file = await withTags('scene.jpg', await fixture('scene.jpg'), ...COPYRIGHT);
    const variants = JSON.stringify([
      { name: 'plain' },
      { name: 'credited', metadata: 'copyright' },
      { name: 'avif', metadata: 'copyright', format: 'avif' },
    ]);
    const { body } = await expectSuccess(convert(own.base, file, { variants, format: 'jpg' }, 'a.jpg'));
    const files = await readZip(body);
    const artistOf = async (name: string) =>
      (await tagsOf(files.find((one) => one.name === name)?.content as Buffer, 'jpg'))['IFD0:Artist'];
    expect(await artistOf('a-plain.jpg')).to.equal(undefined);
    expect(await artistOf('a-credited.jpg')).to.equal('Zoë');
    expect(await artistOf('a-avif.avif')).to.equal('Zoë');
  });

  it('leaves the pixels as they are, and counts as a part of max_bytes', async () => {
    const file = await withTags('scene.png', await fixture('scene.png'), ...COPYRIGHT);
    for (const format of ['png', 'webp', 'jpg', 'avif', 'jxl', 'tiff'] as const) {
      const plain = await converted(own.base, file, { format });
      const credited = await copyright(file, { format });
      const [one, other] = await Promise.all([plain, credited].map(({ body }) => pixelsOf(body, format)));
      expect(difference(one as Pixels, other as Pixels).psnr).to.equal(Number.POSITIVE_INFINITY);
      if (!OUTPUTS[format].quality) continue;
      const limited = await copyright(file, { format, max_bytes: '3000' });
      expect(limited.body.length).to.be.at.most(3000);
      expect((await tagsOf(limited.body, format))['IFD0:Artist']).to.equal('Zoë');
    }
  });

  it('keeps the colour profile and the pixels of a wide gamut, and the animation of a WebP', async () => {
    const { body } = await copyright(await fixture('p3.jpg'), { format: 'webp' });
    expect((await sharp(body).metadata()).icc).to.be.instanceOf(Buffer);
    const moving = await withTags('moving.webp', await fixture('moving.webp'), ...COPYRIGHT);
    const still = await copyright(moving, { format: 'jpg' });
    expect((await tagsOf(still.body, 'jpg'))['IFD0:Artist']).to.equal('Zoë');
    const animated = await copyright(moving, { format: 'webp' });
    expect((await sharp(animated.body, { animated: true }).metadata()).pages).to.equal(3);
    expect((await tagsOf(animated.body, 'webp'))['IFD0:Artist']).to.equal('Zoë');
  });

  it('reads compressed metadata of a JPEG XL', async () => {
    const file = await readFile(new URL('../../fixtures/extra/private.jxl', import.meta.url));
    for (const format of ['jxl', 'tiff'] satisfies OutputType[]) {
      const tags = await tagsOf((await copyright(file, { format })).body, format);
      expect(tags['IFD0:Artist'], format).to.equal('Somebody Private');
      expect(Object.keys(tags).filter((tag) => tag.startsWith('GPS'))).to.deep.equal([]);
    }
  });

  it('keeps the copyright of a truncated PNG, and says in a note that a text is too long', async () => {
    const file = await withTags('scene.png', await fixture('scene.png'), ...COPYRIGHT);
    const cut = await copyright(file.subarray(0, file.length - 3000), { format: 'png' });
    expect(cut.notes).to.equal('truncated-input');
    expect((await tagsOf(cut.body, 'png'))['IFD0:Artist']).to.equal('Zoë');
    const long = await withTags(
      'scene.tiff',
      await fixture('scene.tiff'),
      `-IFD0:Artist=${'a'.repeat(9000)}`,
    );
    expect((await copyright(long, { format: 'tiff' })).notes).to.equal('metadata-partly-kept');
  });
});
