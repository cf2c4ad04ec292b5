import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeTempDir } from '../helpers/hooks.ts';

/** @module Runs the seccomp filters of both architectures in an interpreter of classic BPF. */

const LISTS = ['allow-list', 'deny-list'] as const;
type List = (typeof LISTS)[number];
/** AUDIT_ARCH_* of linux/audit.h. */
const ARCHITECTURES = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;
type Architecture = keyof typeof ARCHITECTURES;
const BOTH = Object.keys(ARCHITECTURES) as Architecture[];
/**
 * SECCOMP_RET_* values. The low 16 bits of `refuse` and `absent` hold the error number: EPERM (1)
 * and ENOSYS (38).
 */
const ACTIONS = { allow: 0x7fff_0000, refuse: 0x0005_0001, absent: 0x0005_0026, kill: 0x8000_0000 };
/** Debian packages are for /usr/bin/python3, which may not be the first Python on the PATH. */
const PYTHON = '/usr/bin/python3';
const ASSETS = new URL('../../assets/seccomp/', import.meta.url).pathname;
const GENERATOR = new URL('../../scripts/make-seccomp.py', import.meta.url).pathname;

const programIn = (folder: string, list: List, architecture: Architecture): Buffer =>
  readFileSync(join(folder, `${list}.${architecture}.bpf`));

/**
 * Resolves names of system calls with libseccomp. Calls that an architecture lacks have negative
 * numbers.
 */
function resolveCalls(names: readonly string[]): ReadonlyMap<string, Record<Architecture, number>> {
  const script = `import json, sys, seccomp
print(json.dumps({name: {key: seccomp.resolve_syscall(seccomp.Arch(value), name) for key, value in
  [('x64', seccomp.Arch.X86_64), ('arm64', seccomp.Arch.AARCH64)]} for name in sys.argv[1:]}))`;
  return new Map(
    Object.entries(JSON.parse(execFileSync(PYTHON, ['-c', script, ...names], { encoding: 'utf8' }))),
  );
}

/** Encodes struct seccomp_data of the kernel. */
function callData(audit: number, number: number, args: readonly bigint[]): Buffer {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(audit, 4);
  for (const [at, value] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, value), 16 + 8 * at);
  return data;
}

/**
 * Runs a BPF program as net/core/filter.c of the kernel does. Supports only the opcodes that the
 * filters use.
 */
function interpret(program: Buffer, data: Buffer): number {
  let accumulator = 0;
  for (let at = 0; ; at += 1) {
    if (8 * at >= program.length) throw new Error('the program has no return at its end');
    const code = program.readUInt16LE(8 * at);
    const jumpIf = (condition: boolean): void => {
      at += program.readUInt8(8 * at + (condition ? 2 : 3));
    };
    const value = program.readUInt32LE(8 * at + 4);
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (code === 0x05) at += value;
    else if (code === 0x15) jumpIf(accumulator === value);
    else if (code === 0x25) jumpIf(accumulator > value);
    else if (code === 0x35) jumpIf(accumulator >= value);
    else if (code === 0x06) return value;
    else throw new Error(`a code that no filter should have: ${code}`);
  }
}

const nameOf = (action: number): string =>
  Object.entries(ACTIONS).find(([, value]) => value === action)?.[0] ?? action.toString(16);

/** System calls that both lists must deny to a compromised codec. */
const NEVER: readonly string[] = [
  'fork',
  'vfork',
  'setsid',
  'setpgid',
  'unshare',
  'setns',
  'execve',
  'execveat',
  'memfd_create',
  'kill',
  'tkill',
  'tgkill',
  'rt_sigqueueinfo',
  'rt_tgsigqueueinfo',
  'pidfd_send_signal',
  'pidfd_open',
  'pidfd_getfd',
  'ptrace',
  'process_vm_readv',
  'process_vm_writev',
  'kcmp',
  'socket',
  'socketpair',
  'connect',
  'io_uring_setup',
  'io_uring_enter',
  'io_uring_register',
  'sched_setscheduler',
  'sched_setaffinity',
  'sched_setparam',
  'sched_setattr',
  'setpriority',
  'ioprio_set',
  'setrlimit',
  'chmod',
  'fchmod',
  'fchmodat',
  'chown',
  'fchown',
  'lchown',
  'fchownat',
  'truncate',
  'utime',
  'utimes',
  'utimensat',
  'futimesat',
  'setxattr',
  'lsetxattr',
  'fsetxattr',
  'removexattr',
  'lremovexattr',
  'fremovexattr',
  'link',
  'linkat',
  'symlink',
  'symlinkat',
  'inotify_init',
  'inotify_init1',
  'inotify_add_watch',
  'fanotify_init',
  'fanotify_mark',
  'shmget',
  'shmat',
  'shmctl',
  'semget',
  'semop',
  'msgget',
  'msgsnd',
  'mq_open',
  'mq_notify',
  'userfaultfd',
  'keyctl',
  'add_key',
  'request_key',
  'perf_event_open',
  'bpf',
  'personality',
  'mount',
  'umount2',
  'pivot_root',
  'chroot',
  'fsopen',
  'move_mount',
  'mount_setattr',
  'setuid',
  'setresuid',
  'setgroups',
  'init_module',
  'kexec_load',
  'reboot',
];

