#include "server/tables/trace_tables.h"

#include "analysis/diagnose/names/names.h"
#include "analysis/diagnose/result/vocabulary.h"
#include "analysis/flame/flame.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"
#include "collector/base/count_of.h"
#include "collector/base/reserve.h"
#include "server/sql/sql_trace.h"
#include "server/store/trace/trace_file.h"
#include "server/tables/count.h"
#include "server/tables/groups.h"
#include "server/tables/launches.h"
#include "server/tables/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char SEVERAL[] = "(several)";

/* -- what a table is ------------------------------------------------------------------------- */

static const struct lac_table_head heads[LAC_TABLE_COLUMN_COUNT_] = {
#define LAC_TABLE_COLUMN(KEY, id, label, unit, definition) {id, label, LAC_UNIT_##unit, definition},
#include "server/tables/columns.def" // IWYU pragma: keep
};

#define C(KEY)    LAC_TABLE_##KEY##_COLUMN
#define DURATIONS C(MEAN), C(P50), C(P95), C(MIN), C(MAX)

static const uint8_t of_kernels[] = {C(NAME),   C(FAMILY), C(OPERATOR), C(TRACK),
                                     C(COUNT),  C(TOTAL),  C(SHARE),    C(PER_STEP),
                                     DURATIONS, C(TENSOR), C(LAYOUT)};
static const uint8_t of_copies[] = {C(NAME),  C(DIRECTION), C(OPERATOR), C(TRACK), C(COUNT),
                                    C(TOTAL), C(SHARE),     DURATIONS,   C(BYTES), C(RATE)};
static const uint8_t of_threads[] = {C(NAME), C(TRACK),    C(COUNT), C(TOTAL),
                                     C(SELF), C(PER_STEP), DURATIONS};
static const uint8_t of_allocations[] = {C(NAME),  C(SIZE),     C(TRACK),
                                         C(COUNT), C(RELEASED), C(BYTES)};
static const uint8_t of_steps[] = {C(STEP), C(START), C(DUR),     C(TO_MEDIAN),
                                   C(IDLE), C(CAUSE), C(CAUSE_NS)};
static const uint8_t of_gaps[] = {C(START),    C(DUR),  C(DEVICE), C(CAUSE),
                                  C(CAUSE_NS), C(ROOT), C(OFTEN)};
static const uint8_t of_batches[] = {C(BATCH), C(WORKER), C(START), C(DUR), C(CPU), C(WAIT)};

#define THREADS_BY (LAC_TABLE_BY_NAME | LAC_TABLE_BY_TRACK)

static const struct {
    const char *word;
    const uint8_t *columns;
    uint8_t count;
    unsigned by, by_allowed;
} tables[LAC_TABLE_COUNT_] = {
    [LAC_TABLE_KERNELS] = {"kernels", of_kernels, LAC_COUNT_OF(of_kernels), LAC_TABLE_BY_NAME,
                           THREADS_BY | LAC_TABLE_BY_OPERATOR | LAC_TABLE_BY_FAMILY},
    [LAC_TABLE_COPIES] = {"copies", of_copies, LAC_COUNT_OF(of_copies), LAC_TABLE_BY_DIRECTION,
                          THREADS_BY | LAC_TABLE_BY_OPERATOR | LAC_TABLE_BY_DIRECTION},
    [LAC_TABLE_OPERATORS] = {"operators", of_threads, LAC_COUNT_OF(of_threads), LAC_TABLE_BY_NAME,
                             THREADS_BY},
    [LAC_TABLE_RANGES] = {"ranges", of_threads, LAC_COUNT_OF(of_threads), LAC_TABLE_BY_NAME,
                          THREADS_BY},
    [LAC_TABLE_CALLS] = {"calls", of_threads, LAC_COUNT_OF(of_threads), LAC_TABLE_BY_NAME,
                         THREADS_BY},
    [LAC_TABLE_PYTHON] = {"python", of_threads, LAC_COUNT_OF(of_threads), LAC_TABLE_BY_NAME,
                          THREADS_BY},
    [LAC_TABLE_ALLOCATIONS] = {"allocations", of_allocations, LAC_COUNT_OF(of_allocations),
                               LAC_TABLE_BY_NAME | LAC_TABLE_BY_SIZE,
                               THREADS_BY | LAC_TABLE_BY_SIZE},
    [LAC_TABLE_STEPS] = {"steps", of_steps, LAC_COUNT_OF(of_steps), 0, 0},
    [LAC_TABLE_GAPS] = {"gaps", of_gaps, LAC_COUNT_OF(of_gaps), 0, 0},
    [LAC_TABLE_BATCHES] = {"batches", of_batches, LAC_COUNT_OF(of_batches), 0, 0},
};

