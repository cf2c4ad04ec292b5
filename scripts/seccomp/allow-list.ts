/** @module Filter that allows the system calls of the tools in Debian 12 and 13, and no others. */
import type { CallName } from './call-numbers.ts';
import {
  FCNTL,
  IOCTL,
  MADVICE,
  MAP_ANONYMOUS,
  O_ASYNC,
  PR_CAP_AMBIENT_IS_SET,
  PRCTL,
  PROT_BTI,
  PROT_EXEC,
  PROT_WRITE,
  SIGKILL,
} from './flags.ts';
import type { Filter, Rule } from './rules.ts';
import { OWN_LIMITS_READ, THREADS_ONLY } from './shared-rules.ts';

/**
 * Calls recorded by `scripts/record-syscalls.ts`, and their purpose. Two recorded calls are refused: fchmod, with which
 * ImageMagick sets permissions that a temporary file already has, and tgkill of abort(3).
 *
 * djxl, cjxl and avifenc of Debian 12 (0.7.0, 0.11.1) and 13 (0.11.2, 1.2.1) make no call that is not listed, with one
 * thread or with four. `test/process/sandbox/codec-calls.test.ts` runs them under a filter that kills them for such a call.
 */
const RECORDED: Readonly<Partial<Record<CallName, string>>> = {
  execve: 'setpriv starts the tool; Landlock or bubblewrap leaves nothing else to start',
  brk: 'glibc: memory',
  munmap: 'glibc: memory',
  openat: 'images, libraries, fonts, configuration',
  close: 'files',
  read: 'files',
  pread64: 'the loader: headers of libraries; librsvg: fonts',
  write: 'images, messages',
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

/** Calls that other versions of the same libraries, or the other architecture, use for the same purposes. */
const OTHER_VERSIONS: Readonly<Partial<Record<CallName, string>>> = {
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
  umask: 'the mode of new files of the process itself',
  dup: 'descriptors of the process itself',
  dup2: 'descriptors of the process itself',
  dup3: 'descriptors of the process itself',
  close_range: 'descriptors of the process itself',
  pipe: 'between threads of the process itself',
  pipe2: 'between threads of the process itself',
  eventfd2: 'between threads of the process itself',
  select: 'waiting for descriptors of the process itself',
  pselect6: 'waiting for descriptors of the process itself',
  ppoll: 'poll of arm64',
  epoll_wait: 'waiting for descriptors of the process itself',
  epoll_pwait: 'waiting for descriptors of the process itself',
  mremap: 'glibc: realloc',
  mincore: 'memory of the process itself',
  msync: 'output that is mapped',
  membarrier: 'memory of threads of the process itself',
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
  getppid: 'returns a number only',
  getuid: 'returns a number only',
  geteuid: 'returns a number only',
  getgid: 'returns a number only',
  getegid: 'returns a number only',
  mseal: 'the loader of newer C libraries',
};

/**
 * Calls of setpriv (util-linux 2.41) between loading the filter and starting the tool. They only take privileges away
 * from the process itself.
 */
const SETPRIV_CALLS: Readonly<Partial<Record<CallName, string>>> = {
  capget: 'reads the capabilities of the process',
  capset: 'lowers the capabilities of the process',
  landlock_create_ruleset: 'Landlock',
  landlock_add_rule: 'Landlock',
  landlock_restrict_self: 'Landlock',
};

/** Calls that a tool needs with some arguments and that are refused with others. */
const BY_ARGUMENTS: Readonly<Partial<Record<CallName, Rule>>> = {
  clone: THREADS_ONLY,
  // Only files (libraries) can be mapped executable. No memory is both writable and executable, and mprotect(2) cannot make it executable.
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
  // On arm64, the loader adds branch protection (PROT_BTI) to mapped libraries. x64 has no PROT_BTI.
  mprotect: {
    action: 'allow',
    when: [
      [{ argument: 2, mask: PROT_EXEC, oneOf: [0] }],
      [{ argument: 2, mask: PROT_EXEC | PROT_WRITE | PROT_BTI, oneOf: [PROT_EXEC | PROT_BTI] }],
    ],
  },
  madvise: { action: 'allow', when: [[{ argument: 2, oneOf: Object.values(MADVICE) }]] },
  // Refuses signals from descriptors (F_SETOWN, F_SETSIG, O_ASYNC), leases, notifications and locks.
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
  // Allows the terminal check (isatty) and the number of bytes available to read.
  ioctl: {
    action: 'allow',
    when: [[{ argument: 1, oneOf: [IOCTL.TCGETS, IOCTL.TCGETS2, IOCTL.TIOCGWINSZ, IOCTL.FIONREAD] }]],
  },
  prlimit64: OWN_LIMITS_READ,
  // Allows names of threads and of memory, and the requests of setpriv. A PR_SET_PDEATHSIG other than SIGKILL would let a tool
  // outlive the server. setpriv enables the filter before it reads its capabilities. It finds them in /proc, or, where /proc
  // belongs to another PID namespace and has no file of that number, by prctl.
  prctl: {
    action: 'allow',
    when: [
      [
        {
          argument: 0,
          oneOf: [
            ...[PRCTL.PR_SET_NAME, PRCTL.PR_GET_NAME, PRCTL.PR_SET_VMA, PRCTL.PR_GET_DUMPABLE],
            ...[PRCTL.PR_SET_KEEPCAPS, PRCTL.PR_SET_NO_NEW_PRIVS, PRCTL.PR_GET_NO_NEW_PRIVS],
            PRCTL.PR_CAPBSET_READ,
          ],
        },
      ],
      [
        { argument: 0, oneOf: [PRCTL.PR_SET_PDEATHSIG] },
        { argument: 1, oneOf: [SIGKILL] },
      ],
      [
        { argument: 0, oneOf: [PRCTL.PR_CAP_AMBIENT] },
        { argument: 1, oneOf: [PR_CAP_AMBIENT_IS_SET] },
      ],
    ],
  },
  // Sets the address of thread-local storage and enables CPU features, for the process itself.
  arch_prctl: 'allow',
};

/**
 * Calls that a C library or the Rust runtime probes for. After ENOSYS it falls back to another call; EPERM would be
 * reported as an error.
 */
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
 * Allows the calls of the tools in Debian 12 and 13. All other calls fail with EPERM, which libraries expect from a
 * system that forbids something. ENOSYS would make them try alternatives.
 */
export const ALLOW_LIST: Filter = {
  calls: {
    ...all({ ...RECORDED, ...OTHER_VERSIONS, ...SETPRIV_CALLS }, 'allow'),
    ...all(PROBED, 'absent'),
    ...BY_ARGUMENTS,
  },
  others: 'refuse',
  newer: 'absent',
};
