import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { ALLOW_LIST } from '../../../scripts/seccomp/allow-list.ts';
import { CALL_NUMBERS, type CallName } from '../../../scripts/seccomp/call-numbers.ts';
import {
  ACTIONS,
  ARCHITECTURES,
  type Architecture,
  compile,
  encode,
  ruleFor,
} from '../../../scripts/seccomp/compile.ts';
import { DENY_LIST } from '../../../scripts/seccomp/deny-list.ts';
import type { Condition, Rule } from '../../../scripts/seccomp/rules.ts';
import { requires } from '../../helpers/skips.ts';

/** @module Runs the seccomp filters of both architectures in an interpreter of classic BPF. */

const FILTERS = { 'allow-list': ALLOW_LIST, 'deny-list': DENY_LIST };
type List = keyof typeof FILTERS;
const LISTS = Object.keys(FILTERS) as List[];
const BOTH = Object.keys(ARCHITECTURES) as Architecture[];

const programIn = (list: List, architecture: Architecture): Buffer =>
  readFileSync(new URL(`../../../assets/seccomp/${list}.${architecture}.bpf`, import.meta.url));

/** Encodes struct seccomp_data of the kernel. */
function callData(audit: number, number: number, args: readonly bigint[]): Buffer {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(audit, 4);
  for (const [at, value] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, value), 16 + 8 * at);
  return data;
}

/** Runs a BPF program as net/core/filter.c of the kernel does. Supports only the opcodes that the filters use. */
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
    else if (code === 0x35) jumpIf(accumulator >= value);
    else if (code === 0x06) return value;
    else throw new Error(`a code that no filter should have: ${code}`);
  }
}

const nameOf = (action: number): string =>
  Object.entries(ACTIONS).find(([, value]) => value === action)?.[0] ?? action.toString(16);

/** Returns the action of a list's filter for a system call: allow, refuse, absent or kill. */
function actionOf(
  list: List,
  architecture: Architecture,
  call: CallName,
  args: readonly (number | bigint)[] = [],
) {
  const { audit, column } = ARCHITECTURES[architecture];
  const number = CALL_NUMBERS[call][column];
  if (number === undefined) return undefined;
  return nameOf(interpret(programIn(list, architecture), callData(audit, number, args.map(BigInt))));
}

/** Returns the same action from the table, without a BPF program. */
function byTable(rule: Rule, args: readonly bigint[]): string {
  if (typeof rule === 'string') return rule;
  const holds = (condition: Condition): boolean => {
    const { argument, half, mask = 0xffff_ffff } = condition;
    const value = BigInt.asUintN(64, args[argument] ?? 0n) >> (half === 'high' ? 32n : 0n);
    const seen = Number(value & 0xffff_ffffn & BigInt(mask >>> 0));
    return 'oneOf' in condition ? condition.oneOf.includes(seen) : !condition.noneOf.includes(seen);
  };
  const matches = rule.when.some((conditions) => conditions.every(holds));
  if (matches) return rule.action;
  return rule.action === 'allow' ? 'refuse' : 'allow';
}

/** Values around each value that a rule compares with. */
function telling(rule: Rule): bigint[][] {
  if (typeof rule === 'string') return [[]];
  const conditions = rule.when.flat();
  const values = (argument: number): bigint[] => {
    const own = conditions
      .filter((condition) => condition.argument === argument)
      .flatMap((condition) => [
        ...('oneOf' in condition ? condition.oneOf : condition.noneOf),
        condition.mask ?? 0,
      ]);
    const near = own.flatMap((value) => [BigInt(value), BigInt(value) + 1n, BigInt(value) | (1n << 32n)]);
    return own.length === 0 ? [0n] : [0n, 0xffff_ffffn, -1n, ...near];
  };
  let combinations: bigint[][] = [[]];
  for (let argument = 0; argument < 6; argument += 1) {
    combinations = combinations.flatMap((args) => values(argument).map((value) => [...args, value]));
  }
  return combinations;
}