/** Decisive arguments, from the kernel headers and not from the tables. */
const BY_ARGUMENTS: readonly [
  what: string,
  call: string,
  args: readonly (number | bigint)[],
  action: string,
][] = [
  ['F_GETFL', 'fcntl', [3, 3], 'allow'],
  ['F_SETOWN', 'fcntl', [3, 8, 1], 'refuse'],
  ['F_SETSIG', 'fcntl', [3, 10, 9], 'refuse'],
  ['F_SETOWN_EX', 'fcntl', [3, 15], 'refuse'],
  ['F_SETLEASE', 'fcntl', [3, 1024], 'refuse'],
  ['F_NOTIFY', 'fcntl', [3, 1026], 'refuse'],
  ['F_SETOWN with bits that the kernel drops', 'fcntl', [3, 8n | (1n << 32n), 1], 'refuse'],
  ['O_NONBLOCK', 'fcntl', [3, 4, 0o4000], 'allow'],
  ['O_ASYNC', 'fcntl', [3, 4, 0o20000], 'refuse'],
  ['O_ASYNC beside others', 'fcntl', [3, 4, 0o24000], 'refuse'],
  ['TCGETS', 'ioctl', [1, 0x5401], 'allow'],
  ['FIOSETOWN', 'ioctl', [1, 0x8901], 'refuse'],
  ['SIOCSPGRP', 'ioctl', [1, 0x8902], 'refuse'],
  ['FIOASYNC', 'ioctl', [1, 0x5452], 'refuse'],
  ['TIOCSTI', 'ioctl', [1, 0x5412], 'refuse'],
  ['limits of its own, read', 'prlimit64', [0, 7, 0, 0x7fff_0000_0000n], 'allow'],
  ['limits of its own, set', 'prlimit64', [0, 7, 0x7fff_0000_0000n, 0], 'refuse'],
  ['limits of another, read', 'prlimit64', [1, 7, 0, 0], 'refuse'],
  ['limits of another, set', 'prlimit64', [1, 7, 0x7fff_0000_1000n, 0], 'refuse'],
  ['the flags of a thread of glibc', 'clone', [0x3d0f00], 'allow'],
  ['the flags of fork', 'clone', [0x0120_0011], 'refuse'],
  ['the flags of vfork', 'clone', [0x4111], 'refuse'],
  ['a thread in a new user namespace', 'clone', [0x1001_0f00], 'refuse'],
  ['a new network', 'clone', [0x4000_0011], 'refuse'],
  ['by a struct', 'clone3', [0x7fff_0000_0000n, 88], 'absent'],
  ['the name of a thread', 'prctl', [15, 0x7fff_0000_0000n], 'allow'],
  ['no end with the parent', 'prctl', [1, 0], 'refuse'],
  ['to read', 'open', [0, 0o2000000], 'allow'],
  ['to write a new file', 'open', [0, 0o1101, 0o600], 'allow'],
  ['to empty a file and read it', 'open', [0, 0o2001000], 'refuse'],
  ['to empty a file without reading it', 'open', [0, 0o1003], 'refuse'],
  ['to read', 'openat', [-100, 0, 0o2000000], 'allow'],
  ['to write a new file', 'openat', [-100, 0, 0o1101, 0o600], 'allow'],
  ['to read and write an emptied file', 'openat', [-100, 0, 0o1002], 'allow'],
  ['to empty a file and read it', 'openat', [-100, 0, 0o2001000], 'refuse'],
  ['to empty a file without reading it', 'openat', [-100, 0, 0o1003], 'refuse'],
  ['to empty a file, with bits that the kernel drops', 'openat', [-100, 0, 0o1000n | (1n << 32n)], 'refuse'],
  ['by a struct', 'openat2', [-100, 0, 0x7fff_0000_0000n, 24], 'absent'],
];

