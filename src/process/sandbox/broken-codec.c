/*
 * Stands in for rsvg-convert as a decoder that runs the code of an attacker. It answers `--version` as rsvg-convert does and
 * draws one pixel. A comment in the SVG names an attack: <!--attempt NAME PID PATH-->. The program appends its outcome to the
 * PNG, as FILTER (0 without a seccomp filter), the return value and the error number: errno(3). Without a sandbox, an attack harms
 * only the server that runs it. `imagemill doctor --attack` makes those attempts that harm nothing, also without a sandbox.
 *
 * If the name of the program ends in "-unusual", it requires a system call that no image converter needs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One black pixel. */
static const unsigned char PIXEL[] = {
    0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 0x0d, 'I', 'H', 'D', 'R', 0, 0, 0, 1, 0, 0, 0, 1,
    8, 0, 0, 0, 0, 0x3a, 0x7e, 0x9b, 0x55, 0, 0, 0, 0x0a, 'I', 'D', 'A', 'T', 0x78, 0xda, 0x63, 0x60, 0,
    0, 0, 2, 0, 1, 0xe5, 0x27, 0xde, 0xfc, 0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};

static char report[8192];

static void report_text(const char *text) { strncat(report, text, sizeof report - strlen(report) - 1); }

static long open_and_read(const char *path) {
  int fd = open(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return -1;
  char bytes[64];
  ssize_t length = read(fd, bytes, sizeof bytes - 1);
  if (length < 0) return -1;
  bytes[length] = 0;
  report_text("READ ");
  report_text(bytes);
  return length;
}

/* Makes the kernel send SIGKILL to the server when a pipe becomes readable. */
static long own_a_pipe(long pid, int command) {
  int ends[2];
  if (pipe(ends) < 0) return -1;
  struct f_owner_ex owner = {F_OWNER_PID, (pid_t)pid};
  long owned = command == F_SETOWN_EX ? syscall(SYS_fcntl, ends[0], F_SETOWN_EX, &owner)
                                      : syscall(SYS_fcntl, ends[0], F_SETOWN, pid);
  int kept = errno;
  syscall(SYS_fcntl, ends[0], F_SETSIG, SIGKILL);
  syscall(SYS_fcntl, ends[0], F_SETFL, O_ASYNC);
  if (write(ends[1], "x", 1) < 0) return -1;
  errno = kept;
  return owned;
}

static long own_by_ioctl(long pid, unsigned long request) {
  int ends[2], on = 1, owner = (int)pid;
  if (pipe(ends) < 0) return -1;
  long owned = syscall(SYS_ioctl, ends[0], request, &owner);
  int kept = errno;
  syscall(SYS_ioctl, ends[0], 0x5452 /* FIOASYNC */, &on);
  if (write(ends[1], "x", 1) < 0) return -1;
  errno = kept;
  return owned;
}

static long async(void) {
  int ends[2];
  return pipe(ends) < 0 ? -1 : syscall(SYS_fcntl, ends[0], F_SETFL, O_ASYNC);
}

static long limit(long pid, int resource, rlim_t maximum) {
  struct rlimit limits = {maximum, maximum};
  return syscall(SYS_prlimit64, pid, resource, &limits, NULL);
}

/* Detaches a child that sleeps for a minute. */
static long stay(long child) {
  if (child != 0) return child;
  close(0), close(1), close(2);
  setsid();
  sleep(60);
  _exit(0);
}

/* Starts a child that ends at once. */
static long start_process(void) {
  long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child;
}

static long fork_by_clone(unsigned long flags) { return stay(syscall(SYS_clone, flags, 0, 0, 0, 0)); }

static long fork_by_clone3(void) {
  struct clone_args args = {.exit_signal = SIGCHLD};
  return stay(syscall(SYS_clone3, &args, sizeof args));
}

static long fork_twice(void) {
  long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child != 0) return child;
  setsid();
  stay(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  _exit(0);
}

static long fork_often(void) {
  long started = 0;
  for (int i = 0; i < 300; i++)
    if (fork_by_clone(SIGCHLD) > 0) started++;
  if (started == 0) return -1;
  return started;
}

static void *rest(void *unused) {
  sleep(60);
  return unused;
}

static long start_threads(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  pthread_t thread;
  long started = 0;
  for (int i = 0; i < 20; i++)
    if (pthread_create(&thread, &attributes, rest, NULL) == 0) started++;
  return started;
}

static long keep_memory(void) {
  long id = syscall(SYS_shmget, 0 /* IPC_PRIVATE */, 50 << 20, 01600);
  if (id >= 0) syscall(SYS_shmat, id, NULL, 0);
  return id;
}

/* Reserves 64 GiB of address space, which takes no memory. */
static long reserve_memory(void) {
  return mmap(NULL, 64UL << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? -1 : 0;
}

static long run_written(int map_protection, int later) {
  void *memory = mmap(NULL, 4096, map_protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -1;
  return later ? mprotect(memory, 4096, PROT_READ | PROT_EXEC) : 0;
}

static long read_memory_of(long pid, int write_it) {
  char bytes[16];
  struct iovec here = {bytes, sizeof bytes}, there = {(void *)0x400000, sizeof bytes};
  return syscall(write_it ? SYS_process_vm_writev : SYS_process_vm_readv, pid, &here, 1, &there, 1, 0);
}

/* Replaces the input by a link and fails with an error that the service may retry. */
static long swap_input(const char *path) {
  unlink("in");
  unlink("../1.in");
  long linked = symlink(path, "in");
  if (linked < 0) linked = link(path, "in");
  fputs("ColorProfile color transform unable to transform colorspace\n", stderr);
  exit(1);
}

static long list(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY);
  char entries[4096];
  long length = fd < 0 ? -1 : syscall(SYS_getdents64, fd, entries, sizeof entries);
  /* linux_dirent64: the length is at byte 16, the name at byte 19. */
  for (long at = 0; at < length; at += *(uint16_t *)(entries + at + 16)) {
    report_text("LISTED ");
    report_text(entries + at + 19);
    report_text(" ");
  }
  return length;
}

static long make(const char *folder, const char *name) {
  int fd = open(folder, O_PATH | O_DIRECTORY);
  return fd < 0 ? -1 : openat(fd, name, O_CREAT | O_WRONLY, 0600);
}

/* Makes 1.5 million empty files, and waits. */
static long make_many(void) {
  char name[32];
  for (int i = 0; i < 1500000; i++) {
    snprintf(name, sizeof name, "evil-%d", i);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    if (fd < 0) return -1;
    close(fd);
  }
  return sleep(60);
}

/* Writes to a file until a limit ends it. */
static long fill(const char *name) {
  static char much[1 << 20];
  int fd = open(name, O_CREAT | O_WRONLY, 0600);
  if (fd < 0) return -1;
  while (write(fd, much, sizeof much) > 0) {}
  return 0;
}

/* Fills a hundred files of 16 MiB, and waits. */
static long fill_disk(void) {
  char name[32];
  static char much[16 << 20];
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "full-%d", i);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || write(fd, much, sizeof much) < 0) return -1;
    close(fd);
  }
  return sleep(60);
}

