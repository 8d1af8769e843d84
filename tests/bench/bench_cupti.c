/*
 * What GPU recording costs a program that launches 20,000 kernels a second, against the stand-in
 * for libcupti: the CPU time of one step, all threads of the process included. Prints one line of
 * JSON.
 *
 * usage: bench_cupti STAND_IN LIBRARY|- STATE SECONDS
 *
 * LIBRARY is liblacuna.so, loaded and called as libcuda does in cuInit; `-` for a program that was
 * never injected. STATE is what the launcher wants (enum lac_spool_stop). A step is 200 launches
 * with some computing between them, one every 10 ms.
 */
#include "lacuna/spool.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LAUNCHES = 200, BATCH = 10, STEP_NS = 10000000, KERNEL_NS = 5000, WARM_UP = 50 };
/* Some microseconds between launches, as a framework has. */
enum { ROUNDS = 3000 };

static int64_t now_ns(clockid_t clock)
{
    struct timespec time = {0};

    (void)clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *function_of(const char *library, const char *name)
{
    void *const handle = dlopen(library, RTLD_LAZY);
    void *const function = handle != NULL ? dlsym(handle, name) : NULL;

    if (function == NULL) {
        (void)fprintf(stderr, "bench_cupti: %s\n", dlerror());
        exit(1);
    }
    return function;
}

/* The header of this process's spool, as a launcher sees it. */
static struct lac_spool_header *own_header(void)
{
    char path[64];
    char target[4096];

    for (int fd = 3; fd < 1024; fd++) {
        ssize_t length;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target));
        if (length > 6 && memcmp(target + length - 6, LAC_SPOOL_ENDING, 6) == 0) {
            return mmap(NULL, sizeof(struct lac_spool_header), PROT_READ | PROT_WRITE, MAP_SHARED,
                        fd, 0);
        }
    }
    (void)fprintf(stderr, "bench_cupti: nothing is recorded here\n");
    exit(1);
}

static uint64_t compute(uint64_t seed)
{
    for (int i = 0; i < ROUNDS; i++) {
        seed = (seed ^ seed >> 29) * 0xff51afd7ed558ccdu;
    }
    return seed;
}

int main(int argc, char **argv)
{
    void (*launch)(uint32_t, uint64_t, uint32_t);
    uint64_t (*launched)(void);
    int (*initialize)(void);
    uint64_t seed = (uint64_t)argc;
    int64_t begin_ns;
    int64_t cpu_ns = 0;
    long steps;

    if (argc != 5) {
        (void)fprintf(stderr, "usage: bench_cupti STAND_IN LIBRARY|- STATE SECONDS\n");
        return 2;
    }
    *(void **)&launch = function_of(argv[1], "stand_in_launch");
    *(void **)&launched = function_of(argv[1], "stand_in_launched");
    if (strcmp(argv[2], "-") != 0) {
        *(void **)&initialize = function_of(argv[2], "InitializeInjection");
        if (initialize() != 1) {
            return 1;
        }
        own_header()->stop = (uint32_t)strtoul(argv[3], NULL, 10);
    }
    steps = strtol(argv[4], NULL, 10) * 1000000000 / STEP_NS;
    begin_ns = now_ns(CLOCK_MONOTONIC);
    for (long step = 0; step < WARM_UP + steps; step++) {
        const struct timespec until = {
            .tv_sec = (begin_ns + (step + 1) * STEP_NS) / 1000000000,
            .tv_nsec = (begin_ns + (step + 1) * STEP_NS) % 1000000000,
        };

        if (step == WARM_UP) {
            cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        }
        for (int i = 0; i < LAUNCHES; i += BATCH) {
            for (int one = 0; one < BATCH; one++) {
                seed = compute(seed);
                launch(1, KERNEL_NS, 1);
            }
        }
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
    (void)printf("{\"step_us\":%.2f,\"launches\":%llu,\"launches_s\":%.0f,\"seed\":%u}\n",
                 (double)cpu_ns / (double)steps / 1e3, (unsigned long long)launched(),
                 (double)launched() * 1e9 / (double)(now_ns(CLOCK_MONOTONIC) - begin_ns),
                 (unsigned)seed & 1);
    return 0;
}