const char *lac_table_word(enum lac_table_name table)
{
    assert(table < LAC_TABLE_COUNT_);
    return tables[table].word;
}

const char *lac_table_unit_word(enum lac_table_unit unit)
{
    static const char *const words[LAC_UNIT_COUNT_] = {
        [LAC_UNIT_TEXT] = "text",     [LAC_UNIT_COUNT] = "count",      [LAC_UNIT_NS] = "ns",
        [LAC_UNIT_AT] = "at",         [LAC_UNIT_BYTES] = "bytes",      [LAC_UNIT_PCT] = "pct",
        [LAC_UNIT_NUMBER] = "number", [LAC_UNIT_RATE] = "bytes_per_s", [LAC_UNIT_CAUSE] = "cause",
    };

    assert(unit < LAC_UNIT_COUNT_);
    return words[unit];
}

const struct lac_table_head *lac_table_head(enum lac_table_column column)
{
    assert(column < LAC_TABLE_COLUMN_COUNT_);
    return &heads[column];
}

const uint8_t *lac_table_columns(enum lac_table_name table, unsigned *ret_count)
{
    assert(table < LAC_TABLE_COUNT_);
    *ret_count = tables[table].count;
    return tables[table].columns;
}

unsigned lac_table_by_usual(enum lac_table_name table)
{
    assert(table < LAC_TABLE_COUNT_);
    return tables[table].by;
}

unsigned lac_table_by_allowed(enum lac_table_name table)
{
    assert(table < LAC_TABLE_COUNT_);
    return tables[table].by_allowed;
}

/* -- rows ------------------------------------------------------------------------------------ */

const char *lac_table_text(struct lac_table *table, const char *text)
{
    char *copy = NULL;

    if (text != NULL && LAC_RESERVE(table->texts, table->text_capacity, table->text_count, 1)) {
        copy = strdup(text);
    }
    if (copy != NULL) {
        table->texts[table->text_count++] = copy;
    }
    return copy;
}

struct lac_table_row *lac_table_add_row(struct lac_table *table)
{
    if (!LAC_RESERVE(table->rows, table->capacity, table->count, 1)) {
        return NULL;
    }
    table->rows[table->count] =
        (struct lac_table_row){.slice = LAC_NONE, .start_ns = -1, .dur_ns = -1, .device = -1};
    return &table->rows[table->count++];
}

bool lac_row_matches(const struct lac_table_query *query, const struct lac_table_row *row)
{
    bool is_match = query->text == NULL || query->text[0] == '\0';

    for (unsigned c = 0; c < LAC_TABLE_COLUMN_COUNT_ && !is_match; c++) {
        is_match = row->cells[c].type == LAC_CELL_TEXT &&
                   strcasestr(row->cells[c].text, query->text) != NULL;
    }
    return is_match || (row->short_name != NULL && query->text != NULL &&
                        strcasestr(row->short_name, query->text) != NULL);
}

/** What a track is called: a stream by device and number, a thread by its name or id. */
static const char *track_text(struct lac_table *table, const struct lac_model *head, uint32_t index)
{
    const struct lac_track *track = &head->tracks[index];
    const char *name = lac_model_str(head, track->name);
    const char *id = lac_model_str(head, track->id_text);
    char text[160];

    const bool is_stream = track->kind == LAC_TRACK_STREAM || track->kind == LAC_TRACK_GPU_RANGE;

    if (is_stream && track->tid >= 0) {
        (void)snprintf(text, sizeof(text), "GPU %" PRId64 " stream %" PRId64, track->device,
                       track->tid);
    } else if (is_stream) {
        (void)snprintf(text, sizeof(text), "GPU %" PRId64 " stream %.96s", track->device, id);
    } else if (name[0] != '\0' && id[0] != '\0' && strstr(name, id) == NULL) {
        (void)snprintf(text, sizeof(text), "%.96s %.48s", name, id);
    } else {
        (void)snprintf(text, sizeof(text), "%.150s", name[0] != '\0' ? name : id);
    }
    return lac_table_text(table, text);
}

