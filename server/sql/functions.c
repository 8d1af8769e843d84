/* Table functions: questions that take SQL long and a loop over columns a moment. */

#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"
#include "server/sql/sql_trace.h"
#include "server/sql/tables.h"
#include "server/store/trace/trace_columns.h"
#include "server/store/trace/trace_file.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* -- by_name(t0_ns, t1_ns) --------------------------------------------------------------------- */

enum name_column {
    NAME_KIND,
    NAME_NAME,
    NAME_COUNT,
    NAME_TOTAL,
    NAME_SELF,
    NAME_MEAN,
    NAME_MAX,
    NAME_LONGEST,
    NAME_ARGUMENT,
};

static const struct lac_sql_column name_columns[] = {
    [NAME_KIND] = {"kind", "TEXT", "as in slices", LAC_SQL_WORDS_PLAIN},
    [NAME_NAME] = {"name", "TEXT", "as recorded", LAC_SQL_WORDS_GIVEN},
    [NAME_COUNT] = {"count", "INTEGER", "slices that overlap the interval", LAC_SQL_WORDS_PLAIN},
    [NAME_TOTAL] = {"total_ns", "INTEGER", "their time inside it", LAC_SQL_WORDS_PLAIN},
    [NAME_SELF] = {"self_ns", "INTEGER", "without what lies inside other slices of the thread",
                   LAC_SQL_WORDS_PLAIN},
    [NAME_MEAN] = {"mean_ns", "INTEGER", "total_ns by count", LAC_SQL_WORDS_PLAIN},
    [NAME_MAX] = {"max_ns", "INTEGER", "of one of them inside it", LAC_SQL_WORDS_PLAIN},
    [NAME_LONGEST] = {"longest", "INTEGER", "slices.id of that one", LAC_SQL_WORDS_PLAIN},
    [NAME_ARGUMENT] = {"t0_ns", "INTEGER", "default: the start of the trace", LAC_SQL_WORDS_PLAIN},
    [NAME_ARGUMENT + 1] = {"t1_ns", "INTEGER", "default: its end", LAC_SQL_WORDS_PLAIN},
};

/** Rows of the whole trace come from the statistics that the file keeps, in a moment; the slices are
 *  read when self times are asked for, or an interval. */
struct names {
    struct lac_area area;
    bool has_self; /**< self_ns is known */
};

static void close_names(void *state)
{
    struct names *names = state;
    lac_area_done(&names->area);
    free(names);
}

static int by_key(const void *a, const void *b)
{
    const struct lac_area_name *left = a;
    const struct lac_area_name *right = b;
    return left->kind != right->kind ? (left->kind > right->kind) - (left->kind < right->kind)
                                     : (left->name > right->name) - (left->name < right->name);
}

static enum lac_status read_whole(struct lac_sql_trace *trace, struct names *names,
                                  struct lac_error *reterr)
{
    const struct lac_name_stat *stats = NULL;
    uint32_t count = 0;
    enum lac_status status = lac_trace_stats(trace->file, &stats, &count, reterr);
    struct lac_area_name *rows = status == LAC_OK ? calloc((size_t)count + 1, sizeof(*rows)) : NULL;
    if (rows == NULL) {
        return status ? status : LAC_ERR_NOMEM;
    }
    names->area.names = rows;
    for (uint32_t i = 0; i < count; i++) {
        if (stats[i].kind != LAC_SLICE_STEP && stats[i].kind != LAC_SLICE_GAP) {
            rows[names->area.name_count++] = (struct lac_area_name){.name = stats[i].name,
                                                                    .kind = stats[i].kind,
                                                                    .count = stats[i].count,
                                                                    .total_ns = stats[i].total_ns,
                                                                    .max_ns = stats[i].max_ns,
                                                                    .longest = stats[i].longest};
        }
    }
    return LAC_OK;
}

