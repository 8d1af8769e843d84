/*
 * Preloaded into a server: the time of day is off by the seconds that stand in the file SKEW_FILE
 * (8 bytes), and jumps when they change. Clocks that only go forward are left alone.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *skew_s;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SKEW_FILE");
    const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof(*skew_s), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    skew_s = map != MAP_FAILED ? map : NULL;
    if (fd >= 0) {
        (void)close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, out);

    if (result == 0 && skew_s != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        out->tv_sec += *skew_s;
    }
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
