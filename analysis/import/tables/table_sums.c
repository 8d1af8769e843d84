/*
 * Summaries: a name, how often, how long in all. The model has one slice for each call, so that
 * counts and totals are those of the table, laid end to end on its row where no time is meant
 * (info.has_no_time). The longest and the shortest are as the table says; what is between them is
 * shared out evenly.
 */

#include "analysis/import/tables/tables_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"

#include <stdint.h>
#include <string.h>

/* Rows without times lie on one of these. */
enum { ROW_DEVICE, ROW_CALLS, ROW_RANGES, ROW_OPERATORS };

static int row_of(enum lac_slice_kind kind)
{
    return kind == LAC_SLICE_API     ? ROW_CALLS
           : kind == LAC_SLICE_RANGE ? ROW_RANGES
           : kind == LAC_SLICE_OP    ? ROW_OPERATORS
                                     : ROW_DEVICE;
}

static enum lac_status track_of(struct lac_tables *tables, enum lac_slice_kind kind,
                                uint32_t *ret_track)
{
    static const char *const THREADS[] = {"", "calls", "ranges", "operators"};
    const char *thread = THREADS[row_of(kind)];
    const struct lac_table_field none = {"", 0};
    return thread[0] == '\0'
               ? lac_tables_stream(tables, 0, none, ret_track)
               : lac_tables_thread(tables, none, (struct lac_table_field){thread, strlen(thread)},
                                   ret_track);
}

/* The duration of call `i` of a sum; their sum is the total. */
static int64_t duration_of(const struct lac_table_sum *sum, int64_t i)
{
    bool has_ends = sum->least_ns >= 0 && sum->most_ns >= sum->least_ns && sum->calls >= 2;
    int64_t between = sum->calls - 2;
    int64_t rest_ns = has_ends ? sum->total_ns - sum->least_ns - sum->most_ns : 0;
    /* rounded figures need not fit each other */
    has_ends = has_ends && rest_ns >= 0 && (between > 0 || rest_ns == 0);
    if (has_ends && i == 0) {
        return sum->most_ns;
    }
    if (has_ends && i == 1) {
        return sum->least_ns;
    }
    int64_t count = has_ends ? between : sum->calls;
    int64_t total_ns = has_ends ? rest_ns : sum->total_ns;
    int64_t at = has_ends ? i - 2 : i;
    return total_ns / count + (at < total_ns % count ? 1 : 0);
}

enum lac_status lac_table_add_sum(struct lac_tables *tables, const struct lac_table_sum *sum)
{
    struct lac_slice_in slice = sum->slice;
    struct lac_table_sum laid = *sum;
    int row = row_of(slice.kind);
    enum lac_status status = track_of(tables, slice.kind, &slice.track);
    if ((uint64_t)laid.calls > tables->calls_left) {
        laid.calls = 1;
        tables->merged_count++;
    } else {
        tables->calls_left -= (uint64_t)laid.calls;
    }
    tables->has_sums = true;
    for (int64_t i = 0; i < laid.calls && status == LAC_OK; i++) {
        slice.start_ns = tables->end_ns[row];
        slice.dur_ns = duration_of(&laid, i);
        if (slice.dur_ns > LAC_TIME_MAX_NS - tables->end_ns[row]) {
            return lac_fail(tables->reterr, LAC_ERR_LIMIT, tables->lines.offset_bytes,
                            "the table's times add up to more than 104 days");
        }
        tables->end_ns[row] += slice.dur_ns;
        status = lac_tables_add(tables, &slice);
    }
    return status;
}