/** "HtoD pageable to device"; of a memset its kind. */
static const char *direction_text(struct lac_table *table, int64_t other)
{
    const uint8_t kind = (uint8_t)((uint64_t)other >> 24 & 0xff);
    const unsigned way = (unsigned)((uint64_t)other >> 16 & 0xff);
    const unsigned src = (unsigned)((uint64_t)other >> 8 & 0xff);
    const unsigned dst = (unsigned)((uint64_t)other & 0xff);
    char text[96];

    if (kind == LAC_SLICE_MEMSET) {
        return "memset";
    }
    if (way > LAC_COPY_PTOP || src > LAC_MEMORY_MANAGED || dst > LAC_MEMORY_MANAGED) {
        return "unknown";
    }
    if (src == LAC_MEMORY_UNKNOWN && dst == LAC_MEMORY_UNKNOWN) {
        return lac_copy_kind_name((enum lac_copy_kind)way);
    }
    (void)snprintf(text, sizeof(text), "%s %s to %s", lac_copy_kind_name((enum lac_copy_kind)way),
                   lac_memory_kind_name((enum lac_memory_kind)src),
                   lac_memory_kind_name((enum lac_memory_kind)dst));
    return lac_table_text(table, text);
}

/** What is being made of groups. */
struct making {
    struct lac_sql_trace *trace;
    const struct lac_table_query *query;
    struct lac_table *table;
    unsigned by;
    uint32_t step_count; /**< 0: none, or not of the whole trace */
};

static void fill_texts(const struct making *making, const struct lac_group *group,
                       struct lac_table_row *row)
{
    const struct lac_model *head = making->trace->head;
    const bool is_kernel = making->query->table == LAC_TABLE_KERNELS;

    lac_cell_text(row, C(NAME), group->has_names ? SEVERAL : lac_model_str(head, group->name));
    lac_cell_text(row, C(OPERATOR),
                  group->has_ops ? SEVERAL
                                 : (group->op != 0 ? lac_model_str(head, group->op) : NULL));
    lac_cell_text(row, C(TRACK),
                  group->has_tracks ? SEVERAL : track_text(making->table, head, group->track));
    if ((making->by & LAC_TABLE_BY_DIRECTION) != 0) {
        lac_cell_text(row, C(DIRECTION), direction_text(making->table, group->key.other));
    }
    if (is_kernel && (!group->has_names || (making->by & LAC_TABLE_BY_FAMILY) != 0)) {
        const struct lac_name_class *name_class = lac_sql_trace_class(making->trace, group->name);

        if (name_class != NULL) {
            lac_cell_text(row, C(FAMILY), lac_word(LAC_WORDS_FAMILY, name_class->family)->label);
        }
        if (name_class != NULL && !group->has_names) {
            const bool is_told =
                name_class->tensor_core != LAC_TENSOR_CORE_UNKNOWN &&
                (name_class->is_eligible || name_class->tensor_core == LAC_TENSOR_CORE_YES);

            lac_cell_text(row, C(TENSOR),
                          is_told ? lac_tensor_core_name(name_class->tensor_core) : NULL);
            lac_cell_text(row, C(LAYOUT),
                          name_class->layout != LAC_LAYOUT_NONE
                              ? lac_word(LAC_WORDS_LAYOUT, name_class->layout)->id
                              : NULL);
        }
    }
    if (is_kernel && !group->has_names) {
        char short_name[160];

        (void)lac_kernel_short_name(lac_model_str(head, group->name),
                                    lac_strings_length(&head->strings, group->name), short_name,
                                    sizeof(short_name));
        row->short_name = lac_table_text(making->table, short_name);
    }
}

static void fill_numbers(const struct making *making, const struct lac_group *group,
                         struct lac_table_row *row)
{
    lac_cell_int(row, C(COUNT), (int64_t)group->count);
    lac_cell_int(row, C(TOTAL), group->total_ns);
    lac_cell_int(row, C(SELF), group->self_ns > 0 ? group->self_ns : 0);
    lac_cell_int(row, C(MIN), group->min_ns);
    lac_cell_int(row, C(MAX), group->max_ns);
    if (group->count > 0) {
        lac_cell_int(row, C(MEAN), group->total_ns / (int64_t)group->count);
    }
    if (making->step_count > 0) {
        lac_cell_int(row, C(PER_STEP), group->total_ns / (int64_t)making->step_count);
    }
    if (making->query->table == LAC_TABLE_ALLOCATIONS) {
        lac_cell_int(row, C(RELEASED), (int64_t)group->released);
        if ((making->by & LAC_TABLE_BY_SIZE) != 0 && group->key.other >= 0) {
            lac_cell_int(row, C(SIZE), group->key.other);
        }
    }
    if (group->sized > 0) {
        lac_cell_int(row, C(BYTES), group->bytes);
        if (group->timed_ns > 0) {
            lac_cell_real(row, C(RATE), (double)group->bytes / ((double)group->timed_ns / 1e9));
        }
    }
    row->slice = group->longest;
}

