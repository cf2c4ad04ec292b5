// @full: all forbidden actions of a codec
// @imagemagick-7: also runs in the Debian 13 chroot (npm run test:debian-13)
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { buildBrokenCodec } from '../../helpers/broken-codec.ts';
import {
  type ClientResponse,
  convert,
  converted,
  expectSuccess,
  fixture,
  jsonOf,
  sendForm,
} from '../../helpers/client.ts';
import { makeTempDir } from '../../helpers/hooks.ts';
import { type ServiceProcess, startProcess } from '../../helpers/process.ts';
import { requires } from '../../helpers/skips.ts';
import { eventually, processesWhere, writeScript } from '../../helpers/util.ts';

/**
 * @module Attacks of a compromised decoder on a real server. A program replaces rsvg-convert and
 * attempts one attack per request. After each attempt, the server must be healthy, serve other
 * clients, and have no leftovers.
 */

const SECRET = 'the image of another client';

/** Errors of a seccomp filter: EPERM, and ENOSYS for clone3. */
const BY_FILTER = [1, 38];
/** Errors of hidden or read-only files: EPERM, ENOENT, EACCES, EXDEV, EROFS. */
const BY_FILES = [1, 2, 13, 18, 30];

/** An attempt of the codec, and the errors that it can end with. */
interface Attempt {
  readonly name: string;
  readonly errors: readonly number[];
  /** File or folder that the attempt is directed at: a key of {@link Targets}, or a path. */
  readonly target?: keyof Targets | `/${string}`;
}

/** Paths that depend on the running server. */
interface Targets {
  readonly home: string;
  readonly victim: string;
  readonly image: string;
  readonly environ: string;
  readonly memory: string;
}

const refused = (names: readonly string[]): Attempt[] => names.map((name) => ({ name, errors: BY_FILTER }));
const onFiles = (name: string, ...targets: NonNullable<Attempt['target']>[]): Attempt[] =>
  targets.map((target) => ({ name, target, errors: BY_FILES }));