/** Self times for the rows of the statistics: each has its row in the area, found by its key. */
static enum lac_status read_self(struct lac_sql_trace *trace, struct names *names)
{
    const struct lac_area_query query = {.t0_ns = 0, .t1_ns = LAC_TIME_MAX_NS};
    struct lac_area area = {0};
    struct lac_error error = {0};
    enum lac_status status = lac_trace_file_area(trace->file, &query, &area, &error);
    if (status == LAC_OK && area.name_count > 0) {
        qsort(area.names, area.name_count, sizeof(*area.names), by_key);
        for (uint32_t i = 0; i < names->area.name_count; i++) {
            const struct lac_area_name *found = bsearch(
                &names->area.names[i], area.names, area.name_count, sizeof(*area.names), by_key);
            names->area.names[i].self_ns = found != NULL ? found->self_ns : 0;
        }
    }
    lac_area_done(&area);
    names->has_self = status == LAC_OK;
    return status;
}

static enum lac_status open_names(struct lac_sql_trace *trace,
                                  const struct lac_sql_arguments *arguments, void **ret_state,
                                  uint64_t *ret_count, struct lac_error *reterr)
{
    const struct lac_area_query query = {.t0_ns = lac_sql_argument(arguments, 0, 0),
                                         .t1_ns = lac_sql_argument(arguments, 1, LAC_TIME_MAX_NS)};
    struct names *names = calloc(1, sizeof(*names));
    enum lac_status status = LAC_OK;
    if (names == NULL) {
        return LAC_ERR_NOMEM;
    }
    *ret_state = names;
    if (query.t0_ns <= 0 && query.t1_ns >= LAC_TIME_MAX_NS) {
        status = read_whole(trace, names, reterr);
    } else if (query.t1_ns >=
               query.t0_ns) { /* nothing is in an interval that ends before it begins */
        status = lac_trace_file_area(trace->file, &query, &names->area, reterr);
        names->has_self = true;
    }
    *ret_count = status == LAC_OK ? names->area.name_count : 0;
    return status;
}

static void name_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                      sqlite3_context *out)
{
    struct names *names = state;
    const struct lac_area_name *name = &names->area.names[row];
    switch (column) {
    case NAME_KIND:
        lac_sql_put_text(out, lac_slice_kind_name((enum lac_slice_kind)name->kind));
        break;
    case NAME_NAME:
        lac_sql_put_string(out, trace, name->name);
        break;
    case NAME_COUNT:
        sqlite3_result_int64(out, (int64_t)name->count);
        break;
    case NAME_TOTAL:
        sqlite3_result_int64(out, name->total_ns);
        break;
    case NAME_SELF:
        if (!names->has_self && read_self(trace, names)) {
            sqlite3_result_error(out, "self times cannot be read", -1);
        } else {
            sqlite3_result_int64(out, name->self_ns > 0 ? name->self_ns : 0);
        }
        break;
    case NAME_MEAN:
        sqlite3_result_int64(out, name->count > 0 ? name->total_ns / (int64_t)name->count : 0);
        break;
    case NAME_MAX:
        sqlite3_result_int64(out, name->max_ns);
        break;
    default:
        lac_sql_put_id(out, name->longest);
    }
}

static const struct lac_sql_rows name_rows = {
    .open = open_names, .cell = name_cell, .close = close_names};

/* -- ancestors(slice) -------------------------------------------------------------------------- */

static const struct lac_sql_column ancestor_columns[] = {
    {"level", "INTEGER", "0 the slice itself, 1 what it is inside of, ...", LAC_SQL_WORDS_PLAIN},
    {"id", "INTEGER", "slices.id", LAC_SQL_WORDS_PLAIN},
    {"kind", "TEXT", "as in slices", LAC_SQL_WORDS_PLAIN},
    {"name", "TEXT", "as recorded", LAC_SQL_WORDS_GIVEN},
    {"start_ns", "INTEGER", "since the start of the trace", LAC_SQL_WORDS_PLAIN},
    {"dur_ns", "INTEGER", "length", LAC_SQL_WORDS_PLAIN},
    {"slice", "INTEGER",
     "slices.id; of GPU work the call that launched it and what that is inside of",
     LAC_SQL_WORDS_PLAIN},
};

