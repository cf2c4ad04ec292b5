/**
 * @module Converts images in this process while its fork servers and their jobs are killed at random and clients leave, and
 * compares each result with that of a new start of the tool.
 */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { pino } from 'pino';
import { loadConfig } from '../../src/config.ts';
import {
  type ConversionEngine,
  createConversionEngine,
  type RenewalReason,
} from '../../src/conversion/engine.ts';
import type { InputType, OutputType } from '../../src/formats.ts';
import { convertWith, typeOf } from '../../test/helpers/engine.ts';
import { kill, listTree, readProc } from '../processes/usage.ts';
import { count, emptyTally } from './clients.ts';
import type { FaultParts, Outcome } from './fault.ts';
import { processesLeft, scratch, waitUntil } from './server.ts';

const IMAGES = new URL('../../fixtures/images/', import.meta.url).pathname;
const FORMATS: readonly OutputType[] = ['png', 'jpg', 'webp', 'gif', 'bmp'];
/** Jobs at once. */
const WORKERS = 4;
/** Part of the jobs whose client leaves. */
const LEAVING = 0.02;
/** Part of the waits between two kills that are long, and their time in ms, in which a server reaches its number of jobs. */
const [QUIET, QUIET_MS] = [0.01, 60_000];
/** Number of jobs from which on the growth of memory means something. */
const MIN_JOBS = 5000;
/** Maximum growth of the memory in use from the first tenth of the jobs to the end, in bytes. It includes clients of other servers. */
const MAX_GROWTH_BYTES = 50e6;

interface Job {
  readonly name: string;
  readonly bytes: Buffer;
  readonly type: InputType;
  readonly format: OutputType;
}

/** Runs `jobs` conversions. */
export async function soak({ random, jobs }: FaultParts): Promise<Outcome> {
  const tally = emptyTally();
  /** Servers of other faults. */
  const bystanders = listTree(process.pid).filter((pid) => pid !== process.pid);
  const home = join(scratch, 'soak');
  mkdirSync(home);
  const renewals: RenewalReason[] = [];
  const start = (FORK_SERVER: string): Promise<ConversionEngine> =>
    createConversionEngine(
      loadConfig({ PATH: process.env.PATH, TEMP_DIR: home, FORK_SERVER }),
      pino({ level: 'silent' }),
      { serverRenewed: (reason) => renewals.push(reason) },
    );
  const list = await listJobs();
  const expected = new Map<Job, Buffer>();
  const exec = await start('off');
  for (const job of list) expected.set(job, await convert(exec, job));
  await exec.close();

  const engine = await start('on');
  let [kills, begun, usedBefore] = [0, 0, 0];
  async function work(): Promise<void> {
    while (begun < jobs) {
      begun += 1;
      if (begun === Math.ceil(jobs / 10)) usedBefore = usedBytes();
      const job = random.pick(list);
      const leaves = random.next() < LEAVING ? AbortSignal.timeout(random.below(20)) : undefined;
      tally.requests += 1;
      const result = await convert(engine, job, leaves).catch((error) => error as Error);
      const outcome = Buffer.isBuffer(result)
        ? 'converted'
        : ((result as { code?: string }).code ?? result.name);
      count(tally, outcome);
      if (!Buffer.isBuffer(result)) continue;
      if (result.equals(expected.get(job) as Buffer)) tally.right += 1;
      else tally.wrong.push(`${job.name} to ${job.format} differs from a new start`);
    }
  }
  const done = new AbortController();
  const working = Promise.all(Array.from({ length: WORKERS }, work)).finally(() => done.abort());
  while (begun < jobs) {
    const wait = random.next() < QUIET ? QUIET_MS : random.below(500);
    await pause(wait, undefined, { signal: done.signal }).catch(() => {});
    const spared = new Set(bystanders.flatMap(listTree));
    const others = listTree(process.pid).filter((pid) => !spared.has(pid) && isOfForkServer(pid));
    if (others.length > 0 && kill(random.pick(others))) kills += 1;
  }
  await working;
  const growth = usedBytes() - usedBefore;
  const { waiting, running } = engine.stats();
  await engine.close();
  if (jobs >= MIN_JOBS && growth > MAX_GROWTH_BYTES)
    tally.wrong.push(`memory in use grew by ${(growth / 1e6).toFixed(1)} MB`);
  if (waiting + running > 0) tally.wrong.push(`${waiting + running} jobs never ended`);
  if (tally.right === 0) tally.wrong.push('no job succeeded');
  await waitUntil(() => processesLeft(home).length === 0);
  const left = [...readdirSync(home), ...processesLeft(home).map((pid) => `process ${pid}`)];
  const counts = [...Map.groupBy(renewals, (reason) => reason)]
    .map(([reason, { length }]) => `${reason} ${length}`)
    .join(', ');
  const figures = `${kills} processes killed; servers replaced: ${counts || 'none'}; memory in use ${(growth / 1e6).toFixed(1)} MB above that after a tenth of the jobs`;
  return { tally, figures, left };
}

/** Returns whether a process is a fork server or a job of one: other children of this process decode results. */
const isOfForkServer = (pid: number): boolean =>
  readProc(pid, 'environ').includes('IMAGEMILL_FORK_SERVER=serve');

/** Returns the memory that JavaScript objects and buffers use, in bytes. */
function usedBytes(): number {
  setFlagsFromString('--expose-gc');
  // The second collection waits until buffers that the first one found are free.
  const collect = runInNewContext('gc') as NonNullable<typeof globalThis.gc>;
  for (let count = 0; count < 2; count += 1)
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function listJobs(): Promise<Job[]> {
  const names = readdirSync(IMAGES).filter((name) => /^(?:scene|window|orientation)/.test(name));
  const jobs = names.map(async (name) => {
    const bytes = readFileSync(join(IMAGES, name));
    const type = (await typeOf(bytes)) as InputType;
    return FORMATS.map((format) => ({ name, bytes, type, format }));
  });
  return (await Promise.all(jobs)).flat();
}

const convert = (engine: ConversionEngine, { bytes, type, format }: Job, signal?: AbortSignal) =>
  convertWith(
    engine,
    { bytes, type },
    { format, quality: 80, stripMetadata: true },
    ({ path }) => readFile(path),
    signal,
  );
