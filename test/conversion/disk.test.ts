// @unit
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { ico, iconBitmap } from '../../scripts/fixtures/writers.ts';
import { createRepairContext, inspectInput, repairAfterError } from '../../src/conversion/input/inspect.ts';
import type { DiskAccount } from '../../src/files/disk-space.ts';
import type { RepairContext } from '../../src/images/containers/file.ts';
import { inspect } from '../../src/images/index.ts';
import { CommandError } from '../../src/process/command.ts';
import { serviceError } from '../../src/tables/errors.ts';
import type { InputType } from '../../src/tables/formats.ts';
import { edgeCase } from '../helpers/client.ts';
import { extra } from '../helpers/extra.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { failure } from '../helpers/util.ts';

const OPTIONS = { format: 'png', quality: 80, metadata: 'none' } as const;
const PALETTE_MESSAGE =
  "convert: invalid colormap index `in' @ error/colormap-private.h/ConstrainColormapIndex/35.";

interface Repair {
  readonly what: string;
  readonly type: InputType;
  readonly file: () => Promise<Buffer>;
  readonly repair: (path: string, context: RepairContext) => Promise<unknown>;
}
const prepared = (what: string, type: InputType, file: Repair['file']): Repair => ({
  what,
  type,
  file,
  repair: (path, context) => inspectInput({ folder: dirname(path), type, label: 'x' }, [OPTIONS], context),
});
const bitmap = iconBitmap({ width: 16, height: 16, data: Buffer.alloc(16 * 16 * 4, 200) });
const REPAIRS: readonly Repair[] = [
  prepared('a JPEG 2000 without a definition of its channels', 'jp2', () => extra('unnamed.jp2')),
  prepared('a bare codestream', 'jp2', () => extra('window.j2k')),
  prepared('an icon of bitmaps', 'ico', async () =>
    ico([bitmap, bitmap].map((bytes) => ({ side: 16, bytes }))),
  ),
  prepared('an icon of a PNG', 'ico', async () =>
    ico([{ side: 64, bytes: await edgeCase('beyond-palette.png') }]),
  ),
  prepared('an SVG that grows', 'svg', async () =>
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><rect fill="lch(50 50 50)"/></svg>'),
  ),
  {
    what: 'a PNG with an index beyond its palette',
    type: 'png',
    file: () => edgeCase('beyond-palette.png'),
    async repair(path, context) {
      const cause = new CommandError('exit', 'x', { stderr: PALETTE_MESSAGE });
      const image = await inspect(path, 'png');
      return repairAfterError(new Error('x', { cause }), { image }, dirname(path), context);
    },
  },
];

/** Stores a file as the input of a conversion. */
async function store(bytes: Buffer) {
  const folder = await makeTempDir('repair');
  const path = join(folder, 'in');
  await writeFile(path, bytes);
  return { folder, path, bytes };
}

describe('the disk space of a repair', () => {
  for (const { what, file, repair } of REPAIRS) {
    it(`of ${what} is counted before it is written, and is that of the file afterwards`, async () => {
      const { folder, path, bytes } = await store(await file());
      let [held, grown] = [bytes.length, 0];
      const onDisk = async (): Promise<number> => {
        const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
        return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
      };
      const disk = {
        async store(more: number) {
          expect(await onDisk(), 'bytes on the disk').to.be.at.most(held);
          held += more;
        },
        release(removed: number) {
          held -= removed;
        },
      } as DiskAccount;
      const limits = createRepairContext({ folder, disk, type: 'png', label: 'x' }, 2 ** 20, (more) => {
        grown += more;
      });
      await repair(path, limits);
      expect((await readFile(path)).equals(bytes), 'the file is unchanged').to.equal(false);
      expect(held).to.equal(await onDisk());
      expect(grown).to.equal(held - bytes.length);
    });

    it(`of ${what} is not used if the disk has none`, async () => {
      const { folder, path, bytes } = await store(await file());
      const context: RepairContext = {
        label: 'x',
        maxBytes: 2 ** 20,
        release: () => {},
        store: () => Promise.reject(serviceError('DISK_FULL')),
      };
      expect(await failure(repair(path, context))).to.include({ code: 'DISK_FULL' });
      expect(await readdir(folder)).to.deep.equal(['in']);
      expect((await readFile(path)).length).to.equal(bytes.length);
    });
  }

  it('of a TIFF does not exceed the largest upload: many directories that overlap could each be repaired', async () => {
    const { folder, path, bytes } = await store(await edgeCase('cmyk-without-rows.tiff'));
    for (const [maxBytes, grows] of [
      [bytes.length, false],
      [bytes.length + 1000, true],
    ] as const) {
      await writeFile(path, bytes);
      const limits = createRepairContext({ folder, type: 'tiff', label: 'x' }, maxBytes, () => {});
      await inspectInput({ folder, type: 'tiff', label: 'x' }, [OPTIONS], limits);
      expect((await stat(path)).size > bytes.length, `at most ${maxBytes} bytes`).to.equal(grows);
    }
  });
});
