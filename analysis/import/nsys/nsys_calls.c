/* Host tables of an Nsight Systems export: CUDA calls, library and system calls, overheads. */

#include "analysis/import/nsys/nsys_db.h"
#include "analysis/import/nsys/nsys_private.h"
#include "analysis/model/builder.h"
#include "analysis/model/model.h"
#include "analysis/model/status.h"
#include "collector/base/count_of.h"

#include <stddef.h>
#include <stdint.h>

enum { START, END, THREAD, NAME, CORRELATION, RETURNED };
static const char *const CALL_COLUMNS[] = {"start",         "end",         "globalTid", "nameId",
                                           "correlationId", "returnValue", NULL};

/* A row as a slice of its thread; false: it had no times and was counted. */
static enum lac_status on_thread(struct lac_nsys *nsys, const struct lac_nsys_rows *rows,
                                 enum lac_slice_kind kind, struct lac_slice_in *slice,
                                 bool *ret_is_good)
{
    *slice = (struct lac_slice_in){.detail = LAC_NONE, .kind = kind};
    enum lac_status status = lac_nsys_interval(nsys, rows, slice, ret_is_good);
    if (status == LAC_OK && *ret_is_good) {
        status = lac_nsys_thread(nsys, LAC_TRACK_THREAD, lac_nsys_rows_integer_or(rows, THREAD, 0),
                                 &slice->track);
    }
    if (status == LAC_OK && *ret_is_good) {
        status = lac_nsys_column_name(nsys, rows, NAME, NAME, &slice->name);
    }
    return status;
}

static enum lac_status on_call(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    bool is_good = false;
    int64_t returned;
    enum lac_status status = on_thread(nsys, rows, LAC_SLICE_API, &slice, &is_good);
    if (status != LAC_OK || !is_good) {
        return status;
    }
    slice.corr = lac_nsys_correlation(nsys, lac_nsys_rows_integer_or(rows, THREAD, 0),
                                      lac_nsys_rows_u32(rows, CORRELATION, 0));
    if (lac_nsys_rows_integer(rows, RETURNED, &returned) && returned >= 0 &&
        returned < UINT32_MAX) {
        slice.detail = (uint32_t)returned;
    }
    return lac_nsys_add(nsys, &slice);
}

static enum lac_status on_other(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    bool is_good = false;
    enum lac_status status = on_thread(nsys, rows, LAC_SLICE_OTHER, &slice, &is_good);
    return status == LAC_OK && is_good ? lac_nsys_add(nsys, &slice) : status;
}

static enum lac_status on_overhead(struct lac_nsys *nsys, const struct lac_nsys_rows *rows)
{
    struct lac_slice_in slice;
    bool is_good = false;
    enum lac_status status = on_thread(nsys, rows, LAC_SLICE_OVERHEAD, &slice, &is_good);
    return status == LAC_OK && is_good ? lac_nsys_add(nsys, &slice) : status;
}

enum lac_status lac_nsys_read_calls(struct lac_nsys *nsys)
{
    static const struct {
        const char *table;
        enum lac_status (*on_row)(struct lac_nsys *nsys, const struct lac_nsys_rows *rows);
    } TABLES[] = {
        {"CUPTI_ACTIVITY_KIND_RUNTIME", on_call},
        {"CUPTI_ACTIVITY_KIND_OVERHEAD", on_overhead},
        {"PROFILER_OVERHEAD", on_overhead},
        {"OSRT_API", on_other},
        {"CUDNN_EVENTS", on_other},
        {"CUBLAS_EVENTS", on_other},
    };
    enum lac_status status = LAC_OK;
    for (size_t i = 0; i < LAC_COUNT_OF(TABLES) && status == LAC_OK; i++) {
        status = lac_nsys_each(nsys, TABLES[i].table, CALL_COLUMNS, true, TABLES[i].on_row);
    }
    return status;
}
