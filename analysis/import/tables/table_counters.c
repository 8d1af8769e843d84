/*
 * Counters of rocprofv3 (`--pmc`, *_counter_collection.csv): a row a counter of a dispatch, the rows
 * of a dispatch near each other: dispatches that ran side by side may take turns. A dispatch is one
 * kernel, whose arguments are its counters.
 *
 * Source: https://rocm.docs.amd.com/projects/rocprofiler-sdk, counter collection of rocprofv3
 */

#include "analysis/import/tables/tables_private.h"
#include "analysis/model/args.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "analysis/model/strings.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTERS_MAX = 256, NAME_BYTES = 96, OPEN_MAX = 64 };

/** Whole numbers up to it are exact as double. */
static const double WHOLE_MAX = 9007199254740992.0;

/** The sum of a counter's rows: exact while `is_whole`. */
struct counter {
    char name[NAME_BYTES]; /**< characters that JSON need not escape */
    double real;
    int64_t whole;
    bool is_whole;
};

/** A dispatch that may get more rows. */
struct dispatch {
    struct lac_slice_in slice;
    char id[32];
    char process[32];
    uint32_t count;
    struct counter counters[COUNTERS_MAX];
};

/** The dispatches begun last, in a ring: the oldest ends where another begins. */
struct lac_table_dispatches {
    struct dispatch open[OPEN_MAX];
    uint32_t oldest, count;
    uint32_t latest;                                /**< place of the last row's */
    char text[COUNTERS_MAX * (NAME_BYTES + 4) + 2]; /**< of the arguments */
    int64_t numbers[COUNTERS_MAX];
};

void lac_table_counters_done(struct lac_tables *tables)
{
    free(tables->dispatches);
    tables->dispatches = NULL;
}

enum lac_status lac_table_counters_begin(struct lac_tables *tables)
{
    if (tables->heading.column_of[LAC_ROLE_START] < 0) {
        return lac_fail(tables->reterr, LAC_ERR_CORRUPT, tables->lines.offset_bytes,
                        "counters of rocprofv3 without Start_Timestamp and End_Timestamp: record "
                        "with rocprofv3 of ROCm 6.3 or later");
    }
    if (tables->dispatches == NULL) {
        tables->dispatches = calloc(1, sizeof(*tables->dispatches));
        lac_model_report(tables->model, LAC_REPORT_INFO, "kernels_one_by_one", 1, 0,
                         "While it counts, rocprofv3 runs one kernel at a time: the time between "
                         "kernels is that of the profiler.");
    }
    return tables->dispatches == NULL ? lac_tables_pass(tables, LAC_ERR_NOMEM) : LAC_OK;
}

/* ---- the end of a dispatch ---- */

/* {"SQ_WAVES":\x01,"OccupancyPercent":\x02} and the numbers that go there. */
static enum lac_status store(struct lac_tables *tables, struct dispatch *dispatch)
{
    struct lac_table_dispatches *all = tables->dispatches;
    char *to = all->text;
    for (uint32_t i = 0; i < dispatch->count; i++) {
        const struct counter *counter = &dispatch->counters[i];
        const size_t size = strlen(counter->name);
        *to++ = i == 0 ? '{' : ',';
        *to++ = '"';
        memcpy(to, counter->name, size);
        to += size;
        *to++ = '"';
        *to++ = ':';
        *to++ = counter->is_whole ? LAC_ARG_INTEGER : LAC_ARG_REAL;
        if (counter->is_whole) {
            all->numbers[i] = counter->whole;
        } else {
            memcpy(&all->numbers[i], &counter->real, sizeof(counter->real));
        }
    }
    *to++ = '}';
    enum lac_status status = lac_strings_intern(&tables->model->strings, all->text,
                                                (size_t)(to - all->text), &dispatch->slice.args);
    if (status == LAC_OK) {
        status = lac_builder_arg_numbers(tables->builder, all->numbers, dispatch->count,
                                         &dispatch->slice.arg_num);
    }
    return lac_tables_pass(tables, status);
}

static enum lac_status end_oldest(struct lac_tables *tables)
{
    struct lac_table_dispatches *all = tables->dispatches;
    struct dispatch *dispatch = &all->open[all->oldest];
    all->oldest = (all->oldest + 1) % OPEN_MAX;
    all->count--;
    const enum lac_status status = dispatch->count > 0 ? store(tables, dispatch) : LAC_OK;
    return status == LAC_OK ? lac_tables_add(tables, &dispatch->slice) : status;
}

enum lac_status lac_table_counters_end(struct lac_tables *tables)
{
    enum lac_status status = LAC_OK;
    while (status == LAC_OK && tables->dispatches != NULL && tables->dispatches->count > 0) {
        status = end_oldest(tables);
    }
    return status;
}

/* ---- rows ---- */

