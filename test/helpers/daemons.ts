/**
 * @module Starts Redis and nginx as child processes of a test. Services of the system are not
 * touched.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { makeTempDir } from './hooks.ts';
import { eventually } from './util.ts';

/** A running server. */
export interface Daemon {
  readonly child: ChildProcess;
  readonly port: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Returns TCP ports that are free at the moment. They are below those that systems assign to
 * connections and to servers without a fixed port (from 32768 on), so that no other test gets one
 * of them while its server restarts.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(10_000, 32_768);
    if (!(await isListening(port))) ports.add(port);
  }
  return [...ports];
}

/** Starts Redis without persistence. */
export async function startRedis(port: number): Promise<Daemon> {
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  return waitUntilListening(spawn('redis-server', args, { cwd: await makeTempDir('redis'), ...QUIET }), port);
}

/** Starts nginx with the given content of the `http` block. */
export async function startNginx(port: number, http: string): Promise<Daemon> {
  const folder = await makeTempDir('nginx');
  const tempPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  // A single process: killing it ends all of nginx.
  const conf = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 512; }
http { access_log off; ${tempPaths.join(' ')}
${http}
}`;
  return startNginxFile(port, folder, conf);
}

/**
 * Starts nginx with a complete configuration in a separate folder.
 *
 * @param before program and arguments that start nginx, such as unshare
 */
export async function startNginxFile(
  port: number,
  folder: string,
  conf: string,
  before: readonly string[] = [],
): Promise<Daemon> {
  await writeFile(join(folder, 'nginx.conf'), conf);
  // A single process: killing it ends all of nginx.
  const singleProcess = conf.includes('daemon off;') ? [] : ['-g', 'daemon off; master_process off;'];
  const args = [
    '-p',
    folder,
    '-e',
    `${folder}/error.log`,
    '-c',
    join(folder, 'nginx.conf'),
    ...singleProcess,
  ];
  const [program = 'nginx', ...rest] = [...before, 'nginx', ...args];
  return waitUntilListening(spawn(program, rest, QUIET), port);
}

const QUIET = {
  stdio: 'ignore',
  env: { PATH: `${process.env.PATH}:/usr/sbin` },
} as const;

async function waitUntilListening(child: ChildProcess, port: number): Promise<Daemon> {
  const end = once(child, 'exit');
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    return isListening(port);
  });
  return {
    child,
    port,
    async stop(signal = 'SIGKILL') {
      child.kill(signal);
      await end;
    },
  };
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
