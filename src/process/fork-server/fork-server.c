/*
 * Fork server: starts a program once, and runs each job in a copy of it.
 *
 * For a small image, most time is spent on starting the program. This shared object is preloaded (LD_PRELOAD, ld.so(8)) into
 * a dynamically linked program, and replaces __libc_start_main, which its entry point calls: all libraries are loaded and
 * their constructors have run, but no code of the program. IMAGEMILL_FORK_SERVER selects a mode:
 *   serve  The process prepares the program, then waits for jobs. Each job runs in a new child, which confines itself and
 *          continues with the program. The server never reads an image, so no process ever holds data of two jobs. It
 *          refuses to serve if it has more than one thread, since fork(2) copies only one.
 *   once   The process was started for one job. It reads the job, confines itself and continues with the program. It forks
 *          nothing: both ways have the same confinement. A program that ignores this object gets no arguments.
 *
 * Protocol. The service writes requests to standard input, and reads answers from standard output. A message is a header
 * (struct header, native byte order) and a body of `length` bytes. No job has these descriptors.
 *
 *   J  Run job `id`. The body is a list of fields: a letter, a value and NUL. See parse_field.
 *   K  Kill job `id`. The server is the parent of the job, so the process ID cannot belong to another process.
 *   R  The server is ready: the number of jobs that it can run at once, and 1 if it has its own namespaces.
 *   F  The server cannot be used: the reason, as text.
 *   S  Job `id` has started, or (once) is confined.
 *   O, E  A part of the standard output or error of job `id`. After MAX_OUTPUT bytes, the rest is dropped.
 *   X  Job `id` has ended: exit status, signal.
 *   N  Job `id` has not started: errno(3).
 *
 * Confinement (confine), in this order: all other descriptors closed, process group, signal at the end of the parent,
 * resource limits, no capabilities, no new privileges, Landlock, seccomp filter. Landlock permits reading what the service
 * lists and the folder of the job, writing only the files that the job must write, which are made before, and executing
 * nothing; for a job whose files are not known before, it permits making files. Newer kernels also deny TCP, abstract UNIX sockets
 * and signals. The filter (assets/seccomp) is last, so it permits nothing for the sake of this file. A job whose
 * confinement fails in any step ends with EXIT_NOT_CONFINED, before any code of the program.
 *
 * What a child can learn from the server: the server wipes each request after the fork, and output after passing it on.
 * The child clears its copy of the table of jobs. All children of a server share one layout of the address space, so the
 * service replaces the server after a number of jobs, and at once after a job that crashed.
 *
 * End: each process gets SIGKILL when its parent ends (PR_SET_PDEATHSIG), and the server exits when its standard input is
 * closed. Where the kernel permits it, the server is process 1 of a PID namespace, so that all children end with it, and
 * has its own IPC and network namespaces. A first process outside of them waits for it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <locale.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Call numbers of all architectures. */
enum { PIDFD_OPEN = 434, CLOSE_RANGE = 436, LANDLOCK_CREATE = 444, LANDLOCK_ADD = 445, LANDLOCK_RESTRICT = 446 };
enum { MAX_REQUEST = 1 << 21, MAX_WORDS = 1 << 18, MAX_RULES = 64 };
enum { MAX_OUTPUT = 64 * 1024, CHUNK = 4096, EXIT_NOT_CONFINED = 126 };
enum { NICENESS = 5 }; /* of jobs, as in process/priority.ts */
struct header { uint32_t length, id, kind; };
static struct { /* a job, as its fields describe it; all strings are in `body` */
  struct header header;
  char body[MAX_REQUEST];
  char *words[MAX_WORDS], *rules[MAX_RULES]; /* words: arguments, NULL, variables, NULL */
  size_t argument_count, variable_count, rule_count, output_count;
  const char *folder, *outputs, *input, *printed, *filter, *all_files, *makes_files;
  rlim_t limits[4];
} request;

/* Limits by the letter of their field. A process gets a signal at the soft limit of its time, and SIGKILL at the hard one. */
static const char LIMIT_FIELDS[] = "mtzn";
static const __rlimit_resource_t LIMITS[] = {RLIMIT_AS, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE};

