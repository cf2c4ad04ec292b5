/**
 * @module Tests of `docker/swarm.yaml` on three machines, under a constant load, while the cluster
 * changes.
 */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { fixture } from '../helpers/client.ts';
import { IMAGE } from '../helpers/docker.ts';
import { dial, startOfBatch } from '../helpers/raw-http.ts';
import { isRunning, processesWhere } from '../helpers/util.ts';
import { type Event, startLoad } from './load.ts';
import { type Machine, until } from './machines.ts';
import { INSTANCES, PROXY, startStack } from './stack.ts';

const CLIENTS = 50;
/** Time for which a machine or a service is away, in milliseconds. */
const AWAY_MS = 20_000;
const PER_MINUTE = 60;
const REPLICAS = '3';

/** Prints the number of open files of nginx, and the bytes of each upload that it holds. */
const HELD_BODIES = `echo "open files: $(ls /proc/[0-9]*/fd | wc -l)"
for file in /proc/[0-9]*/fd/*; do
  case $(readlink "$file") in *client_body*) stat -Lc %s "$file" || true ;; esac
done`;

describe('docker/swarm.yaml', function () {
  this.timeout(300_000);
  let stack: Awaited<ReturnType<typeof startStack>>;
  let manager: Machine;
  let workers: Machine[];
  /** Requests that the rate limit accepted while a machine died. */
  let passed = 0;
  let load: Awaited<ReturnType<typeof startLoad>>;

  const updateState = () =>
    manager.docker(
      'service',
      'inspect',
      '--format',
      '{{if .UpdateStatus}}{{.UpdateStatus.State}}{{end}}',
      INSTANCES,
    );
  const imageOf = () =>
    manager.docker('service', 'inspect', '--format', '{{.Spec.TaskTemplate.ContainerSpec.Image}}', INSTANCES);
  const anyInstance = async () => {
    const [instance] = await stack.instances();
    if (!instance) throw new Error('there are no instances');
    return instance;
  };
  /** Waits until an instance is gone, and another one has taken its place. */
  const isReplaced = async (gone: string): Promise<void> => {
    await until(async () => !(await stack.instances()).some(({ id }) => id === gone));
    await stack.runs(REPLICAS);
  };
  const nodeIs = (name: string, state: string) =>
    until(async () =>
      (await manager.docker('node', 'ls', '--format', '{{.Hostname}} {{.Status}}')).includes(
        `${name} ${state}`,
      ),
    );

  before(async () => {
    stack = await startStack(CLIENTS + 3, PER_MINUTE, { REPLICAS });
    ({ manager, workers } = stack);
    expect(stack.refusal).to.match(/(?:secret|config) not found: imagemill-/);
    load = await startLoad(stack.urls.slice(0, CLIENTS), 'clients');
  });
  after(async () => {
    await load?.stop();
    console.log(`${formatEvents(load?.events ?? [])}\n\nRate limit: ${passed} of ${PER_MINUTE} requests`);
  });

  for (const [name, title, image, state] of [
    ['rolling update', 'a rolling update', 'next', 'completed'],
    ['broken image', 'an update to a broken image, and rolls it back', 'broken', 'rollback_completed'],
  ] as const)
    it(`answers all requests during ${title}`, async () => {
      const event = await load.during(name, async () => {
        await stack.deploy({ IMAGE: `imagemill-test-${image}` });
        await until(async () => (await updateState()) === state);
      });
      expect(await imageOf()).to.match(/^imagemill-test-next/);
      expectNoFailures(event);
    });

  it('answers all requests while it scales from 2 to 6 instances and back', async () => {
    await stack.scale('2');
    const event = await load.during('2 to 6 instances, and back', async () => {
      await stack.scale('6');
      await stack.scale('2');
    });
    await stack.scale('3');
    expectNoFailures(event);
  });

  it('answers all requests when a machine dies, and keeps the rate limit', async () => {
    const [victim] = workers as [Machine];
    expect(await stack.containersOn(victim)).to.have.length.above(0);
    const event = await load.during('a machine dies, and starts again', async () => {
      const counted = sendLimited(`${stack.urls.at(-1)}`);
      await victim.kill();
      await nodeIs(victim.name, 'Down');
      await stack.runs(REPLICAS);
      await victim.start();
      await nodeIs(victim.name, 'Ready');
      passed = await counted;
    });
    expectNoFailures(event);
    expect(passed).to.be.within(0.9 * PER_MINUTE, 1.1 * PER_MINUTE);
  });

  it('answers all requests when a machine is cut off from the network for 20 seconds', async () => {
    const victim = workers.at(-1) as Machine;
    expect(await stack.containersOn(victim)).to.have.length.above(0);
    const event = await load.during('a machine without network for 20 s', async () => {
      await victim.unplug();
      await sleep(AWAY_MS);
      await victim.plug();
      await nodeIs(victim.name, 'Ready');
      await stack.runs(REPLICAS);
    });
    expectNoFailures(event);
  });

  it('answers all requests while Valkey is away for 20 seconds, and shares the rate limit again', async () => {
    const scale = (count: number) =>
      manager.docker('service', 'scale', '--detach', `imagemill_valkey=${count}`);
    /**
     * Returns what each instance has logged about its counters. An instance that stops is listed
     * until it has stopped, but does not connect again.
     */
    const loggedStates = async () => {
      const logs = (await stack.instances()).map(async ({ machine, id }) => {
        const log = await machine.docker('logs', id).catch(() => ''); // removed meanwhile
        return [id, log.match(/is shared with|on its own/g) ?? []] as const;
      });
      return new Map(await Promise.all(logs));
    };
    const event = await load.during('Valkey is away for 20 s, and empty', async () => {
      const before = await loggedStates();
      await scale(0);
      // An instance may notice the loss only when it counts a request of a client with a limit.
      await sendLimited(`${stack.urls.at(-1)}`, AWAY_MS);
      await scale(1);
      await until(async () =>
        [...(await loggedStates())].every(
          ([id, states]) =>
            states.length > (before.get(id)?.length ?? 0) && states.at(-1) === 'is shared with',
        ),
      );
    });
    expectNoFailures(event);
  });

  it('answers all requests while nginx reloads its configuration', async () => {
    const [proxy = ''] = await stack.containersOn(manager, PROXY);
    const nginxWorkers = async () =>
      (await manager.docker('top', proxy, '-eo', 'pid,args'))
        .split('\n')
        .filter((line) => line.includes('worker process'))
        .map((line) => Number.parseInt(line, 10));
    const event = await load.during('nginx reloads ten times', async () => {
      for (let time = 1; time <= 10; time += 1) {
        const old = await nginxWorkers();
        await manager.docker('kill', '--signal', 'HUP', proxy);
        await until(async () => (await nginxWorkers()).some((pid) => !old.includes(pid)));
      }
    });
    expectNoFailures(event);
  });

  it('answers all requests while two other addresses hold twelve stalled uploads', async () => {
    const start = startOfBatch(await fixture('scene.jpg'), 20_000_000, 'Authorization: Bearer clients\r\n');
    const open: Socket[] = [];
    const drip = setInterval(() => {
      for (const socket of open) socket.write('x');
    }, 4000);
    const received = async () =>
      (
        await Promise.all(
          (
            await stack.instances()
          ).map(({ machine, id }) => machine.docker('exec', id, 'sh', '-c', 'ls -R /tmp')),
        )
      ).join('\n');
    const event = await load
      .during('twelve stalled uploads of two addresses', async () => {
        for (const url of stack.urls.slice(CLIENTS, CLIENTS + 2))
          for (let at = 0; at < 6; at += 1) {
            const socket = await dial(url);
            open.push(socket);
            socket.write(start);
          }
        await until(async () => ((await received()).match(/^in$/gm) ?? []).length >= 12);
        const [proxy = ''] = await stack.containersOn(manager, PROXY);
        const sizes = await manager.docker('exec', proxy, 'sh', '-c', HELD_BODIES);
        // Those of the load are smaller, except for a photo that is much larger.
        const stalled = sizes.split('\n').filter((size) => Number(size) > 32_000 && Number(size) < 60_000);
        expect(sizes).to.match(/^open files: [1-9]/);
        expect(stalled, 'held by nginx').to.have.length.below(12);
        await until(async () => (load.events.at(-1)?.requests ?? 0) > CLIENTS);
      })
      .finally(() => {
        clearInterval(drip);
        for (const socket of open) socket.destroy();
      });
    expectNoFailures(event);
  });

  it('answers all requests while the disk of an instance is full, and replaces it', async () => {
    const { machine, id } = await anyInstance();
    const event = await load.during('full disk of an instance', async () => {
      await machine.docker('exec', id, 'sh', '-c', 'cat /dev/zero >/tmp/full || true');
      await isReplaced(id);
    });
    expectNoFailures(event);
  });

  it('fails only the running conversions of an instance whose tools hang', async () => {
    const { id } = await anyInstance();
    const event = await load.during('hanging tools of an instance', async () => {
      const tools = findTools(id);
      expect(tools).to.have.length.above(0);
      for (const pid of tools) process.kill(pid, 'SIGSTOP');
      await until(async () => !tools.some(isRunning));
    });
    for (const failure of event.failures.keys()) expect(failure).to.match(/: 413 conversion_timeout$/);
    // CONCURRENCY, and the reserved slot.
    expect([...event.failures.values()].reduce((sum, count) => sum + count, 0)).to.be.at.most(2);
  });

  it('ends with exit status 2 and logs all problems of wrong settings', async () => {
    const settings = ['--env', 'CONCURRENCY=0', '--env', 'TEMP_DIR=tmp'];
    const create = ['service', 'create', '--detach', '--name', 'wrong', '--restart-condition', 'none'];
    await manager.docker(...create, ...settings, IMAGE);
    await until(async () =>
      (await manager.docker('service', 'ps', '--format', '{{.Error}}', 'wrong')).includes(
        'non-zero exit (2)',
      ),
    );
    const { stderr } = await manager.run(['service', 'logs', 'wrong']);
    expect(stderr).to.include('CONCURRENCY="0"').and.include('TEMP_DIR="tmp"');
  });
});

