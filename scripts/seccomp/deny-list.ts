/** @module Filter that refuses dangerous system calls and allows all others. */
import type { CallName } from './call-numbers.ts';
import { FCNTL, IOCTL, O_ASYNC, PRCTL, SIGKILL } from './flags.ts';
import type { Filter, Rule } from './rules.ts';
import { OWN_LIMITS_READ, THREADS_ONLY } from './shared-rules.ts';

/** Calls that an image converter does not need, by what an attacker could do with them. */
const REFUSED: Readonly<Record<string, readonly CallName[]>> = {
  'communicates with other processes or machines, or makes the kernel do it': [
    ...(['socket', 'socketpair', 'connect', 'bind', 'listen', 'accept', 'accept4'] as const),
    ...(['io_uring_setup', 'io_uring_enter', 'io_uring_register'] as const),
  ],
  'signals other processes': [
    ...(['kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo', 'pidfd_send_signal'] as const),
  ],
  'inspects or changes other processes': [
    ...(['ptrace', 'process_vm_readv', 'process_vm_writev', 'process_madvise', 'process_mrelease'] as const),
    ...(['pidfd_open', 'pidfd_getfd', 'kcmp', 'get_robust_list', 'perf_event_open'] as const),
    ...(['migrate_pages', 'move_pages'] as const),
  ],
  'starts processes that outlive the job, or leaves the process group': [
    ...(['fork', 'vfork', 'setsid', 'setpgid', 'unshare', 'setns'] as const),
  ],
  'slows down other processes or changes their limits': [
    ...(['setpriority', 'ioprio_set', 'sched_setscheduler', 'sched_setparam', 'sched_setattr'] as const),
    ...(['sched_setaffinity', 'setrlimit', 'sync', 'syncfs', 'quotactl', 'quotactl_fd'] as const),
  ],
  'changes files of the same user outside the job': [
    ...(['chmod', 'fchmod', 'fchmodat', 'fchmodat2', 'chown', 'fchown', 'lchown', 'fchownat'] as const),
    ...(['utime', 'utimes', 'futimesat', 'utimensat', 'file_setattr'] as const),
    ...(['setxattr', 'lsetxattr', 'fsetxattr', 'setxattrat'] as const),
    ...(['removexattr', 'lremovexattr', 'fremovexattr', 'removexattrat', 'flock'] as const),
  ],
  'watches or opens files outside the job': [
    ...(['inotify_init', 'inotify_init1', 'inotify_add_watch', 'inotify_rm_watch'] as const),
    ...(['fanotify_init', 'fanotify_mark', 'name_to_handle_at', 'open_by_handle_at'] as const),
    ...(['getxattr', 'lgetxattr', 'fgetxattr', 'getxattrat'] as const),
    ...(['listxattr', 'llistxattr', 'flistxattr', 'listxattrat'] as const),
  ],
  'creates anything but regular files': [
    ...(['mknod', 'mknodat', 'link', 'linkat', 'symlink', 'symlinkat', 'mkdir', 'mkdirat'] as const),
  ],
  'leaves shared memory, messages or keys behind': [
    ...(['shmget', 'shmat', 'shmctl', 'shmdt', 'semget', 'semop', 'semtimedop', 'semctl'] as const),
    ...(['msgget', 'msgsnd', 'msgrcv', 'msgctl', 'mq_open', 'mq_unlink'] as const),
    ...(['mq_timedsend', 'mq_timedreceive', 'mq_notify', 'mq_getsetattr'] as const),
    ...(['add_key', 'request_key', 'keyctl'] as const),
  ],
  'runs a program without a file': ['memfd_create', 'memfd_secret', 'execveat'],
  'exposes a large attack surface of the kernel': [
    ...(['bpf', 'userfaultfd', 'personality', 'seccomp', 'modify_ldt', 'iopl', 'ioperm', 'vhangup'] as const),
    ...(['lsm_get_self_attr', 'lsm_set_self_attr', 'lsm_list_modules', 'syslog', 'acct'] as const),
    ...(['io_setup', 'io_submit', 'io_destroy', 'io_cancel', 'io_getevents', 'io_pgetevents'] as const),
    ...(['vmsplice', 'splice', 'tee', 'remap_file_pages', 'lookup_dcookie'] as const),
  ],
  'administers the system': [
    ...(['mount', 'umount2', 'pivot_root', 'chroot', 'move_mount', 'open_tree', 'open_tree_attr'] as const),
    ...(['fsopen', 'fsconfig', 'fsmount', 'fspick', 'mount_setattr', 'statmount', 'listmount'] as const),
    ...(['swapon', 'swapoff', 'reboot', 'kexec_load', 'kexec_file_load', 'nfsservctl'] as const),
    ...(['init_module', 'finit_module', 'delete_module', 'sethostname', 'setdomainname'] as const),
    ...(['settimeofday', 'adjtimex', 'clock_settime', 'clock_adjtime'] as const),
    ...(['setuid', 'setgid', 'setreuid', 'setregid', 'setresuid', 'setresgid'] as const),
    ...(['setfsuid', 'setfsgid', 'setgroups'] as const),
  ],
};

const BY_ARGUMENTS: Readonly<Partial<Record<CallName, Rule>>> = {
  clone: THREADS_ONLY,
  // The flags of clone3 are in memory, which a filter cannot read. After ENOSYS, C libraries call clone.
  clone3: 'absent',
  fcntl: {
    action: 'refuse',
    when: [
      [
        {
          argument: 1,
          oneOf: [FCNTL.F_SETOWN, FCNTL.F_SETOWN_EX, FCNTL.F_SETSIG, FCNTL.F_SETLEASE, FCNTL.F_NOTIFY],
        },
      ],
      [
        { argument: 1, oneOf: [FCNTL.F_SETFL] },
        { argument: 2, mask: O_ASYNC, oneOf: [O_ASYNC] },
      ],
    ],
  },
  ioctl: {
    action: 'refuse',
    when: [
      [
        {
          argument: 1,
          oneOf: [IOCTL.FIOSETOWN, IOCTL.SIOCSPGRP, IOCTL.FIOASYNC, IOCTL.TIOCSTI, IOCTL.TIOCLINUX],
        },
      ],
    ],
  },
  prlimit64: OWN_LIMITS_READ,
  // setpriv sets PR_SET_PDEATHSIG to SIGKILL after loading the filter.
  prctl: {
    action: 'refuse',
    when: [
      [
        { argument: 0, oneOf: [PRCTL.PR_SET_PDEATHSIG] },
        { argument: 1, noneOf: [SIGKILL] },
      ],
    ],
  },
};

/**
 * Refuses calls that reach other processes, other files or privileged parts of the kernel. For systems on which the
 * tools make calls that the allow-list lacks.
 */
export const DENY_LIST: Filter = {
  calls: {
    ...Object.fromEntries(
      Object.values(REFUSED)
        .flat()
        .map((name) => [name, 'refuse' as const]),
    ),
    ...BY_ARGUMENTS,
  },
  others: 'allow',
  newer: 'allow',
};
