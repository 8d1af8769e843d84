/* Steps, gaps and batches: each is a row. */

#include "analysis/diagnose/result/analysis.h"
#include "analysis/model/chunk.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/order.h"
#include "collector/base/reserve.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"
#include "server/tables/count.h"
#include "server/tables/rows.h"
#include "server/tables/trace_tables.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What counts as a gap in an analysis. */
#define LONG_GAP_NS 10000

static enum lac_status each_gap(struct lac_trace_file *file, int64_t device, enum lac_gap_sort sort,
                                lac_take_gap_fn *take, void *context, struct lac_error *reterr)
{
    const struct lac_gap_query query = {.device = device, .min_ns = LONG_GAP_NS, .sort = sort};

    return lac_trace_file_each_gap(file, &query, take, context, reterr);
}

/* -- steps ----------------------------------------------------------------------------------- */

struct step_waits {
    const struct lac_trace_steps *steps;
    int64_t (*cause_ns)[LAC_GAP_CAUSES];
    uint32_t at; /**< the first that may hold the next gap */
};

/** The part of a gap in each step, its causes in proportion. */
static bool add_gap(void *context, const struct lac_gap_row *gap)
{
    struct step_waits *waits = context;
    const struct lac_trace_steps *steps = waits->steps;
    const int64_t gap_end_ns = gap->start_ns + gap->dur_ns;

    while (waits->at < steps->count &&
           steps->start_ns[waits->at] + steps->dur_ns[waits->at] <= gap->start_ns) {
        waits->at++;
    }
    for (uint32_t i = waits->at;
         i < steps->count && steps->start_ns[i] < gap_end_ns && gap->dur_ns > 0; i++) {
        const int64_t end_ns = steps->start_ns[i] + steps->dur_ns[i];
        const int64_t from_ns =
            gap->start_ns > steps->start_ns[i] ? gap->start_ns : steps->start_ns[i];
        const int64_t to_ns = gap_end_ns < end_ns ? gap_end_ns : end_ns;
        const double part = to_ns > from_ns ? (double)(to_ns - from_ns) / (double)gap->dur_ns : 0;

        for (unsigned c = 0; c < LAC_GAP_CAUSES; c++) {
            waits->cause_ns[i][c] += (int64_t)((double)gap->cause_ns[c] * part);
        }
    }
    return true;
}