/** Returns the processes of ImageMagick of an instance. */
function findTools(container: string): number[] {
  const own = processesWhere('cgroup', (text) => text.includes(container));
  return processesWhere('status', (text) => text.startsWith('Name:\tmagick\n')).filter((pid) =>
    own.includes(pid),
  );
}

/**
 * Sends requests at twice the rate limit, by default for most of its window, and returns how many
 * are accepted.
 */
async function sendLimited(url: string, milliseconds = 55_000): Promise<number> {
  const ends = performance.now() + milliseconds;
  let passed = 0;
  while (performance.now() < ends) {
    const { status } = await fetch(`${url}/api/v1/formats`, { headers: { authorization: 'Bearer limited' } });
    if (status === 200) passed += 1;
    await sleep(30_000 / PER_MINUTE);
  }
  return passed;
}

function expectNoFailures({ name, requests, failures }: Event): void {
  expect(requests, name).to.be.above(0);
  expect(Object.fromEntries(failures), name).to.deep.equal({});
}

function formatEvents(events: readonly Event[]): string {
  const rows = events.map(({ name, requests, failures, worstMs }) => {
    const failed = [...failures].map(([kind, count]) => `${count} × ${kind}`).join(', ') || 'none';
    return `| ${name} | ${requests} | ${failed} | ${(worstMs / 1000).toFixed(1)} s |`;
  });
  return ['| Event | Requests | Failed | Worst latency |', '|---|--:|---|--:|', ...rows].join('\n');
}