static struct job {
  uint32_t id;
  pid_t pid; /* 0 in an unused place of the table */
  int pidfd, streams[2];
  size_t sent[2]; /* bytes of each stream */
} *jobs;
static struct pollfd *watched; /* `requests`, and three descriptors of each job */
static unsigned max_jobs;
static int requests = STDIN_FILENO, answers = STDOUT_FILENO;

/* Reads or writes all bytes. Returns -1 at the end of the stream. */
static int transfer(int fd, void *bytes, size_t length, int writing) {
  for (char *at = bytes; length > 0;) {
    ssize_t count = writing ? write(fd, at, length) : read(fd, at, length);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return -1;
    at += count, length -= (size_t)count;
  }
  return 0;
}

static void answer(uint32_t kind, uint32_t id, const void *body, size_t length) {
  struct { struct header header; char body[CHUNK]; } message = {{(uint32_t)length, id, kind}, {0}};
  if (length > 0) memcpy(message.body, body, length);
  if (transfer(answers, &message, sizeof message.header + length, 1) < 0) _exit(1); /* the service has ended */
  explicit_bzero(&message, sizeof message);
}

static void answer_error(uint32_t id, int error) { answer('N', id, &error, sizeof error); }
static _Noreturn void refuse(const char *reason) {
  answer('F', 0, reason, strlen(reason));
  _exit(2);
}

/* Parses one field. Returns 0 or an error number. */
static int parse_field(char field, char *value) {
  const char *limit = strchr(LIMIT_FIELDS, field);
  if (limit) {
    char *end;
    errno = 0;
    request.limits[limit - LIMIT_FIELDS] = strtoull(value, &end, 10);
    return errno != 0 || *end != 0 || end == value ? EINVAL : 0;
  }
  switch (field) {
    case 'a': /* argument; the first one is the name of the program */
      if (request.variable_count > 0 || request.argument_count > MAX_WORDS - 8) return E2BIG;
      return request.words[request.argument_count++] = value, 0;
    case 'e': /* variable of the environment, after the arguments */
      if (request.argument_count + request.variable_count > MAX_WORDS - 8) return E2BIG;
      return request.words[request.argument_count + 1 + request.variable_count++] = value, 0;
    case 'u': request.all_files = value; return 0; /* Landlock restricts nothing; without it, what no rule permits is denied */
    case 'r': /* file or folder that may be read */
      return request.rule_count == MAX_RULES ? E2BIG : (request.rules[request.rule_count++] = value, 0);
    case 'd': request.folder = value; return 0; /* working folder */
    case 'o': /* file of the folder that may be written; the body has all of them in a row */
      request.outputs = request.outputs ?: value;
      return request.output_count++, 0;
    case 'c': request.makes_files = value; return 0; /* the job may make and write files in its folder */
    case 'i': request.input = value; return 0;  /* file on standard input */
    case 'p': request.printed = value; return 0; /* file of the folder that gets standard output */
    case 's': request.filter = value; return 0; /* file with a seccomp filter */
    default: return EBADMSG;
  }
}

static int parse_request(void) {
  memset(&request.argument_count, 0, sizeof request - offsetof(typeof(request), argument_count));
  size_t length = request.header.length;
  if (length == 0 || request.body[length - 1] != 0) return EBADMSG;
  for (char *field = request.body; field < request.body + length; field += strlen(field) + 1) {
    int error = *field == 0 ? EBADMSG : parse_field(*field, field + 1);
    if (error) return error;
  }
  request.words[request.argument_count] = NULL;
  request.words[request.argument_count + 1 + request.variable_count] = NULL;
  return request.argument_count == 0 || !request.folder ? EBADMSG : 0;
}

static int read_request(void) {
  if (transfer(requests, &request.header, sizeof request.header, 0) < 0) return -1; /* the service has closed the stream */
  if (request.header.length > MAX_REQUEST) refuse("a request is too long");
  return transfer(requests, request.body, request.header.length, 0);
}

/* Prints the error of a step of the confinement, and ends. */
static _Noreturn void fail(const char *step) {
  dprintf(STDERR_FILENO, "imagemill: cannot start the job: %s: %s\n", step, strerror(errno));
  _exit(EXIT_NOT_CONFINED);
}

