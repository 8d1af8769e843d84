#include "server/ingest/sandbox.h"

#include "collector/base/count_of.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* -- Landlock ---------------------------------------------------------------------------------- */

/* The kernel's interface, as of version 6, whatever the headers here know: numbers of calls are the
 * same everywhere (Documentation/userspace-api/landlock.rst). */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { ASK_VERSION = 1, RULE_PATH_BENEATH = 1 };

struct ruleset {
    uint64_t fs;
    uint64_t net;    /* since 4 */
    uint64_t scoped; /* since 6 */
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

enum {
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_REMOVE_DIR = 1 << 4,
    FS_REMOVE_FILE = 1 << 5,
    FS_MAKE_DIR = 1 << 7,
    FS_MAKE_REG = 1 << 8,
    FS_TRUNCATE = 1 << 14, /* since 3 */
    FOLDER = FS_WRITE_FILE | FS_READ_FILE | FS_READ_DIR | FS_REMOVE_DIR | FS_REMOVE_FILE |
             FS_MAKE_DIR | FS_MAKE_REG | FS_TRUNCATE,
};

/** All rights to files that a version knows: what is not allowed by a rule is refused. */
static uint64_t rights_of(int version)
{
    static const unsigned counts[] = {0, 13, 14, 15, 15, 16};
    const size_t known = LAC_COUNT_OF(counts);
    const size_t index = (size_t)version < known ? (size_t)version : known - 1;

    return (UINT64_C(1) << counts[index]) - 1;
}

static bool allow(int ruleset_fd, int fd, uint64_t rights)
{
    const struct path_beneath rule = {.allowed = rights, .parent_fd = fd};

    return syscall(ADD_RULE, ruleset_fd, RULE_PATH_BENEATH, &rule, 0) == 0;
}

/** @return the version in force, 0 none */
static int restrict_files(int input_fd, int folder_fd)
{
    const long version = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    struct ruleset ruleset = {0};
    size_t size_bytes = sizeof(ruleset.fs);
    bool good;
    int fd;

    if (version < 1) {
        return 0;
    }
    ruleset.fs = rights_of((int)version);
    if (version >= 4) {
        ruleset.net = 3; /* bind and connect by TCP */
        size_bytes = 2 * sizeof(ruleset.fs);
    }
    if (version >= 6) {
        ruleset.scoped = 3; /* abstract sockets and signals, of others */
        size_bytes = 3 * sizeof(ruleset.fs);
    }
    fd = (int)syscall(CREATE_RULESET, &ruleset, size_bytes, 0);
    if (fd < 0) {
        return 0;
    }
    good = (input_fd < 0 || allow(fd, input_fd, FS_READ_FILE)) &&
           (folder_fd < 0 || allow(fd, folder_fd, FOLDER & ruleset.fs)) &&
           syscall(RESTRICT_SELF, fd, 0) == 0;
    (void)close(fd);
    return good ? (int)version : 0;
}

/* -- seccomp ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

/*
 * What the importers, SQLite, zstd and the C library make of files that are open or may be opened.
 * Whatever else there is answers EPERM: no sockets, no programs, no threads or processes, no
 * tracing, no mounting, no signals to others. Not a kill, so that a library which asks for
 * something harmless that we do not know goes on without it.
 */
static const int allowed_calls[] = {
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_preadv,
    SYS_write,
    SYS_pwrite64,
    SYS_writev,
    SYS_pwritev,
    SYS_lseek,
    SYS_openat,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getcwd,
    SYS_getdents64,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_fchmod,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fadvise64,
    SYS_fsync,
    SYS_fdatasync,
    SYS_fcntl,
    SYS_flock,
    SYS_dup,
    SYS_dup3,
    SYS_copy_file_range,
    SYS_sendfile,
    SYS_ppoll,
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_futex,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrusage,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_umask,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_open /* not on newer architectures */
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_unlink,
    SYS_poll,
    SYS_time,
    SYS_dup2,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
};

enum {
    CALL_COUNT = LAC_COUNT_OF(allowed_calls),
    FILTER_SIZE = CALL_COUNT + 40,
};

struct filter {
    struct sock_filter line[FILTER_SIZE];
    unsigned short count;
};

static void add(struct filter *filter, unsigned code, uint32_t k, unsigned yes, unsigned no)
{
    filter->line[filter->count++] =
        (struct sock_filter){.code = (uint16_t)code, .jt = (uint8_t)yes, .jf = (uint8_t)no, .k = k};
}

static void add_load(struct filter *filter, size_t offset)
{
    add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_return(struct filter *filter, uint32_t what)
{
    add(filter, BPF_RET | BPF_K, what, 0, 0);
}

/** Lower half of an argument: both architectures are little endian. */
static size_t argument(unsigned index)
{
    return offsetof(struct seccomp_data, args) + index * sizeof(uint64_t);
}

/** A call is allowed where the lower half of an argument is `value`, all under `mask`. */
static void add_checked(struct filter *filter, int call, unsigned index, uint32_t mask,
                        uint32_t value)
{
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5);
    add_load(filter, argument(index));
    add(filter, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    add_return(filter, SECCOMP_RET_ALLOW);
    add_return(filter, SECCOMP_RET_ERRNO | EPERM);
}

static void build_filter(struct filter *filter)
{
    add_load(filter, offsetof(struct seccomp_data, arch));
    add(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    add_return(filter, SECCOMP_RET_KILL_PROCESS); /* numbers of another architecture */
    add_load(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    add(filter, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
    add_return(filter, SECCOMP_RET_KILL_PROCESS); /* x32 */
#endif
    for (size_t i = 0; i < CALL_COUNT; i++) {
        /* "allow" follows the list at a distance that grows less */
        add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed_calls[i],
            (unsigned)(CALL_COUNT - i), 0);
    }
    add(filter, BPF_JMP | BPF_JA, 1, 0, 0);
    add_return(filter, SECCOMP_RET_ALLOW);
    add_checked(filter, SYS_mmap, 2, PROT_EXEC, 0); /* no code but what is loaded */
    add_checked(filter, SYS_mprotect, 2, PROT_EXEC, 0);
    add_checked(filter, SYS_prlimit64, 0, UINT32_MAX, 0); /* its own, which only fall */
    add_checked(filter, SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid()); /* abort() */
    add_return(filter, SECCOMP_RET_ERRNO | EPERM);
}

static bool restrict_calls(void)
{
    struct filter filter = {.count = 0};
    struct sock_fprog program = {.filter = filter.line};

    build_filter(&filter);
    program.len = filter.count;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

#else

static bool restrict_calls(void)
{
    return false; /* an architecture whose calls we have not looked at */
}

#endif

/* -- both -------------------------------------------------------------------------------------- */

struct lac_sandbox lac_sandbox_enter(int input_fd, int folder_fd)
{
    struct lac_sandbox sandbox = {0};

    if (!IS_SANITIZED) {
        sandbox.landlock_version = restrict_files(input_fd, folder_fd);
        sandbox.has_seccomp = restrict_calls();
    }
    return sandbox;
}

/** In a child: what is said to be in force, and is. */
static struct lac_sandbox try_it(void)
{
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int folder = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct lac_sandbox sandbox = {0};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && input >= 0 && folder >= 0) {
        sandbox = lac_sandbox_enter(input, folder);
        if (open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0) {
            sandbox.landlock_version = 0;
        }
        if (socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0) {
            sandbox.has_seccomp = false;
        }
    }
    return sandbox;
}

struct lac_sandbox lac_sandbox_probe(void)
{
    struct lac_sandbox sandbox = {0};
    int pipes[2];
    pid_t child;

    if (pipe2(pipes, O_CLOEXEC) != 0) {
        return sandbox;
    }
    child = fork();
    if (child == 0) {
        const struct lac_sandbox tried = try_it();

        (void)!write(pipes[1], &tried, sizeof(tried));
        _exit(0);
    }
    (void)close(pipes[1]);
    if (child > 0) {
        if (read(pipes[0], &sandbox, sizeof(sandbox)) != (ssize_t)sizeof(sandbox)) {
            sandbox = (struct lac_sandbox){0};
        }
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    (void)close(pipes[0]);
    return sandbox;
}

void lac_sandbox_describe(const struct lac_sandbox *sandbox, char *out, size_t capacity_bytes)
{
    assert(sandbox != NULL && out != NULL);
    assert(capacity_bytes > 0);
    char landlock[32] = "";

    if (sandbox->landlock_version > 0) {
        (void)snprintf(landlock, sizeof(landlock), "Landlock %d", sandbox->landlock_version);
    }
    (void)snprintf(out, capacity_bytes, "%s%s%s", landlock,
                   landlock[0] != '\0' && sandbox->has_seccomp ? " and " : "",
                   sandbox->has_seccomp ? "seccomp" : "");
}
