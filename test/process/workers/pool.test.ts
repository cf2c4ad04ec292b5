import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Command, CommandError } from '../../../src/process/command.ts';
import { createRunner } from '../../../src/process/runner.ts';
import {
  createWorkerPool,
  type WorkerPool,
  type WorkerPoolOptions,
} from '../../../src/process/workers/pool.ts';
import { startWorker, type Worker } from '../../../src/process/workers/worker.ts';
import { failure } from '../../helpers/failure.ts';
import { fakeWorker } from '../../helpers/fake-worker.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { launchers } from '../../helpers/launchers.ts';
import { eventually, isRunning, writeScript } from '../../helpers/util.ts';

const SEARCH = { launchers, searchPath: '/usr/bin:/bin', policyFolder: '/policy' };
const alone = createRunner(SEARCH);

describe('worker pool', () => {
  let workers: WorkerPool | undefined;
  let home = '';
  /** Workers in the order of their start. */
  let started: Worker[] = [];
  let serves = '';
  let reported: unknown[] = [];
  let fallbacks: string[] = [];
  afterEach(async () => {
    await workers?.close();
    expect(await readdir(home), 'folders left').to.deep.equal([]);
  });

  async function create(settings: Partial<WorkerPoolOptions> = {}): Promise<WorkerPool> {
    home = await makeTempDir('home');
    started = [];
    reported = [];
    fallbacks = [];
    const magick = await fakeWorker();
    const start = async () => {
      const worker = await startWorker({ ...SEARCH, home, magick, lifetimeMs: 60_000 });
      started.push(worker);
      return worker;
    };
    serves = await writeScript('alone.sh', 'echo alone $$ > output');
    const report = (error: unknown) => void reported.push(error);
    const onFallback = (outcome: string) => void fallbacks.push(outcome);
    const usual = {
      start,
      executable: serves,
      runInFreshProcess: alone,
      size: 2,
      maxJobs: 50,
      onError: report,
      onFallback,
    };
    workers = createWorkerPool({ ...usual, ...settings });
    if (!settings.start) await eventually(() => workers?.spare === (settings.size ?? 2));
    return workers;
  }

  /** Runs a shell script for a client. A new process runs `alone.sh` instead. */
  async function perform(client: string | undefined, body: string, more: Partial<Command> = {}) {
    const cwd = more.cwd ?? (await makeTempDir('job'));
    const args = client === undefined ? [] : [`. ${await writeScript('job.sh', body)}`, 'output'];
    const named = client === undefined ? {} : { client };
    const output = await (workers as WorkerPool).run({
      timeoutMs: 60_000,
      file: serves,
      ...more,
      args,
      cwd,
      ...named,
    });
    return { ...output, cwd, wrote: await readFile(join(cwd, 'output'), 'utf8').catch(() => '') };
  }
  /** Returns the ID of the process that serves a client. */
  const served = async (client: string, body = ''): Promise<number> => {
    await eventually(() => (workers as WorkerPool).spare > 0);
    return Number((await perform(client, `echo $$ > output; ${body}`)).wrote);
  };

  it('runs all jobs of one client in one worker, and jobs of another client in another worker', async () => {
    await create();
    const [one, other, again] = [await served('a'), await served('b'), await served('a')];
    expect(again).to.equal(one);
    expect(other).not.to.equal(one);
  });

  it('runs the jobs of all clients in one worker when clients share workers', async () => {
    await create({ shared: true });
    const pids = [await served('a'), await served('b'), await served('a')];
    expect(new Set(pids).size).to.equal(1);
  });

  it('runs a job without a client in a new process, even when clients share workers', async () => {
    await create({ shared: true });
    expect((await perform(undefined, '')).wrote).to.match(/^alone \d+\n$/);
  });

  it('replaces a worker after its maximum number of jobs', async () => {
    await create({ maxJobs: 2 });
    const pids = [await served('a'), await served('a'), await served('a')];
    expect(pids[1]).to.equal(pids[0]);
    expect(pids[2]).not.to.equal(pids[0]);
    await eventually(() => !isRunning(pids[0] as number));
  });

  it('runs a single job per worker when the maximum is one', async () => {
    await create({ maxJobs: 1 });
    const pids = [await served('a'), await served('a'), await served('a')];
    expect(new Set(pids).size).to.equal(3);
  });

  it('returns the result and the warning of a job, and replaces the worker', async () => {
    await create();
    const first = await perform('a', 'echo $$ > output; echo careful >&2');
    expect(first.stderr).to.equal('careful\n');
    expect(await served('a')).not.to.equal(Number(first.wrote));
  });

  it('replaces a worker that exceeds the memory limit', async () => {
    await create();
    const grow = 'big=$(head -c 250000000 /dev/zero | tr "\\0" x)';
    expect(await served('a', grow)).not.to.equal(await served('a'));
  });

  it('replaces a worker after a job that leaves a process, and kills that process', async () => {
    await create();
    const first = await perform('a', 'sleep 60 > /dev/null 2>&1 & echo $! > stray; echo $$ > output');
    const stray = Number(await readFile(join(first.cwd, 'stray'), 'utf8'));
    expect(await served('a')).not.to.equal(Number(first.wrote));
    await eventually(() => !isRunning(stray));
  });

  it('repeats a failed job in a new process', async () => {
    await create();
    expect((await perform('a', 'echo broken >&2; exit 1')).wrote).to.match(/^alone \d+\n$/);
    await served('a');
    expect((await perform('a', 'kill -SEGV $$')).wrote).to.match(/^alone \d+\n$/);
  });

  it('counts every job that it repeats in a new process, by the outcome of the repetition', async () => {
    await create();
    await served('a');
    expect(fallbacks).to.deep.equal([]);
    await perform('a', 'exit 1');
    expect(fallbacks).to.deep.equal(['ok']);
    await workers?.close();
    const fails = () => Promise.reject(new CommandError('exit', 'it failed again'));
    await create({ runInFreshProcess: fails });
    await perform('a', 'exit 1').catch(() => {});
    expect(fallbacks).to.deep.equal(['failed']);
  });

  it('removes the folder of a worker that does not start', async () => {
    home = await makeTempDir('home');
    const launchers = { spawn: () => Promise.reject(new Error('EAGAIN')), close: async () => {} };
    const magick = await fakeWorker();
    const starting = startWorker({ ...SEARCH, launchers, home, magick, lifetimeMs: 60_000 });
    expect(await failure(starting)).to.include({ reason: 'spawn-failed' });
    expect(await readdir(home)).to.deep.equal([]);
  });

  it('does not mistake output of a job for the marker of its end', async () => {
    await create();
    const { wrote, stdout } = await perform('a', 'echo "imagemill: done"; sleep 0.3; echo late > output');
    expect({ wrote, stdout }).to.deep.equal({ wrote: 'late\n', stdout: 'imagemill: done\n' });
  });

  it('does not repeat a job that timed out or whose client disconnected', async () => {
    await create();
    await served('a');
    const late = await perform('a', 'sleep 60', { timeoutMs: 300 }).catch((error) => error);
    expect(late.reason).to.equal('timeout');
    await served('a');
    const gone = AbortSignal.abort();
    const left = await perform('a', 'sleep 60', { signal: gone }).catch((error) => error);
    expect(left.reason).to.equal('cancelled');
  });

  it('gives no job to an idle worker that has died', async () => {
    await create();
    const pid = await served('a');
    process.kill(pid, 'SIGKILL');
    await eventually(() => started.some((worker) => !worker.alive));
    expect(await served('a')).not.to.equal(pid);
  });

  it('ends an idle worker after the idle timeout, and the longest idle one when there are too many', async () => {
    await create({ idleMs: 100 });
    const pid = await served('a');
    await eventually(() => !isRunning(pid));
    await workers?.close();
    await create({ size: 1 });
    const first = await served('a');
    const second = await served('b');
    await eventually(() => !isRunning(first));
    expect(isRunning(second)).to.equal(true);
  });

  it('keeps as many spare workers as jobs run at once, and replaces each that is used', async () => {
    await create({ size: 2 });
    await eventually(() => started.length === 2);
    await served('a');
    await eventually(() => started.length === 3);
  });

  it('links the files of a job, moves its results to the folder of the job, and keeps no file', async () => {
    await create();
    const cwd = await makeTempDir('files');
    await writeFile(join(cwd, 'in'), 'input');
    await perform('a', 'ls > output; cat in > copy', { cwd });
    expect((await readdir(cwd)).sort()).to.deep.equal(['copy', 'in', 'output']);
    expect(await readFile(join(cwd, 'output'), 'utf8')).to.equal('in\noutput\n');
    expect(await readFile(join(cwd, 'copy'), 'utf8')).to.equal('input');
    expect((await perform('a', 'ls > output')).wrote).to.equal('output\n');
  });

  it('reports a worker that does not start, and backs off before starting another', async () => {
    let starts = 0;
    await create({
      start: () => {
        starts += 1;
        return Promise.reject(new Error('no more processes'));
      },
    });
    // At the same time, so that all of them start within the backoff.
    const jobs = await Promise.all(Array.from({ length: 3 }, () => perform('a', '')));
    for (const { wrote } of jobs) expect(wrote).to.match(/^alone/);
    expect(starts).to.equal(2);
    expect(reported.map(String)).to.deep.equal(Array(2).fill('Error: no more processes'));
  });

  it('replaces a worker whose folder is not empty after a job', async () => {
    await create();
    const { wrote } = await perform('a', 'pwd > output');
    await writeFile(join(wrote.trim(), 'later'), '');
    expect((await perform('a', '')).wrote).to.match(/^alone/);
    expect(String(reported[0])).to.include('after its last job');
  });

  it('rejects results that are not files', async () => {
    await create();
    expect((await perform('a', 'mkfifo output')).wrote).to.match(/^alone/);
    expect((await perform('a', 'ln -s /etc/passwd output')).wrote).to.match(/^alone/);
    expect(reported).to.have.length(2);
  });

  it('uses a new process for another program, for a command without a client, and when no worker starts', async () => {
    await create();
    const file = await writeScript('other.sh', 'echo other > output');
    expect((await perform('a', '', { file })).wrote).to.equal('other\n');
    expect((await perform(undefined, '')).wrote).to.match(/^alone/);
    await workers?.close();
    await create({ start: () => Promise.reject(new Error('no more processes')) });
    expect((await perform('a', 'echo $$ > output')).wrote).to.match(/^alone/);
  });

  it('uses a new process when the folder of the worker was removed', async () => {
    await create();
    expect((await perform('a', 'rm -r "$PWD"')).wrote).to.match(/^alone/);
  });
});