static void fill_spread(const struct lac_groups *groups, const struct lac_spread *spread,
                        struct lac_table_row *row)
{
    if (groups->has_values) {
        lac_cell_int(row, C(P50), spread->p50_ns);
        lac_cell_int(row, C(P95), spread->p95_ns);
        memcpy(row->bins, spread->bins, sizeof(row->bins));
        row->has_bins = row->cells[C(MAX)].integer > row->cells[C(MIN)].integer;
    }
}

static void add_up(struct lac_group *sum, const struct lac_group *group)
{
    sum->count += group->count;
    sum->sized += group->sized;
    sum->released += group->released;
    if (__builtin_add_overflow(sum->total_ns, group->total_ns, &sum->total_ns)) {
        sum->total_ns = INT64_MAX;
    }
    if (__builtin_add_overflow(sum->self_ns, group->self_ns, &sum->self_ns)) {
        sum->self_ns = INT64_MAX;
    }
    if (__builtin_add_overflow(sum->bytes, group->bytes, &sum->bytes) ||
        __builtin_add_overflow(sum->timed_ns, group->timed_ns, &sum->timed_ns)) {
        sum->sized = 0;
    }
    sum->min_ns = group->min_ns < sum->min_ns ? group->min_ns : sum->min_ns;
    if (group->max_ns > sum->max_ns) {
        sum->max_ns = group->max_ns;
        sum->longest = group->longest;
    }
}

/** Rows of the groups that match, and of all of them together. */
static enum lac_status make_rows(const struct making *making, struct lac_groups *groups)
{
    struct lac_table *table = making->table;
    struct lac_spread *spreads = calloc((size_t)groups->count + 1, sizeof(*spreads));
    struct lac_group sum = {
        .key.other = -1, .min_ns = INT64_MAX, .max_ns = -1, .longest = LAC_NONE};

    for (uint32_t g = 0; g < groups->count && spreads != NULL; g++) {
        struct lac_table_row *row = lac_table_add_row(table);

        if (row == NULL) {
            free(spreads);
            return LAC_ERR_NOMEM;
        }
        fill_texts(making, &groups->all[g], row);
        fill_numbers(making, &groups->all[g], row);
        row->start_ns = g; /* its group, until the spreads are known */
        groups->all[g].is_left_out = !lac_row_matches(making->query, row);
        if (groups->all[g].is_left_out) {
            table->count--;
        } else {
            add_up(&sum, &groups->all[g]);
        }
    }
    if (spreads == NULL) {
        return LAC_ERR_NOMEM;
    }
    lac_groups_spread(groups, spreads);
    for (uint32_t r = 0; r < table->count; r++) {
        struct lac_table_row *row = &table->rows[r];

        fill_spread(groups, &spreads[row->start_ns], row);
        row->start_ns = -1;
        if (sum.total_ns > 0) {
            lac_cell_real(row, C(SHARE),
                          100.0 * (double)row->cells[C(TOTAL)].integer / (double)sum.total_ns);
        }
    }
    table->has_all = sum.count > 0;
    if (table->has_all) {
        table->all = (struct lac_table_row){.start_ns = -1, .dur_ns = -1, .device = -1};
        fill_numbers(making, &sum, &table->all);
        fill_spread(groups, &spreads[groups->count], &table->all);
        lac_cell_real(&table->all, C(SHARE), 100);
    }
    free(spreads);
    return LAC_OK;
}

static enum lac_status make_groups(struct lac_sql_trace *trace, const struct lac_table_query *query,
                                   struct lac_table *table, struct lac_error *reterr)
{
    const bool has_launches = query->table == LAC_TABLE_KERNELS || query->table == LAC_TABLE_COPIES;
    struct making making = {.trace = trace,
                            .query = query,
                            .table = table,
                            .by = query->by != 0 ? query->by : lac_table_by_usual(query->table)};
    struct lac_trace_steps steps = {0};
    struct lac_launches launches = {0};
    struct lac_groups groups;
    enum lac_status status = lac_groups_init(&groups);

