// @full: all kinds of images in each codec
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { open, scene } from '../../../scripts/fixtures/scene.ts';
import { EXTERNAL_ENCODERS } from '../../../src/conversion/plan/external-encoders.ts';
import { planDecoding } from '../../../src/conversion/plan/index.ts';
import { createJob } from '../../../src/conversion/plan/job.ts';
import { completeStep } from '../../../src/conversion/plan/step.ts';
import { FORK_SERVER_LIBRARY } from '../../../src/folders.ts';
import { inspect } from '../../../src/images/index.ts';
import type { RunCommand } from '../../../src/process/command.ts';
import { createRunner } from '../../../src/process/runner.ts';
import { findSandbox, type SandboxLayers } from '../../../src/process/sandbox/layers.ts';
import { listTrials } from '../../../src/process/sandbox/self-test.ts';
import { findToolchain } from '../../../src/process/toolchain.ts';
import { edgeCasePath, fixturePath } from '../../helpers/client.ts';
import { extraPath } from '../../helpers/extra.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { requires } from '../../helpers/skips.ts';

/**
 * @module Runs the decoders and encoders of EXTRA_INPUTS and EXTRA_OUTPUTS under a filter that
 * kills them for any call that the allow-list refuses. A refusal that a library ignores, and that
 * costs it threads or speed, would otherwise stay hidden.
 */

const ASSETS = new URL('../../../assets', import.meta.url).pathname;
const SEARCH_PATH = '/usr/bin:/bin:/usr/sbin:/usr/local/bin';
const CODECS = ['djxl', 'cjxl', 'avifenc'] as const;
type Codec = (typeof CODECS)[number];

/** Instruction of BPF, and what it returns: SECCOMP_RET_ERRNO with EPERM, or RET_KILL_PROCESS. */
const BPF_RETURN = 0x06;
const REFUSE = 0x0005_0001;
const KILL = 0x8000_0000;

/** Creates a folder with the allow-list, whose refusals kill. */
async function makeKillingFilter(): Promise<string> {
  const folder = await makeTempDir('filters');
  const file = `allow-list.${process.arch}.bpf`;
  const program = await readFile(join(ASSETS, 'seccomp', file));
  for (let at = 0; at < program.length; at += 8) {
    const refuses = program.readUInt16LE(at) === BPF_RETURN && program.readUInt32LE(at + 4) === REFUSE;
    if (refuses) program.writeUInt32LE(KILL, at + 4);
  }
  await writeFile(join(folder, file), program);
  return folder;
}

const DECODED = [
  'scene',
  'lossy',
  'deep',
  'grey',
  'window',
  'p3',
  'moving',
  'from-jpeg',
  'turned',
  'private',
];

/** Inputs of the encoders: alpha, 16 bits, a profile, metadata, and one for several threads. */
const ENCODED = {
  'window.png': () => fixturePath('window.png'),
  'p3.png': () => fixturePath('p3.png'),
  'deep.png': () => edgeCasePath('deep.png'),
  'everything.png': () => edgeCasePath('everything.png'),
  'large.png': async () => {
    const path = join(await makeTempDir('large'), 'large.png');
    await open(scene({ transparent: true }))
      .resize(1200, 800)
      .png()
      .toFile(path);
    return path;
  },
};

describe('the allow-list of system calls', () => {
  let run: RunCommand;
  let layers: SandboxLayers;
  const paths = new Map<Codec, string>();

  before(async () => {
    const deps = { searchPath: SEARCH_PATH, policyFolder: ASSETS, library: FORK_SERVER_LIBRARY };
    const toolchain = await findToolchain({ path: SEARCH_PATH, optional: CODECS });
    const trials = listTrials(toolchain).filter(({ name }) => CODECS.some((tool) => tool === name));
    for (const { name, path } of trials) paths.set(name as Codec, path);
    expect([...paths.keys()]).to.have.members([...CODECS]);
    const sandbox = await findSandbox({
      tools: trials,
      readable: [ASSETS],
      limits: { memoryBytes: 2 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 },
      filters: await makeKillingFilter(),
      folder: await makeTempDir('trial'),
      createTrialRunner: (confine) => createRunner({ ...deps, confine }),
    });
    layers = sandbox.layers;
    run = createRunner({ ...deps, confine: sandbox.confine });
  });

  const expectSuccess = async (tool: Codec, input: string, name: string, args: readonly string[]) => {
    const folder = join(await makeTempDir('codec'), 'job');
    await mkdir(folder);
    await cp(input, join(folder, name));
    const file = paths.get(tool) as string;
    const outcome = await run({ file, args, cwd: folder, timeoutMs: 60_000 }).then(
      () => 'success',
      ({ reason, signal, exitCode, stderr }) => `${reason} ${signal ?? exitCode}: ${stderr}`,
    );
    expect(outcome, `${tool} ${args.join(' ')} with ${input}`).to.equal('success');
  };

  const PNG = { format: 'png', quality: 80, metadata: 'none' } as const;
  for (const threads of [1, 4]) {
    const complete = (tool: Codec, args: readonly string[]): readonly string[] =>
      completeStep({ tool, args }, { threads, srgbProfile: '/srgb.icc' }, '').args;

    it(`refuses no call of djxl with threads=${threads}, for any kind of image`, async function () {
      requires(this, 'hidden-files', layers.files !== 'none');
      expect(layers.syscalls).to.equal('allow-list');
      for (const name of DECODED) {
        const path = extraPath(`${name}.jxl`);
        const [{ args = [] } = {}] = planDecoding(createJob(await inspect(path, 'jxl'), PNG, { magick: 7 }));
        await expectSuccess('djxl', path, 'in', complete('djxl', args));
      }
    });

    for (const format of ['jxl', 'avif'] as const) {
      const encoder = EXTERNAL_ENCODERS[format];
      it(`refuses no call of ${encoder?.tool} with threads=${threads}, for any kind of image and quality`, async function () {
        requires(this, 'hidden-files', layers.files !== 'none');
        expect(layers.syscalls).to.equal('allow-list');
        for (const input of Object.values(ENCODED)) {
          for (const quality of [1, 80, 100]) {
            const options = { format, quality, metadata: 'none' as const };
            const tool = encoder?.tool as Codec;
            const args = complete(tool, encoder?.args({ options }) ?? []);
            const names = ['in.png', `out.${format}`];
            await expectSuccess(tool, await input(), 'in.png', [...args, ...names]);
          }
        }
      });
    }
  }
});
