/*
 * What the C library of 2.17 lacks and our libraries, built on a newer one, ask for; and the start
 * of the program, which newer C libraries do differently. Only for the program that is distributed
 * (server/dist/README.md): link_stubs.py leaves these names out, so that they are taken from here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The names, of functions and of their arguments, are the C library's.
 * NOLINTBEGIN(bugprone-reserved-identifier, readability-inconsistent-declaration-parameter-name) */

/* ---- the start: an old C library runs constructors only where it is told how */

typedef void (*constructor)(int argc, char **argv, char **environment);

extern constructor __init_array_start[] __attribute__((visibility("hidden")));
extern constructor __init_array_end[] __attribute__((visibility("hidden")));
void lac_run_constructors(int argc, char **argv, char **environment);

void lac_run_constructors(int argc, char **argv, char **environment)
{
    for (constructor *one = __init_array_start; one < __init_array_end; one++) {
        (*one)(argc, argv, environment);
    }
}

/* What atexit() hands over in the place of a library's own; a program has none. */
extern void *__dso_handle;
void *__dso_handle __attribute__((visibility("hidden"))) = NULL;

/* ---- files: functions of 2.33, before then inline around these, whose first argument is the
 * version of the struct */

enum { STAT_VERSION = 1 };

extern int __xstat(int version, const char *path, struct stat *status);
extern int __lxstat(int version, const char *path, struct stat *status);
extern int __fxstat(int version, int fd, struct stat *status);
extern int __fxstatat(int version, int fd, const char *path, struct stat *status, int flags);

int stat(const char *path, struct stat *status)
{
    return __xstat(STAT_VERSION, path, status);
}

int lstat(const char *path, struct stat *status)
{
    return __lxstat(STAT_VERSION, path, status);
}

int fstat(int fd, struct stat *status)
{
    return __fxstat(STAT_VERSION, fd, status);
}

int fstatat(int fd, const char *path, struct stat *status, int flags)
{
    return __fxstatat(STAT_VERSION, fd, path, status, flags);
}

/* the same structs and offsets here */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat and stat64 differ");
int stat64(const char *path, struct stat64 *status) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat64 *status) __attribute__((alias("lstat")));
int fstat64(int fd, struct stat64 *status) __attribute__((alias("fstat")));

int fcntl64(int fd, int command, ...); /* 2.28 */

int fcntl64(int fd, int command, ...)
{
    va_list list;
    void *argument;

    va_start(list, command);
    argument = va_arg(list, void *);
    va_end(list);
    return fcntl(fd, command, argument);
}

/* ---- randomness, memory: 2.25 and 2.27. Kernels of those systems may lack the calls, too */

static ssize_t random_from_device(void *bytes, size_t size_bytes)
{
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? read(fd, bytes, size_bytes) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    return length;
}

ssize_t getrandom(void *bytes, size_t size_bytes, unsigned flags)
{
    const ssize_t length = syscall(SYS_getrandom, bytes, size_bytes, flags);

    return length < 0 && errno == ENOSYS ? random_from_device(bytes, size_bytes) : length;
}

int memfd_create(const char *name, unsigned flags)
{
    char path[] = "/tmp/lacuna-XXXXXX";
    int fd = (int)syscall(SYS_memfd_create, name, flags);

    if (fd < 0 && errno == ENOSYS) {
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) {
            (void)unlink(path);
        }
    }
    return fd;
}

void explicit_bzero(void *bytes, size_t size_bytes)
{
    memset(bytes, 0, size_bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

void __explicit_bzero_chk(void *bytes, size_t size_bytes, size_t room_bytes);

void __explicit_bzero_chk(void *bytes, size_t size_bytes, size_t room_bytes)
{
    if (size_bytes > room_bytes) {
        abort();
    }
    explicit_bzero(bytes, size_bytes);
}
/* NOLINTEND(bugprone-reserved-identifier, readability-inconsistent-declaration-parameter-name) */
