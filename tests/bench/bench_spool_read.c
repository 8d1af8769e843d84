/* Events a second that the importer reads from the spools in a folder, on one core; how many there
 * are and how many the recorder counted as lost. Prints one line of JSON. */
#include "analysis/import/import.h"

#include <stdio.h>
#include <time.h>

static uint64_t event_count;
static uint64_t dropped_count;

static enum lac_status take(void *context, struct lac_model *model, struct lac_error *reterr)
{
    (void)context;
    (void)reterr;
    event_count += model->info.event_count;
    dropped_count += model->info.dropped_count;
    lac_model_destroy(model);
    return LAC_OK;
}

int main(int argc, char **argv)
{
    struct lac_import_options options = {0};
    struct lac_error error = {0};
    struct timespec before;
    struct timespec after;

    lac_import_limits_default(&options.limits);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    if (argc != 2 || lac_import_file(argv[1], &options, take, NULL, &error) != LAC_OK) {
        (void)fprintf(stderr, "bench_spool_read: %s\n", error.message);
        return 1;
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    (void)printf("{\"spool_decode_mev_s\":%.2f,\"events\":%llu,\"dropped\":%llu}\n",
                 (double)event_count / 1e6 /
                     ((double)(after.tv_sec - before.tv_sec) +
                      (double)(after.tv_nsec - before.tv_nsec) * 1e-9),
                 (unsigned long long)event_count, (unsigned long long)dropped_count);
    return 0;
}
