import type { CallName } from './call-numbers.ts';
import {
  FCNTL,
  IOCTL,
  MADVICE,
  MAP_ANONYMOUS,
  O_ASYNC,
  PRCTL,
  PROT_BTI,
  PROT_EXEC,
  PROT_WRITE,
  SIGKILL,
} from './flags.ts';
import type { Filter, Rule } from './rules.ts';
import { OWN_LIMITS_READ, THREADS_ONLY } from './shared-rules.ts';

/**
 * Calls that the tools made when they were recorded (`scripts/record-syscalls.ts`), and why. Two more were recorded and are
 * refused: fchmod, by which ImageMagick gives a temporary file the rights that it has already, and tgkill of abort(3).
 */
const RECORDED: Readonly<Partial<Record<CallName, string>>> = {
  execve: 'setpriv starts the tool; Landlock or bubblewrap leaves nothing else to start',
  brk: 'glibc: memory',
  munmap: 'glibc: memory',
  openat: 'pictures, libraries, fonts, configuration',
  close: 'files',
  read: 'files',
  pread64: 'the loader: headers of libraries; librsvg: fonts',
  write: 'pictures, messages',
  lseek: 'files',
  fstat: 'files, of arm64 and of glibc 2.39 and newer',
  newfstatat: 'files',
  statx: 'librsvg: files',
  statfs: 'fontconfig: whether the file system has useful times',
  access: 'the loader: ld.so.preload; ImageMagick: configuration',
  readlink: 'ImageMagick: whether a path is a link',
  getcwd: 'ImageMagick: canonical paths; librsvg',
  getdents64: 'fontconfig, libheif: folders of fonts and plugins',
  unlink: 'ImageMagick: temporary files',
  futex: 'threads: locks',
  set_robust_list: 'glibc: a thread starts',
  set_tid_address: 'glibc: a process starts',
  rseq: 'glibc: a thread starts',
  sched_getaffinity: 'glibc, libgomp, libaom: the number of processors',
  get_mempolicy: 'libnuma of libx265',
  set_mempolicy: 'libnuma of libx265; about the process itself',
  exit: 'a thread ends',
  exit_group: 'the process ends',
  rt_sigaction: 'handlers of ImageMagick and of the Rust runtime',
  rt_sigprocmask: 'glibc: around the start of a thread',
  sigaltstack: 'the Rust runtime of librsvg',
  getpid: 'ImageMagick: seeds of names',
  gettid: 'glibc: abort',
  getrandom: 'glibc: malloc; ImageMagick: seeds; Rust: hash maps',
  getrusage: 'ImageMagick: timers',
  times: 'ImageMagick: timers',
  clock_gettime: 'timers, where the kernel gives no vDSO',
  sysinfo: 'glibc, ImageMagick: the size of memory',
  poll: 'the Rust runtime: whether the standard streams are open',
  epoll_create1: 'GLib: files',
  epoll_ctl: 'GLib: files',
};

/** Calls that other versions of the same libraries, or the other architecture, make for the same things. */
const HEADROOM: Readonly<Partial<Record<CallName, string>>> = {
  open: 'openat of other C libraries',
  stat: 'newfstatat of other C libraries',
  lstat: 'newfstatat of other C libraries',
  readlinkat: 'readlink of arm64',
  faccessat: 'access of arm64',
  faccessat2: 'access of newer libraries',
  unlinkat: 'unlink of arm64',
  rename: 'a result that is written under another name first',
  renameat: 'rename of arm64',
  renameat2: 'rename of newer libraries',
  fstatfs: 'statfs of an open file',
  readv: 'read into several buffers',
  preadv: 'read into several buffers',
  pwritev: 'write from several buffers',
  writev: 'write from several buffers; messages of the loader',
  pwrite64: 'libtiff, libheif: output that is completed later',
  ftruncate: 'output that gets shorter',
  fadvise64: 'advice about reading a file',
  umask: 'the mode of the own new files',
  dup: 'descriptors of the process itself',
  dup2: 'descriptors of the process itself',
  dup3: 'descriptors of the process itself',
  close_range: 'descriptors of the process itself',
  pipe: 'between the own threads',
  pipe2: 'between the own threads',
  eventfd2: 'between the own threads',
  select: 'waiting for own descriptors',
  pselect6: 'waiting for own descriptors',
  ppoll: 'poll of arm64',
  epoll_wait: 'waiting for own descriptors',
  epoll_pwait: 'waiting for own descriptors',
  mremap: 'glibc: realloc',
  mincore: 'memory of the process itself',
  msync: 'output that is mapped',
  membarrier: 'memory of the own threads',
  futex_waitv: 'threads: locks of newer libraries',
  futex_wake: 'threads: locks of newer libraries',
  futex_wait: 'threads: locks of newer libraries',
  futex_requeue: 'threads: locks of newer libraries',
  sched_yield: 'threads: locks',
  getcpu: 'the processor that a thread is on',
  rt_sigreturn: 'the end of a handler',
  rt_sigpending: 'signals of the process itself',
  restart_syscall: 'the kernel, after a stop',
  wait4: 'the first process in the namespace of bubblewrap',
  clock_getres: 'timers',
  clock_nanosleep: 'a pause',
  nanosleep: 'a pause',
  gettimeofday: 'the time, where the kernel gives no vDSO',
  time: 'the time, where the kernel gives no vDSO',
  getrlimit: 'limits of the process itself',
  uname: 'the version of the kernel',
  getppid: 'a number only',
  getuid: 'a number only',
  geteuid: 'a number only',
  getgid: 'a number only',
  getegid: 'a number only',
  mseal: 'the loader of newer C libraries',
};

