import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { makeTempDir } from './hooks.ts';
import { eventually } from './util.ts';

/** Other people's servers, as processes of a test's own: nothing of the system's is started or touched. */

export interface Daemon {
  readonly child: ChildProcess;
  readonly port: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Ports that nobody listens on now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** Redis that keeps nothing on disk. */
export async function startRedis(port: number): Promise<Daemon> {
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  return started(spawn('redis-server', args, { cwd: await makeTempDir('redis'), ...QUIET }), port);
}

/** nginx with this configuration of its `http` part. */
export async function startNginx(port: number, http: string): Promise<Daemon> {
  const folder = await makeTempDir('nginx');
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  // One process, so that whoever ends it has ended all of it.
  const conf = `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 512; }
http { access_log off; ${own.join(' ')}
${http}
}`;
  return startNginxFile(port, folder, conf);
}

/**
 * nginx in a folder of its own with a whole configuration.
 *
 * @param before a program and arguments that start it in their turn
 */
export async function startNginxFile(
  port: number,
  folder: string,
  conf: string,
  before: readonly string[] = [],
): Promise<Daemon> {
  await writeFile(join(folder, 'nginx.conf'), conf);
  // One process: ending it ends all of nginx.
  const alone = conf.includes('daemon off;') ? [] : ['-g', 'daemon off; master_process off;'];
  const args = ['-p', folder, '-e', `${folder}/error.log`, '-c', join(folder, 'nginx.conf'), ...alone];
  const [program = 'nginx', ...rest] = [...before, 'nginx', ...args];
  return started(spawn(program, rest, QUIET), port);
}

const QUIET = {
  stdio: 'ignore',
  env: { PATH: `${process.env.PATH}:/usr/sbin` },
} as const;

async function started(child: ChildProcess, port: number): Promise<Daemon> {
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