enum { ANCESTORS_MAX = 70000 }; /* lanes are 16 bits, and a launch in between */

struct ancestors {
    struct lac_slice_row *rows;
    uint32_t count, capacity;
};

static void close_ancestors(void *state)
{
    free(((struct ancestors *)state)->rows);
    free(state);
}

static bool add_ancestor(struct ancestors *list, const struct lac_slice_row *row)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity > 0 ? list->capacity * 2 : 16;
        struct lac_slice_row *rows = realloc(list->rows, capacity * sizeof(*rows));
        if (rows == NULL) {
            return false;
        }
        list->rows = rows;
        list->capacity = capacity;
    }
    list->rows[list->count++] = *row;
    return true;
}

static bool is_gpu_work(uint8_t kind)
{
    return kind == LAC_SLICE_KERNEL || kind == LAC_SLICE_COPY || kind == LAC_SLICE_MEMSET;
}

static enum lac_status open_ancestors(struct lac_sql_trace *trace,
                                      const struct lac_sql_arguments *arguments, void **ret_state,
                                      uint64_t *ret_count, struct lac_error *reterr)
{
    struct ancestors *list = calloc(1, sizeof(*list));
    int64_t asked = lac_sql_argument(arguments, 0, -1);
    enum lac_status status = LAC_OK;
    if (list == NULL) {
        return LAC_ERR_NOMEM;
    }
    *ret_state = list;
    uint32_t next =
        asked >= 0 && (uint64_t)asked < trace->head->slices.count ? (uint32_t)asked : LAC_NONE;
    while (next != LAC_NONE && list->count < ANCESTORS_MAX && status == LAC_OK) {
        struct lac_slice_row row;
        uint32_t parent = LAC_NONE;
        status = lac_trace_file_slice_place(trace->file, next, &row, &parent, reterr);
        if (status == LAC_OK) {
            status = add_ancestor(list, &row) ? LAC_OK : LAC_ERR_NOMEM;
            next = is_gpu_work(row.kind) && list->count == 1 ? row.link : parent;
        }
    }
    *ret_count = status == LAC_OK ? list->count : 0;
    return status;
}

static void ancestor_cell(struct lac_sql_trace *trace, void *state, uint64_t row, unsigned column,
                          sqlite3_context *out)
{
    const struct ancestors *list = state;
    const struct lac_slice_row *slice = &list->rows[row];
    switch (column) {
    case 0:
        sqlite3_result_int64(out, (int64_t)row);
        break;
    case 1:
        lac_sql_put_id(out, slice->slice);
        break;
    case 2:
        lac_sql_put_text(out, lac_slice_kind_name((enum lac_slice_kind)slice->kind));
        break;
    case 3:
        lac_sql_put_string(out, trace, slice->name);
        break;
    case 4:
        sqlite3_result_int64(out, slice->start_ns);
        break;
    default:
        sqlite3_result_int64(out, slice->dur_ns);
    }
}

static const struct lac_sql_rows ancestor_rows = {
    .open = open_ancestors, .cell = ancestor_cell, .close = close_ancestors};

static const struct lac_sql_table by_name_table = {
    .name = "by_name",
    .doc = "time by kind and name, in all or in an interval: by_name(t0_ns, t1_ns)",
    .columns = name_columns,
    .column_count = LAC_COUNT_OF(name_columns),
    .argument_count = 2,
    .rows = &name_rows,
};

static const struct lac_sql_table ancestors_table = {
    .name = "ancestors",
    .doc = "what a slice lies inside of, and of GPU work what launched it: ancestors(slice)",
    .columns = ancestor_columns,
    .column_count = LAC_COUNT_OF(ancestor_columns),
    .argument_count = 1,
    .rows = &ancestor_rows,
};

const struct lac_sql_table *const lac_sql_functions[] = {
    &by_name_table, &ancestors_table, &lac_sql_overlap_table, &lac_sql_flame_table,
    &lac_sql_critical_table};
const unsigned lac_sql_function_count = LAC_COUNT_OF(lac_sql_functions);
