/** @module docker/swarm.yaml on three machines, and what its services do. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { IMAGE } from '../helpers/docker.ts';
import { type Machine, startSwarm, until } from './machines.ts';

const FILES = new URL('../../docker/', import.meta.url).pathname;
export const INSTANCES = 'imagemill_instances';
export const PROXY = 'imagemill_proxy';

/**
 * Starts three machines and deploys the stack, with the API keys `clients`, which has no limit, and
 * `limited`.
 *
 * @param clients number of clients with addresses of their own
 * @param limit requests per minute of the key `limited`
 * @param settings variables of docker/swarm.yaml
 */
export async function startStack(
  clients: number,
  limit: number,
  settings: Readonly<Record<string, string>> & { readonly REPLICAS: string },
) {
  const { manager, workers, served } = await startSwarm(['m1', 'm2', 'm3'], clients);
  const base = {
    IMAGE,
    CONCURRENCY: '1',
    NGINX_IMAGE: 'imagemill-test-nginx',
    VALKEY_IMAGE: 'imagemill-test-valkey',
    ...settings,
  };
  const urls = served.map((address) => `http://${address}:8080`);

  const deploy = (changed: Readonly<Record<string, string>> = {}) => {
    const options = ['--resolve-image', 'never', '--compose-file', join(FILES, 'swarm.yaml')];
    return manager.run(['stack', 'deploy', ...options, 'imagemill'], { ...base, ...changed });
  };
  /** Waits until a service has as many running instances as it should have. */
  const runs = (count: string, service = INSTANCES) =>
    until(async () => (await replicas(service)) === `${count}/${count}`);
  const replicas = (service: string) =>
    manager.docker('service', 'ls', '--filter', `name=${service}`, '--format', '{{.Replicas}}');
  const containersOn = async ({ docker }: Machine, service = INSTANCES): Promise<string[]> => {
    const filter = `label=com.docker.swarm.service.name=${service}`;
    return (await docker('ps', '--quiet', '--no-trunc', '--filter', filter)).split('\n').filter(Boolean);
  };
  /** Lists instances with their machines. */
  const instances = async () => {
    const lists = [manager, ...workers].map(async (machine) =>
      (await containersOn(machine)).map((id) => ({ machine, id })),
    );
    return (await Promise.all(lists)).flat();
  };
  /** Sets the number of instances, and waits until there are as many. */
  const scale = async (count: string): Promise<void> => {
    await manager.docker('service', 'scale', '--detach', `${INSTANCES}=${count}`);
    await runs(count);
    await until(async () => (await instances()).length === Number(count));
  };
  const createObject = async (kind: 'secret' | 'config', name: string, text: string): Promise<void> => {
    const path = join(process.env.CLUSTER_FOLDER ?? '', name);
    await writeFile(path, text);
    await manager.docker(kind, 'create', `imagemill-${name}`, path);
  };
  const key = (name: string, perMinute: number) =>
    `${name}:${createHash('sha256').update(name).digest('hex')}:${perMinute}\n`;

  /** The message of Docker about the stack without its secret and configs. */
  const refusal: string = await deploy().then(
    () => 'none',
    ({ stderr }) => stderr,
  );
  await createObject('secret', 'keys', key('clients', 0) + key('limited', limit));
  await createObject('config', 'presets', 'presets: [{ name: card, format: webp, width: 40 }]\n');
  await manager.docker('config', 'create', 'imagemill-nginx', join(FILES, 'nginx.conf'));
  await deploy();
  await runs(base.REPLICAS);
  for (const service of [PROXY, 'imagemill_valkey']) await runs('1', service);
  await until(async () => (await fetch(`${urls[0]}/api/v1/health`)).ok);
  return { manager, workers, urls, refusal, deploy, runs, containersOn, instances, scale };
}