/* What the row's name stands for: by the table's section or type, else by the name. */
static enum lac_slice_kind kind_of(struct lac_tables *tables, struct lac_table_field name)
{
    struct lac_table_field type = lac_table_get(tables, LAC_ROLE_TYPE);
    enum lac_slice_kind kind = lac_table_kind_of_name(name);
    if (tables->heading.is_ranges) {
        return LAC_SLICE_RANGE;
    }
    if (lac_field_begins(type, "API") || lac_field_begins(type, "CUDA_API") ||
        lac_field_begins(type, "OpenACC") || lac_field_begins(type, "OpenMP")) {
        tables->section = LAC_SLICE_API;
    } else if (lac_field_begins(type, "GPU") || lac_field_begins(type, "CUDA_KERNEL") ||
               lac_field_begins(type, "MEMORY_OPER")) {
        tables->section = LAC_SLICE_KERNEL;
    }
    if (tables->section == LAC_SLICE_API || tables->heading.has_calls_of_api) {
        return LAC_SLICE_API;
    }
    if (tables->section == LAC_SLICE_KERNEL || tables->heading.has_instances) {
        return kind == LAC_SLICE_API ? LAC_SLICE_KERNEL : kind;
    }
    return kind;
}

enum lac_status lac_table_sums_row(struct lac_tables *tables)
{
    struct lac_table_field name = lac_table_get(tables, LAC_ROLE_NAME);
    struct lac_table_sum sum = {.slice = {.detail = LAC_NONE}, .least_ns = -1, .most_ns = -1};
    if (name.size == 0 || !lac_table_ns(tables, LAC_ROLE_TOTAL, &sum.total_ns) ||
        !lac_table_number(tables, LAC_ROLE_CALLS, &sum.calls) || sum.total_ns < 0 ||
        sum.calls < 1) {
        lac_tables_drop(tables, "row_without_sums",
                        "Rows without a name, a number of calls or a total were dropped.");
        return LAC_OK;
    }
    if (!lac_table_ns(tables, LAC_ROLE_MINIMUM, &sum.least_ns) ||
        !lac_table_ns(tables, LAC_ROLE_MAXIMUM, &sum.most_ns)) {
        sum.least_ns = -1;
        sum.most_ns = -1;
    }
    sum.slice.kind = kind_of(tables, name);
    enum lac_status status = lac_table_operation(tables, name, &sum.slice);
    return status == LAC_OK ? lac_table_add_sum(tables, &sum) : status;
}

/* Operators have their own time on the host; rows of kernels have none there. */
enum lac_status lac_table_torch_row(struct lac_tables *tables)
{
    struct lac_table_field name = lac_table_get(tables, LAC_ROLE_NAME);
    struct lac_table_sum sum = {.slice = {.detail = LAC_NONE}, .least_ns = -1, .most_ns = -1};
    int64_t device_ns = 0;
    if (name.size == 0 || !lac_table_ns(tables, LAC_ROLE_SELF_HOST, &sum.total_ns) ||
        !lac_table_number(tables, LAC_ROLE_CALLS, &sum.calls) || sum.total_ns < 0 ||
        sum.calls < 1) {
        lac_tables_drop(tables, "row_without_sums",
                        "Rows without a name, a number of calls or a total were dropped.");
        return LAC_OK;
    }
    bool is_device = sum.total_ns == 0 && lac_table_ns(tables, LAC_ROLE_SELF_DEVICE, &device_ns) &&
                     device_ns > 0;
    sum.total_ns = is_device ? device_ns : sum.total_ns;
    if (is_device && (lac_field_begins(name, "Memcpy") || lac_field_begins(name, "Memset"))) {
        sum.slice.kind = lac_field_begins(name, "Memset") ? LAC_SLICE_MEMSET : LAC_SLICE_COPY;
        enum lac_status status = lac_tables_intern(tables, name, &sum.slice.name);
        return status == LAC_OK ? lac_table_add_sum(tables, &sum) : status;
    }
    sum.slice.kind = is_device                                       ? LAC_SLICE_KERNEL
                     : lac_table_kind_of_name(name) == LAC_SLICE_API ? LAC_SLICE_API
                                                                     : LAC_SLICE_OP;
    enum lac_status status = lac_table_operation(tables, name, &sum.slice);
    return status == LAC_OK ? lac_table_add_sum(tables, &sum) : status;
}
