/** @module Faults that interrupt counters in Redis and commands. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once as event } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { BUILT_PROGRAM } from '../processes/start.ts';
import { count, emptyTally } from './clients.ts';
import { type Fault, type FaultParts, finish, type Outcome, runLoad } from './fault.ts';
import { processesLeft, scratch, startServer, waitUntil } from './server.ts';

/** Interruptions by the name that the report prints. */
export const INTERRUPTIONS: Readonly<Record<string, Fault>> = {
  'Redis sends wrong answers': lyingRedis,
  'imagemill convert --update is interrupted': interruptCommand,
};

/**
 * Answers to EVALSHA, which should be the number of requests and the time until the window ends.
 */
const LIES = [
  '*2\r\n:-5\r\n:-9\r\n',
  '*2\r\n$3\r\nabc\r\n$0\r\n\r\n',
  '*2\r\n:1\r\n:99999999999999\r\n',
  '*1\r\n:1\r\n',
  '*-1\r\n',
  '$-1\r\n',
  '+OK\r\n',
  ':7\r\n',
  '-ERR no\r\n',
  '-NOSCRIPT No matching script\r\n',
  '*2\r\n*0\r\n*0\r\n',
  '*99999999\r\n:1\r\n',
  'HTTP/1.1 200 OK\r\n\r\n',
  '\u0000\u0001\u0002',
  '',
];

/** Counts requests in a Redis that answers at random. */
async function lyingRedis(parts: FaultParts): Promise<Outcome> {
  let lies = 0;
  const answer = (socket: Socket, command: string): void => {
    if (command.includes('SCRIPT')) socket.write(`$40\r\n${'a'.repeat(40)}\r\n`);
    else if (!command.includes('EVALSHA')) socket.write('+OK\r\n');
    else {
      lies += 1;
      socket.write(parts.random.pick(LIES));
      if (parts.random.next() < 0.02) socket.destroy();
    }
  };
  const redis = createServer((socket) => {
    socket.on('error', () => {}); // the service disconnects after a wrong answer
    socket.on('data', (data) => {
      for (const command of data
        .toString('latin1')
        .split(/^\*\d+\r\n/m)
        .slice(1))
        answer(socket, command);
    });
  });
  redis.listen(0, '127.0.0.1');
  await event(redis, 'listening');
  const url = `redis://127.0.0.1:${(redis.address() as AddressInfo).port}`;
  const server = await startServer({ REDIS_URL: url, RATE_LIMIT_PER_MINUTE: '1000000' });
  const tally = await runLoad(parts, server);
  const outcome = await finish(parts, server, tally);
  redis.close();
  return { ...outcome, figures: `${lies} wrong answers of Redis` };
}

const MAX_INTERRUPTIONS = 50;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGKILL'] as const;
const IMAGES = new URL('../../fixtures/images/', import.meta.url).pathname;

/** Interrupts `imagemill convert --update` at random times, and then lets it end. */
async function interruptCommand({ random, seconds }: FaultParts): Promise<Outcome> {
  const tally = emptyTally();
  const folder = join(scratch, 'command');
  const [source, temp] = [join(folder, 'in'), join(folder, 'temp')];
  const [expected, results] = [join(folder, 'expected'), join(folder, 'out')];
  for (const path of [source, temp]) mkdirSync(path, { recursive: true });
  const images = readdirSync(IMAGES).filter((name) => /^(?:scene|window|orientation)/.test(name));
  for (const [at, name] of images.entries()) cpSync(join(IMAGES, name), join(source, `${at}-${name}`));
  const start = (output: string): ChildProcess =>
    spawn(
      process.execPath,
      [BUILT_PROGRAM, 'convert', source, '--format', 'png', '--output', output, '--update'],
      {
        env: { PATH: process.env.PATH, TEMP_DIR: temp },
        stdio: 'ignore',
      },
    );
  const [status] = await event(start(expected), 'exit');
  if (status !== 0) throw new Error(`imagemill convert failed with status ${status}`);
  const names = resultsIn(expected);
  const check = (when: string): void => {
    for (const name of resultsIn(results)) {
      tally.requests += 1;
      if (readFileSync(join(results, name)).equals(readFileSync(join(expected, name)))) tally.right += 1;
      else tally.wrong.push(`${name} is incomplete ${when}`);
    }
  };
  const deadline = performance.now() + seconds * 1000;
  let runs = 0;
  for (; runs < MAX_INTERRUPTIONS && performance.now() < deadline; runs += 1) {
    if (runs % 5 === 0) rmSync(results, { recursive: true, force: true });
    const signal = random.pick(SIGNALS);
    const child = start(results);
    const ended = event(child, 'exit');
    await pause(300 + random.below(3000));
    child.kill(signal);
    const [code, by] = await ended;
    count(tally, by ?? code);
    check(`after ${signal}`);
  }
  const [last] = await event(start(results), 'exit');
  if (last !== 0) tally.wrong.push(`the last run ended with status ${last}`);
  check('after the last run');
  const missing = names.filter((name) => !resultsIn(results).includes(name));
  if (missing.length > 0) tally.wrong.push(`missing: ${missing.join(', ')}`);
  await waitUntil(() => processesLeft(folder).length === 0);
  const unfinished = readdirSync(join(results, '.imagemill')).filter((name) => name !== 'index.jsonl');
  const left = [...unfinished, ...readdirSync(temp), ...processesLeft(folder).map((pid) => `process ${pid}`)];
  return { tally, figures: `${runs} interruptions`, left };
}

/** Lists the results in a folder. */
function resultsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name !== '.imagemill');
  } catch {
    return [];
  }
}
