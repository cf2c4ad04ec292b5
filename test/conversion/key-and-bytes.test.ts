// @full: all fixtures in all formats
// @slow
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { seeded } from '../../scripts/stress/random.ts';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import type { ConvertOptions } from '../../src/conversion/plan/types.ts';
import {
  ALL_OUTPUT_TYPES,
  hasBytesLimit,
  type InputType,
  type OutputType,
} from '../../src/tables/formats.ts';
import { type Fit, OPTIONS } from '../../src/tables/options.ts';
import { FIXTURE_FILES, type Fixture } from '../helpers/damage.ts';
import { convertWith } from '../helpers/engine.ts';
import { ALL_EXTRAS } from '../helpers/extra.ts';
import { withoutDates } from '../helpers/pdf.ts';
import { useEngine } from '../helpers/service.ts';

/** Options that change few results, and why keys change nevertheless, by types and formats. */
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
const SAME = 'the same options';
const FITS = Object.keys(OPTIONS.fit.type.labels) as Fit[];
const SPELLINGS: Readonly<Record<string, Spelling>> = {
  [SAME]: { options: {}, reasons: [] },
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

/** Compares results of each file by fork servers and by new starts, with other spellings. */
describe('results of all fixtures by fork servers and by new starts of the tools', () => {
  const forked = useEngine(ALL_EXTRAS);
  const started = useEngine({ ...ALL_EXTRAS, FORK_SERVER: 'off' });
  const { pick } = seeded(6);
  const occurring = new Set<string>();
  /** The digests of the results by their key. */
  const digests = new Map<string, string>();

  /** Returns what was made, or the error. */
  const convert = (engine: ConversionEngine, { bytes, type }: Fixture, options: ConvertOptions) =>
    convertWith(engine, { bytes, type }, options, async ({ key, path, notes }) => ({
      key,
      digest: hash('sha256', withoutDates(await readFile(path))),
      notes,
    })).catch((error: Error) => ({ key: undefined, digest: undefined, error: error.message }));

  const someOptions = (format: OutputType): Partial<ConvertOptions> => ({
    quality: pick([40, 80, 95]),
    metadata: pick(['none', 'none', 'copyright', 'all']),
    ...pick([{}, {}, { width: 20 }, { width: 50 }, ...FITS.map((fit) => ({ fit, width: 40, height: 50 }))]),
    enlarge: pick([false, true]),
    maxBytes: hasBytesLimit(format) ? pick([undefined, undefined, 1000]) : undefined,
    background: pick([undefined, undefined, '#123456']),
    frames: pick([undefined, 'first', 'all']),
  });

  it('come from a fork server for every tool, and from none', () => {
    expect(forked.stats().forkServers).to.equal(
      Object.values(forked.toolchain).filter((tool) => tool).length,
    );
    expect(started.stats().forkServers).to.equal(0);
  });

  for (const folder of ['images', 'extra', 'traps']) {
    it(`have equal keys exactly if the bytes for fixtures/${folder} are equal, except for listed reasons`, async () => {
      const unexplained: string[] = [];
      const all = Object.entries(SPELLINGS);
      let [compared, turn] = [0, 0];
      for (const file of FIXTURE_FILES.filter((one) => one.folder === folder)) {
        for (const format of ALL_OUTPUT_TYPES) {
          // cairo 1.18 compresses the dates of a PDF with other objects.
          if (file.type === 'svg' && format === 'pdf') continue;
          // One of them for each file and format.
          turn += 1;
          const [spelling, { options, reasons }] = all[turn % all.length] as (typeof all)[number];
          const isSame = spelling === SAME;
          // The traps only with random options.
          if (folder === 'traps' && !isSame) continue;
          const base = { format, quality: 80, metadata: 'none', ...(isSame && someOptions(format)) } as const;
          const label = `${file.name} to ${format}, ${spelling} ${JSON.stringify(base)}`;
          const [plain, found] = await Promise.all([
            convert(forked, file, base),
            convert(started, file, { ...options, ...base }),
          ]);
          if (isSame) expect(found, label).to.deep.equal(plain);
          if (!plain.key || !found.key) continue;
          compared += 1;
          for (const { key, digest } of [plain, found]) {
            expect(digests.get(key) ?? digest, label).to.equal(digest);
            digests.set(key, digest);
          }
          if (found.digest !== plain.digest || found.key === plain.key) continue;
          const reason = reasons.find(
            ({ types, formats }) =>
              (types?.includes(file.type) ?? true) && (formats?.includes(format) ?? true),
          );
          if (reason) occurring.add(reason.why);
          else unexplained.push(label);
        }
      }
      expect(unexplained).to.deep.equal([]);
      expect(compared).to.be.above(200);
    });
  }

  it('have other keys for the same bytes for each listed reason', () => {
    const listed = Object.values(SPELLINGS).flatMap(({ reasons }) => reasons.map(({ why }) => why));
    expect([...occurring]).to.have.members([...new Set(listed)]);
  });
});
