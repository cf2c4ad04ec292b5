import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import sharp from 'sharp';
import { type ClientRun, emptyTally, once, runClients, type Tally } from './clients.ts';
import type { Random } from './random.ts';
import type { Request } from './requests.ts';
import { filesLeft, processesLeft, type Server, scratch, startServer } from './server.ts';

/** Faults, one after another, each on a server of its own, while a crowd is served or refused. */

interface FaultParts {
  /** For each fault. */
  readonly seconds: number;
  readonly random: Random;
  readonly good: readonly Request[];
  readonly others: readonly Request[];
  /** The real ImageMagick. */
  readonly magick: string;
}

export interface Outcome {
  /** Why the fault could not be had on this machine. */
  readonly notRun?: string;
  readonly tally: Tally;
  /** What was there after the server had ended. */
  readonly left: readonly string[];
}

type Fault = (parts: FaultParts) => Promise<Outcome>;

export const FAULTS: Readonly<Record<string, Fault>> = {
  'the tool hangs and ignores SIGTERM': (parts) =>
    withTool(parts, "trap '' TERM; while :; do sleep 1; done", [413, 503]),
  'the tool crashes': (parts) => withTool(parts, 'kill -SEGV $$', [400, 503]),
  'the tool is gone for a while': toolGone,
  'the disk of 64 MB fills': diskFull,
  'open files run out': filesRunOut,
  'SIGTERM with work in flight': drained,
  'kill -9 and a start over the same folder': killed,
};

const clientsOf = (
  { random, good, others }: FaultParts,
  { base }: Server,
  more: Partial<ClientRun> = {},
): ClientRun => ({
  ...{ base, random, good, others, clients: 6 },
  ...more,
});

/** Half the time the tool does as `body` says, then it is the real one again: then all must be well. */
async function withTool(parts: FaultParts, body: string, excused: readonly number[]): Promise<Outcome> {
  const folder = join(scratch, `tool-${parts.random.below(1e9)}`);
  mkdirSync(folder);
  const [tool, bad] = [join(folder, 'magick'), join(folder, 'bad')];
  // Of version 6 none waits for images: one that was started in bad times would go on as it is in good ones.
  const script = `#!/bin/sh\ncase "$*" in *" @-") exit 1;; *-version*|*-list*|xc:*|"PNG:in PDF:allowed.pdf") exec ${parts.magick} "$@";; esac\nif [ -e ${bad} ]; then ${body}; fi\nexec ${parts.magick} "$@"\n`;
  writeFileSync(tool, script, { mode: 0o755 });
  const server = await startServer({ MAGICK_BIN: tool, SANDBOX: 'off', CONVERT_TIMEOUT_MS: '4000' });
  writeFileSync(bad, '');
  const tally = await runClients(
    clientsOf(parts, server, { excused }),
    AbortSignal.timeout(parts.seconds * 500),
  );
  renameSync(bad, `${bad}.not`);
  return finish(parts, server, tally);
}

async function toolGone(parts: FaultParts): Promise<Outcome> {
  const folder = join(scratch, 'gone');
  mkdirSync(folder);
  const tool = join(folder, 'magick');
  writeFileSync(tool, `#!/bin/sh\nexec ${parts.magick} "$@"\n`, { mode: 0o755 });
  const server = await startServer({ MAGICK_BIN: tool, SANDBOX: 'off' });
  renameSync(tool, `${tool}.away`);
  const tally = await runClients(
    clientsOf(parts, server, { excused: [503] }),
    AbortSignal.timeout(parts.seconds * 500),
  );
  renameSync(`${tool}.away`, tool);
  return finish(parts, server, tally);
}

/** A real disk, as small as that; it takes root to mount one. */
async function diskFull(parts: FaultParts): Promise<Outcome> {
  const folder = join(scratch, 'small-disk');
  mkdirSync(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', folder], { stdio: 'pipe' });
  } catch {
    return { tally: emptyTally(), left: [], notRun: 'a disk cannot be mounted here' };
  }
  try {
    const server = await startServer({ TEMP_DIR: folder });
    const noise = await sharp({
      create: {
        width: 2200,
        height: 1500,
        channels: 3,
        background: 'grey',
        noise: { type: 'gaussian', mean: 128, sigma: 60 },
      },
    })
      .jpeg({ quality: 95 })
      .toBuffer();
    const form = (): FormData => {
      const data = new FormData();
      data.append('format', 'bmp');
      data.append('file', new Blob([new Uint8Array(noise)]), 'noise.jpg');
      return data;
    };
    const large: Request = {
      kind: 'good',
      what: 'noise to bmp',
      path: '/convert',
      form,
      expected: [200, 503],
    };
    const crowd = clientsOf(parts, server, {
      good: [...parts.good.slice(0, 3), large],
      clients: 16,
      excused: [503],
    });
    const tally = await runClients(crowd, AbortSignal.timeout(parts.seconds * 1000));
    return await finish(parts, server, tally);
  } finally {
    execFileSync('umount', [folder]);
  }
}

