/*
 * A trace of 20 M slices in a data folder, for the benches of the server and the page; and what
 * writing it costs. Prints one line of JSON.
 *
 * usage: bench_store [--slices MILLIONS] --write DATA_FOLDER
 */

#include "server/ingest/convert.h"
#include "server/store/publish.h"
#include "tests/support/training_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static double cpu_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void must(enum lac_status status, const char *what, const struct lac_error *error)
{
    if (status != LAC_OK) {
        (void)fprintf(stderr, "bench_store: %s: %s %s\n", what, lac_status_name(status),
                      error != NULL ? error->message : "");
        exit(1);
    }
}

static int write_trace(const char *data_dir, uint64_t slice_count)
{
    const struct lac_store_options store_options = {.data_dir = data_dir};
    struct lac_model *model = NULL;
    struct lac_store *store = NULL;
    struct lac_staging staging = {.fd = -1};
    struct lac_publication publication = {
        .staging = &staging, .trace_count = 1, .name = "bench-training"};
    char id[LAC_ID_SIZE];
    char ids[1][LAC_ID_SIZE];
    char path[sizeof(staging.path) + 64];
    struct lac_error error = {0};
    struct stat file = {0};
    double before_s;
    double seconds;

    must(training_model_create(slice_count, &model), "model", NULL);
    must(lac_store_open(&store_options, &store, &error), data_dir, &error);
    must(lac_store_new_id(id, &error), "id", &error);
    must(lac_staging_create(store, id, &staging, &error), "staging", &error);
    before_s = cpu_s();
    (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, staging.path, 0U);
    must(lac_convert_model(model, NULL, path, NULL, &error), "trace file", &error);
    must(lac_store_publish(store, &publication, ids, &error), "publication", &error);
    seconds = cpu_s() - before_s;
    (void)snprintf(path, sizeof(path), "%s/traces/%s.db", data_dir, ids[0]);
    if (stat(path, &file) != 0) {
        perror(path);
        return 1;
    }
    printf("{\"id\": \"%s\", \"slices\": %llu, \"store_write_mev_s\": %.2f, "
           "\"store_bytes_per_slice\": %.3f}\n",
           ids[0], (unsigned long long)model->info.slice_count,
           (double)model->info.slice_count / 1e6 / seconds,
           (double)file.st_size / (double)model->info.slice_count);
    lac_staging_remove(&staging);
    lac_store_close(store);
    lac_model_destroy(model);
    return 0;
}

int main(int argc, char **argv)
{
    const char *data_dir = NULL;
    double millions = 20;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--slices") == 0) {
            millions = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--write") == 0) {
            data_dir = argv[i + 1];
        }
    }
    if (data_dir == NULL || millions <= 0 || millions > 500) {
        (void)fprintf(stderr, "usage: bench_store [--slices MILLIONS] --write DATA_FOLDER\n");
        return 2;
    }
    return write_trace(data_dir, (uint64_t)(millions * 1e6));
}