/* A fork server of rsvg-convert calls this function of fontconfig first; see `prepare` in fork-server.c. Needs -rdynamic. */
int FcInit(void) { return 1; }

static const char *output = "";

/* Call numbers that an older C library may lack. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#define SYS_pidfd_send_signal 424
#define SYS_pidfd_getfd 438
#endif

/* Maps a file executable that it has written. */
static long map_written(const char *name) {
  int fd = open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || write(fd, "\xc3", 1) < 0) return -2;
  return mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0;
}

static long attempt(const char *what, long pid, const char *path) {
  siginfo_t info = {0};
  info.si_code = SI_QUEUE;
  struct sched_param idle = {0};
  unsigned long one_processor = 1;
  struct timespec then[2] = {{1, 0}, {1, 0}};
  char *const arguments[] = {"sh", "-c", "echo ran", NULL};
  char buffer[256];
#define TRY(name, call) \
  if (strcmp(what, name) == 0) return (call);
  /* Signals. */
  TRY("signal", syscall(SYS_kill, pid, 0)) /* only checks the permission: kill(2) */
  TRY("kill", syscall(SYS_kill, pid, SIGKILL))
  TRY("kill-group", syscall(SYS_kill, -pid, SIGKILL))
  TRY("tkill", syscall(SYS_tkill, pid, SIGKILL))
  TRY("tgkill", syscall(SYS_tgkill, pid, pid, SIGKILL))
  TRY("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &info))
  TRY("rt_tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGKILL, &info))
  TRY("pidfd_open", syscall(SYS_pidfd_open, pid, 0))
  TRY("pidfd_send_signal", syscall(SYS_pidfd_send_signal, 0, SIGKILL, NULL, 0))
  TRY("setown", own_a_pipe(pid, F_SETOWN))
  TRY("setown_ex", own_a_pipe(pid, F_SETOWN_EX))
  TRY("setsig", syscall(SYS_fcntl, 1, F_SETSIG, SIGKILL))
  TRY("async", async())
  TRY("fiosetown", own_by_ioctl(pid, 0x8901))
  TRY("siocspgrp", own_by_ioctl(pid, 0x8902))
  TRY("notify", syscall(SYS_fcntl, open(".", O_RDONLY), F_NOTIFY, 1))
  TRY("lease", syscall(SYS_fcntl, open("mine", O_CREAT | O_RDWR, 0600), F_SETLEASE, F_WRLCK))
  TRY("tiocsti", syscall(SYS_ioctl, 0, 0x5412, "x"))
  TRY("no-pdeathsig", prctl(PR_SET_PDEATHSIG, 0))
  /* Limits and scheduling of other processes. */
  TRY("prlimit-fsize", limit(pid, RLIMIT_FSIZE, 0))
  TRY("prlimit-nofile", limit(pid, RLIMIT_NOFILE, 24))
  TRY("prlimit-own", limit(0, RLIMIT_AS, RLIM_INFINITY))
  TRY("sched_setscheduler", syscall(SYS_sched_setscheduler, pid, SCHED_IDLE, &idle))
  TRY("sched_setparam", syscall(SYS_sched_setparam, pid, &idle))
  TRY("sched_setaffinity", syscall(SYS_sched_setaffinity, pid, sizeof one_processor, &one_processor))
  TRY("setpriority", syscall(SYS_setpriority, PRIO_PROCESS, pid, 19))
  TRY("setpriority-user", syscall(SYS_setpriority, PRIO_USER, 0, 0))
  TRY("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 3 << 13))
  /* Processes that outlive the job. */
  TRY("process", start_process())
  TRY("fork", fork_by_clone(SIGCHLD))
  TRY("vfork", fork_by_clone(CLONE_VFORK | SIGCHLD))
  TRY("clone3", fork_by_clone3())
  TRY("double-fork", fork_twice())
  TRY("fork-often", fork_often())
  TRY("setsid", setsid())
  TRY("setpgid", setpgid(0, 0))
  TRY("threads", start_threads())
  /* Other processes. */
  TRY("ptrace", syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, pid, 0, 0))
  TRY("process_vm_readv", read_memory_of(pid, 0))
  TRY("process_vm_writev", read_memory_of(pid, 1))
  TRY("pidfd_getfd", syscall(SYS_pidfd_getfd, 0, 0, 0))
  TRY("kcmp", syscall(SYS_kcmp, pid, pid, 0, 0, 0))
  TRY("get_robust_list", syscall(SYS_get_robust_list, pid, buffer, buffer + 64))
  TRY("migrate_pages", syscall(SYS_migrate_pages, pid, 1, &one_processor, &one_processor))
  /* Files outside of the job. */
  TRY("chmod", fchmodat(AT_FDCWD, path, 0, 0))
  TRY("fchmod", fchmod(open(".", O_RDONLY), 0))
  TRY("chown", fchownat(AT_FDCWD, path, 65534, 65534, 0))
  TRY("utimes", utimensat(AT_FDCWD, path, then, 0))
  TRY("setxattr", syscall(SYS_setxattr, path, "user.a", "b", 1, 0))
  TRY("truncate", truncate(path, 0))
  TRY("read", open_and_read(path))
  TRY("list", list(path))
  TRY("append", open(path, O_WRONLY | O_APPEND))
  TRY("make", make(path, "evil"))
  TRY("unlink", unlink(path))
  TRY("rmdir", unlinkat(AT_FDCWD, path, AT_REMOVEDIR))
  TRY("rename", rename(path, "taken"))
  TRY("mkdir", mkdirat(AT_FDCWD, "folder", 0))
  TRY("link", linkat(AT_FDCWD, path, AT_FDCWD, "taken", 0))
  TRY("symlink", symlinkat(path, AT_FDCWD, "taken"))
  TRY("mkfifo", mknodat(AT_FDCWD, "pipe", S_IFIFO | 0600, 0))
  TRY("mknod", mknodat(AT_FDCWD, "zero", S_IFCHR | 0600, 0x105))
  TRY("swap-input", swap_input(path))
  TRY("make-many", make_many())
  TRY("fill-disk", fill_disk())
  TRY("unlink-output", unlink(output))
  TRY("inotify", syscall(SYS_inotify_init1, 0))
  TRY("fanotify", syscall(SYS_fanotify_init, 0, 0))
  TRY("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, path, buffer, buffer + 64, 0))
  TRY("flock", syscall(SYS_flock, open("mine", O_CREAT | O_RDWR, 0600), 2))
  /* Objects that stay in the kernel. */
  TRY("shmget", keep_memory())
  TRY("semget", syscall(SYS_semget, 0, 8, 01600))
  TRY("msgget", syscall(SYS_msgget, 0, 01600))
  TRY("mq_open", syscall(SYS_mq_open, "evil", O_CREAT | O_RDWR, 0600, NULL))
  TRY("add_key", syscall(SYS_add_key, "user", "evil", "x", 1, -3))
  TRY("request_key", syscall(SYS_request_key, "user", "evil", NULL, -3))
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 0))
  /* Execution of other code. */
  TRY("execve", execve("/bin/sh", arguments, NULL))
  TRY("memfd_create", syscall(SYS_memfd_create, "evil", 0))
  TRY("execveat", syscall(SYS_execveat, 0, "", arguments, NULL, AT_EMPTY_PATH))
  TRY("exec-memory", run_written(PROT_READ | PROT_WRITE | PROT_EXEC, 0))
  TRY("exec-file", map_written(output))
  TRY("exec-later", run_written(PROT_READ | PROT_WRITE, 1))
  /* Namespaces and mounts. */
  TRY("unshare-user", unshare(CLONE_NEWUSER))
  TRY("unshare-mount", unshare(CLONE_NEWNS))
  TRY("clone-user", fork_by_clone(CLONE_NEWUSER | SIGCHLD))
  TRY("setns", setns(0, 0))
  TRY("mount", syscall(SYS_mount, "none", ".", "tmpfs", 0, ""))
  TRY("umount", syscall(SYS_umount2, ".", 2))
  TRY("pivot_root", syscall(SYS_pivot_root, ".", "."))
  TRY("chroot", chroot("."))
  TRY("fsopen", syscall(430, "tmpfs", 0))
  TRY("mount_setattr", syscall(442, AT_FDCWD, "/", 0, buffer, 32))
  /* The kernel and the network. */
  TRY("socket-inet", syscall(SYS_socket, 2, 1, 0))
  TRY("socket-unix", syscall(SYS_socket, 1, 1, 0))
  TRY("socket-netlink", syscall(SYS_socket, 16, 3, 0))
  TRY("socketpair", syscall(SYS_socketpair, 1, 1, 0, buffer))
  TRY("io_uring_setup", syscall(425, 8, memset(buffer, 0, sizeof buffer)))
  TRY("io_setup", syscall(SYS_io_setup, 8, memset(buffer, 0, sizeof buffer)))
  TRY("userfaultfd", syscall(SYS_userfaultfd, 1))
  TRY("perf_event_open", syscall(SYS_perf_event_open, memset(buffer, 0, sizeof buffer), 0, -1, -1, 0))
  TRY("bpf", syscall(SYS_bpf, 0, memset(buffer, 0, sizeof buffer), 64))
  TRY("personality", syscall(SYS_personality, 0x0400000))
  TRY("setuid", syscall(SYS_setuid, 65534))
  TRY("sethostname", syscall(SYS_sethostname, "evil", -1))
  TRY("settimeofday", syscall(SYS_settimeofday, NULL, NULL))
  TRY("init_module", syscall(SYS_init_module, NULL, 0, ""))
  TRY("reboot", syscall(SYS_reboot, 0, 0, 0, NULL))
  TRY("sync", syscall(SYS_syncfs, 1))
  /* Limits. */
  TRY("memory", reserve_memory())
  /* Abnormal ends. */
  TRY("abort", (abort(), 0))
  TRY("hang", (sleep(60), 0))
  TRY("fill", fill(output))
  TRY("none", 0)
  errno = 0;
  return -2;
}

static void draw(const char *path) {
  int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (fd < 0 || write(fd, PIXEL, sizeof PIXEL) < 0 || write(fd, report, strlen(report)) < 0) exit(3);
  close(fd);
}

int main(int count, char **args) {
  size_t length = strlen(args[0]);
  int unusual = length > 8 && strcmp(args[0] + length - 8, "-unusual") == 0;
  if (count > 1 && strcmp(args[1], "--version") == 0) {
    puts("rsvg-convert version 2.54.7");
    return 0;
  }
  if (unusual && syscall(SYS_ioprio_get, 1, 0) < 0) return 4;

  for (int i = 1; i + 1 < count; i++)
    if (strcmp(args[i], "-o") == 0) output = args[i + 1];
  static char drawing[65536];
  size_t length_read = fread(drawing, 1, sizeof drawing - 1, stdin);
  drawing[length_read] = 0;
  char what[64] = "", path[4096] = "";
  long pid = 0;
  const char *requested = strstr(drawing, "<!--attempt ");
  if (requested) {
    sscanf(requested, "<!--attempt %63s %ld %4095s", what, &pid, path);
    char found[96];
    /* Without a filter, the call returns 0. With one, it returns another value or is denied. */
    snprintf(found, sizeof found, "FILTER %d ", prctl(PR_GET_SECCOMP) != 0);
    report_text(found);
    errno = 0;
    long result = attempt(what, pid, path);
    snprintf(found, sizeof found, "RESULT %ld %d ", result, result < 0 ? errno : 0);
    report_text(found);
  } else if (!strstr(drawing, "<svg")) {
    report_text("OTHER INPUT ");
    report_text(drawing);
  }
  if (*output) draw(output);
  return 0;
}
