/** @module Faults, each on a separate server, while clients send requests. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { formWith } from '../../test/helpers/from-address.ts';
import { isRunning } from '../../test/helpers/util.ts';
import { kill, listTree } from '../processes/usage.ts';
import { ATTACK_FAULTS } from './attacks.ts';
import { add, type ClientRun, emptyTally, once, runClients } from './clients.ts';
import { clientRun, endServer, type Fault, type FaultParts, finish, type Outcome, runLoad } from './fault.ts';
import { INTERRUPTIONS } from './interruptions.ts';
import { SLOW_CLIENT_FAULTS } from './noisy-client-faults.ts';
import { noisyPhoto, type Request } from './requests.ts';
import { filesLeft, processesLeft, type Server, scratch, startServer, waitUntil } from './server.ts';

/** Faults by the name that the report prints. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  'the tool hangs and ignores SIGTERM': (parts) =>
    withTool(parts, "trap '' TERM; while :; do sleep 1; done", [413, 503]),
  'the tool crashes': (parts) => withTool(parts, 'kill -SEGV $$', [400, 503]),
  'fork servers and their jobs are killed at random': killAtRandom,
  'the disk of 64 MB fills': diskFull,
  'open files run out': filesRunOut,
  'SIGTERM with work in flight': drainOnSigterm,
  'kill -9 and a start over the same folder': killAndRestart,
  ...INTERRUPTIONS,
  ...ATTACK_FAULTS,
  ...SLOW_CLIENT_FAULTS,
};

/**
 * Runs `body` in place of ImageMagick for the first half of the time. Then all requests must
 * succeed again.
 */
async function withTool(parts: FaultParts, body: string, excused: readonly number[]): Promise<Outcome> {
  const folder = join(scratch, `tool-${parts.random.below(1e9)}`);
  const [tool, good] = [join(folder, 'magick'), join(folder, 'good')];
  mkdirSync(folder);
  writeFileSync(good, '');
  const script = `#!/bin/sh
case "$*" in *-version*|*-list*|xc:*|"PNG:in PDF:allowed.pdf") exec ${parts.magick} "$@";; esac
[ -e ${good} ] || { ${body}; }
exec ${parts.magick} "$@"\n`;
  writeFileSync(tool, script, { mode: 0o755 });
  const server = await startServer({ MAGICK_BIN: tool, SANDBOX: 'off', CONVERT_TIMEOUT_MS: '8000' });
  rmSync(good);
  const tally = await runLoad(parts, server, { excused }, 1 / 2);
  writeFileSync(good, '');
  return finish(parts, server, tally);
}

/**
 * Share of long waits between two kills, and their time in ms, in which a fork server reaches its
 * number of jobs.
 */
const [LONG_WAITS, LONG_WAIT_MS] = [0.001, 60_000];
/** Number of requests from which on the growth of memory means something. */
const MIN_REQUESTS = 5000;
/**
 * Maximum growth of the server's memory in use from the first tenth of the time to the end, in
 * bytes.
 */
const MAX_GROWTH_BYTES = 50e6;

/**
 * Kills one of the server's fork servers or their jobs every 20 to 120 ms, except in long waits.
 */
async function killAtRandom(parts: FaultParts): Promise<Outcome> {
  const { seconds, random } = parts;
  const server = await startServer();
  const usedBytes = async (): Promise<number> => (await server.measure()).usedBytes;
  const until = AbortSignal.timeout(seconds * 1000);
  const load = runClients(clientRun(parts, server, { excused: [400, 503] }), until);
  const usedBefore = pause(seconds * 100).then(usedBytes);
  const killed: number[] = [];
  while (!until.aborted) {
    const waitMs = random.next() < LONG_WAITS ? LONG_WAIT_MS : 20 + random.below(100);
    await pause(waitMs, undefined, { signal: until }).catch(() => {});
    const others = listTree(server.pid).filter((pid) => pid !== server.pid);
    if (others.length === 0) continue;
    const pid = random.pick(others);
    if (kill(pid)) killed.push(pid);
  }
  const tally = await load;
  await waitUntil(() => !killed.some(isRunning));
  const growth = (await usedBytes()) - (await usedBefore);
  if (tally.requests >= MIN_REQUESTS && growth > MAX_GROWTH_BYTES)
    tally.wrong.push(`memory in use grew by ${(growth / 1e6).toFixed(1)} MB`);
  const metrics = await (await fetch(new URL('/metrics', server.base))).text();
  const renewals = [...metrics.matchAll(/fork_server_renewals_total\{reason="(\w+)"\} (\d+)/g)];
  const replaced = renewals.map(([, reason, count]) => `${reason} ${count}`).join(', ');
  const figures = `${killed.length} processes killed; servers replaced: ${replaced}; memory in use ${(growth / 1e6).toFixed(1)} MB above that after a tenth of the time`;
  return { ...(await finish(parts, server, tally)), figures };
}