const ATTEMPTS: readonly Attempt[] = [
  ...refused(['kill', 'kill-group', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo']),
  ...refused(['pidfd_open', 'pidfd_send_signal', 'setown', 'setown_ex', 'setsig', 'async', 'fiosetown']),
  ...refused(['siocspgrp', 'notify', 'lease', 'tiocsti', 'no-pdeathsig']),
  ...refused(['prlimit-fsize', 'prlimit-nofile', 'prlimit-own', 'sched_setscheduler', 'sched_setparam']),
  ...refused(['sched_setaffinity', 'setpriority', 'setpriority-user', 'ioprio_set']),
  ...refused(['fork', 'vfork', 'clone3', 'double-fork', 'fork-often', 'setsid', 'setpgid']),
  ...refused(['ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'kcmp', 'get_robust_list']),
  ...refused(['migrate_pages', 'fchmod', 'mkdir', 'mkfifo', 'mknod', 'inotify', 'fanotify', 'flock']),
  ...onFiles('chmod', 'home', 'victim', 'image'),
  ...onFiles('chown', 'home', 'victim', 'image'),
  ...onFiles('utimes', 'home', 'victim', 'image'),
  ...onFiles('setxattr', 'home', 'victim', 'image'),
  ...onFiles('truncate', 'image'),
  ...onFiles('append', 'image', '/etc/passwd'),
  ...onFiles('read', 'image', 'environ', 'memory'),
  ...onFiles('read', '/etc/passwd', '/etc/shadow', '/proc/1/environ', '/dev/mem'),
  ...onFiles('list', 'victim', '/root', '/home', '/srv'),
  ...onFiles('make', 'home', 'victim', '/tmp', '/dev/shm', '/var/tmp', '/usr/share'),
  ...onFiles('unlink', 'image'),
  ...onFiles('rmdir', 'victim'),
  ...onFiles('rename', 'victim', 'image'),
  ...onFiles('link', 'image', '/etc/passwd'),
  ...onFiles('symlink', 'image', '/etc/passwd'),
  ...onFiles('name_to_handle_at', 'image'),
  ...['make-many', 'fill-disk', 'unlink-output'].map((name) => ({ name, errors: BY_FILES })),
  ...refused(['shmget', 'semget', 'msgget', 'mq_open', 'add_key', 'request_key', 'keyctl']),
  ...refused(['memfd_create', 'execveat']),
  { name: 'execve', errors: BY_FILES },
  ...refused(['unshare-user', 'unshare-mount', 'clone-user', 'setns', 'mount', 'umount', 'pivot_root']),
  ...refused(['chroot', 'fsopen', 'mount_setattr', 'socket-inet', 'socket-unix', 'socket-netlink']),
  ...refused(['socketpair', 'io_uring_setup', 'io_setup', 'userfaultfd', 'perf_event_open', 'bpf']),
  ...refused(['personality', 'setuid', 'sethostname', 'settimeofday', 'init_module', 'reboot', 'sync']),
];

/** Attempts that only the allow-list denies. */
const ALLOW_LIST_ALONE = refused(['exec-memory', 'exec-later']);

/** Folders that the stand-in tries to list, each with a name that it must not find. */
const LISTS = [
  { target: 'home', hidden: 'request-victim' },
  { target: '/', hidden: 'root' },
  { target: '/etc', hidden: 'passwd' },
  { target: '/proc', hidden: 'self' },
] as const;

/** Attempts that end the tool. The response is an error of the client. */
const ENDS: readonly { readonly name: string; readonly status: number; readonly target?: string }[] = [
  { name: 'abort', status: 400 },
  { name: 'swap-input', status: 400, target: '/etc/passwd' },
  { name: 'fill', status: 413 },
];

/** Runs an attempt of the stand-in, which gets the ID of a process and a path. */
const attempt = (base: string, what: string, pid = 0, path = '/'): Promise<ClientResponse> => {
  const comment = `<!--attempt ${what} ${pid} ${path} -->`;
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8">${comment}</svg>`;
  return convert(base, Buffer.from(drawing), { format: 'png' }, 'drawing.svg');
};

/** Returns the kernel objects that the stand-in created and that outlive its process. */
function keptByKernel(): string {
  const lines = ['/proc/sysvipc/shm', '/proc/sysvipc/sem', '/proc/sysvipc/msg', '/proc/keys']
    .filter((path) => existsSync(path))
    .flatMap((path) => readFileSync(path, 'utf8').split('\n'));
  // Ignore the objects of other processes: those of the stand-in have its name or its size.
  return lines.filter((line) => /evil|\b52428800\b/.test(line)).join('\n');
}

for (const { name, list, FORK_SERVER } of [
  { name: 'broken-codec', list: 'allow-list', FORK_SERVER: 'on' },
  { name: 'broken-codec-unusual', list: 'deny-list', FORK_SERVER: 'on' },
  { name: 'broken-codec', list: 'allow-list', FORK_SERVER: 'off' },
] as const) {
  describe(`compromised codec under the ${list} with FORK_SERVER=${FORK_SERVER}`, () => {
    let program: string | undefined;
    let service: ServiceProcess;
    let base: string;
    let image: Buffer;
    let expected: Buffer;
    let targets: Targets;
    /** Number of processes of the stand-in without a job: those of its fork server. */
    let idle: number;
    const processes = (): number[] => processesWhere('cmdline', (line) => line.startsWith(program as string));

    before(async () => {
      program = await buildBrokenCodec(name);
      if (!program) return;
      const TEMP_DIR = await makeTempDir('codec-temp');
      const settings = { TEMP_DIR, SANDBOX: 'on', FORK_SERVER, CONVERT_TIMEOUT_MS: '10000' };
      service = startProcess({ RSVG_BIN: program, ...settings });
      base = await service.base();
      idle = processes().length;
      image = await fixture('scene.png');
      expected = (await convert(base, image)).body;
      const home = join(TEMP_DIR, (await readdir(TEMP_DIR))[0] as string);
      const victim = join(home, 'request-victim');
      await mkdir(victim, { mode: 0o700 });
      await writeFile(join(victim, 'in'), SECRET);
      await utimes(victim, 1000, 1000);
      const proc = `/proc/${service.pid}`;
      targets = {
        home,
        victim,
        image: join(victim, 'in'),
        environ: `${proc}/environ`,
        memory: `${proc}/mem`,
      };
    });
    after(async () => {
      service?.child.kill('SIGTERM');
      await service?.ended();
    });

    /** Adds a test that is skipped without the stand-in for the codec. */
    const proven = (what: string, prove: () => Promise<void>): void => {
      it(what, async function () {
        requires(this, 'compiler', program !== undefined);
        await prove();
      });
    };

    /** Runs an attempt of the stand-in against the server. */
    const tryOut = (what: string, target?: string): Promise<ClientResponse> =>
      attempt(base, what, service.pid, target);

    /** Checks that the server is healthy, serves other clients, and has no trace of the attempt. */
    const unharmed = async (): Promise<void> => {
      const origin = base.replace('/api/v1', '');
      expect((await sendForm(`${origin}/livez`)).status, 'livez').to.equal(200);
      const other = await converted(base, image);
      expect(other.body.equals(expected), 'the image of another client').to.equal(true);
      expect(await readFile(targets.image, 'utf8')).to.equal(SECRET);
      expect(await readdir(targets.victim)).to.deep.equal(['in']);
      expect(await stat(targets.victim)).to.include({ mode: 0o40700, mtimeMs: 1_000_000 });
      await eventually(() => processes().length === idle);
      await eventually(async () => {
        const requests = (await readdir(targets.home)).filter((folder) => folder.startsWith('request-'));
        return requests.length === 1; // only that of the other client
      });
      expect(keptByKernel()).to.equal('');
    };

    proven('runs under the layers that /readyz and the log report', async () => {
      const ready = await sendForm(base.replace('/api/v1', '/readyz'));
      const { sandbox } = jsonOf(ready);
      expect(sandbox).to.include({ files: 'landlock', syscalls: list, network: 'seccomp' });
      expect(service.output()).to.include(`"syscalls":"${list}"`);
      expect(idle > 0, 'a fork server runs').to.equal(FORK_SERVER === 'on');
      expect(service.output().includes('calls that are not on the allow-list')).to.equal(
        list === 'deny-list',
      );
    });

    proven('renders an image, and reports its attempt', async () => {
      const answer = await expectSuccess(tryOut('none'));
      expect(answer.body.toString('latin1')).to.match(/RESULT 0 0 $/);
      expect((await tryOut('no-such-attempt')).body.toString('latin1')).to.match(/RESULT -2 0 $/);
    });

    // Single starts are confined by the same code: a sample.
    const attempts = ATTEMPTS.filter((_, at) => FORK_SERVER === 'on' || at % 5 === 0);
    for (const { name, target, errors } of [
      ...attempts,
      ...(list === 'allow-list' ? ALLOW_LIST_ALONE : []),
    ]) {
      proven(`is denied ${name}${target ? ` on ${target}` : ''}`, async () => {
        const path = target?.startsWith('/') ? target : targets[target as keyof Targets];
        const answer = await expectSuccess(tryOut(name, path));
        const found = answer.body.toString('latin1');
        const [, result, error] = /RESULT (-?\d+) (\d+) $/.exec(found) ?? [];
        expect(result, found).to.equal('-1');
        expect(Number(error), `errno ${error}`).to.be.oneOf([...errors]);
        expect(found).to.not.include('READ');
        await unharmed();
      });
    }

    for (const { target, hidden } of LISTS) {
      proven(`sees no ${hidden} in ${target}`, async () => {
        const answer = await tryOut('list', target === 'home' ? targets.home : target);
        expect(answer.body.toString('latin1'))
          .to.match(/RESULT -?\d+ \d+ $/)
          .and.to.not.include(`LISTED ${hidden} `);
        await unharmed();
      });
    }

    for (const { name, status, target } of ENDS) {
      proven(`gets ${status} when it ends with ${name}`, async () => {
        const answer = await tryOut(name, target);
        expect(answer.status, answer.message).to.equal(status);
        expect(answer.body.toString('latin1')).to.not.include('root:');
        await unharmed();
      });
    }

    proven('leaves no thread after its job', async () => {
      expect((await tryOut('threads')).body.toString('latin1')).to.match(/RESULT 20 0 $/);
      await unharmed();
    });
  });
}

describe('memory that a compromised codec has written through a file', () => {
  for (const [what, options, result] of [
    ['can become executable', 'mode=700', 'RESULT 0 0 '],
    ['cannot become executable where TEMP_DIR is mounted with noexec', 'mode=700,noexec', 'RESULT -1 1 '],
  ] as const)
    it(what, async function () {
      const RSVG_BIN = await buildBrokenCodec('broken-codec');
      requires(this, 'compiler', RSVG_BIN !== undefined);
      const TEMP_DIR = await makeTempDir('codec-temp');
      const mount = `mount -t tmpfs -o ${options} tmpfs "$0"; exec "$@"`;
      const mounted = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-ec', mount, TEMP_DIR];
      requires(this, 'mounts', spawnSync('env', [...mounted, 'true']).status === 0);
      await using service = startProcess({ RSVG_BIN, TEMP_DIR, SANDBOX: 'on' }, mounted);
      const { body } = await expectSuccess(attempt(await service.base(), 'exec-file'));
      expect(body.toString('latin1').endsWith(result), body.toString('latin1')).to.equal(true);
    });
});

describe('compromised codec without a sandbox', () => {
  for (const [what, name] of [
    ['more than 1000 files', 'make-many'],
    ['more bytes than its conversion has reserved', 'fill-disk'],
  ] as const)
    it(`is killed when it writes ${what}, and the client gets 413`, async function () {
      const RSVG_BIN = await buildBrokenCodec('broken-codec');
      requires(this, 'compiler', RSVG_BIN !== undefined);
      const TEMP_DIR = await makeTempDir('codec-temp');
      await using service = startProcess({ RSVG_BIN, TEMP_DIR, SANDBOX: 'off' });
      const base = await service.base();
      const { status, message } = await attempt(base, name);
      expect(status, message).to.equal(413);
      expect(message).to.include('needs more memory or disk space than one conversion may use');
      const { body } = await sendForm(new URL('/metrics', base).href);
      expect(body.toString()).to.include('imagemill_tools_killed_total{reason="file_size"} 1\n');
      const [home = ''] = await readdir(TEMP_DIR);
      await eventually(async () => (await readdir(join(TEMP_DIR, home))).length === 1); // owner.json
    });
});

describe('standard input of rsvg-convert', () => {
  it('is outside the folder that the tool can write to, and the tool runs only once', async () => {
    const folder = await makeTempDir('stdin');
    const RSVG_BIN = await writeScript(
      'rsvg',
      `case "$*" in
  --version) echo "rsvg-convert version 2.54.7" ;;
  *) ls > ${folder}/seen-$$; cat > ${folder}/input; echo "ColorProfile" >&2; exit 1 ;;
esac`,
    );
    const service = startProcess({ RSVG_BIN, TEMP_DIR: await makeTempDir('stdin-temp'), SANDBOX: 'off' });
    try {
      const drawing = await fixture('scene.svg');
      const answer = await convert(await service.base(), drawing, { format: 'png' }, 'scene.svg');
      expect(answer.status).to.equal(400);
      expect(await readFile(join(folder, 'input'))).to.deep.equal(drawing);
      const runs = (await readdir(folder)).filter((file) => file.startsWith('seen-'));
      expect(runs).to.have.length(1);
      expect(await readFile(join(folder, runs[0] as string), 'utf8')).to.equal('');
    } finally {
      service.child.kill('SIGTERM');
      await service.ended();
    }
  });
});
