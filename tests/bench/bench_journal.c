/*
 * A project of many runs in the catalog of a data folder, for the bench of the pages over time. The
 * rows are what imports leave; no trace file exists, and nothing that a page reads needs one.
 *
 * usage: bench_journal [--runs N] --write DATA_FOLDER
 *
 * Beside a server that has the folder open: its start looks for the files.
 */

#include "server/store/journal_rows.h"
#include "server/store/store.h"
#include "server/store/store_private.h"
#include "tests/support/many_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct lac_store_options options = {0};
    struct lac_store *store = NULL;
    struct lac_error error = {0};
    unsigned long runs = 10000;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0) {
            runs = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--write") == 0) {
            options.data_dir = argv[i + 1];
        }
    }
    if (options.data_dir == NULL || runs == 0 || runs > 1000000) {
        (void)fprintf(stderr, "usage: bench_journal [--runs N] --write DATA_FOLDER\n");
        return 2;
    }
    if (lac_store_open(&options, &store, &error) != LAC_OK ||
        lac_many_runs_write(store->catalog, (unsigned)runs, &error) != LAC_OK) {
        (void)fprintf(stderr, "bench_journal: %s\n", error.message);
        return 1;
    }
    lac_store_close(store);
    (void)printf("{\"runs\": %lu}\n", runs);
    return 0;
}