/* Rights of Landlock, as in linux/landlock.h, of which older systems have only a part. */
enum { WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, MAKE_REG = 1 << 8, TRUNCATE = 1 << 14 };
enum { OF_FILES = WRITE_FILE | READ_FILE | TRUNCATE };

static void permit(int ruleset, const char *path, uint64_t rights, uint64_t known) {
  struct { uint64_t rights; int32_t parent; } __attribute__((packed)) rule = {rights & known, open(path, O_PATH | O_CLOEXEC)};
  struct stat found;
  if (rule.parent < 0 && (errno == ENOENT || errno == EACCES || errno == ENOTDIR)) return; /* permits nothing */
  if (rule.parent < 0 || fstat(rule.parent, &found) < 0) fail(path);
  if (!S_ISDIR(found.st_mode)) rule.rights &= OF_FILES;
  if (syscall(LANDLOCK_ADD, ruleset, 1 /* LANDLOCK_RULE_PATH_BENEATH */, &rule, 0) < 0) fail(path);
  close(rule.parent);
}

/* Handles every right that the kernel knows, so that all but the permitted ones are denied. */
static void restrict_files(void) {
  /* Number of file rights, by version: REFER since 2, TRUNCATE since 3, IOCTL_DEV since 5. */
  static const unsigned char FILE_RIGHTS[] = {0, 13, 14, 15, 15, 16};
  int version = (int)syscall(LANDLOCK_CREATE, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
  if (version < 1) fail("Landlock");
  uint64_t known = (UINT64_C(1) << FILE_RIGHTS[version > 5 ? 5 : version]) - 1;
  /* Files; TCP since 4: bind, connect; scopes since 6: abstract UNIX sockets, signals. */
  const uint64_t rights[] = {known, 3, 3};
  size_t size = (version >= 6 ? 3 : version >= 4 ? 2 : 1) * sizeof *rights;
  int ruleset = (int)syscall(LANDLOCK_CREATE, rights, size, 0);
  if (ruleset < 0) fail("Landlock");
  for (size_t i = 0; i < request.rule_count; i++)
    permit(ruleset, request.rules[i], READ_FILE | READ_DIR, known);
  permit(ruleset, request.folder, READ_FILE | READ_DIR | (request.makes_files ? OF_FILES | MAKE_REG : 0), known);
  const char *output = request.outputs;
  for (size_t i = 0; i < request.output_count; i++, output += strlen(output) + 2) { /* NUL and the letter of the next field */
    int file = open(output, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600); /* later, the job cannot make it */
    if (file < 0) fail(output);
    close(file);
    permit(ruleset, output, OF_FILES, known);
  }
  if (syscall(LANDLOCK_RESTRICT, ruleset, 0) < 0 || close(ruleset) < 0) fail("Landlock");
}

static struct sock_filter instructions[BPF_MAXINSNS];
/* Reads the filter of the job. Returns the number of its instructions. */
static unsigned short read_filter(void) {
  int file = open(request.filter, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, instructions, sizeof instructions);
  if (length <= 0) fail(request.filter);
  close(file);
  return (unsigned short)((size_t)length / sizeof *instructions);
}

static int drop_privileges(void) {
  struct __user_cap_header_struct version = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  return syscall(SYS_capset, &version, none) < 0 ? -1 : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Kills this process when its parent ends, which may already have happened: then `parent` is not its parent any more. */
static void end_with(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || (parent != 0 && getppid() != parent)) _exit(EXIT_NOT_CONFINED);
}

static void limit_resources(void) {
  if (setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) < 0) fail("limits");
  for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
    rlim_t soft = request.limits[i];
    struct rlimit limit = {soft, LIMITS[i] == RLIMIT_CPU ? soft + 1 : soft};
    if (soft != 0 && setrlimit(LIMITS[i], &limit) < 0) fail("limits");
  }
}

