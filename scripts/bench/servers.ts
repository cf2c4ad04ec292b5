import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';

/** The servers that are compared, each a process of its own. */

export interface Server {
  readonly pid: number;
  readonly port: number;
  end(): void;
}

const here = (path: string): string => new URL(path, import.meta.url).pathname;
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
// Otherwise a benchmark that is stopped would leave them running.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/** The service as it is shipped, but for the rate limit. */
export function startService(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  const TEMP_DIR = mkdtempSync(join(tmpdir(), 'imagemill-bench-'));
  return start(['--optimize-for-size', here('../../dist/main.js')], {
    ...{ PORT: '0', HOST: '127.0.0.1', RATE_LIMIT_PER_MINUTE: '0', TEMP_DIR },
    ...settings,
  });
}

export const startSharp = (): Promise<Server> =>
  start([here('./sharp-server.ts')], { UV_THREADPOOL_SIZE: String(availableParallelism()) });

export const startEcho = (): Promise<Server> => start([here('./echo-server.ts')], {});

async function start(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Server> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  running.add(child);
  let said = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      if (said.length > 10_000) return;
      said += chunk;
      const found = /listening on (?:http:\/\/\S+:)?(\d+)/.exec(said);
      if (found) resolve(Number(found[1]));
    });
    child.once('exit', () => reject(new Error(`it ended: ${said}`)));
  });
  return {
    pid: child.pid as number,
    port,
    end() {
      running.delete(child);
      child.kill('SIGTERM');
    },
  };
}
