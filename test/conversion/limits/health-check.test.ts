// @unit
import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { expect } from 'chai';
import type { Convert } from '../../../src/conversion/context.ts';
import { createHealthCheck } from '../../../src/conversion/limits/health-check.ts';
import { MIN_FREE_BYTES } from '../../../src/files/disk-space.ts';
import { Workspaces } from '../../../src/files/workspace.ts';
import { serviceError } from '../../../src/tables/errors.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { eventually } from '../../helpers/util.ts';

const MIB = 1024 ** 2;

describe('the health check', () => {
  const setUp = async (free?: () => Promise<number>) => {
    const tempDir = await makeTempDir('trial');
    const state = { now: 0, tries: 0, error: undefined as Error | undefined };
    const convert: Convert = async () => {
      state.tries += 1;
      if (state.error) throw state.error;
      const times = { queuedMs: 0, preparedMs: 0, convertedMs: 0 };
      return {
        path: '/result',
        bytes: 1,
        format: 'webp',
        key: '',
        notes: [],
        removed: [],
        kept: [],
        ...times,
      };
    };
    const workspaces = new Workspaces(tempDir, free);
    const works = createHealthCheck(convert, workspaces, () => state.now);
    return { state, works, tempDir, workspaces };
  };

  it('runs a trial conversion at most once per 10 seconds, and leaves no files', async () => {
    const { state, works, tempDir } = await setUp();
    const answers = await Promise.all(Array.from({ length: 50 }, () => works()));
    state.now = 9_999;
    answers.push(await works());
    expect(new Set(answers)).to.deep.equal(new Set([true]));
    expect(state.tries).to.equal(1);
    const left = await readdir(tempDir, { recursive: true });
    expect(left.map((path) => basename(path).replace(/instance-.*/, 'instance'))).to.have.members([
      'imagemill-instance',
      'owner.json',
    ]);
  });

  it('reports a failed trial on the next call, and a successful one afterwards', async () => {
    const { state, works } = await setUp();
    expect(await works()).to.equal(true);
    state.error = serviceError('CONVERTER_UNAVAILABLE');
    state.now = 10_000;
    expect(await works()).to.equal(true); // the last known result, while the next trial runs
    await eventually(async () => (await works()) === false);
    state.error = undefined;
    state.now = 20_000;
    await works();
    await eventually(async () => (await works()) === true);
    expect(state.tries).to.equal(3);
  });

  it('tries again one second after a failure, so that recovery shows at once', async () => {
    const { state, works } = await setUp();
    state.error = serviceError('CONVERTER_UNAVAILABLE');
    expect(await works()).to.equal(false);
    state.error = undefined;
    state.now = 1_000;
    await works();
    expect(await works()).to.equal(true);
    expect(state.tries).to.equal(2);
  });

  it('reports success while files of requests fill the disk, and failure when it is full without them', async () => {
    let free = 20 * MIB;
    const { state, works, workspaces } = await setUp(async () => free);
    const upload = await workspaces.open({ client: 'a', bytes: 2 * MIB });
    await upload.disk.store(2 * MIB);
    free = MIN_FREE_BYTES - MIB; // too little for the trial
    expect(await works()).to.equal(true);
    await upload.remove();
    state.now = 10_000;
    await works();
    await eventually(async () => (await works()) === false);
  });

  it('reports success when a tool fills a disk that files of requests had nearly filled', async () => {
    let free = 20 * MIB;
    const { state, works, workspaces } = await setUp(async () => free);
    const upload = await workspaces.open({ bytes: MIB });
    await upload.disk.store(MIB);
    state.error = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    expect(await works()).to.equal(true);
    await upload.remove();
    free = 0;
    state.now = 10_000;
    await works();
    await eventually(async () => (await works()) === false);
  });

  it('reports failure if the disk is so full that the folder of the process cannot be created again', async () => {
    const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    const fail = (): Promise<never> => Promise.reject(full);
    const works = createHealthCheck(fail, { use: fail, hasSpace: fail });
    expect(await works()).to.equal(false);
  });

  for (const code of ['QUEUE_FULL', 'OVERLOADED'] as const) {
    it(`reports success after ${code}, because an overloaded service is healthy`, async () => {
      const { state, works } = await setUp();
      state.error = serviceError(code);
      expect(await works()).to.equal(true);
    });
  }
});
