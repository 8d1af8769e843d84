/*
 * Cost of a push and its pop, as the traced program sees it: medians of rounds of 20,000 pairs over
 * one second. Prints one line of JSON.
 *
 * usage: bench_ranges NAMES [THREADS [PAIRS_PER_SECOND]]
 *
 * NAMES is 1 or 512. With THREADS, each pushes and pops for one second, as fast as it can or at
 * PAIRS_PER_SECOND of its own.
 */
#include "kernels/ranges.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 20000, ROUNDS_MAX = 8000, NAMES_MAX = 512, THREADS_MAX = 16, RUN_NS = 1000000000 };
/* Short enough for a segment to take what one burst brings. */
enum { PACED_PAIRS = 500 };

static char names[NAMES_MAX][40];
static unsigned name_count;
static double pairs_per_s;

struct pusher {
    pthread_t thread;
    double rounds[ROUNDS_MAX];
    double elapsed_ns;
    double pairs;
    int round_count;
};

static double now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static void push_and_pop(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        range_push(names[i & (name_count - 1)]);
        range_pop();
    }
}

static void *push_at_full_speed(void *argument)
{
    struct pusher *pusher = argument;
    const double start = now_ns();
    double after = start;

    while (pusher->round_count < ROUNDS_MAX && after - start < RUN_NS) {
        const double before = after;

        push_and_pop(PAIRS);
        after = now_ns();
        pusher->rounds[pusher->round_count++] = (after - before) / PAIRS;
        pusher->pairs += PAIRS;
    }
    pusher->elapsed_ns = after - start;
    return NULL;
}

static void *push_at_rate(void *argument)
{
    struct pusher *pusher = argument;
    const double start = now_ns();

    while (now_ns() - start < RUN_NS) {
        push_and_pop(PACED_PAIRS);
        pusher->pairs += PACED_PAIRS;
        while ((now_ns() - start) * 1e-9 * pairs_per_s < pusher->pairs) {
        }
    }
    pusher->elapsed_ns = now_ns() - start;
    return NULL;
}

int main(int argc, char **argv)
{
    static struct pusher pushers[THREADS_MAX];
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    double pairs = 0;

    name_count = argc > 1 && argv[1][0] == '5' ? NAMES_MAX : 1;
    pairs_per_s = argc > 3 ? strtod(argv[3], NULL) : 0;
    threads = threads < 1 ? 1 : (threads > THREADS_MAX ? THREADS_MAX : threads);
    for (int i = 0; i < NAMES_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "forward of layer number %d", i);
    }
    range_open_library();
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&pushers[i].thread, NULL,
                           pairs_per_s > 0 ? push_at_rate : push_at_full_speed, &pushers[i]) != 0) {
            (void)fprintf(stderr, "bench_ranges: no thread\n");
            return 1;
        }
    }
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(pushers[i].thread, NULL);
        pairs += pushers[i].pairs;
    }
    qsort(pushers[0].rounds, (size_t)pushers[0].round_count, sizeof(pushers[0].rounds[0]), compare);
    (void)printf("{\"pair_ns\":%.2f,\"pairs\":%.0f,\"seconds\":%.4f}\n",
                 pushers[0].rounds[pushers[0].round_count / 2], pairs,
                 pushers[0].elapsed_ns * 1e-9);
    return 0;
}
