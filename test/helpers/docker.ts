import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { eventually } from './util.ts';

/** Docker as scripts/test-docker.sh has started it, and containers of the image that it built. */

const run = promisify(execFile);
const ROOT = new URL('../../', import.meta.url);

/** What a docker command prints. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await run('docker', args, { maxBuffer: 64 * 1024 ** 2 });
  return stdout.trim();
}

/** What Docker says of an image, a container or a network. */
// biome-ignore lint/suspicious/noExplicitAny: Docker's own shapes
export const inspect = async (name: string): Promise<any> => JSON.parse(await docker('inspect', name))[0];

const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'));
export const IMAGE = `imagemill:${version}`;

/** The only place it may write to. */
export const TMPFS = ['--tmpfs', '/tmp:size=1g,mode=1777'];
/** In seconds: more than any start or first look at its health takes, also on a machine that does other things. */
export const START_TIMEOUT_MS = 60;
/** Everything that an operator can take from it. */
export const HARDENED = [
  ...['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--pids-limit', '256'],
  ...TMPFS,
];

export interface Container {
  readonly name: string;
  /** Includes the version segment. Without a network it is an address inside. */
  readonly base: string;
  /** What a shell inside of it prints. */
  sh(command: string): Promise<string>;
  /** Its lines so far. */
  log(): Promise<Record<string, unknown>[]>;
}

/** Containers for a suite, on a network that leads nowhere, all of which are gone after it. */
export function useContainers() {
  const network = `imagemill-test-${process.hrtime.bigint()}`;
  const names: string[] = [];
  before(() => docker('network', 'create', '--internal', network));
  after(async () => {
    if (names.length > 0) await docker('rm', '--force', '--volumes', ...names);
    await docker('network', 'rm', network);
  });
  return async (options: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
    const all = Object.entries({ RATE_LIMIT_PER_MINUTE: '0', ...settings });
    const environment = all.flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const place = options.includes('--network') ? [] : ['--network', network];
    const name = await docker('run', '--detach', ...place, ...options, ...environment, IMAGE);
    names.push(name);
    const { NetworkSettings } = await inspect(name);
    return started(name, NetworkSettings.Networks[network]?.IPAddress ?? '127.0.0.1');
  };
}

async function started(name: string, address: string): Promise<Container> {
  const log = async () => {
    const lines = (await docker('logs', name)).split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line));
  };
  await eventually(
    async () => (await log()).some(({ msg }) => String(msg).startsWith('listening')),
    START_TIMEOUT_MS,
  );
  return {
    name,
    base: `http://${address}:3000/api/v1`,
    sh: (command) => docker('exec', name, 'sh', '-c', command),
    log,
  };
}