/* Confines this process for the job in `request`. Standard input is opened before files are restricted. */
static void confine(pid_t parent) {
  if (syscall(CLOSE_RANGE, 3U, ~0U, 0) < 0) fail("descriptors"); /* those of other jobs would count as files of this one */
  if (setpgid(0, 0) < 0 && getpgrp() != getpid()) fail("process group");
  end_with(parent);
  if (!request.input || strcmp(request.input, "-") != 0) { /* "-" keeps standard input, for a worker of mode `once` */
    int input = open(request.input ? request.input : "/dev/null", O_RDONLY | O_CLOEXEC);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0 || close(input) < 0) fail("standard input");
  }
  if (chdir(request.folder) < 0) fail("folder");
  struct sock_fprog filter = {request.filter ? read_filter() : 0, instructions};
  limit_resources();
  if (drop_privileges() < 0) fail("privileges");
  if (!request.all_files) restrict_files();
  if (filter.len > 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) fail("seccomp");
}

/* Connects standard output to a file that the job may write. It is opened with the rights of the job. */
static void redirect_output(void) {
  if (!request.printed) return;
  int output = open(request.printed, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (output < 0 || dup2(output, STDOUT_FILENO) < 0 || close(output) < 0) fail("standard output");
}

/* Opens the pipes of a job: `ours` for reading, without waiting, and `theirs` for writing. */
static int open_pipes(int ours[2], int theirs[2]) {
  int first[2], second[2];
  if (pipe2(first, O_CLOEXEC) < 0) return -1;
  if (pipe2(second, O_CLOEXEC) < 0) return close(first[0]), close(first[1]), -1;
  ours[0] = first[0], theirs[0] = first[1], ours[1] = second[0], theirs[1] = second[1];
  return fcntl(ours[0], F_SETFL, O_NONBLOCK) | fcntl(ours[1], F_SETFL, O_NONBLOCK);
}

/* Starts the job in `request`. Returns 1 in its process, and 0 in the server. */
static int start_job(void) {
  struct job *job = jobs;
  while (job < jobs + max_jobs && job->pid != 0) job++;
  int theirs[2] = {-1, -1}, error = job == jobs + max_jobs ? EAGAIN : parse_request();
  if (error == 0 && open_pipes(job->streams, theirs) < 0) error = errno;
  if (error != 0) return answer_error(request.header.id, error), 0;
  pid_t server = getpid(), pid = fork();
  if (pid == 0) {
    memset(jobs, 0, max_jobs * sizeof *jobs);
    setpriority(PRIO_PROCESS, 0, NICENESS); /* a system that does not permit it runs the job all the same */
    if (dup2(theirs[0], STDOUT_FILENO) < 0 || dup2(theirs[1], STDERR_FILENO) < 0) _exit(EXIT_NOT_CONFINED);
    confine(server), redirect_output();
    return 1;
  }
  error = errno;
  close(theirs[0]), close(theirs[1]);
  int pidfd = pid < 0 ? -1 : (int)syscall(PIDFD_OPEN, pid, 0);
  if (pidfd < 0) {
    if (pid > 0) error = errno, kill(pid, SIGKILL), waitpid(pid, NULL, 0);
    close(job->streams[0]), close(job->streams[1]);
    return answer_error(request.header.id, error), 0;
  }
  setpgid(pid, pid); /* so that the group exists, whichever process runs first */
  job->id = request.header.id, job->pid = pid, job->pidfd = pidfd, job->sent[0] = job->sent[1] = 0;
  answer('S', job->id, NULL, 0);
  return 0;
}

/* Passes output of a job on. Returns false when there is none at the moment, or no more. */
static int relay(struct job *job, int stream) {
  char part[CHUNK];
  ssize_t count = read(job->streams[stream], part, sizeof part);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count <= 0) return close(job->streams[stream]), job->streams[stream] = -1, 0; /* poll(2) ignores -1 */
  const size_t left = MAX_OUTPUT - job->sent[stream], kept = (size_t)count < left ? (size_t)count : left;
  if (kept > 0) answer(stream == 0 ? 'O' : 'E', job->id, part, kept);
  job->sent[stream] += kept;
  explicit_bzero(part, (size_t)count);
  return 1;
}

