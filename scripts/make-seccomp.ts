/**
 * Makes the filters in assets/seccomp/ anew: `node scripts/make-seccomp.ts`. Under one a tool opens no socket, by any
 * door, looks into no other process, and signals none: abort(3) then ends by an instruction, or with 127 where a handler
 * of ImageMagick's aborts once more. As the kernel takes it: classic BPF, an architecture each (seccomp(2),
 * linux/bpf_common.h).
 */
import { mkdirSync, writeFileSync } from 'node:fs';

interface Architecture {
  /** AUDIT_ARCH_* of linux/audit.h. */
  readonly audit: number;
  /** The numbers of {@link DENIED}. */
  readonly calls: Readonly<Record<(typeof DENIED)[number], number>>;
}

const DENIED = [
  ...(['socket', 'socketpair', 'connect', 'ptrace', 'process_vm_readv', 'io_uring_setup'] as const),
  ...(['kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo', 'pidfd_send_signal'] as const),
];

/** From the kernel's own tables: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h. */
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000003e,
    calls: {
      socket: 41,
      socketpair: 53,
      connect: 42,
      ptrace: 101,
      process_vm_readv: 310,
      io_uring_setup: 425,
      kill: 62,
      tkill: 200,
      tgkill: 234,
      rt_sigqueueinfo: 129,
      rt_tgsigqueueinfo: 297,
      pidfd_send_signal: 424,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    calls: {
      socket: 198,
      socketpair: 199,
      connect: 203,
      ptrace: 117,
      process_vm_readv: 270,
      io_uring_setup: 425,
      kill: 129,
      tkill: 130,
      tgkill: 131,
      rt_sigqueueinfo: 138,
      rt_tgsigqueueinfo: 240,
      pidfd_send_signal: 424,
    },
  },
};

const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;
/** Where struct seccomp_data has the call's number and the architecture. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
/** SECCOMP_RET_ERRNO with EPERM. */
const REFUSE = 0x00050001;
/** Calls of the x32 kind have this bit: nobody here makes any. */
const X32_BIT = 0x40000000;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

function filterFor({ audit, calls }: Architecture): Buffer {
  const numbers = DENIED.map((name) => calls[name]);
  const program: Instruction[] = [
    [LOAD_WORD, 0, 0, ARCHITECTURE_AT],
    [JUMP_IF_EQUAL, 1, 0, audit],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD_WORD, 0, 0, NUMBER_AT],
    // Each refused number jumps over those behind it, and over the line that allows.
    [JUMP_IF_AT_LEAST, numbers.length + 1, 0, X32_BIT],
    ...numbers.map((number, at): Instruction => [JUMP_IF_EQUAL, numbers.length - at, 0, number]),
    [RETURN, 0, 0, ALLOW],
    [RETURN, 0, 0, REFUSE],
  ];
  return Buffer.concat(program.map(encode));
}

/** struct sock_filter, in the byte order of the architectures above. */
function encode([code, ifTrue, ifFalse, value]: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}

const FOLDER = new URL('../assets/seccomp/', import.meta.url);
mkdirSync(FOLDER, { recursive: true });
for (const [name, architecture] of Object.entries(ARCHITECTURES)) {
  writeFileSync(new URL(`${name}.bpf`, FOLDER), filterFor(architecture));
}
