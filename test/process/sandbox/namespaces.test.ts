import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import { pino } from 'pino';
import { createConversionEngine } from '../../../src/conversion/engine.ts';
import type { Launchers } from '../../../src/process/launcher/launcher.ts';
import { createRunner } from '../../../src/process/runner.ts';
import { isolateLaunchers } from '../../../src/process/sandbox/namespaces.ts';
import type { Toolchain } from '../../../src/process/toolchain.ts';
import { CAN_ISOLATE } from '../../helpers/can-isolate.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { testConfig } from '../../helpers/service.ts';
import { writeScript } from '../../helpers/util.ts';

describe('isolateLaunchers', () => {
  const isolate = async (home: string, body: string): Promise<Launchers | undefined> => {
    const rsvg = { path: await writeScript('rsvg-convert', body), version: '2.60.0' };
    const toolchain: Toolchain = { magick: undefined, rsvg, heif: undefined, img2webp: undefined };
    const createOwnRun = (launchers: Launchers) =>
      createRunner({ launchers, searchPath: '/usr/bin:/bin', policyFolder: '/nonexistent' });
    return isolateLaunchers(async () => home, home, toolchain, createOwnRun);
  };

  it('returns launchers when the kernel permits namespaces and every tool responds in them', async () => {
    const home = await makeTempDir('isolate');
    // The launcher is the first process of its namespace, and the parent of the tool.
    const launchers = await isolate(home, '[ $PPID = 1 ] && echo "rsvg-convert version 2.60.0"');
    expect(launchers !== undefined).to.equal(CAN_ISOLATE);
    await launchers?.close();
    expect(await readdir(home)).to.deep.equal([]);
  });

  it('returns undefined and leaves no process or folder when a tool does not respond', async () => {
    const home = await makeTempDir('isolate');
    expect(await isolate(home, 'exit 1')).to.equal(undefined);
    expect(await readdir(home)).to.deep.equal([]);
  });

  it('adds the layer "processes", as bubblewrap does', async () => {
    const engine = await createConversionEngine(testConfig(), pino({ level: 'silent' }));
    const { files, processes } = engine.layers;
    await engine.close();
    const expected = files === 'bwrap' || (files === 'landlock' && CAN_ISOLATE) ? 'namespace' : 'none';
    expect(processes).to.equal(expected);
  });
});
