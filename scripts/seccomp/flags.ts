/**
 * @module Flags and commands of system calls, from include/uapi of the kernel. They are identical on x64 and arm64,
 * except where noted.
 */

/** Flags of clone(2) that create a namespace: sched.h. */
export const CLONE_NEW_NAMESPACES =
  0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;
/** Flag of clone(2) that starts a thread: sched.h. */
export const CLONE_THREAD = 0x0001_0000;

/** Commands of fcntl(2): asm-generic/fcntl.h, fcntl.h. */
export const FCNTL = {
  F_DUPFD: 0,
  F_GETFD: 1,
  F_SETFD: 2,
  F_GETFL: 3,
  F_SETFL: 4,
  F_SETOWN: 8,
  F_SETSIG: 10,
  F_SETOWN_EX: 15,
  F_SETLEASE: 1024,
  F_NOTIFY: 1026,
  F_DUPFD_CLOEXEC: 1030,
} as const;
/** File status flag that requests signals: asm-generic/fcntl.h. */
export const O_ASYNC = 0x2000;

/** Requests of ioctl(2): asm-generic/ioctls.h, sockios.h. */
export const IOCTL = {
  TCGETS: 0x5401,
  TIOCSTI: 0x5412,
  TIOCGWINSZ: 0x5413,
  TIOCLINUX: 0x541c,
  FIONREAD: 0x541b,
  FIOASYNC: 0x5452,
  TCGETS2: 0x802c_542a,
  FIOSETOWN: 0x8901,
  SIOCSPGRP: 0x8902,
} as const;

/** Memory protection of mmap(2) and mprotect(2), writable: mman-common.h. */
export const PROT_WRITE = 0x2;
/** Memory protection, executable: mman-common.h. */
export const PROT_EXEC = 0x4;
/** Memory protection, branch targets checked: asm/mman.h, arm64 only. */
export const PROT_BTI = 0x10;
/** Flag of mmap(2) for memory without a file: mman-common.h. */
export const MAP_ANONYMOUS = 0x20;

/** Advice of madvise(2): mman-common.h. */
export const MADVICE = {
  MADV_NORMAL: 0,
  MADV_RANDOM: 1,
  MADV_SEQUENTIAL: 2,
  MADV_WILLNEED: 3,
  MADV_DONTNEED: 4,
  MADV_FREE: 8,
  MADV_HUGEPAGE: 14,
  MADV_NOHUGEPAGE: 15,
  MADV_DONTDUMP: 16,
} as const;

/** Operations of prctl(2): prctl.h. */
export const PRCTL = {
  PR_SET_PDEATHSIG: 1,
  PR_GET_DUMPABLE: 3,
  PR_SET_KEEPCAPS: 8,
  PR_SET_NAME: 15,
  PR_GET_NAME: 16,
  PR_CAPBSET_READ: 23,
  PR_SET_NO_NEW_PRIVS: 38,
  PR_GET_NO_NEW_PRIVS: 39,
  PR_CAP_AMBIENT: 47,
  PR_SET_VMA: 0x5356_4d41,
} as const;

/** Operation of PR_CAP_AMBIENT that reads a capability: prctl.h. */
export const PR_CAP_AMBIENT_IS_SET = 1;

/** Number of SIGKILL: asm-generic/signal.h. */
export const SIGKILL = 9;
