"""Generates the seccomp filters in assets/seccomp/ with libseccomp: python3 scripts/make-seccomp.py [FOLDER].

Needs Debian's package python3-seccomp. The allow-list has the system calls that the tools were recorded to make
(scripts/record-syscalls.ts). The deny-list has the calls that no tool may make, for systems whose tools make other calls.

The service starts only with the files of assets/SHA256SUMS. After a change of a filter or of the policy, in assets/:
sha256sum ImageMagick/policy.xml seccomp/*.bpf > SHA256SUMS

Under either filter, a tool cannot open sockets, start processes, send signals or change other processes. abort(3) signals
the process itself, so it ends with an illegal instruction instead, or with status 127 if an ImageMagick signal handler
aborts again.
"""

import struct
import sys
import tempfile
from pathlib import Path

from seccomp import ALLOW, EQ, ERRNO, KILL_PROCESS, MASKED_EQ, NE, Arch, Arg, Attr, SyscallFilter

EPERM, ENOSYS = 1, 38

# --- Arguments, from include/uapi of the kernel; identical on x64 and arm64 ---

CLONE_THREAD = 0x0001_0000
CLONE_NEW = [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY = 8, 10, 15, 1024, 1026
O_ASYNC = 0x2000
O_WRONLY, O_RDWR, O_ACCMODE, O_TRUNC = 1, 2, 3, 0x200
TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD = 0x5401, 0x802C_542A, 0x5413, 0x541B
FIOSETOWN, SIOCSPGRP, FIOASYNC, TIOCSTI, TIOCLINUX = 0x8901, 0x8902, 0x5452, 0x5412, 0x541C
PROT_WRITE, PROT_EXEC = 0x2, 0x4
PROT_BTI = 0x10  # arm64 only
MAP_ANONYMOUS = 0x20
MADVICE = [0, 1, 2, 3, 4, 8, 14, 15, 16]  # NORMAL to DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE, DONTDUMP
PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_NO_NEW_PRIVS = 1, 3, 15, 16, 39
PR_SET_VMA = 0x5356_4D41


def low(argument, value, mask=0xFFFF_FFFF):
    """Compares the low 32 bits of an argument, because the kernel ignores the others."""
    return Arg(argument, MASKED_EQ, mask, value)


# --- The allow-list ---

# Calls recorded by scripts/record-syscalls.ts, and their purpose. Two recorded calls are refused: fchmod, with which
# ImageMagick sets permissions that a temporary file already has, and tgkill of abort(3). djxl, cjxl and avifenc of Debian 12
# (0.7.0, 0.11.1) and 13 (0.11.2, 1.2.1) make no call that is not listed, with one thread or with four
# (test/process/sandbox/codec-calls.test.ts).
RECORDED = {
    'brk munmap': 'glibc: memory',
    'close read lseek newfstatat fstat': 'files',
    'pread64': 'the loader: headers of libraries; librsvg: fonts',
    'write': 'images, messages',
    'statx': 'librsvg: files',
    'statfs': 'fontconfig: whether the file system has useful times',
    'access': 'the loader: ld.so.preload; ImageMagick: configuration',
    'readlink': 'ImageMagick: whether a path is a link',
    'getcwd': 'ImageMagick: canonical paths; librsvg',
    'getdents64': 'fontconfig, libheif: folders of fonts and plugins',
    'unlink': 'ImageMagick: temporary files',
    'futex': 'threads: locks',
    'set_robust_list set_tid_address rseq exit': 'glibc: a process or thread starts or ends',
    'sched_getaffinity': 'glibc, libgomp, libaom: the number of processors',
    'get_mempolicy set_mempolicy': 'libnuma of libx265; about the process itself',
    'exit_group': 'the process ends',
    'rt_sigaction': 'handlers of ImageMagick and of the Rust runtime',
    'rt_sigprocmask': 'glibc: around the start of a thread',
    'sigaltstack': 'the Rust runtime of librsvg',
    'getpid': 'ImageMagick: seeds of names',
    'gettid': 'glibc: abort',
    'getrandom': 'glibc: malloc; ImageMagick: seeds; Rust: hash maps',
    'getrusage times': 'ImageMagick: timers',
    'clock_gettime': 'timers, where the kernel gives no vDSO',
    'sysinfo': 'glibc, ImageMagick: the size of memory',
    'poll': 'the Rust runtime: whether the standard streams are open',
    'epoll_create1 epoll_ctl': 'GLib: files',
    # Sets the address of thread-local storage and enables CPU features, for the process itself.
    'arch_prctl': 'glibc',
}

# Calls that other versions of the same libraries, or the other architecture, use for the same purposes.
OTHER_VERSIONS = {
    'stat lstat': 'newfstatat of other C libraries',
    'readlinkat faccessat unlinkat renameat ppoll': 'calls of arm64',
    'faccessat2 renameat2': 'access and rename of newer libraries',
    'rename': 'a result that is written under another name first',
    'fstatfs': 'statfs of an open file',
    'readv preadv pwritev writev': 'several buffers; messages of the loader',
    'pwrite64': 'libtiff, libheif: output that is completed later',
    'ftruncate': 'output that gets shorter',
    'fadvise64': 'advice about reading a file',
    'umask': 'the mode of new files of the process itself',
    'dup dup2 dup3 close_range': 'descriptors of the process itself',
    'pipe pipe2 eventfd2': 'between threads of the process itself',
    'select pselect6 epoll_wait epoll_pwait': 'waiting for descriptors of the process itself',
    'mremap mincore membarrier': 'memory of the process itself',
    'msync': 'output that is mapped',
    'futex_waitv sched_yield': 'threads: locks',
    'getcpu': 'the processor that a thread is on',
    'rt_sigreturn rt_sigpending': 'signals of the process itself',
    'restart_syscall': 'the kernel, after a stop',
    'clock_getres clock_nanosleep nanosleep gettimeofday time': 'timers and pauses',
    'getrlimit': 'limits of the process itself',
    'uname getppid getuid geteuid getgid getegid': 'facts about the system and the process',
}

# Calls that a C library or the Rust runtime probes for. After ENOSYS it falls back to another call; EPERM would be reported as
# an error. A filter cannot see the flags of clone3 and openat2, but those of clone and openat.
PROBED = 'clone3 copy_file_range openat2 epoll_pwait2 preadv2 pwritev2'


def without_truncation(flags):
    """Returns the alternatives for open(2) that truncate a file only if they open it for writing.

    Before Linux 6.2, Landlock permits truncating each file that it permits reading. It ignores an access mode of 3.
    """
    return [[low(flags, 0, O_TRUNC)], *[[low(flags, mode, O_ACCMODE)] for mode in (O_WRONLY, O_RDWR)]]


# Calls that a tool needs with some arguments: each row is an alternative.
ALLOWED_ARGUMENTS = {
    'openat': without_truncation(2),  # images, libraries, fonts, configuration
    'open': without_truncation(1),  # the same in other C libraries
    'clone': [[low(0, CLONE_THREAD, CLONE_THREAD | sum(CLONE_NEW))]],
    # Only files (libraries) can be mapped executable. No memory is both writable and executable, and mprotect(2) cannot make it
    # executable.
    'mmap': [[low(2, 0, PROT_EXEC)], [low(2, 0, PROT_WRITE), low(3, 0, MAP_ANONYMOUS)]],
    # On arm64, the loader adds branch protection (PROT_BTI) to mapped libraries. x64 has no PROT_BTI.
    'mprotect': [
        [low(2, 0, PROT_EXEC)],
        [low(2, PROT_EXEC | PROT_BTI, PROT_EXEC | PROT_WRITE | PROT_BTI)],
    ],
    'madvise': [[low(2, advice)] for advice in MADVICE],
    # Refuses signals from descriptors (F_SETOWN, F_SETSIG, O_ASYNC), leases, notifications and locks.
    'fcntl': [
        *[[low(1, command)] for command in (F_GETFL, F_GETFD, F_SETFD, F_DUPFD, F_DUPFD_CLOEXEC)],
        [low(1, F_SETFL), low(2, 0, O_ASYNC)],
    ],
    # Allows the terminal check (isatty) and the number of bytes available to read.
    'ioctl': [[low(1, request)] for request in (TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD)],
    # Reads the limits of the process itself: the pointer to new limits is null.
    'prlimit64': [[low(0, 0), Arg(2, EQ, 0)]],
    # Names of threads and of memory.
    'prctl': [
        [low(0, operation)]
        for operation in (PR_SET_NAME, PR_GET_NAME, PR_SET_VMA, PR_GET_DUMPABLE, PR_GET_NO_NEW_PRIVS)
    ],
}

# --- The deny-list: calls that an image converter does not need, by what an attacker could do with them ---

REFUSED = {
    'communicates with other processes or machines, or makes the kernel do it':
        'socket socketpair connect bind listen accept accept4 io_uring_setup io_uring_enter io_uring_register',
    'signals other processes': 'kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal',
    'inspects or changes other processes':
        'ptrace process_vm_readv process_vm_writev process_madvise process_mrelease pidfd_open pidfd_getfd kcmp '
        'get_robust_list perf_event_open migrate_pages move_pages',
    'starts processes that outlive the job, or leaves the process group': 'fork vfork setsid setpgid unshare setns',
    'slows down other processes or changes their limits':
        'setpriority ioprio_set sched_setscheduler sched_setparam sched_setattr sched_setaffinity setrlimit sync syncfs '
        'quotactl quotactl_fd',
    'changes files of the same user outside the job':
        'chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr '
        'removexattr lremovexattr fremovexattr flock truncate',
    'watches or opens files outside the job':
        'inotify_init inotify_init1 inotify_add_watch inotify_rm_watch fanotify_init fanotify_mark name_to_handle_at '
        'open_by_handle_at getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr',
    'creates anything but regular files': 'mknod mknodat link linkat symlink symlinkat mkdir mkdirat',
    'leaves shared memory, messages or keys behind':
        'shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink '
        'mq_timedsend mq_timedreceive mq_notify mq_getsetattr add_key request_key keyctl',
    'runs another program': 'execve execveat memfd_create memfd_secret',
    'exposes a large attack surface of the kernel':
        'bpf userfaultfd personality seccomp modify_ldt iopl ioperm vhangup syslog acct io_setup io_submit io_destroy '
        'io_cancel io_getevents io_pgetevents vmsplice splice tee remap_file_pages lookup_dcookie',
    'administers the system':
        'mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr swapon swapoff '
        'reboot kexec_load kexec_file_load nfsservctl init_module finit_module delete_module sethostname setdomainname '
        'settimeofday adjtimex clock_settime clock_adjtime setuid setgid setreuid setregid setresuid setresgid setfsuid '
        'setfsgid setgroups',
}

# Calls that are refused with some arguments: each row is an alternative.
REFUSED_ARGUMENTS = {
    **{
        call: [[low(flags, O_TRUNC | mode, O_TRUNC | O_ACCMODE)] for mode in (0, O_ACCMODE)]
        for call, flags in (('openat', 2), ('open', 1))  # see without_truncation
    },
    'clone': [[low(0, 0, CLONE_THREAD)], *[[low(0, flag, flag)] for flag in CLONE_NEW]],
    'fcntl': [
        *[[low(1, command)] for command in (F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY)],
        [low(1, F_SETFL), low(2, O_ASYNC, O_ASYNC)],
    ],
    'ioctl': [[low(1, request)] for request in (FIOSETOWN, SIOCSPGRP, FIOASYNC, TIOCSTI, TIOCLINUX)],
    'prlimit64': [[Arg(0, NE, 0)], [Arg(2, NE, 0)]],
    'prctl': [[low(0, PR_SET_PDEATHSIG)]],
}

# --- Calls after Linux 6.1, the kernel of Debian 12. libseccomp 2.5 does not know all of them. ---

LAST_KNOWN = 450
ABSENT = 0x0005_0000 | ENOSYS
REFUSE = 0x0005_0000 | EPERM
ALLOWED = 0x7FFF_0000
# The allow-list permits the locks of threads (futex_wake, futex_wait, futex_requeue) and mseal of the loader. A library that
# probes another newer call expects ENOSYS.
NEWER_IN_ALLOW_LIST = ({454: ALLOWED, 455: ALLOWED, 456: ALLOWED, 462: ALLOWED}, ABSENT)
# The deny-list refuses fchmodat2, statmount, listmount, the calls of Linux security modules, extended attributes by folder,
# open_tree_attr and file_setattr.
NEWER_IN_DENY_LIST = ({number: REFUSE for number in (452, 457, 458, 459, 460, 461, 463, 464, 465, 466, 467, 469)}, ALLOWED)

X32_BIT = 0x4000_0000
# Names as in process.arch, with AUDIT_ARCH_* of linux/audit.h.
ARCHITECTURES = {'x64': (Arch.X86_64, 0xC000_003E), 'arm64': (Arch.AARCH64, 0xC000_00B7)}


def newer_calls(rules, audit):
    """Returns BPF instructions that decide the calls after LAST_KNOWN, and leave the others to the instructions after them."""
    numbers, otherwise = rules
    checks = [(0x15, 0, 1, number) for number in numbers]
    decisions = [step for check, action in zip(checks, numbers.values()) for step in (check, (0x06, 0, 0, action))]
    length = len(decisions) + 1
    return [
        (0x20, 0, 0, 4),  # loads the architecture
        (0x15, 0, length + 3, audit),
        (0x20, 0, 0, 0),  # loads the number of the call
        (0x35, length + 1, 0, X32_BIT),
        (0x25, 0, length, LAST_KNOWN),
        *decisions,
        (0x06, 0, 0, otherwise),
    ]


def make_filter(default, rules, newer, architecture, audit):
    """Returns a BPF program for the kernel. It kills a process of any other architecture."""
    program = SyscallFilter(default)
    program.remove_arch(Arch(Arch.NATIVE))
    program.add_arch(Arch(architecture))
    program.set_attr(Attr.ACT_BADARCH, KILL_PROCESS)
    program.set_attr(Attr.CTL_OPTIMIZE, 2)  # a binary search: the kernel evaluates a filter for each call when it loads it
    for action, calls in rules:
        for call, alternatives in calls.items():
            for conditions in alternatives:
                program.add_rule(action, call, *conditions)
    with tempfile.TemporaryFile() as file:
        program.export_bpf(file)
        file.seek(0)
        known = file.read()
    return b''.join(struct.pack('<HBBI', *step) for step in newer_calls(newer, audit)) + known


def always(*lists):
    """Returns rules without conditions for lists of names that are separated by spaces."""
    return {call: [[]] for names in lists for call in names.split()}


FILTERS = {
    'allow-list': (
        ERRNO(EPERM),
        [
            (ALLOW, {**always(*RECORDED, *OTHER_VERSIONS), **ALLOWED_ARGUMENTS}),
            (ERRNO(ENOSYS), always(PROBED)),
        ],
        NEWER_IN_ALLOW_LIST,
    ),
    'deny-list': (
        ALLOW,
        [(ERRNO(EPERM), {**always(*REFUSED.values()), **REFUSED_ARGUMENTS}), (ERRNO(ENOSYS), always('clone3 openat2'))],
        NEWER_IN_DENY_LIST,
    ),
}

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / 'assets' / 'seccomp'
for name, (default, rules, newer) in FILTERS.items():
    for architecture, (arch, audit) in ARCHITECTURES.items():
        (folder / f'{name}.{architecture}.bpf').write_bytes(make_filter(default, rules, newer, arch, audit))
