// @full: all traps in several formats
// @slow
/**
 * @module Converts every file in fixtures/traps to several formats, and checks the results stated
 * beside it.
 */

import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { OUTPUT_TYPES, OUTPUTS, type OutputType } from '../../src/tables/formats.ts';
import { type ClientResponse, convert, edgeCase } from '../helpers/client.ts';
import { EDGE_CASE_NAMES, type ExpectedResult, expectedResult } from '../helpers/edge-cases.ts';
import { readTags, remainingMetadata } from '../helpers/exif.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { countPages } from '../helpers/pdf.ts';
import { decode, onGrey, pixelAt } from '../helpers/pixels.ts';
import { useService } from '../helpers/service.ts';
import { requires } from '../helpers/skips.ts';

/** Maximum difference of a channel in a flat area: rounding, a palette, or lossy compression. */
const TOLERANCE: Readonly<Record<(typeof OUTPUT_TYPES)[number], number>> = {
  png: 2,
  bmp: 2,
  gif: 6,
  webp: 14,
  jpg: 14,
  pdf: 14,
};
/** Maximum difference of the alpha of a flat area after lossy compression. */
const ALPHA_TOLERANCE = 2;

/**
 * Returns the formats of a fixture: PNG, one that keeps transparency otherwise, one without
 * transparency, which change from fixture to fixture, and those that the expectation is about.
 */
function formatsFor(
  name: string,
  { notes = {}, moving, pages }: ExpectedResult,
): readonly (typeof OUTPUT_TYPES)[number][] {
  if (moving || pages) return OUTPUT_TYPES;
  const at = EDGE_CASE_NAMES.indexOf(name);
  const chosen = ['png', ['gif', 'webp'][at % 2], ['jpg', 'bmp', 'pdf'][at % 3], ...Object.keys(notes)];
  return OUTPUT_TYPES.filter((format) => chosen.includes(format));
}

describe('the fixture', () => {
  const service = useService();
  const answers = new Map<string, Promise<ClientResponse>>();
  const convertOnce = (name: string, format: OutputType): Promise<ClientResponse> => {
    const key = `${name}.${format}`;
    const answer =
      answers.get(key) ?? edgeCase(name).then((file) => convert(service.base, file, { format }, name));
    answers.set(key, answer);
    return answer;
  };

  for (const name of EDGE_CASE_NAMES) {
    const expectation = expectedResult(name);

    describe(`${name}: ${expectation.description}`, () => {
      for (const format of formatsFor(name, expectation)) {
        it(`is converted correctly to ${format}`, async function () {
          const { refused } = expectation;
          requires(this, 'magick-version', refused?.by === undefined || service.magick !== undefined);
          const answer = await convertOnce(name, format);
          const appliesHere = refused?.by === undefined || refused.by === service.magick;
          if (refused && appliesHere) {
            expect(answer.status, answer.message).to.equal(refused.status);
            return void expect(answer.message).to.include(refused.says);
          }
          expect(answer.status, answer.message).to.equal(200);
          expect(answer.notes ?? '').to.equal(notesFor(expectation, format));
          await checkImage(answer.body, expectation, format);
        });
      }
    });
  }

  // One test, because ExifTool takes longer to start than to read 20 files.
  it('of any kind leaves no metadata in a result', async () => {
    const folder = await makeTempDir('leaks');
    const paths: string[] = [];
    for (const name of EDGE_CASE_NAMES) {
      for (const format of formatsFor(name, expectedResult(name))) {
        const { status, body } = await convertOnce(name, format);
        if (status !== 200) continue;
        paths.push(join(folder, `${name}.${format}`));
        await writeFile(paths.at(-1) as string, body);
      }
    }
    expect(paths.length).to.be.above(EDGE_CASE_NAMES.length);
    const found = (await readTags(paths)).flatMap((tags, at) =>
      remainingMetadata(tags).map((tag) => `${basename(paths[at] as string)}: ${tag}`),
    );
    expect(found).to.deep.equal([]);
  });
});

function notesFor({ notes = {} }: ExpectedResult, format: OutputType): string {
  return [...(notes.any ?? []), ...(notes[format] ?? [])].join(', ');
}

async function checkImage(
  body: Buffer,
  expectation: ExpectedResult,
  format: (typeof OUTPUT_TYPES)[number],
): Promise<void> {
  const { size, pixels = [], moving, pages = 1, within = 0 } = expectation;
  const frames = moving && OUTPUTS[format].animation ? moving.delays.length : 1;
  const image = await decode(body, format);
  if (size) expect([image.width, image.height / frames]).to.deep.equal(size);

  const shown = OUTPUTS[format].alpha === 'none' ? onGrey(image, 255) : image;
  for (const [x, y, colour] of pixels) {
    const [red, green, blue, alpha = 255] = expectedColour(colour, format);
    const actual = pixelAt(shown, x, y);
    const where = `${format} at ${x},${y}: ${actual} instead of ${[red, green, blue, alpha]}`;
    expect(actual[3], where).to.be.closeTo(alpha, ALPHA_TOLERANCE);
    if (alpha === 0) continue; // transparent pixels have no defined colour
    for (const [channel, value] of [red, green, blue].entries()) {
      expect(actual[channel], where).to.be.closeTo(value as number, TOLERANCE[format] + within);
    }
  }

  if (frames > 1) {
    const { delay, loop } = await sharp(body, { animated: true }).metadata();
    expect({ delays: delay, plays: loop }).to.deep.equal(moving);
  }
  if (format === 'pdf') expect(await countPages(body)).to.equal(pages);
}

/**
 * Returns the colour that the output format can show: unchanged, with binary alpha, or on white, as
 * a PDF is shown.
 */
function expectedColour([red, green, blue, alpha = 255]: readonly number[], format: OutputType): number[] {
  const kept = format === 'pdf' ? 'none' : OUTPUTS[format].alpha;
  if (kept === 'full') return [red, green, blue, alpha] as number[];
  if (kept === 'binary') return [red, green, blue, alpha > 127 ? 255 : 0] as number[];
  const overWhite = (value = 0): number => (value * alpha + 255 * (255 - alpha)) / 255;
  return [overWhite(red), overWhite(green), overWhite(blue), 255];
}