static int ascending(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

/** Of all steps; 0 when there are none, or out of memory. */
static int64_t median_ns(const struct lac_trace_steps *steps)
{
    int64_t *all = malloc(((size_t)steps->count + 1) * sizeof(*all));
    int64_t median = 0;

    if (all != NULL && steps->count > 0) {
        memcpy(all, steps->dur_ns, steps->count * sizeof(*all));
        qsort(all, steps->count, sizeof(*all), ascending);
        median = all[(steps->count - 1) / 2];
    }
    free(all);
    return median;
}

static void fill_step(struct lac_table *table, const struct lac_model *head,
                      const struct step_waits *waits, uint32_t step, int64_t median,
                      struct lac_table_row *row)
{
    const struct lac_trace_steps *steps = waits->steps;
    const char *name = lac_model_str(head, steps->name[step]);
    char number[32];
    int64_t idle_ns = 0;
    unsigned mostly = 0;

    (void)snprintf(number, sizeof(number), "step %" PRIu32, step);
    lac_cell_text(row, LAC_TABLE_STEP_COLUMN,
                  name[0] != '\0' ? name : lac_table_text(table, number));
    lac_cell_int(row, LAC_TABLE_START_COLUMN, steps->start_ns[step]);
    lac_cell_int(row, LAC_TABLE_DUR_COLUMN, steps->dur_ns[step]);
    if (median > 0) {
        lac_cell_real(row, LAC_TABLE_TO_MEDIAN_COLUMN,
                      100.0 * ((double)steps->dur_ns[step] / (double)median - 1));
    }
    row->start_ns = steps->start_ns[step];
    row->dur_ns = steps->dur_ns[step];
    for (unsigned c = 0; waits->cause_ns != NULL && c < LAC_GAP_CAUSES; c++) {
        idle_ns += waits->cause_ns[step][c];
        mostly = waits->cause_ns[step][c] > waits->cause_ns[step][mostly] ? c : mostly;
    }
    if (waits->cause_ns != NULL && head->device_count > 0) {
        lac_cell_int(row, LAC_TABLE_IDLE_COLUMN, idle_ns);
        if (idle_ns > 0) {
            lac_cell_text(row, LAC_TABLE_CAUSE_COLUMN, lac_cause_name((enum lac_cause)mostly));
            lac_cell_int(row, LAC_TABLE_CAUSE_NS_COLUMN, waits->cause_ns[step][mostly]);
        }
    }
}

/** The first device that works. */
static int64_t first_device(const struct lac_model *head)
{
    int64_t device = INT64_MAX;

    for (uint32_t t = 0; t < head->track_count; t++) {
        const struct lac_track *track = &head->tracks[t];

        if (track->kind == LAC_TRACK_STREAM && track->count > 0 && track->device < device) {
            device = track->device;
        }
    }
    return device;
}

enum lac_status lac_list_steps(struct lac_sql_trace *trace, const struct lac_table_query *query,
                               struct lac_table *table, struct lac_error *reterr)
{
    struct lac_trace_steps steps = {0};
    struct step_waits waits = {.steps = &steps};
    const int64_t device = first_device(trace->head);
    enum lac_status status = LAC_OK;

    lac_trace_file_steps(trace->file, &steps);
    const int64_t median = median_ns(&steps);

    if (device != INT64_MAX) {
        waits.cause_ns = calloc((size_t)steps.count + 1, sizeof(*waits.cause_ns));
        status = waits.cause_ns != NULL
                     ? each_gap(trace->file, device, LAC_GAP_SORT_START, add_gap, &waits, reterr)
                     : LAC_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < steps.count && status == LAC_OK; i++) {
        struct lac_table_row *row;

        if (lac_inside_ns(query, steps.start_ns[i], steps.dur_ns[i]) < 0) {
            continue;
        }
        if (table->count >= LAC_TABLE_ROWS_MAX) {
            table->is_cut = true;
            break;
        }
        row = lac_table_add_row(table);
        if (row == NULL) {
            status = LAC_ERR_NOMEM;
            break;
        }
        fill_step(table, trace->head, &waits, i, median, row);
        table->count -= lac_row_matches(query, row) ? 0 : 1;
    }
    free(waits.cause_ns);
    return status;
}

/* -- gaps ------------------------------------------------------------------------------------ */

struct gap_list {
    const struct lac_table_query *query;
    struct lac_table *table;
    enum lac_status status;
};

static bool add_gap_row(void *context, const struct lac_gap_row *gap)
{
    struct gap_list *list = context;
    const bool has_cause = gap->cause < LAC_GAP_CAUSES;
    struct lac_table_row *row;
    char device[32];

    if (lac_inside_ns(list->query, gap->start_ns, gap->dur_ns) < 0) {
        return true;
    }
    if (list->table->count >= LAC_TABLE_ROWS_MAX) {
        list->table->is_cut = true;
        return false;
    }
    row = lac_table_add_row(list->table);
    if (row == NULL) {
        list->status = LAC_ERR_NOMEM;
        return false;
    }
    (void)snprintf(device, sizeof(device), "%" PRId64, gap->device);
    lac_cell_int(row, LAC_TABLE_START_COLUMN, gap->start_ns);
    lac_cell_int(row, LAC_TABLE_DUR_COLUMN, gap->dur_ns);
    lac_cell_text(row, LAC_TABLE_DEVICE_COLUMN, lac_table_text(list->table, device));
    lac_cell_text(row, LAC_TABLE_CAUSE_COLUMN,
                  lac_cause_name(has_cause ? (enum lac_cause)gap->cause : LAC_CAUSE_UNATTRIBUTED));
    if (has_cause) {
        lac_cell_int(row, LAC_TABLE_CAUSE_NS_COLUMN, gap->cause_ns[gap->cause]);
    }
    lac_cell_text(row, LAC_TABLE_ROOT_COLUMN, lac_table_text(list->table, gap->root_cause));
    if (gap->per_step == gap->per_step) { /* not NaN */
        lac_cell_real(row, LAC_TABLE_OFTEN_COLUMN, gap->per_step);
    }
    row->start_ns = gap->start_ns;
    row->dur_ns = gap->dur_ns;
    row->device = gap->device;
    list->table->count -= lac_row_matches(list->query, row) ? 0 : 1;
    return true;
}

enum lac_status lac_list_gaps(struct lac_sql_trace *trace, const struct lac_table_query *query,
                              struct lac_table *table, struct lac_error *reterr)
{
    struct gap_list list = {.query = query, .table = table, .status = LAC_OK};
    const enum lac_status status =
        each_gap(trace->file, -1, LAC_GAP_SORT_DUR, add_gap_row, &list, reterr);

    return status != LAC_OK ? status : list.status;
}

/* -- batches --------------------------------------------------------------------------------- */

/** A range of the loader. */
struct loaded {
    int64_t batch, start_ns, dur_ns, cpu_ns;
    int32_t worker;
    uint32_t slice;
};

struct loaded_list {
    struct loaded *all;
    uint32_t count, capacity;
};

static bool add_loaded(struct loaded_list *list, const struct loaded *loaded)
{
    if (!LAC_RESERVE(list->all, list->capacity, list->count, 1)) {
        return false;
    }
    list->all[list->count++] = *loaded;
    return true;
}

/** Fetches in the time asked for, and all waits. */
struct loader {
    struct lac_sql_trace *trace;
    const struct lac_table_query *query;
    const struct lac_model *details;
    struct loaded_list fetches, waits;
};

static enum lac_status add_chunk(struct loader *loader, const struct lac_slices *at, uint64_t first)
{
    for (uint64_t i = 0; i < at->count; i++) {
        const uint32_t detail = at->detail[i];

        if (at->kind[i] != LAC_SLICE_RANGE || detail == LAC_NONE ||
            detail >= loader->details->loader_info_count ||
            loader->details->loader_infos[detail].batch < 0) {
            continue;
        }
        const struct lac_loader_info *info = &loader->details->loader_infos[detail];
        const char *name = lac_model_str(loader->trace->head, at->name[i]);
        const struct loaded loaded = {.batch = info->batch,
                                      .start_ns = at->start_ns[i],
                                      .dur_ns = at->dur_ns[i],
                                      .cpu_ns = info->cpu_ns,
                                      .worker = info->worker,
                                      .slice = (uint32_t)(first + i)};
        const bool is_fetch = strcmp(name, "loader.fetch") == 0 &&
                              lac_inside_ns(loader->query, at->start_ns[i], at->dur_ns[i]) >= 0;

        if ((is_fetch && !add_loaded(&loader->fetches, &loaded)) ||
            (strcmp(name, "loader.wait") == 0 && !add_loaded(&loader->waits, &loaded))) {
            return LAC_ERR_NOMEM;
        }
    }
    return LAC_OK;
}

static enum lac_status read_loader(struct loader *loader, struct lac_error *reterr)
{
    struct lac_table_query everything = *loader->query;
    struct lac_chunk_choice choice = {
        .trace = loader->trace, .query = &everything, .kinds = 1U << LAC_SLICE_RANGE};
    enum lac_status status = lac_sql_trace_details(loader->trace, &loader->details, reterr);
    uint32_t chunk;

    everything.spans = NULL; /* the wait for a batch may lie far from its making */
    everything.t0_ns = 0;
    everything.t1_ns = LAC_TIME_MAX_NS;
    everything.tracks = NULL;
    if (status == LAC_OK && loader->details->loader_info_count == 0) {
        return LAC_OK;
    }
    if (status == LAC_OK) {
        status = lac_chunk_choice_begin(&choice, reterr);
    }
    while (status == LAC_OK && lac_chunk_choice_next(&choice, &chunk)) {
        const struct lac_chunk_columns *found = NULL;
        struct lac_cache_entry *pin = NULL;

        status =
            lac_trace_chunk(loader->trace->file, chunk,
                            LAC_COLUMNS_TILE | (1U << LAC_COLUMN_DETAIL), &found, &pin, reterr);
        if (status == LAC_OK) {
            status = add_chunk(loader, &found->at, loader->trace->chunks[chunk].first);
            lac_trace_unpin(loader->trace->file, pin);
        }
    }
    lac_chunk_choice_done(&choice);
    return status;
}

static int by_batch(const void *left, const void *right)
{
    const struct loaded *a = left;
    const struct loaded *b = right;

    if (a->batch != b->batch) {
        return a->batch < b->batch ? -1 : 1;
    }
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/** The first wait for that batch that ends after the fetch began: numbers repeat every epoch. */
static const struct loaded *wait_for(const struct loaded_list *waits, const struct loaded *fetch)
{
    uint32_t low = 0;

    LAC_BISECT(low, waits->count, middle, waits->all[middle].batch < fetch->batch);
    for (; low < waits->count && waits->all[low].batch == fetch->batch; low++) {
        if (waits->all[low].start_ns + waits->all[low].dur_ns >= fetch->start_ns) {
            return &waits->all[low];
        }
    }
    return NULL;
}

static void fill_batch(const struct loaded *fetch, const struct loaded *wait,
                       struct lac_table_row *row)
{
    lac_cell_int(row, LAC_TABLE_BATCH_COLUMN, fetch->batch);
    if (fetch->worker >= 0) {
        lac_cell_int(row, LAC_TABLE_WORKER_COLUMN, fetch->worker);
    }
    lac_cell_int(row, LAC_TABLE_START_COLUMN, fetch->start_ns);
    lac_cell_int(row, LAC_TABLE_DUR_COLUMN, fetch->dur_ns);
    if (fetch->cpu_ns >= 0) {
        lac_cell_int(row, LAC_TABLE_CPU_COLUMN, fetch->cpu_ns);
    }
    if (wait != NULL) {
        lac_cell_int(row, LAC_TABLE_WAIT_COLUMN, wait->dur_ns);
    }
    row->slice = fetch->slice;
    row->start_ns = fetch->start_ns;
    row->dur_ns = fetch->dur_ns;
}

enum lac_status lac_list_batches(struct lac_sql_trace *trace, const struct lac_table_query *query,
                                 struct lac_table *table, struct lac_error *reterr)
{
    struct loader loader = {.trace = trace, .query = query};
    enum lac_status status = read_loader(&loader, reterr);

    if (status == LAC_OK && loader.waits.count > 0) {
        qsort(loader.waits.all, loader.waits.count, sizeof(*loader.waits.all), by_batch);
    }
    for (uint32_t i = 0; i < loader.fetches.count && status == LAC_OK; i++) {
        struct lac_table_row *row;

        if (table->count >= LAC_TABLE_ROWS_MAX) {
            table->is_cut = true;
            break;
        }
        row = lac_table_add_row(table);
        if (row == NULL) {
            status = LAC_ERR_NOMEM;
            break;
        }
        fill_batch(&loader.fetches.all[i], wait_for(&loader.waits, &loader.fetches.all[i]), row);
    }
    free(loader.fetches.all);
    free(loader.waits.all);
    return status;
}
