// @full: the schemas of all resources
import { spawnSync } from 'node:child_process';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { loadConfig } from '../../src/tables/config.ts';
import { runCli } from '../helpers/command-line.ts';
import { makeTempDir } from '../helpers/hooks.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = join(ROOT, 'docker/kubernetes');
const MIB = 1024 ** 2;

// biome-ignore lint/suspicious/noExplicitAny: untyped YAML, checked against the schemas
type Resource = any;

/** Files that are applied on their own, when they are needed. */
const STANDALONE = ['bulk-job.yaml'];

/** Parses all resources that kustomization.yaml lists, and the standalone ones. */
async function resources(): Promise<Resource[]> {
  const { resources: listed } = await kustomization();
  const names = [...listed, ...STANDALONE];
  const texts = await Promise.all(names.map((name) => readFile(join(FOLDER, name), 'utf8')));
  return texts.flatMap((text) =>
    parseAllDocuments(text, { strict: true, uniqueKeys: true }).map((document) => {
      expect(document.errors).to.deep.equal([]);
      return document.toJS();
    }),
  );
}

interface Kustomization {
  readonly namespace: string;
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly envs: readonly string[] }[];
  readonly images: readonly { readonly name: string; readonly newTag: string }[];
}

const kustomization = async (): Promise<Kustomization> =>
  parse(await readFile(join(FOLDER, 'kustomization.yaml'), 'utf8'));

/**
 * Returns the module of kubernetes-models with the schema of a resource: a folder for each API
 * group, a file for each kind.
 */
const modelFor = ({ apiVersion, kind }: Resource): string => {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  return ['kubernetes-models', group, version, kind].filter(Boolean).join('/');
};

