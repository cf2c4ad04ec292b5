import { readFileSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import type { ExpectedResult } from '../../scripts/fixtures/edge-case.ts';
import { type ConversionEngine, createConversionEngine } from '../../src/conversion/engine.ts';
import { MISREAD_KINDS } from '../../src/conversion/plan/decoders.ts';
import type { MisreadKind } from '../../src/conversion/plan/image-info.ts';
import { INPUT_FILE } from '../../src/conversion/plan/types.ts';
import { detectFileType } from '../../src/regress/backends/local-backend.ts';
import { decode, pixelAt } from '../helpers/pixels.ts';
import { testConfig } from '../helpers/service.ts';

const FOLDER = new URL('../../fixtures/traps/', import.meta.url).pathname;
/** Minimum difference of a channel that is visible. */
const VISIBLE = 6;

describe('a kind of file in the table of misread kinds', () => {
  let engine: ConversionEngine;
  before(async () => {
    engine = await createConversionEngine(testConfig(), pino({ level: 'silent' }));
  });
  after(() => engine.close());

  /** Converts the fixture although it is of a misread kind. Returns the PNG, or the error. */
  async function convertAnyway(fixture: string): Promise<Buffer | Error> {
    const path = join(FOLDER, fixture);
    return engine.workspaces.use({}, async (workspace) => {
      const folder = await workspace.folder('file');
      await copyFile(path, join(folder, INPUT_FILE));
      const type = (await detectFileType(path)) ?? 'tiff';
      const source = { folder, type, label: 'The file', readsMisread: true };
      const options = { format: 'png', quality: 80, stripMetadata: true } as const;
      return engine.convert(source, options, new AbortController().signal).then(
        (result) => readFile(result.path),
        (error: Error) => error,
      );
    });
  }

  for (const kind of Object.keys(MISREAD_KINDS) as MisreadKind[]) {
    const { by, fixture, label } = MISREAD_KINDS[kind];
    it(`is still misread by ImageMagick ${by.join(' and ')}: ${label}`, async () => {
      const version = engine.toolchain.magick?.major;
      if (!version || !by.includes(version)) return; // the fixture is converted instead
      const { size = [], pixels = [] } = JSON.parse(
        readFileSync(join(FOLDER, `${fixture}.json`), 'utf8'),
      ) as ExpectedResult;
      const result = await convertAnyway(fixture);
      if (result instanceof Error) return;
      const image = await decode(result);
      const isWrong = pixels.some(([x, y, expected]) => {
        const [r, g, b, alpha = 255] = expected;
        const shown = pixelAt(image, x, y);
        const colours = alpha === 0 ? [] : [r, g, b];
        return [...colours, alpha].some((value, at) => {
          const actual = shown[alpha === 0 ? 3 : at] ?? 0;
          return Math.abs(actual - (value ?? 0)) >= VISIBLE;
        });
      });
      const sameSize = image.width === size[0] && image.height === size[1];
      expect(isWrong || !sameSize, 'shown correctly: remove this version from the row').to.equal(true);
    });
  }
});
