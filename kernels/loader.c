#include "kernels/loader.h"

#include "kernels/ranges.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PREFETCH = 2, WORKERS_MAX = 256 };

struct worker {
    pid_t pid;
    int index_fd;  /* we write batch numbers */
    int result_fd; /* it answers with them when they are ready */
};

struct loader {
    struct loader_options options;
    float *memory; /* workers * PREFETCH + workers batches, shared; or one batch */
    size_t memory_bytes;
    int slot_count;
    int asked;    /* batches given to workers */
    int returned; /* batches given to the caller */
    struct worker workers[WORKERS_MAX];
};

static int64_t cpu_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Real arithmetic until `ms` of CPU time are spent, as decoding would. */
static void spend(float *batch, size_t count, int batch_number, double ms)
{
    const int64_t until = cpu_ns() + (int64_t)(ms * 1e6);
    uint32_t state = (uint32_t)batch_number * 2654435761u + 1u;

    do {
        for (size_t i = 0; i < count && i < 4096; i++) {
            state = state * 1664525u + 1013904223u;
            batch[(state >> 8) % count] = (float)(state >> 16) * 1e-4F;
        }
    } while (cpu_ns() < until);
}

static void make_batch(const struct loader *loader, float *batch, int number, int worker)
{
    const double ms = (double)loader->options.fetch_ms;
    const size_t count = loader->options.batch_floats;

    range_push_loader("loader.fetch", number, worker);
    range_push_loader("loader.read", number, worker);
    spend(batch, count, number, ms * 0.1);
    range_pop();
    range_push_loader("loader.decode", number, worker);
    spend(batch, count, number + 1, ms * 0.6);
    range_pop();
    range_push_loader("loader.transform", number, worker);
    spend(batch, count, number + 2, ms * 0.2);
    range_pop();
    range_push_loader("loader.collate", number, worker);
    spend(batch, count, number + 3, ms * 0.1);
    range_pop();
    range_pop();
}

static float *slot_of(const struct loader *loader, int number)
{
    return loader->memory + (size_t)(number % loader->slot_count) * loader->options.batch_floats;
}

static void work(const struct loader *loader, int index_fd, int result_fd, int id)
{
    int number;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* never outlive the training process */
    (void)prctl(PR_SET_NAME, "pt_data_worker");
    while (read(index_fd, &number, sizeof(number)) == (ssize_t)sizeof(number)) {
        make_batch(loader, slot_of(loader, number), number, id);
        if (write(result_fd, &number, sizeof(number)) != (ssize_t)sizeof(number)) {
            break;
        }
    }
    _exit(0);
}

static int start_worker(struct loader *loader, int id)
{
    struct worker *const worker = &loader->workers[id];
    int index[2];
    int result[2];

    if (pipe(index) != 0 || pipe(result) != 0) {
        return -1;
    }
    worker->pid = fork();
    if (worker->pid == 0) {
        (void)close(index[1]);
        (void)close(result[0]);
        for (int i = 0; i < id; i++) { /* or siblings would keep each other's queues open */
            (void)close(loader->workers[i].index_fd);
            (void)close(loader->workers[i].result_fd);
        }
        work(loader, index[0], result[1], id);
    }
    (void)close(index[0]);
    (void)close(result[1]);
    worker->index_fd = index[1];
    worker->result_fd = result[0];
    return worker->pid > 0 ? 0 : -1;
}

/* Batch n is made by worker n mod workers, and at most PREFETCH ahead of what was
 * returned by each. */
static void ask_for_more(struct loader *loader)
{
    while (loader->asked < loader->options.batches &&
           loader->asked < loader->returned + loader->options.workers * PREFETCH) {
        const int number = loader->asked++;

        if (write(loader->workers[number % loader->options.workers].index_fd, &number,
                  sizeof(number)) < 0) {
            return;
        }
    }
}

struct loader *loader_open(const struct loader_options *options)
{
    struct loader *const loader = calloc(1, sizeof(*loader));

    if (loader == NULL || options->workers < 0 || options->workers > WORKERS_MAX) {
        free(loader);
        errno = EINVAL;
        return NULL;
    }
    loader->options = *options;
    /* the batch in use and the one before it (its copy may still run) keep their slots */
    loader->slot_count = options->workers * PREFETCH + 2;
    loader->memory_bytes = (size_t)loader->slot_count * options->batch_floats * sizeof(float);
    loader->memory =
        mmap(NULL, loader->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (loader->memory == MAP_FAILED) {
        free(loader);
        return NULL;
    }
    for (int i = 0; i < options->workers; i++) {
        if (start_worker(loader, i) != 0) {
            loader->options.workers = i;
            loader_close(loader);
            return NULL;
        }
    }
    return loader;
}

const float *loader_next(struct loader *loader)
{
    const int number = loader->returned;
    int ready = -1;

    if (number == loader->options.batches) {
        return NULL;
    }
    range_push_loader("loader.wait", number, -1);
    if (loader->options.workers == 0) {
        make_batch(loader, slot_of(loader, number), number, -1);
        ready = number;
    } else {
        ask_for_more(loader);
        if (read(loader->workers[number % loader->options.workers].result_fd, &ready,
                 sizeof(ready)) != (ssize_t)sizeof(ready)) {
            ready = -1;
        }
    }
    range_pop();
    if (ready != number) {
        return NULL; /* a worker died */
    }
    loader->returned++;
    if (loader->options.workers > 0) {
        ask_for_more(loader);
    }
    return slot_of(loader, number);
}

void *loader_memory(struct loader *loader, size_t *ret_size_bytes)
{
    *ret_size_bytes = loader->memory_bytes;
    return loader->memory;
}

void loader_close(struct loader *loader)
{
    if (loader == NULL) {
        return;
    }
    for (int i = 0; i < loader->options.workers; i++) {
        (void)close(loader->workers[i].index_fd);
        (void)close(loader->workers[i].result_fd);
    }
    for (int i = 0; i < loader->options.workers; i++) {
        (void)waitpid(loader->workers[i].pid, NULL, 0);
    }
    (void)munmap(loader->memory, loader->memory_bytes);
    free(loader);
}
