// @full: 10 000 files in a cluster of two nodes
// @slow
/**
 * @module Tests of `docker/slurm/convert.sbatch` with a Slurm cluster of two nodes on this machine.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { fixturePath } from '../helpers/client.ts';
import { freePorts } from '../helpers/daemons.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { execute, MAIN } from '../helpers/process.ts';
import { requires } from '../helpers/skips.ts';
import { eventually, isRunning, processesWhere } from '../helpers/util.ts';

const SCRIPT = new URL('../../docker/slurm/convert.sbatch', import.meta.url).pathname;
const SBIN = `${process.env.PATH}:/usr/sbin`;
/** Tasks of the array, as the script states. */
const TASKS = 4;
const FILES = 5000;
const NODES = ['n1', 'n2'];
/** The reports that later runs replaced. */
const EARLIER = 'earlier.csv';
/**
 * Files that a task with one processor has begun and not yet reported: one that is converted, one
 * that is written.
 */
const IN_FLIGHT = 2;

describe('the Slurm job array', function () {
  this.timeout(600_000);
  let folder: string;
  let env: NodeJS.ProcessEnv;
  const daemons = new Map<string, ChildProcess>();

  const start = (name: string, program: string, ...args: string[]): void => {
    daemons.set(name, spawn(program, args, { stdio: 'ignore', env: { ...env, PATH: SBIN } }));
  };
  const startNode = (name: string): void => start(name, 'slurmd', '-D', '-N', name);
  const run = async (program: string, ...args: string[]): Promise<string> =>
    (await execute(program, args, { env, cwd: folder })).stdout.trim();
  const nodesAre = (state: string) =>
    eventually(async () =>
      (await run('sinfo', '--noheader', '-N', '-o', '%t')).split('\n').every((found) => found === state),
    );
  const submit = () =>
    run(
      'sbatch',
      '--parsable',
      '--cpus-per-task=1',
      '--mem=100M',
      SCRIPT,
      'photos',
      'out',
      '--format',
      'webp',
    );
  const ended = () => eventually(async () => (await run('squeue', '--noheader')) === '');
  const resultNames = async () =>
    (await readdir(join(folder, 'out')).catch(() => [])).filter((name) => name.endsWith('.webp'));
  const rowsOf = async (...reports: string[]): Promise<{ input: string; status: string }[]> => {
    const texts = await Promise.all(reports.map((report) => readFile(join(folder, report), 'utf8')));
    const cells = texts.flatMap((text) => text.split('\n')).map((line) => line.split(','));
    return cells.flatMap(([input = '', , status = '']) => (input.includes('/') ? [{ input, status }] : []));
  };
  const reports = Array.from({ length: TASKS }, (_, index) => `out/report-${index + 1}-of-${TASKS}.csv`);
  /** Returns how often the reports of the array have each status. */
  const statuses = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const { status } of await rowsOf(...reports)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };
  const stop = async (name: string): Promise<void> => {
    const daemon = daemons.get(name);
    if (!daemon) return;
    const end = once(daemon, 'exit');
    if (daemon.kill('SIGKILL')) await end;
  };
  /** Returns the processes of jobs with this variable. */
  const findJobs = (variable: string): number[] =>
    processesWhere('environ', (text) => text.includes(folder) && text.includes(`\0${variable}\0`));
  const kill = (pids: readonly number[]): void => {
    for (const pid of pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  };
  /**
   * Ends all processes of a node: its daemon, the processes that watch its jobs and would report
   * their end, and the jobs.
   */
  const loseNode = async (name: string): Promise<number> => {
    await stop(name);
    const jobs = findJobs(`SLURMD_NODENAME=${name}`);
    const parents = jobs.map((pid) =>
      Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
    );
    const watchers = processesWhere('status', (text) => text.startsWith('Name:\tslurmstepd\n'));
    const own = watchers.filter((pid) => parents.includes(pid));
    kill([...own, ...jobs]);
    return own.length;
  };

  before(async function () {
    requires(this, 'root', process.getuid?.() === 0);
    requires(this, 'slurm', spawnSync('slurmctld', ['-V'], { env: { PATH: SBIN } }).status === 0);
    folder = await makeTempDir('slurm');
    await Promise.all(['state', 'photos', ...NODES].map((name) => mkdir(join(folder, name))));
    for (let id = 1; id <= FILES; id += 1)
      await copyFile(fixturePath('scene.jpg'), join(folder, `photos/${id}.jpg`));
    const program = join(folder, 'imagemill');
    await writeFile(
      program,
      `#!/bin/sh
# Each run of a task replaces the report of the one before.
cat "out/report-$SLURM_ARRAY_TASK_ID-of-$SLURM_ARRAY_TASK_COUNT.csv" >>${EARLIER} 2>/dev/null
exec ${process.execPath} ${MAIN} "$@"
`,
      { mode: 0o755 },
    );
    env = { ...process.env, SLURM_CONF: join(folder, 'slurm.conf'), IMAGEMILL: program };
    const ports = await freePorts(3);
    const node = (name: string, at: number) =>
      `NodeName=${name} NodeHostname=${hostname()} NodeAddr=127.0.0.1 Port=${ports[at + 1]} CPUs=2 RealMemory=1000`;
    await writeFile(
      join(folder, 'slurm.conf'),
      `ClusterName=test
SlurmctldHost=${hostname()}(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Slurm starts a job of a lost node again as soon as the job's credential has expired.
AuthInfo=socket=${folder}/munge.sock,cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
StateSaveLocation=${folder}/state
SlurmdSpoolDir=${folder}/%n
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdPidFile=${folder}/%n.pid
SlurmdTimeout=6
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
${NODES.map(node).join('\n')}
PartitionName=all Nodes=n1,n2 Default=YES State=UP
`,
    );
    const key = join(folder, 'munge.key');
    await writeFile(key, Buffer.alloc(128, 1));
    await chmod(key, 0o400);
    const own = ['pid-file=munge.pid', 'log-file=munge.log', 'seed-file=munge.seed', 'socket=munge.sock'];
    const options = own.map((option) => `--${option.replace('=', `=${folder}/`)}`);
    start('munged', 'munged', '--foreground', '--force', `--key-file=${key}`, ...options);
    await eventually(async () => (await readdir(folder)).includes('munge.sock'));
    start('slurmctld', 'slurmctld', '-D', '-c');
    for (const name of NODES) startNode(name);
    await eventually(() => run('sinfo').then(Boolean, () => false));
    await nodesAre('idle');
  });
  after(async () => {
    for (const name of NODES) await loseNode(name);
    for (const name of ['slurmctld', 'munged']) await stop(name);
  });

  it('converts each file once when it is submitted twice at once, and has nothing to do afterwards', async () => {
    await Promise.all([submit(), submit()]);
    await ended();
    expect(await resultNames()).to.have.length(FILES);
    await submit();
    await ended();
    expect(await statuses()).to.deep.equal({ 'up to date': FILES });
  });

  it('converts all files although a task is killed and a node is lost, and no finished one again', async () => {
    for (const name of ['out', EARLIER]) await rm(join(folder, name), { recursive: true });
    await submit();
    const findTask = () => findJobs('SLURM_ARRAY_TASK_ID=1');
    // On a busy machine, other tasks can start long before this one.
    await eventually(async () => (await resultNames()).length > 20 && findTask().length > 0);
    const task = findTask();
    expect(task).to.have.length.above(0);
    kill(task);
    const lost = await loseNode('n2');
    expect(lost).to.be.above(0);
    await ended();
    expect((await run('sinfo', '--noheader', '-N', '-n', 'n2', '-o', '%t')).replace('*', '')).to.equal(
      'down',
    );
    startNode('n2');
    await nodesAre('idle');
    await submit();
    await ended();
    expect(await resultNames()).to.have.length(FILES);
    const { converted = 0, 'up to date': before = 0 } = await statuses();
    expect(converted + before).to.equal(FILES);
    expect(before, 'three of four tasks ended before').to.be.above(FILES / 2);
    const rows = await rowsOf(EARLIER, ...reports);
    const inputs = rows.filter(({ status }) => status === 'converted').map(({ input }) => input);
    expect(inputs, 'conversions of all runs').to.have.length.within(FILES - (lost + 1) * IN_FLIGHT, FILES);
    expect(new Set(inputs), 'files that were converted').to.have.property('size', inputs.length);
    const [first, ...others] = await Promise.all(
      (await resultNames()).map((name) => readFile(join(folder, 'out', name))),
    );
    for (const other of others) expect(other.equals(first as Buffer)).to.equal(true);
  });
});
