import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { loadConfig } from '../../src/tables/config.ts';

const ROOT = new URL('../../', import.meta.url);
const MIB = 1024 ** 2;
const read = (path: string): Promise<string> => readFile(new URL(path, ROOT), 'utf8');

// biome-ignore lint/suspicious/noExplicitAny: untyped YAML; Docker Compose checks it in test/container/
const compose = async (file = 'compose'): Promise<any> =>
  parse(await read(`docker/${file}.yaml`), { merge: true });

/** Replaces variables by their defaults. */
const withDefaults = (value: string): string => value.replace(/\$\{\w+:-([^}]*)\}/g, '$1');

describe('the files for Docker', () => {
  it('start only imagemill without the scale profile', async () => {
    const { services } = await compose();
    const always = Object.keys(services).filter((name) => services[name].profiles === undefined);
    expect(always).to.deep.equal(['imagemill']);
    for (const name of ['instances', 'proxy', 'valkey'])
      expect(services[name].profiles, name).to.deep.equal(['scale']);
  });

  it('give every service a read-only file system, no privileges, a process limit and a non-root user', async () => {
    const { services } = await compose();
    const dockerfile = await read('docker/Dockerfile');
    for (const [name, service] of Object.entries<typeof services>(services)) {
      expect(service, name).to.deep.include({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
      expect(service.pids_limit, name).to.be.within(1, 256);
      expect(service.privileged ?? service.network_mode ?? service.cap_add, name).to.equal(undefined);
      const [, own] = /^USER (.*)$/m.exec(dockerfile) ?? [];
      expect(service.user ?? own, name).to.match(/^[1-9]\d*:[1-9]\d*$/);
    }
  });

  it('set valid settings that match the ports, folders, Redis URL and timeouts of the containers', async () => {
    const { services, networks } = await compose();
    const [, image = ''] = /^ENV (.*)$/m.exec(await read('docker/Dockerfile')) ?? [];
    const imageEnvironment = Object.fromEntries(image.split(' ').map((pair) => pair.split('=', 2)));
    for (const name of ['imagemill', 'instances']) {
      const { environment, tmpfs, stop_grace_period } = services[name];
      const own = Object.entries(environment).map(([key, value]) => [key, withDefaults(String(value))]);
      const config = loadConfig({ ...imageEnvironment, ...Object.fromEntries(own) });
      expect(tmpfs[0].split(':')[0]).to.equal(config.TEMP_DIR);
      expect(Number.parseInt(stop_grace_period, 10) * 1000).to.be.above(config.SHUTDOWN_GRACE_MS);
      expect(config.PORT).to.equal(3000);
      expect(config.SANDBOX, name).to.equal('on');
      if (name === 'instances') {
        expect(config.TRUST_PROXY).to.equal(1);
        expect(services).to.have.property(new URL(config.REDIS_URL ?? '').hostname);
      }
    }
    expect(withDefaults(services.imagemill.ports[0])).to.equal('127.0.0.1:3000:3000');
    expect(services.instances.ports, 'only the proxy is published').to.equal(undefined);
    expect(services.instances.networks).to.deep.equal(['back']);
    expect(networks.back.internal).to.equal(true);
  });

  it('pass all settings of a file .env, except those that the containers depend on', async () => {
    const { services } = await compose();
    for (const [name, fixed] of [
      ['imagemill', ['HOST', 'PORT', 'TEMP_DIR']],
      ['instances', ['HOST', 'PORT', 'TEMP_DIR', 'TRUST_PROXY', 'REDIS_URL']],
    ] as const) {
      const { env_file, environment } = services[name];
      expect(env_file, name).to.deep.equal([{ path: '.env', required: false }]);
      // `environment` takes precedence over the file: other settings there must take their value
      // from it.
      const own = Object.keys(environment).filter((key) => !environment[key].startsWith(`\${${key}:-`));
      expect(own, name).to.have.members([...fixed]);
    }
  });

  it('configure Docker Swarm like Compose, with valid settings', async () => {
    const { services } = await compose('swarm');
    const { services: composed } = await compose();
    const equal = ['entrypoint', 'command', 'user', 'image', 'read_only', 'cap_drop', 'working_dir'];
    for (const name of ['proxy', 'valkey'])
      for (const key of equal)
        expect(services[name][key], `${name}.${key}`).to.deep.equal(composed[name][key]);
    const { environment, volumes, stop_grace_period, read_only, cap_drop, deploy, ports } =
      services.instances;
    expect({ read_only, cap_drop, ports }).to.deep.equal({
      read_only: true,
      cap_drop: ['ALL'],
      ports: undefined,
    });
    const values = Object.entries(environment).map(([key, value]) => [key, withDefaults(String(value))]);
    const config = loadConfig(Object.fromEntries(values));
    expect(config).to.include({ SANDBOX: 'on', TRUST_PROXY: 1, PORT: 3000, TEMP_DIR: volumes[0].target });
    expect(Number.parseInt(stop_grace_period, 10) * 1000).to.be.above(config.SHUTDOWN_GRACE_MS);
    expect(services).to.have.property(new URL(config.REDIS_URL ?? '').hostname);
    expect(withDefaults(deploy.resources.limits.memory)).to.equal(withDefaults(composed.instances.mem_limit));
    expect(deploy.update_config).to.include({ order: 'start-first', failure_action: 'rollback' });
    expect(deploy.rollback_config.order).to.equal('start-first');
  });

  it('use the same user and temporary folder as the Kubernetes resources', async () => {
    const deployment = parse(await read('docker/kubernetes/deployment.yaml')).spec.template.spec;
    const dockerfile = await read('docker/Dockerfile');
    const { runAsUser, runAsGroup } = deployment.securityContext;
    expect(dockerfile).to.include(`\nUSER ${runAsUser}:${runAsGroup}\n`);
    expect(dockerfile).to.match(
      new RegExp(`^ENV .*TEMP_DIR=${deployment.containers[0].volumeMounts[0].mountPath}$`, 'm'),
    );
  });

  it('have limits in the configuration of nginx that fit the largest request', async () => {
    const conf = await read('docker/nginx.conf');
    const { MAX_BATCH_FILES, MAX_FILE_BYTES, UPLOAD_TIMEOUT_MS, CONVERT_TIMEOUT_MS } = loadConfig({});
    const value = (name: string) => Number.parseInt(new RegExp(`${name} (\\d+)`).exec(conf)?.[1] ?? '', 10);
    expect(value('client_max_body_size') * MIB).to.be.above(MAX_BATCH_FILES * MAX_FILE_BYTES + MIB);
    expect(value('proxy_read_timeout') * 1000).to.be.above(UPLOAD_TIMEOUT_MS + CONVERT_TIMEOUT_MS);
    const { services } = await compose();
    const mounts: string[] = services.proxy.tmpfs;
    const uploads = mounts.find((disk) => disk.startsWith('/var/cache/nginx:')) ?? '';
    expect(conf).to.include('client_body_temp_path /var/cache/nginx/');
    const gibibytes = Number(/size=(\d+)g/.exec(uploads)?.[1]);
    expect(value('limit_conn uploads') * value('client_max_body_size')).to.be.below(gibibytes * 1024);
    expect(conf).to.include('proxy_next_upstream error timeout http_502 http_503 non_idempotent;');
  });
});
