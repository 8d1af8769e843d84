/*
 * The import alone, from a file to a model in memory: MB of (expanded) JSON a second of CPU time,
 * events, and peak memory over input. Prints one line of JSON; median of five.
 *
 * usage: bench_import FILE [scalar]
 */

#include "analysis/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RUNS = 5 };

struct totals {
    uint64_t bytes, events, slices;
};

static enum lac_status count(void *context, struct lac_model *model, struct lac_error *reterr)
{
    struct totals *totals = context;
    (void)reterr;
    totals->bytes += model->info.expanded_bytes;
    totals->events += model->info.event_count;
    totals->slices += model->slices.count;
    lac_model_destroy(model);
    return LAC_OK;
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_import FILE [scalar]\n");
        return 2;
    }
    struct lac_import_options options = {.force_scalar =
                                             argc > 2 && strcmp(argv[2], "scalar") == 0};
    lac_import_limits_default(&options.limits);
    double seconds[RUNS];
    struct totals totals = {0};
    for (int i = 0; i < RUNS; i++) {
        struct lac_error error = {0};
        totals = (struct totals){0};
        double before = cpu_s();
        if (lac_import_file(argv[1], &options, count, &totals, &error) != LAC_OK) {
            fprintf(stderr, "bench_import: %s: %s\n", argv[1], error.message);
            return 1;
        }
        seconds[i] = cpu_s() - before;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(seconds, RUNS, sizeof(*seconds), compare);
    printf("{\"import_model_mb_s\": %.1f, \"import_model_mev_s\": %.3f, "
           "\"import_model_peak_ratio\": %.3f, "
           "\"events\": %llu, \"slices\": %llu}\n",
           (double)totals.bytes / seconds[RUNS / 2] / 1e6,
           (double)totals.events / seconds[RUNS / 2] / 1e6,
           (double)usage.ru_maxrss * 1024.0 / (double)totals.bytes,
           (unsigned long long)totals.events, (unsigned long long)totals.slices);
    return 0;
}
