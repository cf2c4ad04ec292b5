import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { seeded } from '../../scripts/torture/random.ts';
import { EndlessFile, type Readable } from '../../src/convert/header/bytes.ts';
import { readHeaderOf } from '../../src/convert/header/header.ts';
import { INPUT_TYPES, type InputType } from '../../src/formats.ts';
import { HOSTILE_IMAGES } from '../helpers/hostile-files.ts';

/** Whatever the bytes are: the header readers come to an end, throw nothing, and do not read for ever. */

const FOLDERS = ['images', 'traps'].map(
  (name) => new URL(`../../fixtures/${name}/`, import.meta.url).pathname,
);
const EXTENSIONS: Readonly<Record<string, InputType>> = { tif: 'tiff', jpeg: 'jpg' };
const FIXTURES = FOLDERS.flatMap((folder) =>
  readdirSync(folder).flatMap((name) => {
    const extension = name.split('.').at(-1) ?? '';
    const type = INPUT_TYPES.find((input) => input === (EXTENSIONS[extension] ?? extension));
    return type ? [{ name, type, bytes: readFileSync(folder + name) }] : [];
  }),
);

/** Windows of 64 KiB: more than any walk over a file of 10 MiB may need. */
const MOST_READS = 25_000;
const MUTATIONS = 10_000;
const SEED = 20_261_121;

/** Bytes as an open file, which counts how often it is read. */
function opened(bytes: Uint8Array): Readable & { reads: number } {
  const file = {
    reads: 0,
    async read(target: Buffer, at: number, length: number, position: number) {
      file.reads += 1;
      const piece = position < bytes.length ? bytes.subarray(position, position + length) : new Uint8Array();
      target.set(piece, at);
      return { bytesRead: piece.length, buffer: target };
    },
  };
  return file as unknown as Readable & { reads: number };
}

async function survives(bytes: Uint8Array, type: InputType): Promise<void> {
  const file = opened(bytes);
  const picture = await readHeaderOf(file, type);
  expect(picture.type).to.equal(type);
  expect(file.reads).to.be.at.most(MOST_READS);
  for (const size of [picture.width, picture.height]) {
    if (size !== undefined) expect(size).to.satisfy((value: number) => value >= 0 && Number.isFinite(value));
  }
}

/** Values that break things: nothing, all, signs, and sizes of windows. */
const NASTY = [0x00, 0xff, 0x7f, 0x80, 0x01, 0x40, 0xfe];

describe('the header of any bytes', () => {
  it('that would be looked through for ever is given up, and others have their turn meanwhile', async () => {
    const endless = HOSTILE_IMAGES['a TIFF of 4000 large directories with profiles']?.() as Buffer;
    let turns = 0;
    const clock = setInterval(() => {
      turns += 1;
    }, 0);
    const outcome = await readHeaderOf(opened(endless), 'tiff').catch((error) => error);
    clearInterval(clock);
    expect(outcome).to.be.instanceOf(EndlessFile);
    expect(turns).to.be.above(3);
  });

  for (const type of INPUT_TYPES) {
    it(`called ${type} is read to an end`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 4096 }), (bytes) => survives(bytes, type)),
        { numRuns: 300, seed: SEED },
      );
    });

    it(`that start like ${type} is read to an end`, async () => {
      const start =
        FIXTURES.find((fixture) => fixture.type === type)?.bytes.subarray(0, 40) ?? Buffer.alloc(0);
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 4096 }), (rest) =>
          survives(Buffer.concat([start, rest]), type),
        ),
        { numRuns: 300, seed: SEED },
      );
    });
  }

  for (const { name, type, bytes } of FIXTURES) {
    it(`of ${name}, cut at every byte, is read to an end`, async () => {
      for (let length = 0; length <= bytes.length; length += 1) {
        await survives(bytes.subarray(0, length), type);
      }
    });

    it(`of ${name} in ${MUTATIONS} variations is read to an end`, async () => {
      const { next: random } = seeded(SEED + bytes.length);
      const whole = bytes.subarray(0, 16_384);
      for (let round = 0; round < MUTATIONS; round += 1) {
        const mutant = Buffer.from(whole);
        for (let change = 0; change <= random() * 4; change += 1) {
          // Most of what matters is near the start.
          const at = Math.floor(random() ** 3 * mutant.length);
          mutant[at] =
            random() < 0.5 ? (NASTY[Math.floor(random() * NASTY.length)] as number) : random() * 256;
        }
        await survives(mutant, type);
      }
    });
  }
});
