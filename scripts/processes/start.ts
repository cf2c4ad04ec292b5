/** @module Starts servers as separate processes. They end with this process. */
import { type ServiceProcess, startServer } from '../../test/helpers/process.ts';

/** A server that listens. It ends with the block of an `await using` variable. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number;
  /** Base URL of the API, including the version. */
  readonly base: string;
  /**
   * Sends a signal, SIGTERM by default, and waits until the process ends. Returns its exit status
   * or the signal.
   */
  end(signal?: NodeJS.Signals): ReturnType<ServiceProcess['ended']>;
}

/** Flags of Node.js in `npm start`. */
export const NODE_FLAGS = ['--max-semi-space-size=4', '--initial-old-space-size=64'];

/** Path of the built program. */
export const BUILT_PROGRAM: string = new URL('../../dist/main.js', import.meta.url).pathname;

const running = new Set<ServiceProcess>();
process.on('exit', () => {
  for (const { child } of running) child.kill('SIGKILL');
});
// Run the exit handler on a signal, too.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** Environment of a service that accepts any number of requests on a free port of this machine. */
const SERVICE_ENVIRONMENT = { PORT: '0', HOST: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '0' } as const;

/**
 * Starts a server, by default the built service as `npm start` does, and waits until it prints its
 * address.
 *
 * @param settings environment variables in addition to PATH, {@link SERVICE_ENVIRONMENT} and
 *   NODE_ENV
 * @throws {Error} with its output if the process ends first
 */
export async function startServerProcess(
  settings: Readonly<Record<string, string>> = {},
  command: readonly string[] = [process.execPath, ...NODE_FLAGS, BUILT_PROGRAM],
): Promise<ServerProcess> {
  const defaults = { PATH: process.env.PATH, NODE_ENV: 'production', ...SERVICE_ENVIRONMENT };
  const server = startServer(command, { ...defaults, ...settings });
  running.add(server);
  void server.ended().then(() => running.delete(server));
  const base = await server.base();
  // The log of a long run would fill the memory.
  for (const stream of [server.child.stdout, server.child.stderr])
    stream?.removeAllListeners('data').resume();
  const end: ServerProcess['end'] = (signal = 'SIGTERM') => {
    server.child.kill(signal);
    return server.ended();
  };
  return { pid: server.pid, base, end, [Symbol.asyncDispose]: async () => void (await end()) };
}
