/* Short names of the enums: part of the JSON API and of trace files, so never renamed. */

#include "analysis/model/model.h"
#include "collector/base/count_of.h"

#include <stddef.h>

#define NAME_OF(names, value)                                                                      \
    ((size_t)(value) < LAC_COUNT_OF(names) ? (names)[(size_t)(value)] : "unknown")

const char *lac_slice_kind_name(enum lac_slice_kind kind)
{
    static const char *const names[] = {
        [LAC_SLICE_OTHER] = "other",
        [LAC_SLICE_KERNEL] = "kernel",
        [LAC_SLICE_COPY] = "copy",
        [LAC_SLICE_MEMSET] = "memset",
        [LAC_SLICE_GPU_RANGE] = "gpu_range",
        [LAC_SLICE_API] = "api",
        [LAC_SLICE_SYNC] = "sync",
        [LAC_SLICE_OVERHEAD] = "overhead",
        [LAC_SLICE_OP] = "op",
        [LAC_SLICE_RANGE] = "range",
        [LAC_SLICE_PYTHON] = "python",
        [LAC_SLICE_ALLOC] = "alloc",
        [LAC_SLICE_INSTANT] = "instant",
        [LAC_SLICE_STEP] = "step",
        [LAC_SLICE_GAP] = "gap",
    };
    _Static_assert(LAC_COUNT_OF(names) == LAC_SLICE_KIND_COUNT_, "name every kind");

    return NAME_OF(names, kind);
}

const char *lac_track_kind_name(enum lac_track_kind kind)
{
    static const char *const names[] = {
        [LAC_TRACK_THREAD] = "thread",     [LAC_TRACK_STREAM] = "stream",
        [LAC_TRACK_COUNTER] = "counter",   [LAC_TRACK_ASYNC] = "async",
        [LAC_TRACK_MARKS] = "marks",       [LAC_TRACK_GPU_RANGE] = "gpu_range",
        [LAC_TRACK_STEPS] = "steps",       [LAC_TRACK_GAPS] = "gaps",
        [LAC_TRACK_STACKS] = "stacks",     [LAC_TRACK_PROFILE] = "profile",
        [LAC_TRACK_BACKWARD] = "backward",
    };
    _Static_assert(LAC_COUNT_OF(names) == LAC_TRACK_KIND_COUNT_, "name every kind");

    return NAME_OF(names, kind);
}

const char *lac_copy_kind_name(enum lac_copy_kind kind)
{
    static const char *const names[] = {
        [LAC_COPY_UNKNOWN] = "unknown", [LAC_COPY_HTOD] = "HtoD", [LAC_COPY_DTOH] = "DtoH",
        [LAC_COPY_DTOD] = "DtoD",       [LAC_COPY_HTOH] = "HtoH", [LAC_COPY_PTOP] = "PtoP",
    };

    return NAME_OF(names, kind);
}

const char *lac_memory_kind_name(enum lac_memory_kind kind)
{
    static const char *const names[] = {
        [LAC_MEMORY_UNKNOWN] = "unknown", [LAC_MEMORY_PAGEABLE] = "pageable",
        [LAC_MEMORY_PINNED] = "pinned",   [LAC_MEMORY_DEVICE] = "device",
        [LAC_MEMORY_ARRAY] = "array",     [LAC_MEMORY_MANAGED] = "managed",
    };

    return NAME_OF(names, kind);
}

const char *lac_trace_format_name(enum lac_trace_format format)
{
    static const char *const names[] = {
#define LAC_TRACE_FORMAT(NAME, number, text) [LAC_FORMAT_##NAME] = (text),
#include "analysis/model/trace_formats.def"
#undef LAC_TRACE_FORMAT
    };

    return NAME_OF(names, format);
}
