import { readFile } from 'node:fs/promises';
import { execute, TEST_SETTINGS } from './process.ts';
import { eventually } from './util.ts';

const ROOT = new URL('../../', import.meta.url);

/** Runs a docker command and returns its trimmed stdout. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await execute('docker', args, { maxBuffer: 64 * 1024 ** 2 });
  return stdout.trim();
}

/** Returns the output of `docker inspect` for an image, a container or a network. */
// biome-ignore lint/suspicious/noExplicitAny: the shape is that of Docker
export const inspect = async (name: string): Promise<any> => JSON.parse(await docker('inspect', name))[0];

const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'));
/** Name and tag of the image under test. */
export const IMAGE = `imagemill:${version}`;

/** Options for the only writable folder. */
export const TMPFS = ['--tmpfs', '/tmp:size=1g,mode=1777'];
/** Options that remove every privilege that an operator can remove. */
export const HARDENED = [
  '--read-only',
  '--cap-drop',
  'ALL',
  '--security-opt',
  'no-new-privileges',
  '--pids-limit',
  '256',
  ...TMPFS,
];

/** A running container. */
export interface Container {
  readonly name: string;
  /**
   * Base URL of the API, including the version. Without a network, the address is only valid inside
   * the container.
   */
  readonly base: string;
  /** Runs a shell command in the container and returns its stdout. */
  sh(command: string): Promise<string>;
  /** Returns the JSON log lines so far. */
  log(): Promise<Record<string, unknown>[]>;
}

/**
 * Returns a function that starts containers for a suite, on an internal network. The suite removes
 * them at its end.
 */
export function useContainers() {
  const network = `imagemill-test-${process.hrtime.bigint()}`;
  const names: string[] = [];
  before(() => docker('network', 'create', '--internal', network));
  after(async () => {
    if (names.length > 0) await docker('rm', '--force', '--volumes', ...names);
    await docker('network', 'rm', network);
  });
  return async (options: readonly string[], settings: Readonly<Record<string, string>> = {}) => {
    const variables = Object.entries({ ...TEST_SETTINGS, ...settings });
    const environment = variables.flatMap(([name, value]) => ['--env', `${name}=${value}`]);
    const networkOptions = options.includes('--network') ? [] : ['--network', network];
    const name = await docker('run', '--detach', ...networkOptions, ...options, ...environment, IMAGE);
    names.push(name);
    const { NetworkSettings } = await inspect(name);
    return waitUntilListening(name, NetworkSettings.Networks[network]?.IPAddress ?? '127.0.0.1');
  };
}

async function waitUntilListening(name: string, address: string): Promise<Container> {
  const log = async () => {
    const lines = (await docker('logs', name)).split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line));
  };
  await eventually(async () => (await log()).some(({ msg }) => String(msg).startsWith('listening')));
  return {
    name,
    base: `http://${address}:3000/api/v1`,
    sh: (command) => docker('exec', name, 'sh', '-c', command),
    log,
  };
}
