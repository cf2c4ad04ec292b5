/** @module Starts servers as separate processes. They end with this process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A server that listens. */
export interface ServerProcess {
  readonly pid: number;
  /** Port on 127.0.0.1. */
  readonly port: number;
  /** Sends a signal, SIGTERM by default, and waits until the process exits. */
  end(signal?: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Path of the built program. */
export const BUILT_PROGRAM: string = new URL('../../dist/main.js', import.meta.url).pathname;

/** Environment of a service that accepts any number of requests on a free port of this machine. */
export const SERVICE_ENVIRONMENT = { PORT: '0', HOST: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '0' } as const;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// Run the exit handler on a signal, too.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** Maximum length of the output that is kept, in characters. */
const MAX_OUTPUT = 100_000;

/**
 * Starts a server and waits until it prints its address.
 *
 * @param command program and arguments
 * @param environment environment variables in addition to PATH
 * @throws {Error} with its last output if the process exits first
 */
export async function startServerProcess(
  [program = process.execPath, ...args]: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<ServerProcess> {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const { promise: port, resolve, reject } = Promise.withResolvers<number>();
  let output = '';
  const receive = (chunk: Buffer): void => {
    if (output.length > MAX_OUTPUT) return;
    output += chunk;
    const match = /listening on (?:http:\/\/[\d.]+:)?(\d+)/.exec(output);
    if (match) resolve(Number(match[1]));
  };
  child.stdout.on('data', receive);
  child.stderr.on('data', receive);
  void ended.then(() => {
    running.delete(child);
    reject(new Error(`the server exited: ${output.slice(-2000)}`));
  });
  return {
    pid: child.pid as number,
    port: await port,
    async end(name = 'SIGTERM') {
      child.kill(name);
      const [code, signal] = await ended;
      return { code, signal };
    },
  };
}
