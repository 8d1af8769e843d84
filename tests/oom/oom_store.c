/*
 * The n-th allocation fails, for every n: catalog, publication, trace files written and read answer
 * LAC_ERR_NOMEM (or go without, where that is what they promise), nothing half is left in the data
 * folder, and nothing leaks (the leak check of the sanitizer build).
 *
 * SQLite and zstd are refused too where they are linked statically, as they are when released.
 */

#include "analysis/flame/flame.h"
#include "server/store/publish.h"
#include "server/store/store.h"
#include "server/store/trace/flame/flame_windows.h"
#include "server/store/trace/flame/trace_flame.h"
#include "server/store/trace/trace_file.h"
#include "server/store/trace/trace_writer.h"
#include "tests/support/oom.h"
#include "tests/support/rich_model.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];
static struct lac_model *model;

static int count_files(const char *name)
{
    char path[128];
    int count = 0;
    DIR *dir;
    const struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/** What is refused memory: each gets the same world every time. */
typedef enum lac_status (*scenario)(struct lac_store *store);

static enum lac_status scenario_open(struct lac_store *store)
{
    const struct lac_store_options options = {.data_dir = folder, .sweep = true};
    struct lac_store *opened = NULL;
    struct lac_error error;
    enum lac_status status = lac_store_open(&options, &opened, &error);

    (void)store;
    lac_store_close(opened);
    return status;
}

static enum lac_status write_staged(const struct lac_staging *staging)
{
    char path[4200];
    const struct lac_trace_write_options options = {
        .path = path, .generation = 1, .documents = {[LAC_DOCUMENT_ANALYSIS] = {"{}", 2}}};
    struct lac_error error;

    (void)snprintf(path, sizeof(path), "%s/" LAC_STAGED_TRACE_FORMAT, staging->path, 0);
    return lac_trace_write(model, &options, &error);
}

/** Stage, publish, delete again. */
static enum lac_status scenario_publish(struct lac_store *store)
{
    struct lac_staging staging = {.fd = -1};
    const struct lac_publication publication = {
        .staging = &staging, .trace_count = 1, .name = "n", .project = "p"};
    char id[LAC_ID_SIZE];
    char ids[1][LAC_ID_SIZE];
    struct lac_error error;
    enum lac_status status = lac_store_new_id(id, &error);

    if (status == LAC_OK) {
        status = lac_staging_create(store, id, &staging, &error);
    }
    if (status == LAC_OK) {
        status = write_staged(&staging);
    }
    if (status == LAC_OK) {
        status = lac_store_publish(store, &publication, ids, &error);
    }
    if (status == LAC_OK) {
        const int64_t paused = oom_pause(); /* deleting is another scenario's */
        oom_require(lac_store_delete_trace(store, ids[0], &error) == LAC_OK, "cannot delete");
        oom_resume(paused);
    } else {
        oom_require(count_files("traces") == 1, "a trace that was not published is in the folder");
    }
    lac_staging_remove(&staging);
    return status;
}

static char ready_id[LAC_ID_SIZE];

static enum lac_status scenario_list(struct lac_store *store)
{
    const struct lac_trace_query query = {.text = "r", .limit = 5};
    struct lac_trace_list list;
    struct lac_trace_row row;
    struct lac_error error;
    enum lac_status status = lac_store_list_traces(store, &query, &list, &error);

    if (status == LAC_OK) {
        oom_require(list.count == 1, "the list lost a row");
        lac_trace_list_done(&list);
        status = lac_store_get_trace(store, ready_id, &row, &error);
    }
    if (status == LAC_OK) {
        lac_trace_row_done(&row);
    }
    return status;
}

static enum lac_status read_tables(struct lac_trace_file *file)
{
    const struct lac_search_query search = {.text = "kernel", .kind = -1, .limit = 10};
    const struct lac_kernel_query kernel_query = {.limit = 10};
    const struct lac_gap_query gap_query = {.device = -1, .limit = 10};
    struct lac_search_hits hits;
    struct lac_kernel_page kernels;
    struct lac_gap_page gaps;
    const struct lac_area_query area_query = {.t0_ns = 0, .t1_ns = LAC_TIME_MAX_NS};
    struct lac_area area;
    struct lac_counter_points points;
    struct lac_gap_reader *reader = NULL;
    struct lac_gap_row row;
    struct lac_error error;
    enum lac_status status = lac_trace_file_search(file, &search, &hits, &error);

    if (status == LAC_OK) {
        oom_require(hits.count == 10, "hits are missing");
        lac_search_hits_done(&hits);
        status = lac_trace_file_kernels(file, &kernel_query, &kernels, &error);
    }
    if (status == LAC_OK) {
        lac_kernel_page_done(&kernels);
        status = lac_trace_file_gaps(file, &gap_query, &gaps, &error);
    }
    if (status == LAC_OK) {
        lac_gap_page_done(&gaps);
        status = lac_gap_reader_open(file, -1, 0, &reader, &error);
        while (status == LAC_OK) {
            status = lac_gap_reader_next(reader, &row, &error);
        }
        lac_gap_reader_close(reader);
        status = status == LAC_ERR_NOT_FOUND ? LAC_OK : status;
    }
    if (status == LAC_OK) {
        status = lac_trace_file_area(file, &area_query, &area, &error);
    }
    if (status == LAC_OK) {
        oom_require(area.name_count > 0, "names of the area are missing");
        lac_area_done(&area);
        for (uint32_t t = 0; t < model->track_count && status == LAC_OK; t++) {
            if (model->tracks[t].kind == LAC_TRACK_COUNTER) {
                status = lac_trace_file_counter(file, t, 0, 1000000000, 10, &points, &error);
                if (status == LAC_OK) {
                    lac_counter_points_done(&points);
                }
            }
        }
    }
    return status;
}

/** Graphs of an area, each of the part of the trace that it takes. */
static enum lac_status read_flames(struct lac_trace_file *file)
{
    struct lac_flame_options options = {.t0_ns = 1000, .t1_ns = model->info.duration_ns / 2};
    struct lac_error error;
    enum lac_status status = LAC_OK;

    for (int metric = LAC_FLAME_GPU; metric <= LAC_FLAME_CPU && status == LAC_OK; metric++) {
        struct lac_flame_part part;

        options.metric = (enum lac_flame_metric)metric;
        status = lac_trace_flame_part(file, &options, &part, &error);
        if (status == LAC_OK) {
            oom_require(metric == LAC_FLAME_WAITING || part.model->slices.count > 0,
                        "slices of the part are missing");
            lac_trace_flame_part_done(&part);
        }
        if (status == LAC_OK) {
            struct lac_flame *flame = NULL;

            status = lac_flame_in_windows(file, &options, 100, &flame, &error);
            oom_require((flame != NULL) == (status == LAC_OK), "a failed graph was given");
            lac_flame_destroy(flame);
        }
    }
    return status;
}

static enum lac_status scenario_read(struct lac_store *store)
{
    const uint32_t tracks[] = {0, 1, 2, 3, 4, 5};
    struct lac_trace_file *file = NULL;
    struct lac_slice_full slice;
    const struct lac_model *whole = NULL;
    uint8_t *bytes = NULL;
    char *text = NULL;
    size_t size = 0;
    struct lac_error error;
    enum lac_status status = lac_store_open_trace(store, ready_id, &file, &error);

    if (status == LAC_OK) {
        status = lac_trace_file_tiles(file, 3, 0, 3, tracks, 6, &bytes, &size, &error);
    }
    free(bytes);
    if (status == LAC_OK) {
        status = lac_trace_file_slice(file, 5, &slice, &error);
    }
    if (status == LAC_OK) {
        lac_slice_full_done(&slice);
        status = lac_trace_file_document(file, LAC_DOCUMENT_ANALYSIS, &text, &size, &error);
    }
    free(text);
    if (status == LAC_OK) {
        status = read_tables(file);
    }
    if (status == LAC_OK) {
        status = read_flames(file);
    }
    if (status == LAC_OK) {
        status = lac_trace_file_whole_model(file, &whole, &error);
    }
    lac_trace_file_release_model(file, whole);
    lac_store_release_trace(store, file);
    return status;
}

static struct lac_store *open_store(void)
{
    const struct lac_store_options options = {.data_dir = folder};
    struct lac_store *store = NULL;
    struct lac_error error;

    oom_require(lac_store_open(&options, &store, &error) == LAC_OK, "cannot open the store");
    return store;
}

/** Refuse the n-th allocation for n = 0, 1, 2, ... until the scenario gets through. */
static void torture(const char *name, scenario run)
{
    uint64_t n = 0;

    for (;; n++) {
        struct lac_store *store = open_store(); /* fresh: nothing is cached */
        enum lac_status status;
        bool was_refused;

        oom_after(n);
        status = run(store);
        was_refused = oom_over();
        lac_store_close(store);
        oom_require(count_files("traces") == 1, name);
        if (status == LAC_OK && !was_refused) {
            break;
        }
        /* SQLite passes a failed allocation on as an error of reading or writing now and then */
        oom_require(status == LAC_OK || status == LAC_ERR_NOMEM || status == LAC_ERR_IO ||
                        status == LAC_ERR_CORRUPT,
                    name);
    }
    oom_require(n > 0, "the scenario does not allocate: it tests nothing");
    printf("%s: %llu allocations refused, one after another\n", name, (unsigned long long)n);
}

int main(void)
{
    struct lac_staging staging = {.fd = -1};
    struct lac_publication publication = {.staging = &staging, .trace_count = 1, .name = "ready"};
    char ids[1][LAC_ID_SIZE];
    char command[128];
    struct lac_store *store;
    struct lac_error error;

    /* thousands of commits: in memory where that can be */
    (void)snprintf(folder, sizeof(folder), "%s/lacuna-test-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    oom_require(mkdtemp(folder) != NULL, "no folder");
    oom_require(rich_model_create(3, 60, &model) == LAC_OK, "no model");
    store = open_store();
    oom_require(lac_store_new_id(ready_id, &error) == LAC_OK, "no id");
    oom_require(lac_staging_create(store, ready_id, &staging, &error) == LAC_OK, "cannot stage");
    oom_require(write_staged(&staging) == LAC_OK, "cannot write");
    oom_require(lac_store_publish(store, &publication, ids, &error) == LAC_OK, "cannot publish");
    lac_staging_remove(&staging);
    lac_store_close(store);

    torture("open", scenario_open);
    torture("list", scenario_list);
    torture("publish", scenario_publish);
    torture("read", scenario_read);
    lac_model_destroy(model);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    oom_require(system(command) == 0, "cannot tidy up");
    printf("4 passed, 0 failed\n");
    return 0;
}
