/*
 * A job that uses CUDA as far as a recorder can see it without a GPU: it loads what
 * CUDA_INJECTION64_PATH names, as libcuda does in cuInit(), and has the stand-in for libcupti
 * return records. Its arguments, one after the other:
 *
 *   cuda          initialize CUDA
 *   deliver=N     N launches with their kernels and copies
 *   copies        records of all kinds but kernels
 *   launch=N,US   N kernels of so many microseconds, which are still to run
 *   yield back    the job's own profiler takes CUPTI, and gives it back
 *   occupy        another tool subscribes
 *   refuse=WHAT   from now on the stand-in refuses what STAND_IN_REFUSE says
 *   steps=N       N steps of a millisecond in NVTX ranges
 *   mark=N        N steps as the Python hook tells them
 *   sleep=MS      milliseconds
 *   wait          until stdin ends
 */
#include "kernels/ranges.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct api { /* as collector/inject/api.h says */
    uint32_t version;
    void (*push)(const char *name, size_t length, int64_t batch, int32_t worker);
    void (*pop)(int64_t cpu_ns);
    void (*setting)(const char *text, size_t length);
    void (*step)(void);
    void (*value)(uint64_t number);
    void (*gpu_yield)(int yield, const char *to);
};

static void *find(const char *variable, const char *name)
{
    const char *const path = getenv(variable);
    void *const library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;

    return library != NULL ? dlsym(library, name) : NULL;
}

static void sleep_us(long us)
{
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    (void)nanosleep(&pause, NULL);
}

static void initialize(void)
{
    int (*begin)(void);

    *(void **)&begin = find("CUDA_INJECTION64_PATH", "InitializeInjection");
    if (begin != NULL) { /* as libcuda: nobody there is no error */
        (void)begin();
    }
}

static void yield(int on)
{
    const struct api *(*get_api)(void);

    *(void **)&get_api = find("LACUNA_LIBRARY", "lacuna_get_api");
    if (get_api != NULL && get_api() != NULL) {
        get_api()->gpu_yield(on, on ? "torch.profiler" : "");
    }
}

static void steps(long count)
{
    for (long i = 0; i < count; i++) {
        range_push("step");
        sleep_us(1000);
        range_pop();
    }
}

static void marks(long count)
{
    const struct api *(*get_api)(void);

    *(void **)&get_api = find("LACUNA_LIBRARY", "lacuna_get_api");
    for (long i = 0; i < count && get_api != NULL && get_api() != NULL; i++) {
        get_api()->step();
    }
}

static void gpu(const char *what, long count, long us)
{
    void (*deliver)(int, uint32_t, int);
    void (*kinds)(uint32_t);
    void (*launch)(uint32_t, uint64_t, uint32_t);
    void (*occupy)(int);

    if (strcmp(what, "deliver") == 0) {
        *(void **)&deliver = find("LACUNA_CUPTI", "stand_in_deliver");
        deliver((int)count, (uint32_t)getpid(), 0);
    } else if (strcmp(what, "copies") == 0) {
        *(void **)&kinds = find("LACUNA_CUPTI", "stand_in_deliver_kinds");
        kinds((uint32_t)getpid());
    } else if (strcmp(what, "launch") == 0) {
        *(void **)&launch = find("LACUNA_CUPTI", "stand_in_launch");
        launch((uint32_t)count, (uint64_t)us * 1000, (uint32_t)getpid());
    } else {
        *(void **)&occupy = find("LACUNA_CUPTI", "stand_in_occupy");
        occupy(1);
    }
}

int main(int argc, char **argv)
{
    range_open_library();
    for (int i = 1; i < argc; i++) {
        char *const number = strchr(argv[i], '=');
        char *rest = NULL;
        const long first = number != NULL ? strtol(number + 1, &rest, 10) : 0;
        const long second = rest != NULL && *rest == ',' ? strtol(rest + 1, NULL, 10) : 0;

        if (number != NULL) {
            *number = '\0';
        }
        if (strcmp(argv[i], "cuda") == 0) {
            initialize();
        } else if (strcmp(argv[i], "yield") == 0 || strcmp(argv[i], "back") == 0) {
            yield(argv[i][0] == 'y');
        } else if (strcmp(argv[i], "steps") == 0) {
            steps(first);
        } else if (strcmp(argv[i], "mark") == 0) {
            marks(first);
        } else if (strcmp(argv[i], "sleep") == 0) {
            sleep_us(first * 1000);
        } else if (strcmp(argv[i], "refuse") == 0 && number != NULL) {
            (void)setenv("STAND_IN_REFUSE", number + 1, 1);
        } else if (strcmp(argv[i], "wait") == 0) {
            while (getchar() != EOF) {
            }
        } else {
            gpu(argv[i], first, second);
        }
    }
    return 0;
}
