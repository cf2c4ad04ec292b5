import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { expect } from 'chai';
import type { Convert } from '../../src/conversion/convert.ts';
import { createHealthCheck } from '../../src/conversion/health-check.ts';
import { serviceError } from '../../src/errors.ts';
import { RESERVE_BYTES } from '../../src/files/disk-room.ts';
import { OWNER_FILE } from '../../src/files/stale.ts';
import { createWorkspaces } from '../../src/files/workspace.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { eventually } from '../helpers/util.ts';

const MIB = 1024 ** 2;

describe('a trial', () => {
  const setUp = async (free?: () => Promise<number>) => {
    const tempDir = await makeTempDir('trial');
    const state = { now: 0, tries: 0, error: undefined as Error | undefined };
    const convert: Convert = async () => {
      state.tries += 1;
      if (state.error) throw state.error;
      return { path: '/result', bytes: 1, queuedMs: 0, convertedMs: 0, notes: [] };
    };
    const workspaces = createWorkspaces(tempDir, free);
    const works = createHealthCheck(convert, workspaces, () => state.now);
    return { state, works, tempDir, workspaces };
  };

  it('is made at most once in 10 seconds, however often it is asked for, and leaves nothing', async () => {
    const { state, works, tempDir } = await setUp();
    const answers = await Promise.all(Array.from({ length: 50 }, () => works()));
    state.now = 9_999;
    answers.push(await works());
    expect(new Set(answers)).to.deep.equal(new Set([true]));
    expect(state.tries).to.equal(1);
    const left = await readdir(tempDir, { recursive: true });
    expect(left.map((path) => basename(path).replace(/instance-.*/, 'instance'))).to.have.members([
      'imagemill-instance',
      OWNER_FILE,
    ]);
  });

  it('that fails is told at the next question, and so is that all is well again', async () => {
    const { state, works } = await setUp();
    expect(await works()).to.equal(true);
    state.error = serviceError('CONVERTER_UNAVAILABLE');
    state.now = 10_000;
    expect(await works()).to.equal(true); // what was known; behind it the next trial runs
    await eventually(async () => (await works()) === false);
    state.error = undefined;
    state.now = 20_000;
    await works();
    await eventually(async () => (await works()) === true);
    expect(state.tries).to.equal(3);
  });

  it('says that conversions work while only the files of requests fill the disk, and not when it is full without them', async () => {
    let free = 20 * MIB;
    const { state, works, workspaces } = await setUp(async () => free);
    const upload = await workspaces.open({ client: 'a', bytes: 2 * MIB });
    await upload.room.store(2 * MIB);
    free = RESERVE_BYTES - MIB; // the trial finds no room
    expect(await works()).to.equal(true);
    await upload.remove();
    state.now = 10_000;
    await works();
    await eventually(async () => (await works()) === false);
  });

  it('says that conversions work when a tool fills a disk that requests have filled before', async () => {
    let free = 20 * MIB;
    const { state, works, workspaces } = await setUp(async () => free);
    const upload = await workspaces.open({ bytes: MIB });
    await upload.room.store(MIB);
    state.error = Object.assign(new Error('no room'), { code: 'ENOSPC' });
    expect(await works()).to.equal(true);
    await upload.remove();
    free = 0;
    state.now = 10_000;
    await works();
    await eventually(async () => (await works()) === false);
  });

  for (const code of ['QUEUE_FULL', 'OVERLOADED'] as const) {
    it(`says that conversions work after ${code}, because an overloaded service is healthy`, async () => {
      const { state, works } = await setUp();
      state.error = serviceError(code);
      expect(await works()).to.equal(true);
    });
  }
});