/** System calls that both lists must deny to a compromised codec. */
const NEVER: readonly CallName[] = [
  ...(['fork', 'vfork', 'setsid', 'setpgid', 'unshare', 'setns', 'execveat', 'memfd_create'] as const),
  ...(['kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo', 'pidfd_send_signal'] as const),
  ...(['pidfd_open', 'pidfd_getfd', 'ptrace', 'process_vm_readv', 'process_vm_writev', 'kcmp'] as const),
  ...(['socket', 'socketpair', 'connect', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'] as const),
  ...(['sched_setscheduler', 'sched_setaffinity', 'sched_setparam', 'sched_setattr'] as const),
  ...(['setpriority', 'ioprio_set', 'setrlimit'] as const),
  ...(['chmod', 'fchmod', 'fchmodat', 'chown', 'fchown', 'lchown', 'fchownat'] as const),
  ...(['utime', 'utimes', 'utimensat', 'futimesat', 'setxattr', 'lsetxattr', 'fsetxattr'] as const),
  ...(['removexattr', 'lremovexattr', 'fremovexattr', 'link', 'linkat', 'symlink', 'symlinkat'] as const),
  ...(['inotify_init', 'inotify_init1', 'inotify_add_watch', 'fanotify_init', 'fanotify_mark'] as const),
  ...(['shmget', 'shmat', 'shmctl', 'semget', 'semop', 'msgget', 'msgsnd', 'mq_open', 'mq_notify'] as const),
  ...(['userfaultfd', 'keyctl', 'add_key', 'request_key', 'perf_event_open', 'bpf', 'personality'] as const),
  ...(['mount', 'umount2', 'pivot_root', 'chroot', 'fsopen', 'move_mount', 'mount_setattr'] as const),
  ...(['setuid', 'setresuid', 'setgroups', 'init_module', 'kexec_load', 'reboot'] as const),
];

/** Decisive arguments, from the kernel headers and not from the tables. */
const BY_ARGUMENTS: readonly [
  what: string,
  call: CallName,
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
  ['an end with the parent', 'prctl', [1, 9], 'allow'],
  ['no end with the parent', 'prctl', [1, 0], 'refuse'],
  ['a capability of the bounding set, read', 'prctl', [23, 0], 'allow'],
  ['an ambient capability, read', 'prctl', [47, 1, 0], 'allow'],
];

/** System calls that only the allow-list denies. No written file can be executed. */
const ONLY_BY_ALLOW_LIST: readonly [what: string, call: CallName, args: readonly number[], action: string][] =
  [
    ['a library', 'mmap', [0, 4096, 0x5, 0x812, 3, 0], 'allow'],
    ['memory', 'mmap', [0, 4096, 0x3, 0x22, -1, 0], 'allow'],
    ['memory to be run', 'mmap', [0, 4096, 0x5, 0x22, -1, 0], 'refuse'],
    ['memory to be written and run', 'mmap', [0, 4096, 0x7, 0x22, -1, 0], 'refuse'],
    ['a file to be written and run', 'mmap', [0, 4096, 0x7, 0x2, 3, 0], 'refuse'],
    ['memory that becomes read-only', 'mprotect', [0, 4096, 0x1], 'allow'],
    ['memory that becomes a program', 'mprotect', [0, 4096, 0x5], 'refuse'],
    ['an ambient capability, raised', 'prctl', [47, 2, 0], 'refuse'],
  ];

describe('seccomp filters', () => {
  it('in assets/seccomp match the output of scripts/make-seccomp.ts', () => {
    for (const list of LISTS) {
      for (const architecture of BOTH) {
        const made = encode(compile(FILTERS[list], architecture));
        expect(programIn(list, architecture).equals(made), `${list} for ${architecture}`).to.equal(true);
      }
    }
  });

  for (const architecture of BOTH) {
    for (const list of LISTS) {
      it(`implement the ${list} for every call and every relevant argument on ${architecture}`, () => {
        const { audit } = ARCHITECTURES[architecture];
        const program = programIn(list, architecture);
        const numbers = [...Array(600).keys(), 0x3fff_ffff, 0x4000_0000, 0x4000_0029, 0xffff_ffff];
        for (const number of numbers) {
          const rule = ruleFor(number, FILTERS[list], architecture);
          for (const args of telling(rule)) {
            const found = nameOf(interpret(program, callData(audit, number, args)));
            if (found !== byTable(rule, args))
              expect(found, `${number}(${args})`).to.equal(byTable(rule, args));
          }
        }
      });

      it(`with the ${list} deny all access to other processes and files on ${architecture}`, () => {
        for (const call of NEVER) {
          expect(actionOf(list, architecture, call), call).to.be.oneOf(['refuse', undefined]);
        }
      });

      it(`with the ${list} distinguish harmless from harmful arguments on ${architecture}`, () => {
        const rows = [...BY_ARGUMENTS, ...(list === 'allow-list' ? ONLY_BY_ALLOW_LIST : [])];
        for (const [what, call, args, action] of rows) {
          expect(actionOf(list, architecture, call, args), `${call}: ${what}`).to.equal(action);
        }
      });
    }

    it(`kill a program of another architecture than ${architecture}`, () => {
      for (const list of LISTS) {
        const i386 = callData(0x4000_0003, 20, []);
        expect(nameOf(interpret(programIn(list, architecture), i386))).to.equal('kill');
      }
    });

    it(`return ENOSYS for calls newer than the allow-list on ${architecture}`, () => {
      const { audit } = ARCHITECTURES[architecture];
      const program = programIn('allow-list', architecture);
      expect(nameOf(interpret(program, callData(audit, 500, [])))).to.equal('absent');
    });
  }

  it('have a reason in the allow-list for every call of the C library that starts a program and a thread', () => {
    for (const call of [
      'execve',
      'brk',
      'mmap',
      'mprotect',
      'munmap',
      'futex',
      'rseq',
      'exit_group',
    ] as const) {
      for (const architecture of BOTH) {
        expect(actionOf('allow-list', architecture, call), call).to.equal('allow');
      }
    }
  });

  // The headers are in libc6-dev, which is not installed on every machine.
  for (const [architecture, header, least] of [
    ['x64', '/usr/include/x86_64-linux-gnu/asm/unistd_64.h', 300],
    ['arm64', '/usr/include/asm-generic/unistd.h', 250],
  ] as const) {
    it(`use the system call numbers of the kernel headers for ${architecture}`, function () {
      requires(this, 'kernel-headers', existsSync(header));
      const { column } = ARCHITECTURES[architecture];
      const text = readFileSync(header, 'utf8').replaceAll('__NR3264_fstatat', '__NR3264_newfstatat');
      const rows = [...text.matchAll(/^#define __NR(?:3264)?_(\w+) (\d+)$/gm)].filter(
        // The header also has calls of 32-bit architectures.
        ([, name]) => CALL_NUMBERS[name as CallName]?.[column] !== undefined,
      );
      expect(rows.length).to.be.above(least);
      for (const [, name, number] of rows) {
        expect(CALL_NUMBERS[name as CallName][column], name).to.equal(Number(number));
      }
    });
  }
});
