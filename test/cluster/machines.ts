/**
 * @module Machines of a cluster on this machine: Docker daemons in namespaces of their own,
 * connected by a bridge.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execute } from '../helpers/process.ts';

/**
 * Folder of the machines, and the archive of images that all of them have. Set by
 * `scripts/test-cluster.sh`.
 */
const { CLUSTER_FOLDER = '', CLUSTER_IMAGES = '', CLUSTER_CGROUP = '' } = process.env;
/** Addresses for benchmarks (RFC 2544), which no real network has. */
const NETWORK = '198.18.0';
const GATEWAY = `${NETWORK}.1`;
/** Addresses at which the first machine can also be reached, one for each client. */
const SERVED = '198.19.0';
/**
 * Interval between two looks at the cluster, in milliseconds. Each costs a process of the docker
 * command.
 */
const POLL_MS = 500;

const ip = (...args: string[]) => execute('ip', args);

/** Waits until a condition of the cluster is true. The time limit is that of the test. */
export async function until<T>(check: () => Promise<T | false | undefined>): Promise<T> {
  for (;;) {
    const value = await check();
    if (value !== false && value !== undefined) return value;
    await sleep(POLL_MS);
  }
}

/** A machine of the cluster. */
export type Machine = ReturnType<typeof createMachine>;

function createMachine(name: string, address: string) {
  const folder = join(CLUSTER_FOLDER, name);
  let unshare: ChildProcess | undefined;

  const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    execute('docker', ['--host', `unix://${folder}/socket`, ...args], {
      maxBuffer: 64 * 1024 ** 2,
      env: { ...process.env, ...env },
    });
  const setLink = (state: 'up' | 'down') => ip('link', 'set', name, state);
  return {
    name,
    address,
    run,
    /** Runs a docker command on this machine, and returns its trimmed standard output. */
    docker: async (...args: string[]): Promise<string> => (await run(args)).stdout.trim(),
    /** Switches the machine on, and waits for its Docker daemon. */
    async start(): Promise<void> {
      await mkdir(folder, { recursive: true });
      const log = openSync(`${folder}.log`, 'a');
      const namespaces = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--mount-proc'];
      const script = new URL('machine.sh', import.meta.url).pathname;
      const args = [name, address, `${SERVED}.0/24`, GATEWAY, folder, CLUSTER_CGROUP];
      unshare = spawn('unshare', [...namespaces, 'sh', script, ...args], {
        stdio: ['ignore', log, log],
        env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
      });
      const { pid } = unshare;
      const own = await readlink('/proc/self/ns/net');
      await until(async () => (await readlink(`/proc/${pid}/ns/net`)) !== own);
      await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid));
      await ip('link', 'set', name, 'master', 'lan', 'up');
      await until(() =>
        run(['info']).then(
          () => true,
          () => {
            if (unshare?.exitCode !== null) throw new Error(`${name} does not start: see ${folder}.log`);
            return false;
          },
        ),
      );
    },
    /** Switches the machine off like a power failure: no process sends anything more. */
    async kill(): Promise<void> {
      await setLink('down');
      const end = once(unshare as ChildProcess, 'exit');
      unshare?.kill('SIGKILL');
      await end;
      await ip('link', 'delete', name).catch(() => {}); // it ends with the namespace
    },
    /** Pulls the network cable out, or plugs it in. */
    unplug: () => setLink('down'),
    plug: () => setLink('up'),
  };
}

/**
 * Starts machines as a swarm whose first machine is the manager. All have the images.
 *
 * @param clients number of clients that reach the manager at `served`, each from an address of its
 *   own
 */
export async function startSwarm(names: readonly string[], clients: number) {
  await ip('link', 'set', 'lo', 'up');
  // By default, a bridge has the lowest address of its ports. It would change with a machine that
  // dies, and the other machines would send to the earlier one for a minute.
  await ip('link', 'add', 'lan', 'address', '02:00:00:00:00:01', 'type', 'bridge');
  await ip('address', 'add', `${GATEWAY}/16`, 'dev', 'lan');
  await ip('link', 'set', 'lan', 'up');
  const machines = names.map((name, at) => createMachine(name, `${NETWORK}.${at + 2}`));
  await Promise.all(machines.map((machine) => machine.start()));
  await Promise.all(machines.map(({ docker }) => docker('load', '--quiet', '--input', CLUSTER_IMAGES)));
  const [manager, ...workers] = machines as [Machine, ...Machine[]];
  await manager.docker('swarm', 'init', '--advertise-addr', manager.address);
  const token = await manager.docker('swarm', 'join-token', '--quiet', 'worker');
  for (const { docker } of workers) await docker('swarm', 'join', '--token', token, manager.address);
  // The kernel selects the address of a client by the address that the client connects to.
  const served: string[] = [];
  for (let client = 1; client <= clients; client += 1) {
    const [from, to] = [`${NETWORK}.${100 + client}`, `${SERVED}.${client}`];
    await ip('address', 'add', `${from}/16`, 'dev', 'lan');
    await ip('route', 'add', to, 'via', manager.address, 'src', from);
    served.push(to);
  }
  return { manager, workers, served };
}