async function filesRunOut(parts: FaultParts): Promise<Outcome> {
  const server = await startServer({}, ['prlimit', '--nofile=64']);
  const crowd = clientsOf(parts, server, { clients: 60, excused: [503], mayLose: true });
  const tally = await runClients(crowd, AbortSignal.timeout(parts.seconds * 1000));
  // A connection that was kept may be hung up on at the moment it is used again.
  return finish(parts, server, tally, { mayLose: true });
}

const IN_FLIGHT = 12;

/** Requests that take a while, and a server that is asked to end when all of them are being worked on. */
async function drained(parts: FaultParts): Promise<Outcome> {
  const server = await startServer({ SHUTDOWN_GRACE_MS: '120000', CONVERT_TIMEOUT_MS: '120000' });
  const { tally, answered } = await inFlight(parts, server, { leaving: 0 });
  const { code } = await server.end('SIGTERM');
  await answered;
  if (code !== 0) tally.wrong.push(`ended with status ${code}`);
  if ((tally.answers[200] ?? 0) !== IN_FLIGHT)
    tally.wrong.push(`${IN_FLIGHT} in flight, answers ${JSON.stringify(tally.answers)}`);
  return { tally, left: leftBy(server) };
}

async function killed(parts: FaultParts): Promise<Outcome> {
  const server = await startServer();
  const { tally, answered } = await inFlight(parts, server, { leaving: 0, mayLose: true });
  await server.end('SIGKILL');
  await answered;
  await until(() => processesLeft(server.tempDir).length === 0);
  if (processesLeft(server.tempDir).length > 0) tally.wrong.push('tools outlived their server');
  const next = await startServer({ TEMP_DIR: server.tempDir });
  const after = await runClients(clientsOf(parts, next), AbortSignal.timeout(parts.seconds * 500));
  return finish(parts, next, merged(tally, after));
}

/** Waits until the server works on {@link IN_FLIGHT} requests, none of which is answered yet. */
async function inFlight(parts: FaultParts, server: Server, more: Partial<ClientRun>) {
  const photo = await sharp({
    create: {
      width: 2400,
      height: 1800,
      channels: 3,
      background: 'teal',
      noise: { type: 'gaussian', mean: 128, sigma: 20 },
    },
  })
    .jpeg()
    .toBuffer();
  const form = (): FormData => {
    const data = new FormData();
    data.append('file', new Blob([new Uint8Array(photo)]), 'photo.jpg');
    return data;
  };
  const request: Request = { kind: 'good', what: 'a photo', path: '/convert', form, expected: [200] };
  const tally = emptyTally();
  const crowd = clientsOf(parts, server, more);
  const answered = Promise.all(Array.from({ length: IN_FLIGHT }, () => once(crowd, request, tally)));
  await until(() => receivedFiles(server) >= IN_FLIGHT);
  return { tally, answered };
}

const receivedFiles = ({ tempDir }: Server): number =>
  readdirSync(tempDir, { recursive: true }).filter((path) => /request-[^/]+\/1$/.test(String(path))).length;

/** The fault is over: from now on everything good must be right again; then the server ends and leaves nothing. */
async function finish(
  parts: FaultParts,
  server: Server,
  tally: Tally,
  more: Partial<ClientRun> = {},
): Promise<Outcome> {
  const after = emptyTally();
  const calm = clientsOf(parts, server, { leaving: 0, ...more });
  for (const request of parts.good.slice(0, 12)) await once(calm, request, after);
  if (after.right === 0) after.wrong.push('nothing is right again');
  const { code } = await server.end('SIGTERM');
  if (code !== 0) after.wrong.push(`ended with status ${code}`);
  return { tally: merged(tally, after), left: leftBy(server) };
}

function leftBy({ tempDir }: Server): string[] {
  return [...filesLeft(tempDir), ...processesLeft(tempDir).map((pid) => `process ${pid}`)];
}

function merged(one: Tally, other: Tally): Tally {
  const answers = { ...one.answers };
  for (const [answer, count] of Object.entries(other.answers))
    answers[answer] = (answers[answer] ?? 0) + count;
  return {
    requests: one.requests + other.requests,
    answers,
    right: one.right + other.right,
    wrong: [...one.wrong, ...other.wrong],
  };
}

async function until(check: () => boolean): Promise<void> {
  for (let round = 0; round < 500 && !check(); round += 1) await pause(20);
}
