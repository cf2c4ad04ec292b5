import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import type { ExpectedResult } from '../../scripts/fixtures/edge-case.ts';
import { OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/formats.ts';
import { type Answer, convert } from '../helpers/client.ts';
import { readTags, remainingMetadata } from '../helpers/exif.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { pdfFacts } from '../helpers/pdf.ts';
import { decode, onGrey, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';

/** Every file in fixtures/traps, to every output, against what is said beside it. */

const FOLDER = new URL('../../fixtures/traps/', import.meta.url).pathname;

/** How far one channel of a flat area may be off: rounding, a table of colours, or a codec that loses some. */
const TOLERANCE: Readonly<Record<(typeof OUTPUT_TYPES)[number], number>> = {
  png: 2,
  bmp: 2,
  gif: 6,
  webp: 14,
  jpg: 14,
  pdf: 14,
};
/** What a lossy codec leaves of the alpha of a flat area. */
const ALPHA_TOLERANCE = 2;

describe('a fixture', () => {
  const service = useService();

  for (const name of readdirSync(FOLDER).filter((file) => !file.endsWith('.json'))) {
    const facts = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as ExpectedResult;
    const bytes = readFileSync(join(FOLDER, name));

    describe(`${name}: ${facts.shows}`, () => {
      const answers = new Map<OutputType, Promise<Answer>>();
      const answerIn = (format: OutputType): Promise<Answer> => {
        const asked = answers.get(format) ?? convert(service.base, bytes, { format }, name);
        answers.set(format, asked);
        return asked;
      };

      for (const format of OUTPUT_TYPES) {
        it(`is right in ${format}`, async function () {
          const { refused } = facts;
          requires(this, 'magick-version', refused?.by === undefined || service.magick !== undefined);
          const answer = await answerIn(format);
          const byThis = refused?.by === undefined || refused.by === service.magick;
          if (refused && byThis) {
            expect(answer.status, answer.message).to.equal(refused.status);
            return void expect(answer.message).to.include(refused.says);
          }
          expect(answer.status, answer.message).to.equal(200);
          expect(answer.headers.get('x-conversion-notes') ?? '').to.equal(notesFor(facts, format));
          await checkPicture(answer.body, facts, format);
        });
      }

      it('leaves no metadata behind in any of them', async () => {
        const folder = await makeTempDir('leaks');
        const paths: string[] = [];
        for (const format of OUTPUT_TYPES) {
          const { status, body } = await answerIn(format);
          if (status !== 200) continue;
          paths.push(join(folder, `result.${format}`));
          await writeFile(paths.at(-1) as string, body);
        }
        expect((await readTags(paths)).flatMap(remainingMetadata)).to.deep.equal([]);
      });
    });
  }
});

function notesFor({ notes = {} }: ExpectedResult, format: OutputType): string {
  return [...(notes.any ?? []), ...(notes[format] ?? [])].join(', ');
}

async function checkPicture(
  body: Buffer,
  facts: ExpectedResult,
  format: (typeof OUTPUT_TYPES)[number],
): Promise<void> {
  const { size, pixels = [], moving, pages = 1, within = 0 } = facts;
  const frames = moving && OUTPUTS[format].animation ? moving.delays.length : 1;
  const picture = await decode(body, format);
  if (size) expect([picture.width, picture.height / frames]).to.deep.equal(size);

  const shown = OUTPUTS[format].alpha === 'none' ? onGrey(picture, 255) : picture;
  for (const [x, y, colour] of pixels) {
    const [red, green, blue, alpha = 255] = colour;
    const expected = OUTPUTS[format].alpha === 'none' && alpha === 0 ? [255, 255, 255] : [red, green, blue];
    const actual = pixelAt(shown, x, y);
    const where = `${format} at ${x},${y}: ${actual} instead of ${expected}`;
    if (OUTPUTS[format].alpha !== 'none') expect(actual[3], where).to.be.closeTo(alpha, ALPHA_TOLERANCE);
    if (OUTPUTS[format].alpha !== 'none' && alpha === 0) continue; // what is not seen has no colour
    for (const channel of [0, 1, 2]) {
      expect(actual[channel], where).to.be.closeTo(expected[channel] as number, TOLERANCE[format] + within);
    }
  }

  if (frames > 1) {
    const { delay, loop } = await sharp(body, { animated: true }).metadata();
    expect({ delays: delay, plays: loop }).to.deep.equal(moving);
  }
  if (format === 'pdf') expect((await pdfFacts(body)).pages).to.equal(pages);
}