static bool read_value(struct lac_table_field field, struct counter *ret_value)
{
    const bool is_real =
        memchr(field.text, '.', field.size) != NULL || memchr(field.text, 'e', field.size) != NULL;
    if (!is_real && lac_field_integer(field, &ret_value->whole)) {
        ret_value->real = (double)ret_value->whole;
        ret_value->is_whole = true;
        return true;
    }
    if (!lac_field_real(field, &ret_value->real)) {
        return false;
    }
    ret_value->is_whole =
        fabs(ret_value->real) <= WHOLE_MAX && ret_value->real == nearbyint(ret_value->real);
    ret_value->whole = ret_value->is_whole ? (int64_t)ret_value->real : 0;
    return true;
}

/* A name as arguments may have it. False: characters were replaced. */
static bool set_name(struct counter *counter, struct lac_table_field name)
{
    bool is_same = true;
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.text[i];
        const bool is_good = c >= ' ' && c <= '~' && c != '"' && c != '\\';
        counter->name[i] = (char)(is_good ? c : '_');
        is_same = is_same && is_good;
    }
    counter->name[name.size] = '\0';
    return is_same;
}

/* What is counted in several rows, one a part of the GPU, is their sum. */
static void add(struct counter *sum, const struct counter *value)
{
    sum->real += value->real;
    sum->is_whole = sum->is_whole && value->is_whole &&
                    !__builtin_add_overflow(sum->whole, value->whole, &sum->whole);
}

static void count(struct lac_tables *tables, struct dispatch *dispatch)
{
    const struct lac_table_field name = lac_table_get(tables, LAC_ROLE_COUNTER);
    struct counter counter = {.real = 0};
    if (name.size == 0 || !read_value(lac_table_get(tables, LAC_ROLE_COUNTER_VALUE), &counter)) {
        lac_tables_drop(tables, "counter_without_value",
                        "Counters without a name or a number were dropped.");
        return;
    }
    if (name.size >= NAME_BYTES) {
        lac_tables_drop(tables, "counter_name_too_long",
                        "Counters with names of 96 bytes or more were dropped.");
        return;
    }
    if (!set_name(&counter, name)) {
        lac_model_report(tables->model, LAC_REPORT_REPAIRED, "counter_name", 1,
                         tables->lines.offset_bytes,
                         "Characters that names of counters never have were replaced.");
    }
    for (uint32_t i = 0; i < dispatch->count; i++) {
        if (strcmp(dispatch->counters[i].name, counter.name) == 0) {
            add(&dispatch->counters[i], &counter);
            return;
        }
    }
    if (dispatch->count == COUNTERS_MAX) {
        lac_tables_drop(tables, "counters_left_out",
                        "Counters beyond the first 256 of a kernel were dropped.");
        return;
    }
    dispatch->counters[dispatch->count++] = counter;
}

/* The open dispatch that the row is of, or NULL. The last row's, in most cases. */
static struct dispatch *find(struct lac_table_dispatches *all, const struct lac_slice_in *slice,
                             const char *id, const char *process)
{
    for (uint32_t i = 0; i < OPEN_MAX; i++) {
        const uint32_t place = (all->latest + OPEN_MAX - i) % OPEN_MAX;
        struct dispatch *dispatch = &all->open[place];
        if ((place + OPEN_MAX - all->oldest) % OPEN_MAX < all->count &&
            slice->start_ns == dispatch->slice.start_ns &&
            slice->dur_ns == dispatch->slice.dur_ns && strcmp(id, dispatch->id) == 0 &&
            strcmp(process, dispatch->process) == 0) {
            all->latest = place;
            return dispatch;
        }
    }
    return NULL;
}

enum lac_status lac_table_counters_row(struct lac_tables *tables)
{
    struct lac_table_dispatches *all = tables->dispatches;
    char id[sizeof(all->open[0].id)];
    char process[sizeof(all->open[0].process)];
    struct lac_slice_in slice = {.detail = LAC_NONE};
    enum lac_status status = LAC_OK;
    if (!lac_table_timed_read(tables, &slice)) {
        return LAC_OK;
    }
    lac_field_copy(lac_table_get(tables, LAC_ROLE_DISPATCH), id, sizeof(id));
    lac_field_copy(lac_table_get(tables, LAC_ROLE_PROCESS), process, sizeof(process));
    struct dispatch *dispatch = find(all, &slice, id, process);
    if (dispatch == NULL) {
        status = all->count == OPEN_MAX ? end_oldest(tables) : LAC_OK;
        slice.kind = LAC_SLICE_KERNEL;
        status = status == LAC_OK ? lac_table_timed_place(tables, &slice) : status;
        if (status != LAC_OK) {
            return status;
        }
        all->latest = (all->oldest + all->count++) % OPEN_MAX;
        dispatch = &all->open[all->latest];
        dispatch->slice = slice;
        dispatch->count = 0;
        memcpy(dispatch->id, id, sizeof(id));
        memcpy(dispatch->process, process, sizeof(process));
    }
    count(tables, dispatch);
    return LAC_OK;
}