describe('the resources for Kubernetes', () => {
  const find = async (kind: string, name: string): Promise<Resource> => {
    const all = await resources();
    const found = all.find((one) => one.kind === kind && one.metadata.name === name);
    expect(found, `${kind} ${name}`).not.to.equal(undefined);
    return found;
  };
  const settings = async () => {
    const lines = (await readFile(join(FOLDER, 'settings.env'), 'utf8')).split('\n');
    const pairs = lines.filter((line) => /^[^#]/.test(line)).map((line) => line.split(/=(.*)/, 2));
    return loadConfig(Object.fromEntries(pairs));
  };
  const pod = async () => (await find('Deployment', 'imagemill')).spec.template.spec;

  it('are listed in kustomization.yaml, which lists no missing files', async () => {
    const { resources: listed, configMapGenerator } = await kustomization();
    const files = await readdir(FOLDER);
    const envs = configMapGenerator.flatMap((one) => one.envs);
    const named = [...listed, ...STANDALONE, ...envs, 'kustomization.yaml'];
    expect(named).to.have.members(files);
    const kinds = (await resources()).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(new Set(kinds).size).to.equal(kinds.length);
    expect(kinds).to.include.members([
      'Deployment imagemill',
      'Service imagemill',
      'HorizontalPodAutoscaler imagemill',
      'PodDisruptionBudget imagemill',
      'NetworkPolicy imagemill',
      'Ingress imagemill',
      'Deployment valkey',
      'Service valkey',
      'NetworkPolicy valkey',
      'Namespace imagemill',
    ]);
  });

  it('have the fields that Kubernetes defines, with values of their types', async () => {
    const folder = await makeTempDir('kubernetes');
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const typed = (all: Resource[]) =>
      all.map(
        (one, at) =>
          `import { I${one.kind} as T${at} } from '${modelFor(one)}';\nexport const r${at}: T${at} = ${JSON.stringify(one)};`,
      );
    const check = async (all: Resource[]): Promise<string> => {
      const path = join(folder, 'resources.ts');
      await writeFile(path, typed(all).join('\n').replaceAll('import {', 'import type {'));
      const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', ''];
      const tsc = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['--ignoreConfig', ...options, path], {
        encoding: 'utf8',
      });
      return tsc.stdout + tsc.stderr;
    };
    expect(await check(await resources())).to.equal('');
    const wrong = await find('Deployment', 'imagemill');
    const [container] = wrong.spec.template.spec.containers;
    container.readyProbe = {};
    expect(await check([wrong])).to.include('readyProbe');
    delete container.readyProbe;
    container.ports[0].containerPort = 'many';
    expect(await check([wrong])).to.include("Type 'string' is not assignable to type 'number'");
  });

  it('have names and selectors that resolve to other resources', async () => {
    const { configMapGenerator, images } = await kustomization();
    const all = await resources();
    const templates = all.flatMap((one) => one.spec?.template?.metadata?.labels ?? []);
    const matchesTemplate = (labels: Record<string, string>) =>
      templates.some((template) => Object.entries(labels).every(([key, value]) => template[key] === value));
    for (const { kind, metadata, spec } of all) {
      const selector = { Service: spec?.selector, NetworkPolicy: spec?.podSelector?.matchLabels };
      const labels = selector[kind as keyof typeof selector] ?? spec?.selector?.matchLabels;
      if (labels) expect(matchesTemplate(labels), `${kind} ${metadata.name}`).to.equal(true);
    }
    const [container] = (await pod()).containers;
    expect(container.envFrom[0].configMapRef.name).to.equal(configMapGenerator[0]?.name);
    expect(images.map(({ name }) => name)).to.deep.equal([container.image]);
    const { scaleTargetRef } = (await find('HorizontalPodAutoscaler', 'imagemill')).spec;
    await find(scaleTargetRef.kind, scaleTargetRef.name);
    for (const { backend } of (await find('Ingress', 'imagemill')).spec.rules[0].http.paths) {
      const { ports } = (await find('Service', backend.service.name)).spec;
      expect(ports.map((port: Resource) => port.name)).to.include(backend.service.port.name);
    }
  });

  it('set valid settings that match the ports, folders, Redis URL, timeouts and sizes of the resources', async () => {
    const config = await settings();
    const { containers, volumes, terminationGracePeriodSeconds } = await pod();
    const [container] = containers;
    expect(container.ports[0].containerPort).to.equal(config.PORT);
    expect(container.volumeMounts[0].mountPath).to.equal(config.TEMP_DIR);
    expect(container.volumeMounts[0].name).to.equal(volumes[0].name);
    expect(volumes[0].emptyDir.medium).to.equal('Memory');
    expect(Number(container.resources.limits.cpu)).to.equal(config.CONCURRENCY);
    const { hostname, port } = new URL(config.REDIS_URL ?? '');
    expect((await find('Service', hostname)).spec.ports[0].port).to.equal(Number(port));
    const preStop = container.lifecycle.preStop.sleep.seconds;
    expect(terminationGracePeriodSeconds).to.be.above(preStop + config.SHUTDOWN_GRACE_MS / 1000);

    const { annotations } = (await find('Ingress', 'imagemill')).metadata;
    const of = (name: string): string => annotations[`nginx.ingress.kubernetes.io/${name}`];
    const largest = config.MAX_BATCH_FILES * config.MAX_FILE_BYTES + MIB;
    expect(Number.parseInt(of('proxy-body-size'), 10) * MIB).to.be.above(largest);
    expect(Number(of('proxy-read-timeout')) * 1000).to.be.above(
      config.UPLOAD_TIMEOUT_MS + config.CONVERT_TIMEOUT_MS,
    );
    expect(Number(of('limit-connections'))).to.be.within(10, 100);
  });

  it('run every container without root, capabilities, a writable file system or new privileges', async () => {
    const pods = (await resources()).filter(({ kind }) => ['Deployment', 'Job'].includes(kind));
    expect(pods).to.have.length(3);
    for (const { spec } of pods) {
      const { securityContext, containers, automountServiceAccountToken } = spec.template.spec;
      expect(securityContext).to.deep.include({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(automountServiceAccountToken).to.equal(false);
      for (const container of containers) {
        expect(container.securityContext).to.deep.equal({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources.limits.memory).to.be.a('string');
      }
    }
  });

  it('run the bulk job with one shard per pod, valid options, and folders that are mounted', async () => {
    const { metadata, spec } = await find('Job', 'imagemill-bulk');
    const { namespace, images } = await kustomization();
    expect(metadata.namespace).to.equal(namespace);
    expect(spec.completionMode).to.equal('Indexed');
    const [container] = spec.template.spec.containers;
    expect(container.image).to.equal(`${images[0]?.name}:${images[0]?.newTag}`);
    const env = Object.fromEntries(container.env.map(({ name, value }: Resource) => [name, value])) as Record<
      string,
      string
    >;
    expect(Number(env.SHARDS)).to.equal(spec.completions);
    expect(spec.parallelism).to.be.at.most(spec.completions);
    const [{ action, onPodConditions }] = spec.podFailurePolicy.rules; // the first rule that matches applies
    expect([action, onPodConditions]).to.deep.equal(['Ignore', [{ type: 'DisruptionTarget' }]]);
    expect(loadConfig(env).CONCURRENCY).to.equal(Number(container.resources.limits.cpu));
    const mounts = container.volumeMounts.map(({ name }: Resource) => name);
    expect(mounts).to.have.members(spec.template.spec.volumes.map(({ name }: Resource) => name));

    // The shell of the container runs the last of its commands; here the program prints its
    // arguments instead.
    const folder = await makeTempDir('bulk-job');
    await writeFile(join(folder, 'tini'), '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 });
    const shards = Array.from({ length: spec.completions }, (_, index) => {
      const PATH = `${folder}:/usr/bin:/bin`;
      const [shell, ...flags] = container.command;
      const options = {
        env: { ...env, PATH, JOB_COMPLETION_INDEX: String(index) },
        encoding: 'utf8',
      } as const;
      const args = spawnSync(shell, [...flags, ...container.args], options)
        .stdout.trimEnd()
        .split('\n');
      return args.slice(args.indexOf('convert'));
    });
    const optionOf = (args: readonly string[], option: string) => args[args.indexOf(option) + 1] ?? '';
    expect(shards.map((args) => optionOf(args, '--shard'))).to.deep.equal(['1/4', '2/4', '3/4', '4/4']);
    expect(new Set(shards.map((args) => optionOf(args, '--report'))).size).to.equal(spec.completions);
    const paths = container.volumeMounts.map(({ mountPath }: Resource) => mountPath as string);
    const used = [shards[0]?.[1] ?? '', optionOf(shards[0] ?? [], '--output'), env.TEMP_DIR ?? ''];
    for (const path of used)
      expect(
        paths.some((mount: string) => path.startsWith(mount)),
        path,
      ).to.equal(true);
    // Exit status 2 would mean options that the command does not know; there is no such folder
    // here.
    const { outcome } = await runCli([
      'convert',
      join(folder, 'none'),
      ...(shards[0] ?? []).slice(2).map((arg) => arg.replace('/results', folder)),
    ]);
    expect(outcome).to.equal(`1 imagemill: ${join(folder, 'none')}: no such file or folder.`);
  });
});
