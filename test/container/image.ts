import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { docker, HARDENED, IMAGE, inspect } from '../helpers/docker.ts';
import { makeTempDir } from '../helpers/hooks.ts';
import { execute } from '../helpers/process.ts';

const MB = 1e6;
/** Maximum size of the layers above the base image. */
const MAX_IMAGE_BYTES = 450 * MB;
const ROOT = new URL('../../', import.meta.url);

const read = (path: string): Promise<string> => readFile(new URL(path, ROOT), 'utf8');
/** Runs a shell command in a fresh container as the user of the image and returns its stdout. */
const sh = (command: string, ...args: string[]): Promise<string> =>
  docker('run', '--rm', '--network', 'none', '--entrypoint', 'sh', IMAGE, '-c', command, 'sh', ...args);

describe('the image', () => {
  it(`is smaller than ${MAX_IMAGE_BYTES / MB} MB beyond its base`, async () => {
    const [, base = ''] = /^ARG NODE_IMAGE=(.*)$/m.exec(await read('docker/Dockerfile')) ?? [];
    const [own, below] = [await inspect(IMAGE), await inspect(base)];
    expect(own.RootFS.Layers.slice(0, below.RootFS.Layers.length)).to.deep.equal(below.RootFS.Layers);
    const bytes = own.Size - below.Size;
    expect(bytes).to.be.within(1, MAX_IMAGE_BYTES);
    console.log(`    ${Math.round(bytes / MB)} MB`);
  });

  it('runs as an unprivileged user and has labels and a port', async () => {
    const { Config } = await inspect(IMAGE);
    const { version, description } = JSON.parse(await read('package.json'));
    expect(Config.User).to.equal('10001:10001');
    expect(await sh('id')).to.equal('uid=10001(imagemill) gid=10001(imagemill) groups=10001(imagemill)');
    expect(Config.Labels).to.include({
      'org.opencontainers.image.title': 'imagemill',
      'org.opencontainers.image.description': description,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.source': 'https://example.org/imagemill',
      'org.opencontainers.image.documentation': 'https://example.org/imagemill',
      'org.opencontainers.image.base.name': /^ARG NODE_IMAGE=(.*)$/m.exec(
        await read('docker/Dockerfile'),
      )?.[1],
    });
    expect(Config.Labels).to.include.keys(
      'org.opencontainers.image.revision',
      'org.opencontainers.image.base.digest',
    );
    expect(Config.ExposedPorts).to.have.all.keys('3000/tcp');
  });

  it('contains the tools, and no compiler, Ghostscript, GnuPG, npm, downloader or setuid program', async () => {
    const which = (names: string[]) =>
      sh('for name; do command -v "$name" >/dev/null && echo "$name"; done; true', ...names);
    const needed = [
      'magick',
      'rsvg-convert',
      'pdfinfo',
      'pdftocairo',
      'qpdf',
      'pngquant',
      'tini',
      'node',
      'fc-cache',
    ];
    expect((await which(needed)).split('\n')).to.deep.equal(needed);
    const compilers = ['cc', 'gcc', 'g++', 'clang', 'make', 'ld', 'as', 'tsc', 'python3'];
    const others = ['gs', 'ghostscript', 'gpg', 'dirmngr', 'npm', 'npx', 'yarn', 'curl', 'wget'];
    expect(await which([...compilers, ...others])).to.equal('');
    const asRoot = ['--user', '0:0', '--network', 'none', '--entrypoint', 'find', IMAGE];
    expect(await docker('run', '--rm', ...asRoot, '/', '-xdev', '-perm', '/6000', '-type', 'f')).to.equal('');
  });

  it('contains the active files of fontconfig, and no templates that it would parse at each start', async () => {
    const files = (await sh('find /etc/fonts/conf.d -name "*.conf" -size +0 -type f')).split('\n');
    expect(files).to.include('/etc/fonts/conf.d/60-latin.conf').and.to.have.length.above(25);
    expect(await sh('ls -d /usr/share/fontconfig 2>/dev/null; find /etc/fonts -type l')).to.equal('');
  });

  it('contains current caches of all fonts, so that rsvg-convert reads no fonts and prints nothing', async () => {
    const text =
      '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="20"><text y="15">Ж骨</text></svg>';
    expect(await sh('echo "$1" | rsvg-convert 2>&1 >/dev/null', text)).to.equal('');
  });

  it('contains a software bill of materials with the libraries of the program', async () => {
    const { bomFormat, components } = JSON.parse(await sh('cat dist/sbom.cdx.json'));
    expect(bomFormat).to.equal('CycloneDX');
    const names = (components as { name: string }[]).map(({ name }) => name);
    const { dependencies } = JSON.parse(await read('package.json'));
    expect(names).to.include.members(Object.keys(dependencies));
  });

  it('contains only the npm packages that are not part of the build: PDFium, jxl-oxide and sharp', async () => {
    const packages = (await sh('cd node_modules && ls -dA [!@]* @*/*')).split('\n');
    expect(packages.filter((name) => !name.startsWith('@img/'))).to.have.members([
      '@hyzyla/pdfium',
      'jxl-oxide-wasm',
      'sharp',
      'detect-libc',
      'semver',
    ]);
    expect(packages.filter((name) => name.startsWith('@img/sharp-libvips-'))).to.have.length(1);
  });

  it('has no writable folders except those for temporary files', async () => {
    const places = await sh(
      "find / -xdev -writable ! -type l ! -path '/proc/*' ! -path '/dev/*' 2>/dev/null; true",
    );
    expect(places.split('\n')).to.have.members(['/run/lock', '/tmp', '/var/tmp']);
  });

  it('works from the archive of a release, read-only, without rights, for any user, and stops all attacks', async () => {
    const [folder, loaded] = [await makeTempDir('image'), 'imagemill-test-loaded'];
    const [archive, back] = [join(folder, 'oci.tar'), join(folder, 'docker.tar')];
    await execute('sh', ['scripts/save-image.sh', IMAGE, archive], { cwd: ROOT });
    const copy = ['--insecure-policy', 'copy', '--quiet', `oci-archive:${archive}`];
    await execute('skopeo', [...copy, `docker-archive:${back}:${loaded}:latest`]);
    try {
      await docker('load', '--quiet', '--input', back);
      const options = ['--rm', '--network', 'none', '--user', '12345:12345', ...HARDENED];
      expect(await docker('run', ...options, loaded, 'doctor')).to.include('can serve here');
      expect(await docker('run', ...options, loaded, 'doctor', '--attack')).to.include(' 40 of 40 stopped: ');
    } finally {
      await docker('rmi', loaded);
    }
  });
});
