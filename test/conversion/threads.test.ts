// @full: two images in all formats, with one thread and with four
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import type { Convert } from '../../src/conversion/context.ts';
import { createConvert } from '../../src/conversion/convert.ts';
import type { ConversionEngine } from '../../src/conversion/engine.ts';
import { grantsFor, toolContext } from '../../src/conversion/limits/capabilities.ts';
import type { Command } from '../../src/process/command.ts';
import { writePolicy } from '../../src/process/policy.ts';
import { createRunner } from '../../src/process/runner.ts';
import type { InputType, OutputType } from '../../src/tables/formats.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { withoutDates } from '../helpers/pdf.ts';
import { plain } from '../helpers/pixels.ts';
import { startEngine, testConfig } from '../helpers/service.ts';

const ASSETS = new URL('../../assets', import.meta.url).pathname;
const [WIDTH, HEIGHT] = [640, 480];

/** Creates pixels with gradients and noise, so that every part of a codec has work. */
async function picture(channels: 3 | 4) {
  let seed = 7;
  const pixels = Buffer.from(
    Array.from({ length: WIDTH * HEIGHT * channels }, (_, at) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return (128 + 90 * Math.sin(at / 4000) + (seed >>> 27)) & 255;
    }),
  );
  return sharp(pixels, { raw: { width: WIDTH, height: HEIGHT, channels } });
}

/** In each format, one is resized and the other is not. */
const INPUTS: Partial<Record<InputType, () => Promise<Buffer>>> = {
  jpg: async () => (await picture(3)).withIccProfile('p3').jpeg({ quality: 90 }).toBuffer(),
  png: async () => (await picture(4)).png({ compressionLevel: 1 }).toBuffer(),
};

describe('threads of a conversion', () => {
  let engine: ConversionEngine;
  let commands: Command[];
  let grantsFolder: string;
  before(async () => {
    engine = await startEngine({ CONCURRENCY: '1', EXTRA_OUTPUTS: 'all' });
    const { inputs, outputs } = engine.capabilities;
    grantsFolder = await makeTempDir('policy');
    const coders = grantsFor(inputs, outputs, engine.toolchain.magick?.major ?? 7);
    await writePolicy(grantsFolder, coders);
  });
  after(() => engine.close());
  beforeEach(() => {
    commands = [];
  });

  const run = (command: Command) =>
    createRunner({ searchPath: process.env.PATH ?? '', policyFolder: ASSETS, grantsFolder })(command);

  /** Creates the function under test for a queue with a number of idle slots. */
  function converter(idleSlots: number, maxThreads: number): Convert {
    const slot = { waitedMs: 0, idleSlots, [Symbol.dispose]() {} };
    const place = { prepare: <T>(work: () => T) => work(), start: async () => slot, [Symbol.dispose]() {} };
    return createConvert({
      config: testConfig({ CONVERT_TIMEOUT_MS: '60000' }),
      toolchain: engine.toolchain,
      tools: toolContext(engine.toolchain),
      queue: { enter: () => place },
      run(command) {
        commands.push(command);
        return run(command);
      },
      srgbProfile: `${ASSETS}/srgb.icc`,
      maxThreads,
    }).convert;
  }

  async function convert(
    idleSlots: number,
    bytes: Buffer,
    type: InputType,
    options: { format: OutputType; width?: number },
    more: { maxThreads?: number; onCommand?: () => void } = {},
  ): Promise<string> {
    const folder = join(await makeTempDir('threads'), 'job');
    await mkdir(folder);
    await writeFile(join(folder, 'in'), bytes);
    const { maxThreads = 8, ...source } = more;
    const result = await converter(idleSlots, maxThreads)(
      { folder, type, label: 'It', ...source },
      { quality: 80, metadata: 'none', ...options },
      new AbortController().signal,
    );
    return withoutDates(await readFile(result.path));
  }

  /** Returns the thread limits of the ImageMagick commands so far. */
  const threadLimits = (): string[] =>
    commands.flatMap(({ args }) => args.flatMap((arg, at) => (args[at - 1] === 'thread' ? [arg] : [])));

  it('are one in ImageMagick by default', async () => {
    const file = engine.toolchain.magick?.path as string;
    const runIt = createRunner({ searchPath: '/usr/bin', policyFolder: ASSETS });
    const { stdout } = await runIt({ file, args: ['-list', 'resource'], cwd: tmpdir(), timeoutMs: 10_000 });
    expect(/Thread: (\d+)/.exec(stdout)?.[1]).to.equal('1');
  });

  it('are as many as the idle slots permit, up to the number of processors', async () => {
    const bytes = await plain(9, 9, 'red').png().toBuffer();
    const options = { format: 'png' } as const;
    await convert(0, bytes, 'png', options);
    await convert(1, bytes, 'png', options);
    await convert(9, bytes, 'png', options, { maxThreads: 4 });
    await convert(9, bytes, 'png', options, { onCommand() {} });
    expect(threadLimits()).to.deep.equal(['1', '2', '4', '1']);
  });

  for (const [type, make] of Object.entries(INPUTS)) {
    it(`do not change the bytes of any result of a ${type.toUpperCase()} image`, async () => {
      const bytes = await make();
      for (const [at, format] of engine.capabilities.outputs.entries()) {
        const options = at % 2 === (type === 'png' ? 0 : 1) ? { format } : { format, width: 300 };
        const [one, four] = [
          await convert(0, bytes, type as InputType, options),
          await convert(3, bytes, type as InputType, options),
        ];
        expect(four === one, JSON.stringify(options)).to.equal(true);
      }
      expect(new Set(threadLimits())).to.deep.equal(new Set(['1', '4']));
    });
  }
});