/* Reports the end of a job. The process group is killed while its ID cannot belong to another one. */
static void finish(struct job *job) {
  int status = 0;
  kill(-job->pid, SIGKILL), waitpid(job->pid, &status, 0);
  for (int stream = 0; stream < 2; stream++) {
    /* Without a filter, another process can still write. This must not delay the answer. */
    for (int parts = 0; parts < 4096 && job->streams[stream] >= 0 && relay(job, stream); parts++) {}
    if (job->streams[stream] >= 0) close(job->streams[stream]);
  }
  close(job->pidfd);
  const int body[] = {WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
  answer('X', job->id, body, sizeof body);
  job->pid = 0;
}

static void kill_jobs(uint32_t id, int all) {
  for (const struct job *job = jobs; job < jobs + max_jobs; job++)
    if (job->pid != 0 && (all || job->id == id)) kill(-job->pid, SIGKILL);
}

/* Serves until the service closes the stream. Returns only in the process of a job. */
static void serve(void) {
  for (;;) {
    unsigned used = max_jobs;
    while (used > 0 && jobs[used - 1].pid == 0) used--;
    watched[0] = (struct pollfd){requests, POLLIN, 0};
    for (unsigned i = 0; i < used; i++) {
      const int files[] = {jobs[i].streams[0], jobs[i].streams[1], jobs[i].pidfd};
      for (unsigned j = 0; j < 3; j++) watched[1 + 3 * i + j] = (struct pollfd){jobs[i].pid ? files[j] : -1, POLLIN, 0};
    }
    if (poll(watched, 1 + 3 * used, -1) < 0) continue;
    for (unsigned i = 0; i < used; i++) {
      const struct pollfd *events = &watched[1 + 3 * i];
      for (int stream = 0; stream < 2; stream++)
        if (events[stream].revents) relay(&jobs[i], stream);
      if (events[2].revents) finish(&jobs[i]);
    }
    if (!watched[0].revents) continue;
    if (read_request() < 0) kill_jobs(0, 1), _exit(0);
    if (request.header.kind == 'K') kill_jobs(request.header.id, 0);
    else if (request.header.kind != 'J') refuse("a request is of an unknown kind");
    else if (start_job()) return;
    explicit_bzero(request.body, request.header.length);
  }
}

static void write_file(const char *path, const char *format, unsigned id) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || dprintf(file, format, id, id) < 0) refuse("namespaces"); /* the service then starts it without them */
  close(file);
}

/* Continues as process 1 of new namespaces (namespaces(7)). Returns 0 if the kernel does not permit them. */
static int enter_namespaces(void) {
  const unsigned user = geteuid(), group = getegid();
  if (unshare((user == 0 ? 0 : CLONE_NEWUSER) | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET) < 0) return 0;
  if (user != 0) {
    write_file("/proc/self/setgroups", "deny", 0);
    write_file("/proc/self/uid_map", "%u %u 1", user);
    write_file("/proc/self/gid_map", "%u %u 1", group);
  }
  pid_t child = fork();
  if (child < 0) refuse("namespaces");
  if (child == 0) return end_with(0), 1;
  close(requests), close(answers);
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  _exit(1);
}

typedef void hook(void); /* a function of a library of the program */
static hook *find(const char *name) {
  hook *found = (hook *)dlsym(RTLD_DEFAULT, name);
  return found ?: (refuse("the program lacks a function of its preparation"), found);
}

/* Loads what every job needs: `magick CODER...`, `fontconfig` or nothing. */
static void prepare(const char *program, char *words) {
  char *rest, *what = words ? strtok_r(words, " ", &rest) : NULL;
  if (what && strcmp(what, "fontconfig") == 0) ((int (*)(void))find("FcInit"))();
  if (!what || strcmp(what, "magick") != 0) return;
  /* The second argument sets ImageMagick's signal handlers, as the program does. */
  ((void (*)(const char *, int))find("MagickCoreGenesis"))(program, 1);
  void *exception = ((void *(*)(void))find("AcquireExceptionInfo"))();
  /* Version 6 would read the list of delegates in each job, in 0.27 ms. */
  ((const void *(*)(const char *, const char *, void *))find("GetDelegateInfo"))("*", "*", exception);
  const void *(*load)(const char *, void *) = (const void *(*)(const char *, void *))find("GetMagickInfo");
  for (char *coder; (coder = strtok_r(NULL, " ", &rest));) load(coder, exception);
}

/* Replaces ImageMagick's function: before a job ends, it would free all memory and unload all modules, in 0.4 ms. */
__attribute__((visibility("default"))) void MagickCoreTerminus(void) {}