/**
 * Calls that setpriv of util-linux 2.41 makes between the filter and the tool: it loads the filter first. They take rights
 * away from the process itself, and give none.
 */
const OF_SETPRIV: Readonly<Partial<Record<CallName, string>>> = {
  capget: 'reads the capabilities of the process',
  capset: 'lowers the capabilities of the process',
  landlock_create_ruleset: 'Landlock',
  landlock_add_rule: 'Landlock',
  landlock_restrict_self: 'Landlock',
};

/** Calls that do what a tool needs with some arguments, and something else with others. */
const BY_ARGUMENTS: Readonly<Partial<Record<CallName, Rule>>> = {
  clone: THREADS_ONLY,
  // Libraries are mapped from files. No memory is writable and executable, and none that was written becomes executable.
  mmap: {
    action: 'allow',
    when: [
      [{ argument: 2, mask: PROT_EXEC, oneOf: [0] }],
      [
        { argument: 2, mask: PROT_WRITE, oneOf: [0] },
        { argument: 3, mask: MAP_ANONYMOUS, oneOf: [0] },
      ],
    ],
  },
  // On arm64 the loader protects the jumps of libraries that are mapped already; x64 does not know PROT_BTI.
  mprotect: {
    action: 'allow',
    when: [
      [{ argument: 2, mask: PROT_EXEC, oneOf: [0] }],
      [{ argument: 2, mask: PROT_EXEC | PROT_WRITE | PROT_BTI, oneOf: [PROT_EXEC | PROT_BTI] }],
    ],
  },
  madvise: { action: 'allow', when: [[{ argument: 2, oneOf: Object.values(MADVICE) }]] },
  // No owner and no signal of a descriptor (F_SETOWN, F_SETSIG, O_ASYNC), no lease, no notification, no lock.
  fcntl: {
    action: 'allow',
    when: [
      [
        {
          argument: 1,
          oneOf: [FCNTL.F_GETFL, FCNTL.F_GETFD, FCNTL.F_SETFD, FCNTL.F_DUPFD, FCNTL.F_DUPFD_CLOEXEC],
        },
      ],
      [
        { argument: 1, oneOf: [FCNTL.F_SETFL] },
        { argument: 2, mask: O_ASYNC, oneOf: [0] },
      ],
    ],
  },
  // Whether a descriptor is a terminal, and how much waits in it.
  ioctl: {
    action: 'allow',
    when: [[{ argument: 1, oneOf: [IOCTL.TCGETS, IOCTL.TCGETS2, IOCTL.TIOCGWINSZ, IOCTL.FIONREAD] }]],
  },
  prlimit64: OWN_LIMITS_READ,
  // Names of threads and of memory; and what setpriv does. Another PR_SET_PDEATHSIG would let a tool outlive the server.
  prctl: {
    action: 'allow',
    when: [
      [
        {
          argument: 0,
          oneOf: [
            ...[PRCTL.PR_SET_NAME, PRCTL.PR_GET_NAME, PRCTL.PR_SET_VMA, PRCTL.PR_GET_DUMPABLE],
            ...[PRCTL.PR_SET_KEEPCAPS, PRCTL.PR_SET_NO_NEW_PRIVS, PRCTL.PR_GET_NO_NEW_PRIVS],
          ],
        },
      ],
      [
        { argument: 0, oneOf: [PRCTL.PR_SET_PDEATHSIG] },
        { argument: 1, oneOf: [SIGKILL] },
      ],
    ],
  },
  // The address of thread-local memory, and what the processor can do, for the process itself.
  arch_prctl: 'allow',
};

/** Calls that a C library or the Rust runtime probes for, and does without after ENOSYS. EPERM would be an error there. */
const PROBED: Readonly<Partial<Record<CallName, string>>> = {
  clone3: 'glibc then calls clone, whose flags a filter can see',
  copy_file_range: 'the Rust runtime then reads and writes',
  openat2: 'libraries then call openat',
  epoll_pwait2: 'libraries then call epoll_pwait',
  preadv2: 'glibc then calls preadv',
  pwritev2: 'glibc then calls pwritev',
  fchmodat2: 'glibc then calls fchmodat, which is refused',
};

const all = (names: object, rule: Rule): Partial<Record<CallName, Rule>> =>
  Object.fromEntries(Object.keys(names).map((name) => [name, rule]));

/**
 * The calls of the tools of Debian 12 and 13, and no others. All others fail with EPERM, which is what libraries expect
 * of a system that forbids something: ENOSYS would have them look for another way.
 */
export const ALLOW_LIST: Filter = {
  calls: {
    ...all({ ...RECORDED, ...HEADROOM, ...OF_SETPRIV }, 'allow'),
    ...all(PROBED, 'absent'),
    ...BY_ARGUMENTS,
  },
  others: 'refuse',
  newer: 'absent',
};