    lac_trace_file_steps(trace->file, &steps);
    if (query->spans != NULL) {
        making.step_count = query->step_count;
    } else if (query->t0_ns == 0 && query->t1_ns > trace->head->info.duration_ns) {
        making.step_count = steps.count;
    }
    table->step_count = making.step_count;
    if (status == LAC_OK && has_launches) {
        status = lac_launches_find(trace, query, lac_table_kinds(query->table), &launches, reterr);
    }
    if (status == LAC_OK) {
        status = lac_count_slices(trace, query, &launches, &groups, reterr);
    }
    if (status == LAC_OK) {
        status = make_rows(&making, &groups);
    }
    table->has_operators = !launches.is_too_many;
    table->has_percentiles = groups.has_values;
    lac_launches_done(&launches);
    lac_groups_done(&groups);
    return status;
}

/* -- order ----------------------------------------------------------------------------------- */

struct order {
    const struct lac_table_query *query;
};

static int compare_cells(const struct lac_cell *a, const struct lac_cell *b)
{
    if (a->type == LAC_CELL_TEXT) {
        return strcasecmp(a->text, b->text);
    }
    if (a->type == LAC_CELL_INT) {
        return a->integer < b->integer ? -1 : a->integer > b->integer;
    }
    return a->real < b->real ? -1 : a->real > b->real;
}

/** What a cell does not tell comes last, in either direction. */
static int by_column(const void *left, const void *right, void *context)
{
    const struct lac_table_row *a = left;
    const struct lac_table_row *b = right;
    const struct order *order = context;
    const struct lac_cell *x = &a->cells[order->query->sort];
    const struct lac_cell *y = &b->cells[order->query->sort];

    if (x->type != y->type) {
        return x->type == LAC_CELL_NONE ? 1 : (y->type == LAC_CELL_NONE ? -1 : 0);
    }
    const int result = x->type == LAC_CELL_NONE ? 0 : compare_cells(x, y);

    if (result != 0) {
        return order->query->is_descending ? -result : result;
    }
    if (a->slice != b->slice) {
        return a->slice < b->slice ? -1 : 1;
    }
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static bool is_asked_well(const struct lac_trace_file *file, const struct lac_table_query *query)
{
    const uint32_t track_count = lac_trace_file_head(file)->track_count;
    const unsigned allowed = query->table < LAC_TABLE_COUNT_ ? tables[query->table].by_allowed : 0;
    bool is_well = query->table < LAC_TABLE_COUNT_ && query->t0_ns >= 0 &&
                   query->t0_ns < query->t1_ns && query->sort < LAC_TABLE_COLUMN_COUNT_ &&
                   (query->by & ~allowed) == 0;

    for (uint32_t i = 0; query->spans != NULL && i < query->span_count; i++) {
        is_well = is_well && query->spans[i].start_ns < query->spans[i].end_ns &&
                  (i == 0 || query->spans[i - 1].end_ns <= query->spans[i].start_ns) &&
                  query->spans[i].end_ns <= query->t1_ns;
    }
    for (uint32_t i = 0; query->tracks != NULL && i < query->track_count; i++) {
        is_well = is_well && query->tracks[i] < track_count &&
                  (i == 0 || query->tracks[i - 1] < query->tracks[i]);
    }
    return is_well;
}

enum lac_status lac_table_make(struct lac_trace_file *file, const struct lac_table_query *query,
                               struct lac_table *ret_table, struct lac_error *reterr)
{
    assert(file != NULL && query != NULL && ret_table != NULL);
    struct lac_sql_trace trace = {0};
    struct lac_table table = {.has_operators = true, .has_percentiles = true};
    struct order order = {query};
    enum lac_status status;

    if (!is_asked_well(file, query)) {
        return lac_fail(
            reterr, LAC_ERR_MISUSE, 0,
            "table: t0 is before t1, columns and tracks exist, tracks and spans ascend");
    }
    lac_sql_trace_init(&trace, file);
    if (query->table == LAC_TABLE_STEPS) {
        status = lac_list_steps(&trace, query, &table, reterr);
    } else if (query->table == LAC_TABLE_GAPS) {
        status = lac_list_gaps(&trace, query, &table, reterr);
    } else if (query->table == LAC_TABLE_BATCHES) {
        status = lac_list_batches(&trace, query, &table, reterr);
    } else {
        status = make_groups(&trace, query, &table, reterr);
    }
    lac_sql_trace_done(&trace);
    if (status != LAC_OK) {
        lac_table_done(&table);
        return status;
    }
    if (table.count > 1) {
        qsort_r(table.rows, table.count, sizeof(*table.rows), by_column, &order);
    }
    *ret_table = table;
    return LAC_OK;
}

void lac_table_done(struct lac_table *table)
{
    for (uint32_t t = 0; t < table->text_count; t++) {
        free(table->texts[t]);
    }
    free(table->texts);
    free(table->rows);
    *table = (struct lac_table){0};
}