/* The child of a process with several threads would have one of them, and locks that the others hold. */
static void require_one_thread(void) {
  struct stat tasks; /* a link for each folder in it, and two more */
  if (stat("/proc/self/task", &tasks) < 0 || tasks.st_nlink != 3) refuse("the program has started threads");
}

/* Allocates the table of jobs: as many as the service requests, or as this process can open files for. */
static void allocate_jobs(unsigned long requested) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < 64) refuse("it can open too few files");
  const unsigned long possible = (files.rlim_cur - 16) / 3;
  max_jobs = (unsigned)(requested < possible ? requested : possible);
  jobs = calloc(max_jobs, sizeof *jobs), watched = calloc(1 + 3 * max_jobs, sizeof *watched);
  if (!jobs || !watched) refuse("it has no memory for jobs");
}

/* Sets up the server. Returns in the process of a job. */
static void run_server(const char *program) {
  /* So that the terminal's Ctrl+C does not reach it. A session of its own would get a share of the processors of its own (autogroup
   * scheduling, sched(7)), and the priority of the jobs would not count against the service. */
  setpgid(0, 0);
  end_with(0);
  /* What the program prints must not become an answer. */
  requests = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
  answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (requests < 0 || answers < 0 || null < 0) _exit(1);
  for (int fd = 0; fd < 3; fd++) dup2(null, fd);
  require_one_thread();
  int isolated = getenv("IMAGEMILL_NAMESPACES") && enter_namespaces();
  if (drop_privileges() < 0) refuse("privileges cannot be dropped");
  setlocale(LC_ALL, ""), tzset(); /* otherwise, each job would read their files, in 0.2 ms */
  prepare(program, getenv("IMAGEMILL_PREPARE"));
  require_one_thread();
  allocate_jobs(strtoul(getenv("IMAGEMILL_MAX_JOBS") ?: "1", NULL, 10));
  const uint32_t body[] = {max_jobs, (uint32_t)isolated};
  answer('R', 0, body, sizeof body);
  serve();
}

typedef int deflate_init(void *, int, int, int, int, int, const char *, int);
/* Replaces zlib's function: for a file that only the next tool reads, IMAGEMILL_DEFLATE_LEVEL has the level. */
__attribute__((visibility("default"))) int deflateInit2_(void *stream, int level, int method, int bits, int memory,
                                                         int strategy, const char *version, int size) {
  deflate_init *init = (deflate_init *)dlsym(dlopen("libz.so.1", RTLD_LAZY | RTLD_NOLOAD) ?: RTLD_NEXT, "deflateInit2_");
  const char *given = getenv("IMAGEMILL_DEFLATE_LEVEL");
  return init ? init(stream, given ? atoi(given) : level, method, bits, memory, strategy, version, size) : -6; /* Z_VERSION_ERROR */
}
typedef int main_function(int, char **, char **);
static main_function *program;
/* Ends a job without the destructors of the libraries, which take 0.25 ms. */
static int run_program(int count, char **arguments, char **variables) {
  const int status = program(count, arguments, variables);
  return fflush(NULL), _exit(status), status;
}
typedef int start_function(main_function *, int, char **, hook *, hook *, hook *, void *);
/* Runs the constructors of the program, and then main with the arguments and the environment of the job. */
__attribute__((visibility("default"))) int __libc_start_main(main_function *main, int count, char **arguments, hook *init,
                                                             hook *fini, hook *end_loader, void *stack_end) {
  start_function *start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
  const char *mode = getenv("IMAGEMILL_FORK_SERVER");
  if (mode) {
    if (strcmp(mode, "once") != 0) run_server(arguments[0]), program = main, main = run_program;
    else {
      if ((errno = read_request() < 0 ? EPIPE : parse_request()) != 0) fail("request");
      confine(0);
      answer('S', request.header.id, NULL, 0), redirect_output();
      const size_t more = (size_t)count - 1; /* an interpreter's own arguments: the path of its script is the last one */
      memmove(request.words + more, request.words, (request.argument_count + request.variable_count + 2) * sizeof *request.words);
      memcpy(request.words, arguments, (more + 1) * sizeof *request.words);
      request.argument_count += more;
    }
    count = (int)request.argument_count, arguments = request.words;
    environ = request.words + request.argument_count + 1;
  }
  return start(main, count, arguments, init, fini, end_loader, stack_end);
}