/** System calls that only the allow-list denies. No written file can be executed. */
const ONLY_BY_ALLOW_LIST: readonly [what: string, call: string, args: readonly number[], action: string][] = [
  ['a library', 'mmap', [0, 4096, 0x5, 0x812, 3, 0], 'allow'],
  ['memory', 'mmap', [0, 4096, 0x3, 0x22, -1, 0], 'allow'],
  ['memory to be run', 'mmap', [0, 4096, 0x5, 0x22, -1, 0], 'refuse'],
  ['memory to be written and run', 'mmap', [0, 4096, 0x7, 0x22, -1, 0], 'refuse'],
  ['a file to be written and run', 'mmap', [0, 4096, 0x7, 0x2, 3, 0], 'refuse'],
  ['memory that becomes read-only', 'mprotect', [0, 4096, 0x1], 'allow'],
  ['memory that becomes a program', 'mprotect', [0, 4096, 0x5], 'refuse'],
  ['an ambient capability, raised', 'prctl', [47, 2, 0], 'refuse'],
];

/** Calls with which the C library starts a program and a thread. */
const STARTS = ['brk', 'mmap', 'mprotect', 'munmap', 'futex', 'rseq', 'exit_group'];

describe('seccomp filters', () => {
  const rows = [...BY_ARGUMENTS, ...ONLY_BY_ALLOW_LIST];
  const numbers = resolveCalls([...NEVER, ...STARTS, ...rows.map(([, call]) => call)]);

  /** Returns a list's action for a system call, or undefined if the architecture lacks the call. */
  function actionOf(
    list: List,
    architecture: Architecture,
    call: string,
    args: readonly (number | bigint)[] = [],
  ): string | undefined {
    const number = numbers.get(call)?.[architecture] as number;
    if (number < 0) return undefined;
    const data = callData(ARCHITECTURES[architecture], number, args.map(BigInt));
    return nameOf(interpret(programIn(ASSETS, list, architecture), data));
  }

  it('in assets/seccomp decide every call as the output of scripts/make-seccomp.py does', async () => {
    const folder = await makeTempDir('seccomp');
    execFileSync(PYTHON, [GENERATOR, folder]);
    for (const list of LISTS) {
      for (const architecture of BOTH) {
        const [committed, generated] = [ASSETS, folder].map((from) => programIn(from, list, architecture));
        for (const number of [...Array(600).keys(), 0x3fff_ffff, 0x4000_0000]) {
          for (const [, , args] of rows) {
            const data = callData(ARCHITECTURES[architecture], number, args.map(BigInt));
            const [expected, action] = [committed, generated].map((program) =>
              interpret(program as Buffer, data),
            );
            if (action !== expected)
              expect(action, `${list}, ${architecture}: ${number}(${args})`).to.equal(expected);
          }
        }
      }
    }
  });

  for (const architecture of BOTH) {
    for (const list of LISTS) {
      it(`with the ${list} deny all access to other processes and files on ${architecture}`, () => {
        for (const call of NEVER) {
          expect(actionOf(list, architecture, call), call).to.be.oneOf(['refuse', undefined]);
        }
      });

      it(`with the ${list} distinguish harmless from harmful arguments on ${architecture}`, () => {
        for (const [what, call, args, action] of list === 'allow-list' ? rows : BY_ARGUMENTS) {
          if (call === 'open' && architecture === 'arm64') continue; // which has only openat
          expect(actionOf(list, architecture, call, args), `${call}: ${what}`).to.equal(action);
        }
      });
    }

    it(`kill a program of another architecture than ${architecture}`, () => {
      for (const list of LISTS) {
        const i386 = callData(0x4000_0003, 20, []);
        expect(nameOf(interpret(programIn(ASSETS, list, architecture), i386))).to.equal('kill');
      }
    });

    it(`return ENOSYS for calls newer than the allow-list on ${architecture}`, () => {
      const data = callData(ARCHITECTURES[architecture], 500, []);
      expect(nameOf(interpret(programIn(ASSETS, 'allow-list', architecture), data))).to.equal('absent');
    });

    it(`with the allow-list permit what starts a thread on ${architecture}`, () => {
      for (const call of STARTS) expect(actionOf('allow-list', architecture, call), call).to.equal('allow');
    });
  }
});
