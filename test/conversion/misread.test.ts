// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { KINDS } from '../../src/images/kinds.ts';
import { edgeCase } from '../helpers/client.ts';
import { EDGE_CASE_NAMES, type ExpectedResult, expectedResult } from '../helpers/edge-cases.ts';
import { convertWith, typeOf } from '../helpers/engine.ts';
import { decode, pixelAt } from '../helpers/pixels.ts';
import { useEngine } from '../helpers/service.ts';

/** Minimum difference of a channel that is visible. */
const VISIBLE = 6;

describe('a kind of file in the table of misread kinds', () => {
  const engine = useEngine();

  /** What the table states. The engine of this process gets rows that refuse nothing. */
  const misread = Object.entries(KINDS).flatMap(([kind, row]) =>
    typeof row.refused === 'string' ? [] : [{ kind, row, versions: row.refused }],
  );
  before(() => {
    for (const { kind, row } of misread) Object.assign(KINDS, { [kind]: { ...row, refused: [] } });
  });
  after(() => {
    for (const { kind, row } of misread) Object.assign(KINDS, { [kind]: row });
  });

  /** Converts the fixture although it is of a misread kind. Returns the PNG, or the error. */
  async function convertAnyway(fixture: string): Promise<Buffer | Error> {
    const bytes = await edgeCase(fixture);
    const source = { bytes, type: (await typeOf(bytes)) ?? 'tiff' };
    const options = { format: 'png', quality: 80, metadata: 'none' } as const;
    return convertWith(engine, source, options, ({ path }) => readFile(path)).catch((error: Error) => error);
  }

  /** Returns whether a result differs visibly from the expected one, or is an error. */
  async function isWrong(result: Buffer | Error, { size, pixels = [] }: ExpectedResult): Promise<boolean> {
    if (result instanceof Error) return true;
    const image = await decode(result);
    if (image.width !== size?.[0] || image.height !== size[1]) return true;
    return pixels.some(([x, y, [r, g, b, alpha = 255]]) => {
      const shown = pixelAt(image, x, y);
      if (alpha === 0) return (shown[3] ?? 0) >= VISIBLE;
      return [r, g, b, alpha].some((value = 0, at) => Math.abs((shown[at] ?? 0) - value) >= VISIBLE);
    });
  }

  for (const { kind, row, versions } of misread) {
    it(`is misread by ImageMagick ${versions.join(' and ')} and by no other version: ${row.label}`, async () => {
      const fixture =
        EDGE_CASE_NAMES.find((name) => name.startsWith(`${kind}.`)) ?? expect.fail('no fixture');
      const version = engine.toolchain.magick?.major as 6 | 7;
      const isMisread = await isWrong(await convertAnyway(fixture), expectedResult(fixture));
      expect(isMisread, `versions in the row ${kind}`).to.equal(versions.includes(version));
    });
  }
});
