// @full: all fixtures in all formats
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import { ALL_OUTPUT_TYPES, type InputType, type OutputType } from '../../src/tables/formats.ts';
import { FIXTURE_FILES } from '../helpers/damage.ts';
import { convertWith } from '../helpers/engine.ts';
import { ALL_EXTRAS } from '../helpers/extra.ts';
import { withoutDates } from '../helpers/pdf.ts';
import { useEngine } from '../helpers/service.ts';

/** Options that change the result of few images, and why the key of others changes nevertheless, by their types and formats. */
interface Spelling {
  readonly options: Partial<ConvertOptions>;
  readonly reasons: readonly {
    readonly why: string;
    readonly types?: readonly InputType[];
    readonly formats?: readonly OutputType[];
  }[];
}
const OPEN = {
  why: 'later commands depend on what the decoder shows, so that all options count',
  types: ['avif', 'heic', 'jxl'],
} as const;
const SPELLINGS: Readonly<Record<string, Spelling>> = {
  'no options': { options: {}, reasons: [] },
  'defaults written out': {
    options: { pages: 'all', frames: 'all', enlarge: false, position: 'center', fit: 'inside' },
    reasons: [OPEN],
  },
  'a box that is larger than the image': {
    options: { height: 20_000, width: 20_000 },
    reasons: [
      OPEN,
      {
        why: 'the header does not reliably state the size of each frame, so that a command compares it',
        types: ['gif', 'ico', 'tiff', 'cur', 'jp2', 'psd'],
      },
    ],
  },
  'the default background': {
    options: { background: '#ffffff' },
    reasons: [
      OPEN,
      {
        why: 'no command asks whether transparency was lost, because the background is intended',
        formats: ['jpg', 'bmp', 'pdf'],
      },
    ],
  },
};

describe('conversion keys of all fixtures in all formats', () => {
  const engine = useEngine(ALL_EXTRAS);

  /** Returns the key and the digest of a result; undefined if there is none. */
  const convert = (bytes: Buffer, type: InputType, options: ConvertOptions) =>
    convertWith(engine, { bytes, type }, options, async ({ key, path }) => ({
      key,
      digest: hash('sha256', withoutDates(await readFile(path))),
    })).catch(() => undefined);

  for (const folder of ['images', 'extra']) {
    it(`are equal exactly if the bytes of fixtures/${folder} are, except for listed reasons`, async () => {
      const occurring = new Set<string>();
      const unexplained: string[] = [];
      const all = Object.entries(SPELLINGS);
      let [compared, turn] = [0, 0];
      for (const { name, type, bytes } of FIXTURE_FILES.filter((file) => file.folder === folder)) {
        for (const format of ALL_OUTPUT_TYPES) {
          // cairo 1.18 compresses the dates of a PDF with other objects.
          if (type === 'svg' && format === 'pdf') continue;
          const base = { format, quality: 80, metadata: 'none' as const };
          const plain = await convert(bytes, type, base);
          // One of them for each file and format.
          turn += 1;
          const [spelling, { options, reasons }] = all[turn % all.length] as (typeof all)[number];
          const found = plain && (await convert(bytes, type, { ...options, ...base }));
          if (!found) continue;
          const label = `${name} to ${format}, ${spelling}`;
          compared += 1;
          if (found.key === plain.key) expect(found.digest, label).to.equal(plain.digest);
          if (found.digest !== plain.digest || found.key === plain.key) continue;
          const reason = reasons.find(
            ({ types, formats }) => (types?.includes(type) ?? true) && (formats?.includes(format) ?? true),
          );
          if (reason) occurring.add(reason.why);
          else unexplained.push(label);
        }
      }
      expect(unexplained).to.deep.equal([]);
      expect(compared).to.be.above(200);
      const listed = Object.values(SPELLINGS).flatMap(({ reasons }) => reasons.map(({ why }) => why));
      expect([...occurring]).to.have.members([...new Set(listed)]);
    });
  }
});