/** Fills a 64 MB tmpfs, which requires root to mount. */
async function diskFull(parts: FaultParts): Promise<Outcome> {
  const folder = join(scratch, 'small-disk');
  mkdirSync(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder], { stdio: 'pipe' });
  } catch {
    return { tally: emptyTally(), left: [], notRun: 'this machine does not permit mounts' };
  }
  try {
    const server = await startServer({ TEMP_DIR: folder });
    const noise = await noisyPhoto(2200, 1500, 60, 95);
    const form = () => formWith(noise, 'file', { format: 'bmp' });
    const expected = [200, 503];
    const large: Request = { what: 'noise to bmp', path: '/convert', form, expected };
    const good = [...parts.good.slice(0, 3), large];
    const tally = await runLoad(parts, server, { good, clients: 16, excused: [503] });
    return await finish(parts, server, tally);
  } finally {
    execFileSync('umount', [folder]);
  }
}

/** Limits the open files of the server to 64. */
async function filesRunOut(parts: FaultParts): Promise<Outcome> {
  const server = await startServer({}, ['prlimit', '--nofile=64']);
  const tally = await runLoad(parts, server, { clients: 60, excused: [503], mayLose: true });
  // The server may close an idle keep-alive connection at the moment a client reuses it. A
  // connection that was opened in the crowd and had no request yet is for probes only: its first
  // request gets 503.
  return finish(parts, server, tally, { excused: [503], mayLose: true });
}

const IN_FLIGHT = 12;

/** Sends SIGTERM while {@link IN_FLIGHT} slow requests are in progress. All must be answered. */
async function drainOnSigterm(parts: FaultParts): Promise<Outcome> {
  const server = await startServer({ SHUTDOWN_GRACE_MS: '600000', CONVERT_TIMEOUT_MS: '600000' });
  const { tally, answered } = await inFlight(parts, server, { leaving: 0 });
  const left = await endServer(server, tally.wrong);
  await answered;
  if ((tally.answers[200] ?? 0) !== IN_FLIGHT)
    tally.wrong.push(`${IN_FLIGHT} in flight, answers ${JSON.stringify(tally.answers)}`);
  return { tally, left };
}

/**
 * Sends SIGKILL while requests are in progress and starts another server with the same folder,
 * which must remove the leftovers.
 */
async function killAndRestart(parts: FaultParts): Promise<Outcome> {
  const server = await startServer();
  const { tally, answered } = await inFlight(parts, server, { leaving: 0, mayLose: true });
  await server.end('SIGKILL');
  await answered;
  const left = (): number => processesLeft(server.tempDir).length + server.outlived().length;
  await waitUntil(() => left() === 0);
  if (left() > 0) tally.wrong.push('tools outlived their server');
  const next = await startServer({ TEMP_DIR: server.tempDir });
  add(tally, await runLoad(parts, next, {}, 1 / 2));
  return finish(parts, next, tally);
}

/** Sends {@link IN_FLIGHT} requests and waits until the server has received all of them. */
async function inFlight(parts: FaultParts, server: Server, more: Partial<ClientRun>) {
  const photo = await noisyPhoto(2400, 1800, 20);
  const form = () => formWith(photo);
  const request: Request = { what: 'a photo', path: '/convert', form, expected: [200] };
  const tally = emptyTally();
  const run = clientRun(parts, server, more);
  const answered = Promise.all(Array.from({ length: IN_FLIGHT }, () => once(run, request, tally)));
  const answers = (): number => Object.values(tally.answers).reduce((sum, count) => sum + count, 0);
  await waitUntil(() => receivedFiles(server) + answers() >= IN_FLIGHT);
  return { tally, answered };
}

const receivedFiles = (server: Server): number =>
  filesLeft(server).filter((path) => /request-[^/]+\/1$/.test(path)).length;
