/*
 * Counters of rocprofv3 (`--pmc`, *_counter_collection.csv): a row a counter of a dispatch, the rows
 * of a dispatch one below the other. A dispatch is one kernel, whose arguments are its counters.
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

enum { COUNTERS_MAX = 256, NAME_BYTES = 96 };

/** Whole numbers up to it are exact as double. */
static const double WHOLE_MAX = 9007199254740992.0;

/** The sum of a counter's rows: exact while `is_whole`. */
struct counter {
    char name[NAME_BYTES]; /**< characters that JSON need not escape */
    double real;
    int64_t whole;
    bool is_whole;
};

/** The dispatch that is being read. */
struct lac_table_dispatch {
    bool is_open;
    struct lac_slice_in slice;
    char id[32];
    char process[32];
    uint32_t count;
    struct counter counters[COUNTERS_MAX];
    char text[COUNTERS_MAX * (NAME_BYTES + 4) + 2]; /**< of the arguments */
    int64_t numbers[COUNTERS_MAX];
};

void lac_table_counters_done(struct lac_tables *tables)
{
    free(tables->dispatch);
    tables->dispatch = NULL;
}

enum lac_status lac_table_counters_begin(struct lac_tables *tables)
{
    if (tables->heading.column_of[LAC_ROLE_START] < 0) {
        return lac_fail(tables->reterr, LAC_ERR_CORRUPT, tables->lines.offset_bytes,
                        "counters of rocprofv3 without Start_Timestamp and End_Timestamp: record "
                        "with rocprofv3 of ROCm 6.3 or later");
    }
    if (tables->dispatch == NULL) {
        tables->dispatch = calloc(1, sizeof(*tables->dispatch));
        lac_model_report(tables->model, LAC_REPORT_INFO, "kernels_one_by_one", 1, 0,
                         "While it counts, rocprofv3 runs one kernel at a time: the time between "
                         "kernels is that of the profiler.");
    }
    return tables->dispatch == NULL ? lac_tables_pass(tables, LAC_ERR_NOMEM) : LAC_OK;
}

/* ---- the end of a dispatch ---- */

/* {"SQ_WAVES":\x01,"OccupancyPercent":\x02} and the numbers that go there. */
static enum lac_status store(struct lac_tables *tables, struct lac_table_dispatch *dispatch)
{
    char *to = dispatch->text;
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
            dispatch->numbers[i] = counter->whole;
        } else {
            memcpy(&dispatch->numbers[i], &counter->real, sizeof(counter->real));
        }
    }
    *to++ = '}';
    enum lac_status status =
        lac_strings_intern(&tables->model->strings, dispatch->text, (size_t)(to - dispatch->text),
                           &dispatch->slice.args);
    if (status == LAC_OK) {
        status = lac_builder_arg_numbers(tables->builder, dispatch->numbers, dispatch->count,
                                         &dispatch->slice.arg_num);
    }
    return lac_tables_pass(tables, status);
}

enum lac_status lac_table_counters_end(struct lac_tables *tables)
{
    struct lac_table_dispatch *dispatch = tables->dispatch;
    if (dispatch == NULL || !dispatch->is_open) {
        return LAC_OK;
    }
    dispatch->is_open = false;
    const enum lac_status status = dispatch->count > 0 ? store(tables, dispatch) : LAC_OK;
    return status == LAC_OK ? lac_tables_add(tables, &dispatch->slice) : status;
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

static void count(struct lac_tables *tables, struct lac_table_dispatch *dispatch)
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

enum lac_status lac_table_counters_row(struct lac_tables *tables)
{
    struct lac_table_dispatch *dispatch = tables->dispatch;
    char id[sizeof(dispatch->id)];
    char process[sizeof(dispatch->process)];
    struct lac_slice_in slice = {.detail = LAC_NONE};
    if (!lac_table_timed_read(tables, &slice)) {
        return LAC_OK;
    }
    lac_field_copy(lac_table_get(tables, LAC_ROLE_DISPATCH), id, sizeof(id));
    lac_field_copy(lac_table_get(tables, LAC_ROLE_PROCESS), process, sizeof(process));
    const bool is_same = dispatch->is_open && strcmp(id, dispatch->id) == 0 &&
                         strcmp(process, dispatch->process) == 0 &&
                         slice.start_ns == dispatch->slice.start_ns &&
                         slice.dur_ns == dispatch->slice.dur_ns;
    enum lac_status status = is_same ? LAC_OK : lac_table_counters_end(tables);
    if (status == LAC_OK && !is_same) {
        slice.kind = LAC_SLICE_KERNEL;
        status = lac_table_timed_place(tables, &slice);
        dispatch->slice = slice;
        dispatch->is_open = status == LAC_OK;
        dispatch->count = 0;
        memcpy(dispatch->id, id, sizeof(id));
        memcpy(dispatch->process, process, sizeof(process));
    }
    if (status == LAC_OK) {
        count(tables, dispatch);
    }
    return status;
}
